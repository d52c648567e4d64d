"""Splits of parameters over the processes of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ultramarine as mx
from ultramarine.nn.layers.base import Module
from ultramarine.utils import tree_flatten, tree_map_with_path

# Segments of an axis: the number of equal segments, or the starts of all segments after the first, as indices or as
# fractions of the axis.
Segments = int | Sequence[int | float]

# The axis along which a parameter is split, optionally with its segments. None if each process has the whole parameter.
Axis = int | tuple[int, Segments] | None
Predicate = Callable[[str, mx.array], Axis]


def default_group(group: mx.distributed.Group | None) -> mx.distributed.Group:
    """Returns the group, or the one of all processes."""
    return mx.distributed.init() if group is None else group


def check_divisible(what: str, size: int, group: mx.distributed.Group) -> None:
    """Raises ValueError unless the processes get parts of the same size."""
    if size % group.size() != 0:
        raise ValueError(
            f"{what} of size {size} cannot be split over {group.size()} processes. "
            f"Use a multiple of {group.size()}."
        )


def predicate_of(sharding: str | Predicate, segments: Segments) -> Predicate:
    """Returns the predicate that a name stands for.

    Raises:
        ValueError: If there is no such name.
    """
    if callable(sharding):
        return sharding
    if sharding == "all-to-sharded":
        return all_to_sharded(segments)
    if sharding == "sharded-to-all":
        return sharded_to_all(segments)
    raise ValueError(
        f"Sharding {sharding!r} is unknown. Use 'all-to-sharded', 'sharded-to-all' or a function."
    )


def all_to_sharded(segments: Segments) -> Predicate:
    """The predicate that splits outputs: rows of matrices, and biases."""
    return lambda path, x: (max(x.ndim - 2, 0), segments)


def sharded_to_all(segments: Segments) -> Predicate:
    """The predicate that splits inputs: columns of matrices. Each process has the whole bias."""
    return lambda path, x: None if path.endswith("bias") else (-1, segments)


def shard_parameters(
    parameters: dict[str, Any], predicate: Predicate, group: mx.distributed.Group
) -> Any:
    """Returns a process's parts of a tree of parameters.

    Args:
        parameters (dict): Tree of arrays.
        predicate (Callable): Function of a path and an array that returns the axis that is split, maybe with
            segments, or None.
        group (Group): The processes, and which of them this one is.

    Returns:
        Any: Tree of the same structure.

    Raises:
        ValueError: If an axis or a segment cannot be split into parts of the same size.
    """

    def part(path: str, x: Any) -> Any:
        axis = predicate(path, x) if isinstance(x, mx.array) else None
        if axis is None:
            return x
        if isinstance(axis, int):
            return shard(x, axis, 1, group)
        return shard(x, *axis, group)

    return tree_map_with_path(part, parameters)


def shard_module(
    module: Module, parameters: dict[str, Any], predicate: Predicate, group: mx.distributed.Group
) -> None:
    """Gives a module this process's parts of parameters, and notes how they are split.

    Args:
        module (Module): The module.
        parameters (dict): Tree of whole arrays, for the module.
        predicate (Callable): As of `shard_parameters`.
        group (Group): The processes, and which of them this one is.

    Raises:
        ValueError: If an axis or a segment cannot be split into parts of the same size.
    """
    axes = note_sharding(module, parameters, predicate, group)
    module.update(shard_parameters(parameters, lambda path, _: axes.get(path), group))


def note_sharding(
    module: Module, parameters: dict[str, Any], predicate: Predicate, group: mx.distributed.Group
) -> dict[str, Axis]:
    """Notes how parameters of a module are split, for checkpoints; returns the axes by path."""
    leaves = [(path, x) for path, x in tree_flatten(parameters) if isinstance(x, mx.array)]
    axes = {path: predicate(path, x) for path, x in leaves}
    # Set as an ordinary attribute: as an item it would be part of the module's state.
    known = (group.size(), {path: axis for path, axis in axes.items() if axis is not None})
    object.__setattr__(module, NOTE, known)
    return axes


# Name of the attribute that holds the number of processes and the axes of the module's split parameters.
NOTE = "_split_over"


def shard(x: mx.array, axis: int, segments: Segments, group: mx.distributed.Group) -> mx.array:
    """Returns a process's part of an array: of each segment of the axis, in one array.

    Args:
        x (array): The array.
        axis (int): Axis that is split.
        segments (int or list): Parts of the axis that are split each by itself, such as the queries, keys and values
            of one matrix: their number, or where those after the first begin, as indices or fractions.
        group (Group): The processes, and which of them this one is.

    Returns:
        array: Part in memory of its own, so that the whole can be freed.
    """
    size, rank = group.size(), group.rank()
    parts = [mx.split(s, size, axis)[rank] for s in _segments(x, axis, segments)]
    return mx.concatenate(parts, axis) if len(parts) > 1 else mx.contiguous(parts[0])


def _segments(x: mx.array, axis: int, segments: Segments) -> list[mx.array]:
    if isinstance(segments, int):
        return list(mx.split(x, segments, axis)) if segments > 1 else [x]
    return list(mx.split(x, segment_starts(x.shape[axis], segments), axis))


def segment_starts(length: int, segments: Sequence[int | float]) -> list[int]:
    """Indices where segments after the first begin."""
    return [int(s * length) if isinstance(s, float) else s for s in segments]
