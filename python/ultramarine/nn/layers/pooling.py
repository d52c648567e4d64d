"""Pooling layers. Channels are the last axis.

A window is a product of one window for each axis, so axes are pooled one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import ultramarine as mx
from ultramarine.nn.layers.base import Module

__all__ = ["AvgPool1d", "AvgPool2d", "AvgPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d"]

_Combine = Callable[[mx.array, mx.array], mx.array]

# Windows up to this size combine one slice for each of their elements; larger windows combine slices of smaller
# windows.
_DIRECT = 8
# From this size on, windows that do not overlap become an axis to reduce, because one strided read costs less than many
# slices.
_REDUCED = 4


def _cut(x: mx.array, axis: int, start: int, stop: int, step: int = 1) -> mx.array:
    index: list[slice] = [slice(None)] * axis
    return x[(*index, slice(start, stop, step))]


def _pool_axis(
    x: mx.array,
    axis: int,
    size: int,
    stride: int,
    combine: _Combine,
    reduce: Callable[..., mx.array],
) -> mx.array:
    """Combines the elements of each window along an axis.

    Args:
        x (array): Input.
        axis (int): Axis of the windows, counted from the front.
        size (int): Size of the windows.
        stride (int): Distance of the windows.
        combine (Callable): Associative operation of two arrays. They are passed in reverse: of equal elements the
            first one is the maximum that gets the gradient, as in PyTorch.
        reduce (Callable): Its reduction along an axis.

    Returns:
        array: Result with one element for each window.
    """
    count = (x.shape[axis] - size) // stride + 1
    if count == 0:
        return _cut(x, axis, 0, 0)
    if size == stride and size >= _REDUCED:
        shape = list(x.shape)
        shape[axis : axis + 1] = [count, size]
        return reduce(mx.reshape(_cut(x, axis, 0, count * size), shape), axis=axis + 1)

    if size <= _DIRECT:
        last = (count - 1) * stride + 1
        y = _cut(x, axis, 0, last, stride)
        for start in range(1, size):
            y = combine(_cut(x, axis, start, start + last, stride), y)
        return y

    # Compute windows of all powers of two, each from two windows of the previous size. The binary digits of the size
    # select the ones that form a window.
    positions = x.shape[axis] - size + 1
    parts: list[mx.array] = []
    covered, power, windows = 0, 1, x
    while True:
        if size & power:
            parts.append(_cut(windows, axis, covered, covered + positions))
            covered += power
        if covered == size:
            break
        length = windows.shape[axis]
        windows = combine(
            _cut(windows, axis, power, length), _cut(windows, axis, 0, length - power)
        )
        power *= 2
    y = parts[0]
    for part in parts[1:]:
        y = combine(part, y)
    return y if stride == 1 else _cut(y, axis, 0, positions, stride)


class _Pool(Module):
    """Base of the pooling layers: checks sizes, and pads."""

    # Number of pooled axes.
    _ndim: int

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None,
        padding: int | Sequence[int],
    ) -> None:
        super().__init__()
        self._kernel_size = self._checked("kernel_size", kernel_size, 1)
        self._stride = self._kernel_size if stride is None else self._checked("stride", stride, 1)
        self._padding = self._checked("padding", padding, 0)

    def _checked(self, name: str, value: int | Sequence[int], least: int) -> tuple[int, ...]:
        """Returns a number for each axis."""
        title, n = type(self).__name__, self._ndim
        if isinstance(value, int):
            values: tuple[int, ...] = (value,) * n
        elif (
            isinstance(value, (list, tuple))
            and len(value) == n
            and all(isinstance(v, int) for v in value)
        ):
            values = tuple(value)
        else:
            raise ValueError(
                f"[{title}] '{name}' must be an integer or a tuple containing "
                f"{n} integer{'s' if n > 1 else ''}"
            )
        if any(v < least for v in values):
            bound = "positive" if least else "non-negative"
            raise ValueError(f"[{title}] '{name}' must be {bound} but got {values}.")
        return values

    def _extra_repr(self) -> str:
        return f"kernel_size={self._kernel_size}, stride={self._stride}, padding={self._padding}"

    def _padded(self, x: mx.array, value: float) -> mx.array:
        """Checks the input, and pads it by a value."""
        n = self._ndim
        padding = self["_padding"]
        if x.ndim != n + 2:
            raise ValueError(
                f"[{type(self).__name__}] expected an input of {n + 2} dimensions (N, ..., C), with {n} "
                f"spatial dimension{'s' if n > 1 else ''}, but got {x.ndim} dimensions."
            )
        if any(padding):
            x = mx.pad(x, [(0, 0), *((p, p) for p in padding), (0, 0)], constant_values=value)
        for length, size, stride in zip(x.shape[1:-1], self["_kernel_size"], self["_stride"]):
            if length - size + stride < 0:
                raise ValueError(
                    f"[{type(self).__name__}] windows of {size} do not fit {length} padded elements. "
                    "Reduce the kernel size or pad the input."
                )
        return x

    def _pooled(self, x: mx.array, combine: _Combine, reduce: Callable[..., mx.array]) -> mx.array:
        """Combines the elements of each window, beginning with the last axis."""
        sizes, strides = self["_kernel_size"], self["_stride"]
        for axis in range(self._ndim, 0, -1):
            size, stride = sizes[axis - 1], strides[axis - 1]
            if size != 1 or stride != 1:
                x = _pool_axis(x, axis, size, stride, combine, reduce)
        return x


class _MaxPool(_Pool):
    def __call__(self, x: mx.array) -> mx.array:
        least = -math.inf
        if any(self["_padding"]) and not mx.issubdtype(x.dtype, mx.floating):
            least = 0 if x.dtype == mx.bool_ else mx.iinfo(x.dtype).min
        return self._pooled(self._padded(x, least), mx.maximum, mx.max)


class _AvgPool(_Pool):
    def __call__(self, x: mx.array) -> mx.array:
        # Sums of 16-bit floats would be rounded at each element, and sums of integers could overflow.
        dtype = x.dtype
        wide = x if dtype == mx.float32 or dtype == mx.float64 else x.astype(mx.float32)
        sums = self._pooled(self._padded(wide, 0), mx.add, mx.sum)
        y: mx.array = sums * (1 / math.prod(self["_kernel_size"]))
        return y.astype(dtype) if dtype in (mx.float16, mx.bfloat16) else y


class MaxPool1d(_MaxPool):
    """Layer that takes the maximum of windows of sequences, (N, length, C).

    Args:
        kernel_size (int | tuple): Size of the windows.
        stride (int | tuple, optional): Distance of the windows; by default their size.
        padding (int | tuple): Elements of minus infinity on both sides of the input.

    Raises:
        ValueError: If a size is no integer or out of its range. A call raises it if windows do not fit the input.

    Example:
        >>> nn.MaxPool1d(2)(mx.array([[[1.0], [3.0], [2.0], [5.0]]])).flatten()
        array([3, 5], dtype=float32)
    """

    _ndim = 1

    def __init__(
        self,
        kernel_size: int | tuple[int],
        stride: int | tuple[int] | None = None,
        padding: int | tuple[int] = 0,
    ) -> None:
        super().__init__(kernel_size, stride, padding)


class AvgPool1d(_AvgPool):
    """Layer that takes the mean of windows of sequences, (N, length, C).

    Args:
        kernel_size (int | tuple): Size of the windows.
        stride (int | tuple, optional): Distance of the windows; by default their size.
        padding (int | tuple): Zeros on both sides of the input, which count as elements.

    Raises:
        ValueError: If a size is no integer or out of its range. A call raises it if windows do not fit the input.

    Example:
        >>> nn.AvgPool1d(2)(mx.array([[[1.0], [3.0], [2.0], [5.0]]])).flatten()
        array([2, 3.5], dtype=float32)
    """

    _ndim = 1

    def __init__(
        self,
        kernel_size: int | tuple[int],
        stride: int | tuple[int] | None = None,
        padding: int | tuple[int] = 0,
    ) -> None:
        super().__init__(kernel_size, stride, padding)


class MaxPool2d(_MaxPool):
    """Layer that takes the maximum of windows of images, (N, height, width, C).

    Args:
        kernel_size (int | tuple): Size of the windows, for both axes or for each.
        stride (int | tuple, optional): Distance of the windows; by default their size.
        padding (int | tuple): Elements of minus infinity on both sides of the input.

    Raises:
        ValueError: If a size is no integer or out of its range. A call raises it if windows do not fit the input.

    Example:
        >>> nn.MaxPool2d(2)(mx.ones((1, 8, 6, 3))).shape
        (1, 4, 3, 3)
    """

    _ndim = 2

    def __init__(
        self,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] | None = None,
        padding: int | tuple[int, int] = 0,
    ) -> None:
        super().__init__(kernel_size, stride, padding)


class AvgPool2d(_AvgPool):
    """Layer that takes the mean of windows of images, (N, height, width, C).

    Args:
        kernel_size (int | tuple): Size of the windows, for both axes or for each.
        stride (int | tuple, optional): Distance of the windows; by default their size.
        padding (int | tuple): Zeros on both sides of the input, which count as elements.

    Raises:
        ValueError: If a size is no integer or out of its range. A call raises it if windows do not fit the input.

    Example:
        >>> nn.AvgPool2d(kernel_size=3, stride=2, padding=1)(mx.ones((1, 8, 6, 3))).shape
        (1, 4, 3, 3)
    """

    _ndim = 2

    def __init__(
        self,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] | None = None,
        padding: int | tuple[int, int] = 0,
    ) -> None:
        super().__init__(kernel_size, stride, padding)


class MaxPool3d(_MaxPool):
    """Layer that takes the maximum of windows of volumes, (N, depth, height, width, C).

    Args:
        kernel_size (int | tuple): Size of the windows, for all three axes or for each.
        stride (int | tuple, optional): Distance of the windows; by default their size.
        padding (int | tuple): Elements of minus infinity on both sides of the input.

    Raises:
        ValueError: If a size is no integer or out of its range. A call raises it if windows do not fit the input.

    Example:
        >>> nn.MaxPool3d(2)(mx.ones((1, 8, 6, 4, 3))).shape
        (1, 4, 3, 2, 3)
    """

    _ndim = 3

    def __init__(
        self,
        kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] | None = None,
        padding: int | tuple[int, int, int] = 0,
    ) -> None:
        super().__init__(kernel_size, stride, padding)


class AvgPool3d(_AvgPool):
    """Layer that takes the mean of windows of volumes, (N, depth, height, width, C).

    Args:
        kernel_size (int | tuple): Size of the windows, for all three axes or for each.
        stride (int | tuple, optional): Distance of the windows; by default their size.
        padding (int | tuple): Zeros on both sides of the input, which count as elements.

    Raises:
        ValueError: If a size is no integer or out of its range. A call raises it if windows do not fit the input.

    Example:
        >>> nn.AvgPool3d(2)(mx.ones((1, 8, 6, 4, 3))).shape
        (1, 4, 3, 2, 3)
    """

    _ndim = 3

    def __init__(
        self,
        kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] | None = None,
        padding: int | tuple[int, int, int] = 0,
    ) -> None:
        super().__init__(kernel_size, stride, padding)
