"""Communication among processes: groups of one process, in which every collective operation returns its operand.

No communication backend exists yet. `init` returns the group of the calling process alone, so programs that
average gradients or shard layers over a group run unchanged. `init(strict=True)`, and a process that a launcher
started as one of several, get an error.
"""

# Made by python/tools/make_stubs.py of the module's docstrings: change those.

from collections.abc import Callable, Sequence
from typing import Any

from ultramarine import ArrayLike, Dtype, StreamOrDevice, array

class Group:
    """Processes that communicate with each other: the calling process alone.

    `init` returns it; the class has no constructor.
    """

    def rank(self) -> int:
        """Returns the number of the calling process in the group.

        Returns:
            int: 0.
        """
    def size(self) -> int:
        """Returns the number of processes.

        Returns:
            int: 1.
        """
    def split(self, color: int, key: int = -1) -> Group:
        """Splits the group into groups of processes with the same color; always an error for one process.

        Args:
            color (int): Number of the calling process's new group.
            key (int): Order in the new group, by default that of this group.

        Returns:
            Group: Never: a group of one process cannot be split.

        Raises:
            RuntimeError: Always.
        """

def all_gather(x: ArrayLike, *, group: Group | None = None, stream: StreamOrDevice = None) -> array:
    """Concatenates the arrays of all processes along the first axis.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: `x`, the only part.
    """

def all_max(x: ArrayLike, *, group: Group | None = None, stream: StreamOrDevice = None) -> array:
    """Computes the maximum of the arrays of all processes, element by element.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: `x`, the maximum over one process.
    """

def all_min(x: ArrayLike, *, group: Group | None = None, stream: StreamOrDevice = None) -> array:
    """Computes the minimum of the arrays of all processes, element by element.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: `x`, the minimum over one process.
    """

def all_sum(x: ArrayLike, *, group: Group | None = None, stream: StreamOrDevice = None) -> array:
    """Sums the arrays of all processes, element by element.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: `x`, the sum over one process.
    """

def init(
    strict: bool = False,
    backend: str = "any",
    *,
    all_gather_factory: Callable[..., Any] | None = None,
) -> Group:
    """Returns the group of all processes: the calling process alone.

    Args:
        strict (bool): Whether a missing backend is an error.
        backend (str): "any", "mpi", "ring", "nccl" or "jaccl".
        all_gather_factory (Callable[..., Any] | None): Side channel of the backend "jaccl"; unused.

    Returns:
        Group: Group of size 1, the same one in each call.

    Raises:
        ValueError: If there is no such backend in MLX, or `all_gather_factory` is given for another one than "jaccl".
        RuntimeError: If `strict` is true, or the environment says that a launcher started several processes
            (`MLX_RANK`, `MLX_WORLD_SIZE`, `MLX_HOSTFILE`).
    """

def is_available(backend: str = "any") -> bool:
    """Tests whether a communication backend exists.

    Args:
        backend (str): "any", or one of MLX's: "mpi", "ring", "nccl", "jaccl".

    Returns:
        bool: False for all of them.
    """

def recv(
    shape: Sequence[int],
    dtype: Dtype,
    src: int,
    *,
    group: Group | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Receives an array from another process; always an error, since there is none.

    Args:
        shape (Sequence[int]): Shape of the array.
        dtype (Dtype): Dtype of the array.
        src (int): Rank of the source.
        group (Group | None): Group in which `src` counts, by default all processes.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: Never: a group of one process has no other.

    Raises:
        ValueError: Always.
    """

def recv_like(
    x: ArrayLike, src: int, *, group: Group | None = None, stream: StreamOrDevice = None
) -> array:
    """Receives an array with the shape and dtype of another one; always an error, as `recv`.

    Args:
        x (ArrayLike): Array with the shape and dtype to receive.
        src (int): Rank of the source.
        group (Group | None): Group in which `src` counts, by default all processes.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: Never: a group of one process has no other.

    Raises:
        ValueError: Always.
    """

def send(
    x: ArrayLike, dst: int, *, group: Group | None = None, stream: StreamOrDevice = None
) -> array:
    """Sends an array to another process; always an error, since there is none.

    Args:
        x (ArrayLike): Array to send.
        dst (int): Rank of the destination.
        group (Group | None): Group in which `dst` counts, by default all processes.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: Never: a group of one process has no other.

    Raises:
        ValueError: Always.
    """

def sum_scatter(
    x: ArrayLike, *, group: Group | None = None, stream: StreamOrDevice = None
) -> array:
    """Sums the arrays of all processes, and gives each process its part of the first axis.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: `x`, the sum and the only part.
    """
