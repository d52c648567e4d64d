"""Communication among processes: groups, collective operations and messages.

A program is started as several processes by `mpirun`, or by `python -m ultramarine.launch`. Each calls `init` for the
group of all. A process that was started by itself is a group of its own, in which collective operations return their
operand, so that the same program runs there.

All processes of a group call the same operations in the same order. Results are lazy, and may be evaluated in any order: an
operation has the earlier ones of its group run first. `compile` and the other transforms keep that order. Operations that
no result needed run when the program ends. The communication has a stream of its own; `stream` says where results are.
"""

# Made by python/tools/make_stubs.py of the module's docstrings: change those.

from collections.abc import Callable, Sequence
from typing import Any

from ultramarine import ArrayLike, Dtype, StreamOrDevice, array

class Group:
    """Processes that communicate with each other.

    `init` returns the group of all; the class has no constructor.

    Example:
        >>> mx.distributed.init().size()
        1
    """

    def rank(self) -> int:
        """Returns the number of the calling process in the group.

        Returns:
            int: 0 for the first one.

        Example:
            >>> mx.distributed.init().rank()
            0
        """
    def size(self) -> int:
        """Returns the number of processes.

        Returns:
            int: 1 for a process by itself.

        Example:
            >>> mx.distributed.init().size()
            1
        """
    def split(self, color: int, key: int = -1) -> Group:
        """Splits the group into groups of processes with the same color.

        All processes of the group call it. Operations of the group that were called before are evaluated first.

        Args:
            color (int): Number of the calling process's new group, from 0.
            key (int): Order in the new group; by default that of this group.

        Returns:
            Group: The new group of the calling process.

        Raises:
            ValueError: If the color is negative.
            RuntimeError: If the group has one process.

        Example:
            >>> group = mx.distributed.init()
            >>> if group.size() > 1:
            ...     pair = group.split(group.rank() // 2)
        """

def all_gather(x: ArrayLike, *, group: Group | None = None, stream: StreamOrDevice = None) -> array:
    """Concatenates the arrays of all processes along the first axis, in the order of ranks.

    All processes give arrays of the same shape and dtype. The gradient is the cotangent of this process's part.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: All arrays, the same in all processes; of numbers an array with one axis.

    Example:
        >>> mx.distributed.all_gather(mx.array([1, 2]))
        array([1, 2], dtype=int32)
    """

def all_max(x: ArrayLike, *, group: Group | None = None, stream: StreamOrDevice = None) -> array:
    """Computes the maximum of the arrays of all processes, element by element.

    All processes give arrays of the same shape and dtype. The maximum is NaN where one is. Its gradient goes to the processes
    that have it.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: Maximum, the same in all processes.

    Example:
        >>> mx.distributed.all_max(mx.array([1, 2]))
        array([1, 2], dtype=int32)
    """

def all_min(x: ArrayLike, *, group: Group | None = None, stream: StreamOrDevice = None) -> array:
    """Computes the minimum of the arrays of all processes, element by element.

    All processes give arrays of the same shape and dtype. The minimum is NaN where one is. Its gradient goes to the processes
    that have it.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: Minimum, the same in all processes.

    Example:
        >>> mx.distributed.all_min(mx.array([1, 2]))
        array([1, 2], dtype=int32)
    """

def all_sum(x: ArrayLike, *, group: Group | None = None, stream: StreamOrDevice = None) -> array:
    """Sums the arrays of all processes, element by element.

    All processes give arrays of the same shape and dtype. Sums of bools are true where one is; halves are summed in float32.
    The gradient is the cotangent, which is the same in all processes.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: Sum, the same in all processes.

    Example:
        >>> mx.distributed.all_sum(mx.array([1, 2]))
        array([1, 2], dtype=int32)
    """

