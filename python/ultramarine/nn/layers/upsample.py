"""Resampling of spatial axes. Axes are resampled one after the other; the first is the batch, the last are channels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import ultramarine as mx
from ultramarine.nn.layers.base import Module

__all__ = ["Upsample", "upsample_cubic", "upsample_linear", "upsample_nearest"]

# Function of the distance t, in [0, 1), between an output's position and the input before it. It returns the offsets of
# the inputs to combine, counted from that input, and their weights. t is a number or an array.
_Taps = Callable[[Any], list[tuple[int, Any]]]

# Integer factors up to this one are computed from shifted inputs, one sum for each of the outputs between two inputs.
_MOST_PHASES = 8
# Axes up to this size are multiplied by a matrix; along longer axes, elements are gathered.
_LONGEST_MATRIX = 256


def _linear_taps(t: Any) -> list[tuple[int, Any]]:
    return [(0, 1 - t), (1, t)]


def _cubic_taps(t: Any) -> list[tuple[int, Any]]:
    """Weights of cubic convolution with the coefficient -0.75 (Keys, 1981), that of OpenCV and PyTorch."""
    a = -0.75

    def near(d: Any) -> Any:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [(-1, far(1 + t)), (0, near(t)), (1, near(1 - t)), (2, far(2 - t))]


def _triangle(d: mx.array) -> mx.array:
    return mx.maximum(1 - d, 0)


def _smooth_cubic(d: mx.array) -> mx.array:
    """Cubic convolution with the coefficient -0.5, that of Pillow and of PyTorch's antialiasing."""
    near = (1.5 * d - 2.5) * d * d + 1
    far = ((-0.5 * d + 2.5) * d - 4) * d + 2
    return mx.where(d < 1, near, mx.where(d < 2, far, 0))


def _positions(n: int, m: int, scale: float, align_corners: bool, dtype: mx.Dtype) -> mx.array:
    """Returns the positions of `m` outputs among `n` inputs, which are at 0 to n - 1."""
    if align_corners:
        step, start = (n - 1) / max(m - 1, 1), 0.0
    else:
        # Align the middle of the outputs with the middle of the inputs.
        step = 1 / scale
        start = ((m - 1) * step - n + 1) / 2
    return mx.arange(m, dtype=dtype) * step - start


def _along(x: mx.array, axis: int, start: int, size: int) -> mx.array:
    index: list[slice] = [slice(None)] * axis
    return x[(*index, slice(start, start + size))]


def _by_phases(x: mx.array, axis: int, multiple: int, taps: _Taps) -> mx.array:
    """Resamples an axis to a multiple of its size: outputs of the same place between inputs have the same weights."""
    n = x.shape[axis]
    margin = len(taps(0.0)) // 2
    widths = [(margin, margin) if i == axis else (0, 0) for i in range(x.ndim)]
    padded = mx.pad(x, widths, mode="edge")
    # The inputs, shifted by each offset.
    shifted = [_along(padded, axis, start, n) for start in range(2 * margin + 1)]
    phases = []
    for i in range(multiple):
        position = (i + 0.5) / multiple - 0.5
        before = math.floor(position)
        terms = [
            shifted[margin + before + offset] * weight
            for offset, weight in taps(position - before)
            if weight != 0
        ]
        phases.append(sum(terms[1:], terms[0]))
    shape = list(x.shape)
    shape[axis] *= multiple
    return mx.reshape(mx.stack(phases, axis=axis + 1), shape)


def _by_matrix(x: mx.array, axis: int, matrix: mx.array) -> mx.array:
    """Multiplies an axis by a matrix, (outputs, inputs)."""
    shape = x.shape
    flat = mx.reshape(x, (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])))
    return mx.reshape(matrix @ flat, (*shape[:axis], matrix.shape[0], *shape[axis + 1 :]))


def _by_taps(x: mx.array, axis: int, positions: mx.array, taps: _Taps) -> mx.array:
    """Resamples an axis at positions. Inputs beyond its ends are those at the ends."""
    n = x.shape[axis]
    before = mx.floor(positions)
    weighted = [
        (mx.clip(before + offset, 0, n - 1), weight) for offset, weight in taps(positions - before)
    ]
    if n <= _LONGEST_MATRIX:
        inputs = mx.arange(n, dtype=positions.dtype)
        rows = [
            mx.where(mx.expand_dims(i, 1) == inputs, mx.expand_dims(w, 1), 0) for i, w in weighted
        ]
        return _by_matrix(x, axis, sum(rows[1:], rows[0]))
    shape = [1] * x.ndim
    shape[axis] = -1
    terms = [mx.take(x, i.astype(mx.int32), axis=axis) * mx.reshape(w, shape) for i, w in weighted]
    return sum(terms[1:], terms[0])


