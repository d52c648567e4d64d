"""Communication among processes: groups of one process, in which every collective operation returns its operand.

No communication backend exists yet. `init` returns the group of the calling process alone, so programs that
average gradients or shard layers over a group run unchanged. `init(strict=True)`, and a process that a launcher
started as one of several, get an error.
"""

import operator
import os

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

_BACKENDS = ("any", "jaccl", "mpi", "nccl", "ring")
_STREAMS = (_core.Stream, _core.ThreadLocalStream, _core.Device, _core.DeviceType)


class Group:
    """Processes that communicate with each other: the calling process alone.

    `init` returns it; the class has no constructor.
    """

    __slots__ = ()

    def __init__(self, *_, **__):
        """Refuses: groups come from `init`."""
        cls = type(self)
        raise TypeError(
            f"{cls.__module__}.{cls.__qualname__}: no constructor. Call distributed.init()."
        )

    def __reduce__(self):
        """Refuses: a group belongs to its process."""
        raise TypeError(
            "cannot pickle 'Group' object: call distributed.init() in the other process."
        )

    def rank(self):
        """Returns the number of the calling process in the group.

        Returns:
            int: 0.
        """
        return 0

    def size(self):
        """Returns the number of processes.

        Returns:
            int: 1.
        """
        return 1

    def split(self, color, key=-1):
        """Splits the group into groups of processes with the same color; always an error for one process.

        Args:
            color (int): Number of the calling process's new group.
            key (int): Order in the new group, by default that of this group.

        Returns:
            Group: Never: a group of one process cannot be split.

        Raises:
            RuntimeError: Always.
        """
        _integer("split", "color", color)
        _integer("split", "key", key)
        raise RuntimeError("[split] a group of 1 process cannot be split. Use the group itself.")


_WORLD = object.__new__(Group)


def is_available(backend="any"):
    """Tests whether a communication backend exists.

    Args:
        backend (str): "any", or one of MLX's: "mpi", "ring", "nccl", "jaccl".

    Returns:
        bool: False for all of them.
    """
    _typed("is_available", "backend", backend, str, "a str")
    return False


def init(strict=False, backend="any", *, all_gather_factory=None):
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
    _typed("init", "strict", strict, bool, "a bool")
    _typed("init", "backend", backend, str, "a str")
    if all_gather_factory is not None and not callable(all_gather_factory):
        _refuse("init", "all_gather_factory", "a function or None", all_gather_factory)
    if backend not in _BACKENDS:
        known = ", ".join(map(repr, _BACKENDS))
        raise ValueError(f"[init] unknown backend {backend!r}. Choose one of {known}.")
    if all_gather_factory is not None and backend != "jaccl":
        raise ValueError(
            f"[init] all_gather_factory is for backend 'jaccl', and backend is {backend!r}. Leave one of them out."
        )
    if strict:
        raise RuntimeError(
            f"[init] communication backend {backend!r} is not available. "
            "Call init() without strict=True for a group of this process alone."
        )
    launched = _launched()
    if launched:
        raise RuntimeError(
            f"[init] this process was started as one of several ({launched}), which needs a communication backend, "
            "and there is none. Start one process, or unset these variables."
        )
    return _WORLD


def _launched():
    """Variables by which MLX's launcher says that there are several processes; "" if there is one."""
    rank, size = os.environ.get("MLX_RANK", ""), os.environ.get("MLX_WORLD_SIZE", "")
    hosts = os.environ.get("MLX_HOSTFILE", "")
    found = []
    if rank not in ("", "0"):
        found.append(f"MLX_RANK={rank}")
    if size not in ("", "1"):
        found.append(f"MLX_WORLD_SIZE={size}")
    if rank and hosts and _hosts(hosts) != 1:
        found.append(f"MLX_HOSTFILE={hosts}")
    return ", ".join(found)


def _hosts(path):
    """Number of processes in a host file; 0 if it cannot be read."""
    import json

    try:
        with open(path, encoding="utf-8") as file:
            return len(json.load(file))
    except (OSError, ValueError, TypeError):
        return 0


def all_sum(x, *, group=None, stream=None):
    """Sums the arrays of all processes, element by element.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: `x`, the sum over one process.
    """
    return _alone("all_sum", x, group, stream)


def all_max(x, *, group=None, stream=None):
    """Computes the maximum of the arrays of all processes, element by element.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: `x`, the maximum over one process.
    """
    return _alone("all_max", x, group, stream)


def all_min(x, *, group=None, stream=None):
    """Computes the minimum of the arrays of all processes, element by element.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: `x`, the minimum over one process.
    """
    return _alone("all_min", x, group, stream)


def all_gather(x, *, group=None, stream=None):
    """Concatenates the arrays of all processes along the first axis.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: `x`, the only part.
    """
    return _alone("all_gather", x, group, stream)


def sum_scatter(x, *, group=None, stream=None):
    """Sums the arrays of all processes, and gives each process its part of the first axis.

    Args:
        x (ArrayLike): This process's array.
        group (Group | None): Processes that take part, by default all.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator, else the default device.

    Returns:
        array: `x`, the sum and the only part.
    """
    return _alone("sum_scatter", x, group, stream)


def send(x, dst, *, group=None, stream=None):
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
    _integer("send", "dst", dst)
    _alone("send", x, group, stream)
    raise ValueError(f"[send] no process {dst} to send to: the group has 1 process.")


def recv(shape, dtype, src, *, group=None, stream=None):
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
    if isinstance(shape, dict) or not hasattr(shape, "__getitem__"):
        _refuse("recv", "shape", "a sequence of ints", shape)
    for size in shape:
        _integer("recv", "shape", size)
    _typed("recv", "dtype", dtype, _core.Dtype, "a Dtype")
    _integer("recv", "src", src)
    _check("recv", group, stream)
    raise ValueError(f"[recv] no process {src} to receive from: the group has 1 process.")


def recv_like(x, src, *, group=None, stream=None):
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
    _integer("recv_like", "src", src)
    _alone("recv_like", x, group, stream)
    raise ValueError(f"[recv_like] no process {src} to receive from: the group has 1 process.")


def _alone(function, x, group, stream):
    """Returns the operand as an array of its own, which is what one process makes of it."""
    _check(function, group, stream)
    if isinstance(x, _core.array):
        return _core.squeeze(x, (), stream=stream)
    # Numbers and arrays of other libraries, by the rules of operators.
    return _core.where(True, x, x, stream=stream)


def _check(function, group, stream):
    """Checks the arguments that all operations have."""
    if group is not None and not isinstance(group, Group):
        _refuse(function, "group", "a Group or None", group)
    if stream is not None and not isinstance(stream, _STREAMS):
        _refuse(function, "stream", "a Stream, Device, DeviceType or None", stream)


def _integer(function, name, value):
    try:
        operator.index(value)
    except TypeError:
        _refuse(function, name, "an int", value)


def _typed(function, name, value, kind, text):
    if not isinstance(value, kind):
        _refuse(function, name, text, value)


def _refuse(function, name, expected, value):
    given = type(value).__name__
    raise TypeError(f"{function}(): argument {name!r}: expected {expected}, got {given}")
