"""Communication among processes: groups, collective operations and messages.

A program is started as several processes by `mpirun`, or by `python -m ultramarine.launch`. Each calls `init` for the
group of all. A process that was started by itself is a group of its own, in which collective operations return their
operand, so that the same program runs there.

All processes of a group call the same operations in the same order. Results are lazy, and may be evaluated in any order: an
operation has the earlier ones of its group run first. `compile` and the other transforms keep that order. Operations that
no result needed run when the program ends. The communication has a stream of its own; `stream` says where results are.
"""

import atexit
import operator
import sys

from ultramarine import _core

__all__ = [
    "Group",
    "all_gather",
    "all_max",
    "all_min",
    "all_sum",
    "init",
    "is_available",
    "recv",
    "recv_like",
    "send",
    "sum_scatter",
]

_STREAMS = (_core.Stream, _core.ThreadLocalStream, _core.Device, _core.DeviceType)


class Group:
    """Processes that communicate with each other.

    `init` returns the group of all; the class has no constructor.

    Example:
        >>> mx.distributed.init().size()
        1
    """

    __slots__ = ("_group",)

    def __init__(self, *_, **__):
        """Refuses: groups come from `init`."""
        cls = type(self)
        raise TypeError(
            f"{cls.__module__}.{cls.__qualname__} has no constructor. Call distributed.init()."
        )

    def __reduce__(self):
        """Refuses: a group belongs to its process."""
        raise TypeError(
            "cannot pickle 'Group' object. Call distributed.init() in the other process."
        )

    def rank(self):
        """Returns the number of the calling process in the group.

        Returns:
            int: 0 for the first one.

        Example:
            >>> mx.distributed.init().rank()
            0
        """
        return self._group.rank()

    def size(self):
        """Returns the number of processes.

        Returns:
            int: 1 for a process by itself.

        Example:
            >>> mx.distributed.init().size()
            1
        """
        return self._group.size()

    def split(self, color, key=-1):
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
        color, key = _integer("split", "color", color), _integer("split", "key", key)
        return _wrapped(self._group.split(color, key))


# The groups of all processes.
_worlds = []


def _wrapped(group):
    made = object.__new__(Group)
    made._group = group
    return made


def is_available(backend="any"):
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
    _typed("is_available", "backend", backend, str, "a str")
    return _core._distributed_is_available(backend)


def init(strict=False, backend="any", *, all_gather_factory=None):
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
    _typed("init", "strict", strict, bool, "a bool")
    _typed("init", "backend", backend, str, "a str")
    if all_gather_factory is not None and not callable(all_gather_factory):
        _refuse("init", "all_gather_factory", "a function or None", all_gather_factory)
    if all_gather_factory is not None and backend != "jaccl":
        raise ValueError(
            f"[init] all_gather_factory belongs to backend 'jaccl', and backend is {backend!r}. Leave one of them out."
        )
    group = _core._distributed_init(strict, backend)
    for known in _worlds:
        if known._group == group:
            return known
    world = _wrapped(group)
    _worlds.append(world)
    if group.size() > 1 and len(_worlds) == 1:
        _end_together()
    return world


def _end_together():
    """Has a process that ends by an exception end the others, and one that ends well run what they may wait for."""
    report = sys.excepthook
    atexit.register(_core._distributed_finish)

    def hook(kind, error, traceback):
        report(kind, error, traceback)
        sys.stderr.flush()
        atexit.unregister(_core._distributed_finish)
        lines = str(error).splitlines()
        reason = f"{kind.__name__}: {lines[0]}" if lines else kind.__name__
        _core._distributed_end_at_exit(reason)

    sys.excepthook = hook


def all_sum(x, *, group=None, stream=None):
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
    return _collective("all_sum", x, group, stream)


def all_max(x, *, group=None, stream=None):
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
    return _collective("all_max", x, group, stream)


def all_min(x, *, group=None, stream=None):
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
    return _collective("all_min", x, group, stream)


def all_gather(x, *, group=None, stream=None):
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
    return _collective("all_gather", x, group, stream)


def sum_scatter(x, *, group=None, stream=None):
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
    return _collective("sum_scatter", x, group, stream)


def send(x, dst, *, group=None, stream=None):
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
    dst = _integer("send", "dst", dst)
    group = _group("send", group, stream)
    x = _operand(x, stream)
    if group.size() == 1:
        raise ValueError(
            f"[send] No process {dst} to send to: the group has 1 process. Start several by python -m ultramarine.launch."
        )
    return group.send(x, dst, stream)


def recv(shape, dtype, src, *, group=None, stream=None):
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
    if isinstance(shape, dict) or not hasattr(shape, "__getitem__"):
        _refuse("recv", "shape", "a sequence of ints", shape)
    shape = [_integer("recv", "shape", size) for size in shape]
    _typed("recv", "dtype", dtype, _core.Dtype, "a Dtype")
    src = _integer("recv", "src", src)
    group = _group("recv", group, stream)
    if group.size() == 1:
        raise ValueError(
            f"[recv] No process {src} to receive from: the group has 1 process. Start several by python -m ultramarine.launch."
        )
    if any(size < 0 for size in shape):
        raise ValueError(
            f"[recv] Invalid shape {tuple(shape)}: a size is negative. Use sizes of 0 or more."
        )
    return group.recv(shape, dtype, src, stream)


def recv_like(x, src, *, group=None, stream=None):
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
    src = _integer("recv_like", "src", src)
    group = _group("recv_like", group, stream)
    x = _operand(x, stream)
    if group.size() == 1:
        raise ValueError(
            f"[recv_like] No process {src} to receive from: the group has 1 process. Start several by python -m ultramarine.launch."
        )
    return group.recv_like(x, src, stream)


def _collective(function, x, group, stream):
    group = _group(function, group, stream)
    if group.size() == 1 and isinstance(x, _core.array):
        # Make a new array, so that the caller's array is not returned.
        x = _core.squeeze(x, (), stream=stream)
    return group.collective(function, _operand(x, stream), stream)


def _operand(x, stream):
    """Returns an operand as an array: numbers and arrays of other libraries by the rules of operators."""
    return x if isinstance(x, _core.array) else _core.where(True, x, x, stream=stream)


def _group(function, group, stream):
    """Checks the arguments that all operations have, and returns the group."""
    if group is not None and not isinstance(group, Group):
        _refuse(function, "group", "a Group or None", group)
    if stream is not None and not isinstance(stream, _STREAMS):
        _refuse(function, "stream", "a Stream, Device, DeviceType or None", stream)
    return (init() if group is None else group)._group


def _integer(function, name, value):
    try:
        number = operator.index(value)
    except TypeError:
        _refuse(function, name, "an int", value)
    if not -(2**31) <= number < 2**31:
        raise TypeError(
            f"{function}(): argument {name!r}: expected an int of 32 bits, got {number}"
        )
    return number


def _typed(function, name, value, kind, text):
    if not isinstance(value, kind):
        _refuse(function, name, text, value)


def _refuse(function, name, expected, value):
    given = type(value).__name__
    raise TypeError(f"{function}(): argument {name!r}: expected {expected}, got {given}")