def _antialiased(
    x: mx.array, axis: int, positions: mx.array, scale: float, kernel: Callable[..., mx.array]
) -> mx.array:
    """Resamples an axis by a kernel, which is widened where outputs are farther apart than inputs.

    The weights of the inputs that there are, of each output, sum to 1.
    """
    inputs = mx.arange(x.shape[axis], dtype=positions.dtype)
    distances = mx.abs(mx.expand_dims(positions, 1) - inputs) * min(scale, 1.0)
    weights = kernel(distances)
    return _by_matrix(x, axis, weights / mx.sum(weights, axis=1, keepdims=True))


def _check_scales(x: mx.array, scale_factor: Sequence[float]) -> None:
    if len(scale_factor) != x.ndim - 2:
        raise ValueError(
            "A scale needs to be provided for each spatial dimension. Pass one number, or one for each."
        )
    if any(scale <= 0 for scale in scale_factor):
        raise ValueError(
            f"[Upsample] scale factors must be positive but got {scale_factor}. Pass positive numbers."
        )


def _check_antialias(align_corners: bool, antialias: bool) -> None:
    if antialias and align_corners:
        raise ValueError(
            "[Upsample] antialias=True with align_corners=True is not supported. "
            "Use align_corners=False for antialiased interpolation."
        )


_TAPS: dict[str, _Taps] = {"linear": _linear_taps, "cubic": _cubic_taps}
_KERNELS: dict[str, Callable[[mx.array], mx.array]] = {
    "linear": _triangle,
    "cubic": _smooth_cubic,
}


@mx.compile
def _resampled(
    x: mx.array, scale_factor: Sequence[float], align_corners: bool, mode: str, antialias: bool
) -> mx.array:
    """Resamples the spatial axes, in float32 or float64.

    Compiled, since it is made of dozens of small operations.
    """
    taps = _TAPS[mode]
    if x.dtype != mx.float64:
        x = x.astype(mx.float32)
    for axis, scale in enumerate(scale_factor, start=1):
        n = x.shape[axis]
        m = int(scale * n)
        if scale == 1:
            continue
        multiple = int(scale) == scale and 1 < scale <= _MOST_PHASES
        if multiple and not align_corners and not antialias:
            x = _by_phases(x, axis, int(scale), taps)
            continue
        positions = _positions(n, m, scale, align_corners, x.dtype)
        if antialias:
            x = _antialiased(x, axis, positions, scale, _KERNELS[mode])
        else:
            x = _by_taps(x, axis, positions, taps)
    return x


def upsample_nearest(x: mx.array, scale_factor: Sequence[float]) -> mx.array:
    """Resamples spatial axes by the nearest input.

    Args:
        x (array): Input, (N, ..., C).
        scale_factor (Sequence[float]): Factor of the size of each spatial axis. Sizes are rounded down.

    Returns:
        array: Result, in the dtype of `x`.

    Raises:
        ValueError: If there is not one positive factor for each spatial axis.
    """
    _check_scales(x, scale_factor)
    for axis, scale in enumerate(scale_factor, start=1):
        if scale == int(scale):
            continue
        n = x.shape[axis]
        m = int(scale * n)
        outputs, step = mx.arange(m, dtype=mx.float32), n / max(m, 1)
        # When the axis becomes longer, take the input with the nearest middle, else the input at the output's start.
        indices = mx.round((outputs + 0.5) * step - 0.5) if m > n else outputs * step
        x = mx.take(x, indices.astype(mx.int32), axis=axis)

    # If all factors are integers, one copy repeats the elements.
    split, repeated, merged = [x.shape[0]], [x.shape[0]], [x.shape[0]]
    for n, scale in zip(x.shape[1:-1], scale_factor):
        multiple = int(scale) if scale == int(scale) else 1
        split += [n, 1]
        repeated += [n, multiple]
        merged.append(n * multiple)
    channels = x.shape[-1]
    spread = mx.broadcast_to(mx.reshape(x, [*split, channels]), [*repeated, channels])
    return mx.reshape(spread, [*merged, channels])