def init(
    strict: bool = False,
    backend: str = "any",
    *,
    all_gather_factory: Callable[..., Any] | None = None,
) -> Group:
    """Returns the group of all processes that were started together.

    Under `mpirun` the first call starts MPI, for which all processes have to call it. A process that was started by itself
    gets the group of itself alone. With "nccl" each process has a GPU of its host, by its rank, which becomes the default
    device; "any" is "nccl" where a launcher set `MLX_RANK`, `MLX_WORLD_SIZE`, `NCCL_HOST_IP` and `NCCL_PORT`, else "mpi".

    Args:
        strict (bool): Whether it is an error that no launcher of the backend started the process.
        backend (str): "any", "mpi", "ring", "nccl" or "jaccl".
        all_gather_factory (Callable[..., Any] | None): Side channel of the backend "jaccl"; unused.

    Returns:
        Group: The same one in each call.

    Raises:
        ValueError: If there is no such backend in MLX, or `all_gather_factory` is given for another one than "jaccl".
        RuntimeError: If `strict` is true and the process is by itself, or if the environment says that a launcher started
            several processes (`MLX_RANK`, `MLX_WORLD_SIZE`, `MLX_HOSTFILE`, or MPI's variables) and they cannot communicate.

    Example:
        >>> group = mx.distributed.init()
        >>> group.rank(), group.size()
        (0, 1)
    """

def is_available(backend: str = "any") -> bool:
    """Tests whether the library of a communication backend is there.

    Whether this process was started as one of several is another question, which `init(strict=True)` answers.

    Args:
        backend (str): "any", or one of MLX's: "mpi", "ring", "nccl", "jaccl".

    Returns:
        bool: True for "mpi" if Open MPI or MPICH is installed, for "nccl" if NCCL is and there is a GPU for it, for "any" if
            either is; False for the others.

    Example:
        >>> mx.distributed.is_available("jaccl")
        False
    """

def recv(
    shape: Sequence[int],
    dtype: Dtype,
    src: int,
    *,
    group: Group | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Receives an array from another process, which sends it by `send`.

    Args:
        shape (Sequence[int]): Shape of the array.
        dtype (Dtype): Dtype of the array.
        src (int): Rank of the source.
        group (Group | None): Group in which `src` counts, by default all processes.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: Array whose evaluation receives.

    Raises:
        ValueError: If there is no other process of this rank, or a size is negative.

    Example:
        >>> group = mx.distributed.init()
        >>> if group.size() > 1 and group.rank() == 1:
        ...     x = mx.distributed.recv((2,), mx.float32, src=0)
    """

def recv_like(
    x: ArrayLike, src: int, *, group: Group | None = None, stream: StreamOrDevice = None
) -> array:
    """Receives an array with the shape and dtype of another one, as `recv`.

    Args:
        x (ArrayLike): Array with the shape and dtype to receive.
        src (int): Rank of the source.
        group (Group | None): Group in which `src` counts, by default all processes.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: Array whose evaluation receives.

    Raises:
        ValueError: If there is no other process of this rank.

    Example:
        >>> group = mx.distributed.init()
        >>> if group.size() > 1 and group.rank() == 1:
        ...     x = mx.distributed.recv_like(mx.zeros(2), src=0)
    """

def send(
    x: ArrayLike, dst: int, *, group: Group | None = None, stream: StreamOrDevice = None
) -> array:
    """Sends an array to another process, which receives it by `recv`.

    Args:
        x (ArrayLike): Array to send.
        dst (int): Rank of the destination.
        group (Group | None): Group in which `dst` counts, by default all processes.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: `x`, whose evaluation sends.

    Raises:
        ValueError: If there is no other process of this rank.

    Example:
        >>> group = mx.distributed.init()
        >>> if group.size() > 1 and group.rank() == 0:
        ...     mx.eval(mx.distributed.send(mx.array([1.0, 2.0]), dst=1))
    """

def sum_scatter(
    x: ArrayLike, *, group: Group | None = None, stream: StreamOrDevice = None
) -> array:
    """Sums the arrays of all processes, and gives each process its part of the first axis.

    All processes give arrays of the same shape and dtype. The gradient is the cotangents of all parts.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: Part number `rank` of the sum.

    Raises:
        ValueError: If the first axis cannot be cut into equal parts.

    Example:
        >>> mx.distributed.sum_scatter(mx.array([1, 2]))
        array([1, 2], dtype=int32)
    """
