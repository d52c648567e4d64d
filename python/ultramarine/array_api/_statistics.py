"""Sums, products, extremes, averages, and what runs along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import ultramarine as mx
from ultramarine import Dtype, array

from ._dtypes import (
    FLOATING,
    NUMERIC,
    REAL,
    REAL_FLOATING,
    axes_of,
    check,
    check_array,
    index,
    kind_of,
    promote,
)

Axis: TypeAlias = int | tuple[int, ...] | None


def _sum_dtype(dtype: Dtype) -> Dtype:
    """Array to sum or multiply: in int32 or uint32 at least."""
    if kind_of(dtype) in ("signed integer", "bool") and dtype not in (mx.int32, mx.int64):
        return mx.int32
    if kind_of(dtype) == "unsigned integer" and dtype != mx.uint64:
        return mx.uint32
    return dtype


def _reduce(name: str, core: Callable[..., array], x: array, axis: Axis, keepdims: bool) -> array:
    axes = axes_of(name, axis, x.ndim)
    if x.ndim == 0:
        return core(x.reshape(1)).reshape(())
    return core(x, axis=axes, keepdims=keepdims)


def all(x: array, /, *, axis: Axis = None, keepdims: bool = False) -> array:
    """Tests whether all elements over the axes are true, that is, not zero."""
    check_array("all", x)
    return _reduce("all", mx.all, x, axis, keepdims)


def any(x: array, /, *, axis: Axis = None, keepdims: bool = False) -> array:
    """Tests whether any element over the axes is true, that is, not zero."""
    check_array("any", x)
    return _reduce("any", mx.any, x, axis, keepdims)


def count_nonzero(x: array, /, *, axis: Axis = None, keepdims: bool = False) -> array:
    """Counts the elements over the axes that are not zero."""
    check_array("count_nonzero", x)
    out = _reduce("count_nonzero", mx.sum, (x != 0).astype(mx.int32), axis, keepdims)
    return index(out, x.size)


def max(x: array, /, *, axis: Axis = None, keepdims: bool = False) -> array:
    """The largest element over the axes; NaN if there is one."""
    return _reduce("max", mx.max, check("max", x, REAL), axis, keepdims)


def min(x: array, /, *, axis: Axis = None, keepdims: bool = False) -> array:
    """The smallest element over the axes; NaN if there is one."""
    return _reduce("min", mx.min, check("min", x, REAL), axis, keepdims)


def mean(x: array, /, *, axis: Axis = None, keepdims: bool = False) -> array:
    """The average over the axes; NaN of no elements. NaN in one part of complex numbers stays in that part."""
    out = _reduce("mean", mx.mean, check("mean", x, FLOATING), axis, keepdims)
    if kind_of(x.dtype) in REAL_FLOATING:
        return out
    # A complex division would spread NaN to both parts, so reduce each part on its own.
    halves = [_reduce("mean", mx.mean, part(x), axis, keepdims) for part in (mx.real, mx.imag)]
    exact = mx.stop_gradient(mx.stack(halves, -1).view(x.dtype).squeeze(-1))
    return mx.where(mx.isfinite(out), out, exact)


def _total(
    name: str, core: Callable[..., array], x: array, axis: Axis, dtype: Dtype | None, keepdims: bool
) -> array:
    # The standard requires numbers. A bool is accepted too, and counts as 0 or 1, as in the core's
    # functions.
    check(name, x, (*NUMERIC, "bool"))
    return _reduce(name, core, x.astype(dtype or _sum_dtype(x.dtype)), axis, keepdims)


def prod(
    x: array, /, *, axis: Axis = None, dtype: Dtype | None = None, keepdims: bool = False
) -> array:
    """The product over the axes, in `dtype`: by default int32 or uint32 for smaller integers."""
    return _total("prod", mx.prod, x, axis, dtype, keepdims)


def sum(
    x: array, /, *, axis: Axis = None, dtype: Dtype | None = None, keepdims: bool = False
) -> array:
    """The sum over the axes, in `dtype`: by default int32 or uint32 for smaller integers."""
    return _total("sum", mx.sum, x, axis, dtype, keepdims)


def var(
    x: array, /, *, axis: Axis = None, correction: int | float = 0.0, keepdims: bool = False
) -> array:
    """The variance over the axes; the divisor is the number of elements less `correction`."""
    check("var", x, REAL_FLOATING)
    n = 1
    for a in axes_of("var", axis, x.ndim):
        n *= x.shape[a]
    out = _reduce("var", mx.var, x, axis, keepdims)
    if not correction:
        return out
    left = n - correction
    return out * (n / left if left > 0 else mx.nan)


def std(
    x: array, /, *, axis: Axis = None, correction: int | float = 0.0, keepdims: bool = False
) -> array:
    """The standard deviation over the axes: the square root of `var`."""
    check("std", x, REAL_FLOATING)
    return mx.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _running(
    name: str,
    core: Callable[..., array],
    x: array,
    axis: int | None,
    dtype: Dtype | None,
    first: int | None,
) -> array:
    check(name, x, (*NUMERIC, "bool"))
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"[{name}] Several dimensions need an axis. Pass `axis`.")
        x, axis = x.reshape(-1), 0
    (axis,) = axes_of(name, axis, x.ndim)
    x = x.astype(dtype or _sum_dtype(x.dtype))
    out = core(x, axis)
    if first is None:
        return out
    start = mx.full_like(mx.sum(x, axis, keepdims=True), first)
    return mx.concatenate([start, out], axis)


def cumulative_prod(
    x: array,
    /,
    *,
    axis: int | None = None,
    dtype: Dtype | None = None,
    include_initial: bool = False,
) -> array:
    """The product of all elements up to each along an axis, which only a vector may leave out;
    before them 1, if `include_initial`."""
    return _running("cumulative_prod", mx.cumprod, x, axis, dtype, 1 if include_initial else None)


def cumulative_sum(
    x: array,
    /,
    *,
    axis: int | None = None,
    dtype: Dtype | None = None,
    include_initial: bool = False,
) -> array:
    """The sum of all elements up to each along an axis, which only a vector may leave out; before
    them 0, if `include_initial`."""
    return _running("cumulative_sum", mx.cumsum, x, axis, dtype, 0 if include_initial else None)


def diff(
    x: array,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: array | None = None,
    append: array | None = None,
) -> array:
    """The differences of neighbours along an axis, `n` times, after other elements were put before
    and behind the array's."""
    check("diff", x, NUMERIC)
    (axis,) = axes_of("diff", axis, x.ndim)
    if n < 0:
        raise ValueError(f"[diff] n is {n}. Pass 0 or more.")
    parts = [p for p in (prepend, x, append) if p is not None]
    if len(parts) > 1:
        dtype = parts[0].dtype
        for p in parts[1:]:
            dtype = promote("diff", dtype, p.dtype)
        x = mx.concatenate([p.astype(dtype) for p in parts], axis)
    for _ in range(n):
        size = x.shape[axis]
        if size == 0:
            break
        before: list[slice] = [slice(None)] * x.ndim
        behind = before.copy()
        before[axis], behind[axis] = slice(0, size - 1), slice(1, size)
        x = x[tuple(behind)] - x[tuple(before)]
    return x