def upsample_linear(
    x: mx.array, scale_factor: Sequence[float], align_corners: bool = False, antialias: bool = False
) -> mx.array:
    """Resamples spatial axes by linear interpolation.

    Args:
        x (array): Input, (N, ..., C).
        scale_factor (Sequence[float]): Factor of the size of each spatial axis. Sizes are rounded down.
        align_corners (bool): Makes the first and the last output the first and the last input.
        antialias (bool): Averages over more inputs where there are fewer outputs.

    Returns:
        array: Result, in float32, or in float64 if `x` is.

    Raises:
        ValueError: If there is not one positive factor for each spatial axis, or both flags are set.
    """
    _check_antialias(align_corners, antialias)
    _check_scales(x, scale_factor)
    return _resampled(x, tuple(scale_factor), align_corners, "linear", antialias)


def upsample_cubic(
    x: mx.array, scale_factor: Sequence[float], align_corners: bool = False, antialias: bool = False
) -> mx.array:
    """Resamples spatial axes by cubic convolution.

    Args:
        x (array): Input, (N, ..., C).
        scale_factor (Sequence[float]): Factor of the size of each spatial axis. Sizes are rounded down.
        align_corners (bool): Makes the first and the last output the first and the last input.
        antialias (bool): Averages over more inputs where there are fewer outputs. The kernel's coefficient is -0.5
            then, else -0.75.

    Returns:
        array: Result, in float32, or in float64 if `x` is.

    Raises:
        ValueError: If there is not one positive factor for each spatial axis, or both flags are set.

    References:
        Keys: Cubic convolution interpolation for digital image processing, IEEE Transactions on Acoustics, Speech,
        and Signal Processing 29 (1981).
    """
    _check_antialias(align_corners, antialias)
    _check_scales(x, scale_factor)
    return _resampled(x, tuple(scale_factor), align_corners, "cubic", antialias)


class Upsample(Module):
    """Layer that resamples the spatial axes of (N, ..., C): lines, images or volumes.

    Args:
        scale_factor (float | tuple): Factor of the sizes, for all spatial axes or for each. Sizes are rounded down.
        mode (str): "nearest", "linear" or "cubic".
        align_corners (bool): Makes the first and the last output the first and the last input, in the modes "linear"
            and "cubic".
        antialias (bool): Averages over more inputs where there are fewer outputs, in the modes "linear" and "cubic".

    Raises:
        ValueError: If the mode is unknown, or `antialias` is set with the mode "nearest" or with `align_corners`.

    Example:
        >>> x = mx.array([1.0, 3.0]).reshape(1, 2, 1)
        >>> nn.Upsample(2, mode="linear")(x).squeeze()
        array([1, 1.5, 2.5, 3], dtype=float32)
    """

    def __init__(
        self,
        scale_factor: float | tuple[float, ...],
        mode: Literal["nearest", "linear", "cubic"] = "nearest",
        align_corners: bool = False,
        antialias: bool = False,
    ) -> None:
        super().__init__()
        if mode not in ("nearest", "linear", "cubic"):
            raise ValueError(
                f"[Upsample] Got unsupported upsampling algorithm: {mode}. Use 'nearest', 'linear' or 'cubic'."
            )
        if antialias and mode == "nearest":
            raise ValueError(
                "[Upsample] Antialiasing is not supported for nearest neighbor upsampling. Leave antialias out."
            )
        _check_antialias(align_corners, antialias)
        self.scale_factor: float | tuple[float, ...] = (
            tuple(map(float, scale_factor))
            if isinstance(scale_factor, (list, tuple))
            else float(scale_factor)
        )
        self.mode = mode
        self.align_corners = align_corners
        self.antialias = antialias

    def _extra_repr(self) -> str:
        return (
            f"scale_factor={self.scale_factor}, mode={self.mode!r}, "
            f"align_corners={self.align_corners}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        """Resamples.

        Args:
            x (array): Input, (N, ..., C), of three dimensions at least.

        Returns:
            array: Result. In the mode "nearest" it has the dtype of `x`, else it is in float32 or float64.

        Raises:
            ValueError: If there is no spatial axis, or not one positive factor for each.
        """
        spatial = x.ndim - 2
        if spatial <= 0:
            raise ValueError(
                "[Upsample] The input should have at least 1 spatial dimension which means it should "
                f"be at least 3D but {x.ndim}D was provided. Pass (N, ..., C)."
            )
        scales = self.scale_factor
        if not isinstance(scales, tuple):
            scales = (scales,) * spatial
        elif len(scales) != spatial:
            raise ValueError(
                "[Upsample] One scale per spatial dimension is required but "
                f"scale_factor={scales} and the number of spatial dimensions were {spatial}"
            )
        if self.mode == "nearest":
            return upsample_nearest(x, scales)
        resample = upsample_linear if self.mode == "linear" else upsample_cubic
        return resample(x, scales, self.align_corners, self.antialias)
