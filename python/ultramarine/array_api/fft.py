"""The standard's extension for Fourier transforms, over `ultramarine.fft`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal, TypeAlias

import ultramarine as mx
from ultramarine import Dtype, array

from ._creation import on
from ._dtypes import (
    COMPLEX,
    FLOATING,
    REAL_FLOATING,
    DeviceLike,
    axes_of,
    check,
    check_array,
    kind_of,
)
from ._manipulation import roll

Norm: TypeAlias = Literal["backward", "ortho", "forward"]

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def _core(name: str) -> Any:
    """A function of the module that computes; asked for when it is needed."""
    return getattr(import_module("ultramarine.fft"), name)


def _line(name: str, x: array, n: int | None, axis: int, norm: Norm, kinds: Sequence[str]) -> array:
    check(name, x, kinds)
    _check_norm(name, norm)
    (axis,) = axes_of(name, axis, x.ndim)
    if name == "irfft" and n is None and x.shape[axis] == 1:
        return _nothing(x, axis)
    out: array = _core(name)(x, n, axis, norm)
    return out


def _nothing(x: array, axis: int) -> array:
    """The real numbers of one frequency, where 2 (size - 1) says how many: none."""
    with on(x.device):
        return mx.zeros([0 if i == axis else n for i, n in enumerate(x.shape)], mx.float32)


def _check_norm(name: str, norm: str) -> None:
    if norm not in ("backward", "ortho", "forward"):
        raise ValueError(f"[{name}] norm must be 'backward', 'ortho' or 'forward', got {norm!r}.")


def _block(
    name: str,
    x: array,
    s: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: Norm,
    kinds: Sequence[str],
) -> array:
    check(name, x, kinds)
    _check_norm(name, norm)
    if axes is None:
        named = range(x.ndim if s is None else len(s))
        axes = [i - len(named) for i in named]
    taken = axes_of(name, tuple(axes), x.ndim)
    if not taken:
        return x
    if name == "irfftn" and s is None and x.shape[taken[-1]] == 1:
        return _nothing(x, taken[-1])
    out: array = _core(name)(x, None if s is None else list(s), list(taken), norm)
    return out


def fft(x: array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> array:
    """The discrete Fourier transform along an axis, of `n` elements (cut off, or zeros added)."""
    return _line("fft", x, n, axis, norm, FLOATING)


def ifft(x: array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> array:
    """The inverse of `fft`."""
    return _line("ifft", x, n, axis, norm, FLOATING)


def fftn(
    x: array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> array:
    """The discrete Fourier transform along several axes, by default all (the last ones, as many as
    `s` has sizes)."""
    return _block("fftn", x, s, axes, norm, FLOATING)


def ifftn(
    x: array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> array:
    """The inverse of `fftn`."""
    return _block("ifftn", x, s, axes, norm, FLOATING)


def rfft(x: array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> array:
    """The first half of the transform of real numbers, the rest being its conjugate."""
    return _line("rfft", x, n, axis, norm, REAL_FLOATING)


def irfft(x: array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> array:
    """The inverse of `rfft`: `n` real numbers, by default 2 (size - 1)."""
    return _line("irfft", x, n, axis, norm, FLOATING)


def rfftn(
    x: array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> array:
    """`rfft` along the last of several axes, then `fft` along the others."""
    return _block("rfftn", x, s, axes, norm, REAL_FLOATING)


def irfftn(
    x: array,
    /,
    *,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: Norm = "backward",
) -> array:
    """The inverse of `rfftn`."""
    return _block("irfftn", x, s, axes, norm, FLOATING)


_OTHER: dict[str, Norm] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def hfft(x: array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> array:
    """The real transform of numbers of which the second half is the conjugate of the first, which
    is given."""
    check("hfft", x, FLOATING)
    _check_norm("hfft", norm)
    whole = mx.conj(x) if kind_of(x.dtype) in COMPLEX else x
    return _line("irfft", whole, n, axis, _OTHER[norm], FLOATING)


def ihfft(x: array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> array:
    """The inverse of `hfft`."""
    check("ihfft", x, REAL_FLOATING)
    _check_norm("ihfft", norm)
    return mx.conj(_line("rfft", x, n, axis, _OTHER[norm], REAL_FLOATING))


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: Dtype | None = None, device: DeviceLike | None = None
) -> array:
    """The frequencies that belong to the elements of `fft` of `n` samples `d` apart."""
    _check_frequencies("fftfreq", dtype)
    with on(device):
        k = mx.arange(n)
        k = mx.where(k < (n + 1) // 2, k, k - n)
        return (k / (n * d)).astype(mx.float32 if dtype is None else dtype)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: Dtype | None = None, device: DeviceLike | None = None
) -> array:
    """The frequencies that belong to the elements of `rfft` of `n` samples `d` apart."""
    _check_frequencies("rfftfreq", dtype)
    with on(device):
        return (mx.arange(n // 2 + 1) / (n * d)).astype(mx.float32 if dtype is None else dtype)


def _check_frequencies(name: str, dtype: Dtype | None) -> None:
    if dtype is not None and kind_of(dtype) not in REAL_FLOATING:
        raise TypeError(f"[{name}] Expected a real floating dtype, got {dtype}.")


def _shifted(name: str, x: array, axes: int | Sequence[int] | None, sign: int) -> array:
    check_array(name, x)
    axis = axes if axes is None or isinstance(axes, int) else tuple(axes)
    moved = axes_of(name, axis, x.ndim)
    shifts = tuple(x.shape[a] // 2 if sign > 0 else -(x.shape[a] // 2) for a in moved)
    return roll(x, shifts, axis=moved)


def fftshift(x: array, /, *, axes: int | Sequence[int] | None = None) -> array:
    """Frequency 0 moved into the middle of axes, by default of all."""
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: array, /, *, axes: int | Sequence[int] | None = None) -> array:
    """The inverse of `fftshift`."""
    return _shifted("ifftshift", x, axes, -1)
