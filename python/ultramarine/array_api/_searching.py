"""Functions that search, sort, select and take. Indices are int32."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal, NamedTuple

import ultramarine as mx
from ultramarine import array

from ._dtypes import (
    BOOL,
    INTEGRAL,
    REAL,
    Number,
    as_dtype,
    axes_of,
    check,
    check_array,
    common,
    index,
    pair,
)
from ._manipulation import flip

# Imported dynamically, because the stubs contain only public names.
_core: Any = import_module("ultramarine._core")


def _extreme(name: str, x: array, axis: int | None, keepdims: bool) -> array:
    check(name, x, REAL)
    core = getattr(mx, name)
    if axis is None:
        out: array = core(x.reshape(-1), 0)
        return index(out.reshape((1,) * x.ndim) if keepdims else out, x.size)
    (axis,) = axes_of(name, axis, x.ndim)
    return index(core(x, axis, keepdims), x.size)


def argmax(x: array, /, *, axis: int | None = None, keepdims: bool = False) -> array:
    """The index of the first largest element along an axis, or in the flattened array."""
    return _extreme("argmax", x, axis, keepdims)


def argmin(x: array, /, *, axis: int | None = None, keepdims: bool = False) -> array:
    """The index of the first smallest element along an axis, or in the flattened array."""
    return _extreme("argmin", x, axis, keepdims)


def argsort(x: array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> array:
    """The indices that sort along an axis. The order of equal elements is always kept."""
    check("argsort", x, REAL)
    (axis,) = axes_of("argsort", axis, x.ndim)
    n = x.shape[axis]
    if not descending:
        return index(mx.argsort(x, axis), n)
    # Sort from the end, so that equal elements keep their order.
    order = index(mx.argsort(flip(x, axis=axis), axis), n)
    return flip(mx.array(n - 1, order.dtype) - order, axis=axis)


def sort(x: array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> array:
    """The elements in order along an axis; NaN last, first if `descending`."""
    check("sort", x, REAL)
    (axis,) = axes_of("sort", axis, x.ndim)
    out = mx.sort(x, axis)
    return flip(out, axis=axis) if descending else out


def nonzero(x: array, /) -> tuple[array, ...]:
    """The indices of the elements that are not zero, for each axis. Evaluates `x`, since the shape
    depends on it."""
    check_array("nonzero", x)
    return tuple(_core._nonzero(x))


def searchsorted(
    x1: array,
    x2: array | int | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: array | None = None,
) -> array:
    """The indices at which values `x2` go into the vector `x1` so that it stays sorted: before
    equal elements (left) or behind them (right). `sorter` are the indices that sort `x1`, if it is
    not sorted."""
    one, other = pair("searchsorted", x1, x2, REAL)
    if sorter is not None:
        one = mx.take(one, check("searchsorted", sorter, INTEGRAL))
    return index(mx.searchsorted(one, other, side), one.size)


def where(condition: array, x1: array | Number, x2: array | Number, /) -> array:
    """Elements of `x1` where the condition is true, of `x2` elsewhere."""
    check("where", condition, BOOL)
    if isinstance(x1, array) or isinstance(x2, array):
        dtype = common("where", x1, x2)
        return mx.where(condition, as_dtype(x1, dtype), as_dtype(x2, dtype))
    return mx.where(condition, x1, x2)


def isin(x1: array | Number, x2: array | Number, /, *, invert: bool = False) -> array:
    """Where elements of `x1` are among those of `x2`; where not, if `invert`. NaN never is."""
    dtype = common("isin", x1, x2)
    one, other = as_dtype(x1, dtype), as_dtype(x2, dtype).reshape(-1)
    if other.size == 0:
        found = mx.zeros(one.shape, mx.bool_)
    else:
        other = mx.sort(other)
        place = mx.minimum(mx.searchsorted(other, one), other.size - 1)
        found = mx.take(other, place) == one
    return mx.logical_not(found) if invert else found


class UniqueAll(NamedTuple):
    """Result of `unique_all`."""

    values: array
    indices: array
    inverse_indices: array
    counts: array


class UniqueCounts(NamedTuple):
    """Result of `unique_counts`."""

    values: array
    counts: array


class UniqueInverse(NamedTuple):
    """Result of `unique_inverse`."""

    values: array
    inverse_indices: array


def unique_all(x: array, /) -> UniqueAll:
    """The different elements of the flattened array in ascending order, where each occurs first,
    the place of each element among them, and how often each occurs. Evaluates `x`, since the shape
    depends on it. NaN differs from NaN."""
    check_array("unique_all", x)
    values, first, inverse, counts = _core._unique_all(x)
    return UniqueAll(values, *(index(a, x.size) for a in (first, inverse, counts)))


def unique_counts(x: array, /) -> UniqueCounts:
    """The different elements and how often each occurs; see `unique_all`."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: array, /) -> UniqueInverse:
    """The different elements and the place of each element among them; see `unique_all`."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: array, /) -> array:
    """The different elements; see `unique_all`."""
    return unique_all(x).values


def take(x: array, indices: array, /, *, axis: int | None = None) -> array:
    """The elements at indices along an axis, which only a vector may leave out."""
    check_array("take", x)
    check("take", indices, INTEGRAL)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"[take] An array of {x.ndim} dimensions needs an axis. Pass `axis`.")
        axis = 0
    (axis,) = axes_of("take", axis, x.ndim)
    return mx.take(x, indices, axis)


def take_along_axis(x: array, indices: array, /, *, axis: int = -1) -> array:
    """The elements at indices along an axis, each row with its own."""
    check_array("take_along_axis", x)
    check("take_along_axis", indices, INTEGRAL)
    (axis,) = axes_of("take_along_axis", axis, x.ndim)
    return mx.take_along_axis(x, indices, axis)
