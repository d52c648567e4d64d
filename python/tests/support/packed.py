"""Matrices of few bits for tests of products: as the package takes them, and as float64."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import ultramarine as um
from support import quantization
from support.harness import EPS, to_numpy
from support.quantization import SIZES

# Mode, group size and bits.
Format = tuple[str, int, int]

FORMATS: list[Format] = [
    ("affine", 64, 4),
    ("affine", 32, 8),
    ("affine", 32, 3),
    ("affine", 64, 6),
    ("affine", 32, 5),
    ("affine", 64, 2),
    ("affine", 128, 1),
    *((mode, *SIZES[mode]) for mode in quantization.FLOATING),
]


def name_of(format: Format) -> str:
    """The name of a test's case."""
    return f"{format[0]}-{format[2]}-{format[1]}"


def made(x: np.ndarray, dtype: str) -> um.array:
    """An array of numbers that the dtype holds."""
    if dtype == "float64":
        return um.array(x, dtype=um.float64)
    return um.array(x.astype(np.float32)).astype(getattr(um, dtype))


def wide(x: um.array) -> np.ndarray:
    """An array's numbers in float64."""
    return to_numpy(x).astype(np.float64)


@dataclass
class Packed:
    """Matrices of few bits."""

    format: Format
    words: um.array
    scales: um.array
    biases: um.array | None
    # A number, or an array with one number for each matrix.
    global_scale: um.array | None = None
    value: np.ndarray = field(init=False)
    # Sum of the magnitudes of the terms that make an element.
    size: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        mode, group, bits = self.format
        biases = None if self.biases is None else wide(self.biases)
        scales = to_numpy(self.scales)
        own = None if self.global_scale is None else np.array(self.global_scale)
        self.value, self.size = quantization.terms(
            np.array(self.words), scales, biases, group, bits, mode, own
        )

    @property
    def parts(self) -> Any:
        """The arguments that functions take."""
        return self.words, self.scales, self.biases

    @property
    def options(self) -> dict[str, Any]:
        mode, group, bits = self.format
        return {"group_size": group, "bits": bits, "mode": mode}

    def oriented(self, transpose: bool) -> tuple[np.ndarray, np.ndarray]:
        """The second factors (..., k, n), and the sizes of their terms."""
        if not transpose:
            return self.value, self.size
        return np.swapaxes(self.value, -1, -2), np.swapaxes(self.size, -1, -2)


def packed(
    r: np.random.Generator, dtype: str, format: Format, *shape: int, global_scale: Any = None
) -> Packed:
    """Matrices of a shape: any words with scales and biases of affine, rounded normals of other modes."""
    mode, group, bits = format
    if mode == "affine":
        words = um.array(r.integers(0, 2**32, (*shape[:-1], shape[-1] * bits // 32), np.uint32))
        rows = (*shape[:-1], shape[-1] // group)
        scales, biases = (made(r.standard_normal(rows) / size, dtype) for size in (2**bits, 2))
        return Packed(format, words, scales, biases)
    w = um.array(r.standard_normal(shape).astype(np.float32))
    own = None if global_scale is None else um.array(global_scale, dtype=um.float32)
    words, scales, *_ = um.quantize(w, group, bits, mode)
    return Packed(format, words, scales, None, own)


# Allowed difference of products, in units of the sum of the terms. 16-bit floats are rounded once as elements of the
# second factor (twice for affine) and once as results; other dtypes are summed in their own dtype.
UNITS = {"float16": 2, "bfloat16": 2, "float32": 8, "float64": 8}


def assert_product(
    got: um.array,
    want: np.ndarray,
    size: np.ndarray,
    dtype: str,
    where: str = "",
) -> None:
    """Asserts a product's dtype, shape and values; `size` is that of the sizes of both factors."""
    assert got.dtype == getattr(um, dtype), where
    assert got.shape == want.shape, where
    bound = UNITS[dtype] * EPS[dtype] * size + (2.0**-24 if dtype == "float16" else 0)
    error = np.abs(wide(got) - want)
    assert (error <= bound).all(), (where, np.max(error / bound, initial=0) * UNITS[dtype])
