"""Functions that make arrays. What names a device is made there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import ultramarine as mx
from ultramarine import Dtype, array

from ._dtypes import (
    COMPLEX,
    FLOATING,
    DeviceLike,
    Number,
    as_dtype,
    check_array,
    kind_of,
    promote,
)


def on(device: DeviceLike | None) -> AbstractContextManager[None]:
    """A context in which arrays are made on a device."""
    return nullcontext() if device is None else mx.stream(device)


def beside(x: array, device: DeviceLike | None) -> AbstractContextManager[None]:
    """A context in which arrays are made on a device, by default that of `x`."""
    return on(x.device if device is None else device)


def _size(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _default(value: Number) -> Dtype:
    """The default dtype of a Python number's kind."""
    if isinstance(value, bool):
        return mx.bool_
    if isinstance(value, int):
        return mx.int32 if -(2**31) <= value < 2**31 else mx.int64
    return mx.float32 if isinstance(value, float) else mx.complex64


def arange(
    start: int | float,
    /,
    stop: int | float | None = None,
    step: int | float = 1,
    *,
    dtype: Dtype | None = None,
    device: DeviceLike | None = None,
) -> array:
    """Numbers from `start` (0, if only one bound is given) up to `stop`, which is left out."""
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        whole = all(isinstance(v, int) for v in (start, stop, step))
        large = whole and max(abs(start), abs(stop)) >= 2**31
        dtype = (mx.int64 if large else mx.int32) if whole else mx.float32
    with on(device):
        return mx.arange(start, stop, step, dtype)


def asarray(
    obj: Any,
    /,
    *,
    dtype: Dtype | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> array:
    """An array of an array, a number, nested sequences, or an object with memory.

    Numbers are int32 (int64 if need be), float32 and complex64; memory keeps its dtype, and is
    shared unless `copy` is true. `copy=False` raises where a copy would be needed.
    """
    made = (
        mx.asarray(obj, dtype, copy=copy)
        if device is None
        else mx.asarray(obj, dtype, copy=copy, device=device)
    )
    return made


def empty(
    shape: int | Sequence[int], *, dtype: Dtype | None = None, device: DeviceLike | None = None
) -> array:
    """An array whose elements may be anything; float32 by default."""
    with on(device):
        return mx.empty(_size(shape), mx.float32 if dtype is None else dtype)


def empty_like(
    x: array, /, *, dtype: Dtype | None = None, device: DeviceLike | None = None
) -> array:
    """As `empty`, with the shape, and dtype and device unless given, of `x`."""
    with beside(x, device):
        return mx.empty(x.shape, x.dtype if dtype is None else dtype)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Dtype | None = None,
    device: DeviceLike | None = None,
) -> array:
    """A matrix with ones on the diagonal `k` and zeros elsewhere; float32 by default."""
    with on(device):
        return mx.eye(n_rows, n_cols, k, mx.float32 if dtype is None else dtype)


def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: bool | None = None) -> array:
    """An array over the memory of an object that has DLPack."""
    if device is None:
        return mx.from_dlpack(x, copy=copy)
    return mx.from_dlpack(x, device=device, copy=copy)


def full(
    shape: int | Sequence[int],
    fill_value: Number,
    *,
    dtype: Dtype | None = None,
    device: DeviceLike | None = None,
) -> array:
    """An array of one number; its dtype is by default that of the number's kind."""
    dtype = _default(fill_value) if dtype is None else dtype
    with on(device):
        return mx.broadcast_to(as_dtype(fill_value, dtype), _size(shape))


def full_like(
    x: array,
    /,
    fill_value: Number,
    *,
    dtype: Dtype | None = None,
    device: DeviceLike | None = None,
) -> array:
    """As `full`, with the shape, and dtype and device unless given, of `x`."""
    with beside(x, device):
        return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype)


def linspace(
    start: Number,
    stop: Number,
    /,
    num: int,
    *,
    dtype: Dtype | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
) -> array:
    """`num` numbers at even distances from `start` to `stop`, which is the last one if
    `endpoint`."""
    if num < 0:
        raise ValueError(f"[linspace] num is {num}. Pass 0 or more.")
    real = not isinstance(start, complex) and not isinstance(stop, complex)
    if dtype is None:
        dtype = mx.float32 if real else mx.complex64
    if kind_of(dtype) not in (FLOATING if real else COMPLEX):
        raise TypeError(f"[linspace] Expected a floating dtype, got {dtype}.")
    with on(device):
        if not isinstance(start, complex) and not isinstance(stop, complex):
            return mx.linspace(start, stop, num, endpoint, dtype)
        one, other = complex(start), complex(stop)
        parts = [
            mx.linspace(a, b, num, endpoint, mx.float32)
            for a, b in ((one.real, other.real), (one.imag, other.imag))
        ]
        return (parts[0] + 1j * parts[1]).astype(dtype)


def meshgrid(*arrays: array, indexing: str = "xy") -> tuple[array, ...]:
    """Coordinate arrays of vectors, of which each is one axis; of a dtype all."""
    for x in arrays[1:]:
        promote("meshgrid", arrays[0].dtype, x.dtype)
    if indexing not in ("xy", "ij"):
        raise ValueError(f"[meshgrid] indexing must be 'xy' or 'ij', got {indexing!r}.")
    return tuple(mx.meshgrid(*arrays, indexing=indexing)) if arrays else ()


def _constant(name: str, number: int) -> tuple[Callable[..., array], Callable[..., array]]:
    def plain(
        shape: int | Sequence[int], *, dtype: Dtype | None = None, device: DeviceLike | None = None
    ) -> array:
        return full(shape, number, dtype=mx.float32 if dtype is None else dtype, device=device)

    def like(x: array, /, *, dtype: Dtype | None = None, device: DeviceLike | None = None) -> array:
        check_array(f"{name}_like", x)
        return full_like(x, number, dtype=dtype, device=device)

    plain.__doc__ = f"An array of {name}; float32 by default."
    like.__doc__ = f"As `{name}`, with the shape, and dtype and device unless given, of `x`."
    for function, called in ((plain, name), (like, f"{name}_like")):
        function.__name__ = function.__qualname__ = called
        function.__module__ = "ultramarine.array_api"
    return plain, like


ones, ones_like = _constant("ones", 1)
zeros, zeros_like = _constant("zeros", 0)


def tril(x: array, /, *, k: int = 0) -> array:
    """The elements on the diagonal `k` and below, zeros above."""
    return _triangle(x, k, True)


def triu(x: array, /, *, k: int = 0) -> array:
    """The elements on the diagonal `k` and above, zeros below."""
    return _triangle(x, k - 1, False)


def _triangle(x: array, k: int, lower: bool) -> array:
    check_array("tril" if lower else "triu", x)
    if x.ndim < 2:
        raise ValueError("[tril, triu] Expected at least two dimensions. Reshape the array.")
    with beside(x, None):
        mask = mx.tri(x.shape[-2], x.shape[-1], k, mx.bool_)
    zero = mx.zeros_like(x)
    return mx.where(mask, x, zero) if lower else mx.where(mask, zero, x)
