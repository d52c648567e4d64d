"""Functions of shapes, and of the order of elements."""

from __future__ import annotations

from collections.abc import Sequence

import ultramarine as mx
from ultramarine import array

from ._creation import beside
from ._dtypes import INTEGRAL, axes_of, check, check_array, common


def broadcast_arrays(*arrays: array) -> tuple[array, ...]:
    """The arrays, each broadcast to the shape that fits all."""
    return tuple(mx.broadcast_arrays(*arrays)) if arrays else ()


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that arrays of these shapes are broadcast to."""
    out: tuple[int, ...] = ()
    for shape in shapes:
        out = tuple(mx.broadcast_shapes(out, shape))
    return out


def broadcast_to(x: array, /, shape: tuple[int, ...]) -> array:
    """The array in a larger shape, repeated along axes of size 1 and new ones."""
    check_array("broadcast_to", x)
    return mx.broadcast_to(x, shape)


def _joined(name: str, arrays: Sequence[array]) -> list[array]:
    """Arrays in their promoted dtype."""
    arrays = list(arrays)
    if not arrays:
        raise ValueError(f"[{name}] Expected at least one array. Pass one.")
    for x in arrays:
        check_array(name, x)
    dtype = common(name, *arrays)
    return [x.astype(dtype) for x in arrays]


def concat(arrays: tuple[array, ...] | list[array], /, *, axis: int | None = 0) -> array:
    """The arrays joined along an axis; flattened ones for `None`."""
    joined = _joined("concat", arrays)
    if axis is None:
        joined, axis = [x.reshape(-1) for x in joined], 0
    axes_of("concat", axis, joined[0].ndim)
    return mx.concatenate(joined, axis)


def expand_dims(x: array, /, axis: int | tuple[int, ...]) -> array:
    """The array with axes of size 1 put in, at these places of the result."""
    check_array("expand_dims", x)
    count = 1 if isinstance(axis, int) else len(axis)
    return mx.expand_dims(x, axes_of("expand_dims", axis, x.ndim + count))


def flip(x: array, /, *, axis: int | tuple[int, ...] | None = None) -> array:
    """The elements in reverse order along axes, by default along all."""
    check_array("flip", x)
    axes = axes_of("flip", axis, x.ndim)
    return mx.flip(x, axes) if axes else x


def moveaxis(
    x: array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> array:
    """The array with axes moved to other places; the others keep their order."""
    check_array("moveaxis", x)
    to = axes_of("moveaxis", destination, x.ndim)
    moved = axes_of("moveaxis", source, x.ndim)
    if len(moved) != len(to):
        raise ValueError(
            f"[moveaxis] {len(moved)} axes have {len(to)} destinations. Pass one for each axis."
        )
    order = [a for a in range(x.ndim) if a not in moved]
    for place, axis in sorted(zip(to, moved, strict=True)):
        order.insert(place, axis)
    return mx.transpose(x, order) if order else x


def permute_dims(x: array, /, axes: tuple[int, ...]) -> array:
    """The array with its axes in another order."""
    check_array("permute_dims", x)
    if len(axes) != x.ndim:
        raise ValueError(
            f"[permute_dims] {len(axes)} axes for {x.ndim} dimensions. Name each axis once."
        )
    return mx.transpose(x, axes_of("permute_dims", axes, x.ndim)) if axes else x


def repeat(x: array, repeats: int | array, /, *, axis: int | None = None) -> array:
    """Each element (of the flattened array for `None`) as often as `repeats` says: one number, or
    one for each, which is then evaluated, since the shape depends on it."""
    check_array("repeat", x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    (axis,) = axes_of("repeat", axis, x.ndim)
    if isinstance(repeats, int):
        if repeats < 0:
            raise ValueError(
                f"[repeat] An element cannot be repeated {repeats} times. Pass 0 or more."
            )
        return mx.repeat(x, repeats, axis)
    check("repeat", repeats, INTEGRAL)
    if repeats.ndim > 1:
        raise ValueError("[repeat] Expected repeats of at most one dimension. Flatten them.")
    if repeats.size and int(mx.min(repeats)) < 0:
        raise ValueError(
            "[repeat] An element cannot be repeated less than 0 times. Pass 0 or more."
        )
    counts = mx.broadcast_to(repeats.astype(mx.int64), (x.shape[axis],))
    ends = mx.cumsum(counts)
    total = int(ends[-1]) if ends.size else 0
    with beside(x, None):
        places = mx.arange(0, total, 1, mx.int64)
    return mx.take(x, mx.searchsorted(ends, places, "right"), axis)


def reshape(x: array, /, shape: tuple[int, ...], *, copy: bool | None = None) -> array:
    """The elements, in row-major order, in another shape; one size may be -1.

    Raises:
        ValueError: If `copy` is False and the elements do not lie in that order.
    """
    check_array("reshape", x)
    if copy is False and not memoryview(x).c_contiguous:
        raise ValueError(
            "[reshape] The array is not in row-major order, so a copy is needed. Leave out copy=False."
        )
    out = mx.reshape(x, shape)
    return mx.array(out, copy=True) if copy else out


def roll(
    x: array,
    /,
    shift: int | tuple[int, ...],
    *,
    axis: int | tuple[int, ...] | None = None,
) -> array:
    """The elements moved along axes (flattened for `None`); what leaves at the end comes first."""
    check_array("roll", x)
    if axis is None:
        if not isinstance(shift, int):
            raise ValueError("[roll] Several shifts need as many axes. Pass `axis`.")
        return mx.roll(x.reshape(-1), shift, 0).reshape(x.shape)
    axes = axes_of("roll", axis, x.ndim)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    if len(shifts) != len(axes):
        raise ValueError(
            f"[roll] {len(shifts)} shifts for {len(axes)} axes. Pass one for each axis."
        )
    return mx.roll(x, shifts, axes) if axes else x


def squeeze(x: array, /, axis: int | tuple[int, ...]) -> array:
    """The array without axes of size 1.

    Raises:
        ValueError: If one of them has another size.
    """
    check_array("squeeze", x)
    axes = axes_of("squeeze", axis, x.ndim)
    if any(x.shape[a] != 1 for a in axes):
        raise ValueError(
            f"[squeeze] Not all of the axes {axes} of {x.shape} have size 1. Name axes of size 1 only."
        )
    return mx.squeeze(x, axes) if axes else x


def stack(arrays: tuple[array, ...] | list[array], /, *, axis: int = 0) -> array:
    """Arrays of one shape joined along a new axis."""
    joined = _joined("stack", arrays)
    axes_of("stack", axis, joined[0].ndim + 1)
    return mx.stack(joined, axis)


def tile(x: array, repetitions: tuple[int, ...], /) -> array:
    """The array again and again along each axis."""
    check_array("tile", x)
    return mx.tile(x, tuple(repetitions)) if repetitions else x


def unstack(x: array, /, *, axis: int = 0) -> tuple[array, ...]:
    """The parts of the array along an axis, without it."""
    check_array("unstack", x)
    axes_of("unstack", axis, x.ndim)
    return tuple(mx.unstack(x, axis=axis))
