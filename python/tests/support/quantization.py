"""Numbers of few bits by NumPy: the arithmetic of mlx's quantize, found by experiment, and exact values of what is packed.

Numbers of a dtype are float32 (float64 for float64) that the dtype holds; words are uint32, scales of fp modes uint8.
Where mlx 0.32.4 is plainly wrong the functions here are not: magnitudes beyond 6 are 6 in E2M1 (from 2**25 on mlx's
distances to all numbers round to one value, and it takes 4 or 0), and groups below 2**-127 have the scale 2**-127 (the
exponent of mlx's wraps to one near 2**127).
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Group size and bits of each mode. The affine mode also has others.
SIZES = {"affine": (64, 4), "mxfp4": (32, 4), "mxfp8": (32, 8), "nvfp4": (16, 4)}
FLOATING = ["mxfp4", "mxfp8", "nvfp4"]
GROUPS = (32, 64, 128)
BITS = (1, 2, 3, 4, 5, 6, 8)

Parts = tuple[np.ndarray, np.ndarray, np.ndarray | None]

# The largest E2M1 times the largest E4M3 number, and the midpoints between E2M1 numbers.
GLOBAL = np.float32(2688)
MIDDLES = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])


def _e4m3() -> np.ndarray:
    code = np.arange(128)
    exponent, mantissa = code >> 3, code & 7
    size = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * np.exp2(exponent - 10.0))
    size[127] = np.nan
    return np.concatenate([size, -size])


E4M3 = _e4m3()


def rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers rounded to a dtype, to the nearest, ties to even."""
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype == "float64":
            return x.astype(np.float64)
        x = x.astype(np.float32)
        if dtype == "float16":
            return x.astype(np.float16).astype(np.float32)
    if dtype == "bfloat16":
        bits = x.view(np.uint32).astype(np.uint64)
        up = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
        return np.where(np.isnan(x), x, up.astype(np.uint32).view(np.float32))
    return x


def to_fp8(x: np.ndarray) -> np.ndarray:
    """E4M3 codes: to the nearest, ties to even. What is too large, infinities and NaN are 448."""
    size = np.abs(x).astype(np.float64)
    size = np.where(size < 448, size, 448)
    exponent = np.maximum(np.frexp(size)[1] - 1, -6)
    steps = np.rint(size / np.exp2(exponent - 3.0)).astype(np.int64)
    code = np.where(steps >= 8, ((exponent + 7) << 3) + steps - 8, steps)
    return (code + 128 * np.signbit(x)).astype(np.uint8)


def from_fp8(codes: np.ndarray) -> np.ndarray:
    """The numbers of E4M3 codes."""
    return E4M3[codes]


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Elements as words: a row is a stream of bits, the lowest first."""
    each = (codes.astype(np.uint32)[..., None] >> np.arange(bits, dtype=np.uint32)) & 1
    stream = each.astype(np.uint8).reshape(*codes.shape[:-1], codes.shape[-1] * bits)
    return np.packbits(stream, axis=-1, bitorder="little").view("<u4")


def unpack(words: np.ndarray, bits: int) -> np.ndarray:
    """The elements of words."""
    stream = np.unpackbits(np.ascontiguousarray(words, "<u4").view(np.uint8), -1, bitorder="little")
    each = stream.reshape(*words.shape[:-1], words.shape[-1] * 32 // bits, bits)
    return (each.astype(np.uint32) << np.arange(bits, dtype=np.uint32)).sum(-1, dtype=np.uint32)


def quantize(
    w: np.ndarray,
    dtype: str,
    group: int,
    bits: int,
    mode: str = "affine",
    global_scale: float | None = None,
) -> Parts:
    """Words, scales and biases of numbers of a dtype."""
    with np.errstate(all="ignore"):
        if mode == "affine":
            return _affine(w, dtype, group, bits)
        single = rounded(w, "float32") if dtype == "float64" else w
        return _floating(single, dtype, group, bits, mode, global_scale)


def _affine(w: np.ndarray, dtype: str, group: int, bits: int) -> Parts:
    """In float32 whatever the dtype; the codes come from scales and biases that are not rounded."""
    wide = np.float64 if dtype == "float64" else np.float32
    groups = w.astype(wide).reshape(*w.shape[:-1], w.shape[-1] // group, group)
    steps = wide(2**bits - 1)
    missing = np.isnan(groups)
    ends = []
    for infinity, find in ((-np.inf, np.argmax), (np.inf, np.argmin)):
        # With zeros of both signs, the first one is the bias of the 1-bit format.
        numbers = np.where(missing, wide(infinity), groups)
        ends.append(np.take_along_axis(numbers, find(numbers, -1)[..., None], -1)[..., 0])
    high, low = ends
    width = (high - low) / steps
    scale = np.where(width < wide(1e-7), wide(1e-7), width)
    bias = low
    if bits > 1:
        # Begin at the end of larger magnitude, an integer number of steps from zero.
        below = np.abs(low) > np.abs(high)
        scale = np.where(below, scale, -scale)
        edge = np.where(below, low, high)
        count = np.rint(edge / scale)
        scale = np.where(count == 0, scale, edge / count)
        bias = np.where(count == 0, wide(0), edge)
    codes = np.rint((groups - bias[..., None]) / scale[..., None])
    codes = np.where(np.isnan(codes), wide(0), np.clip(codes, 0, steps))
    return pack(codes.reshape(w.shape), bits), rounded(scale, dtype), rounded(bias, dtype)


def _floating(
    w: np.ndarray, dtype: str, group: int, bits: int, mode: str, global_scale: float | None
) -> Parts:
    """Each step is rounded to the dtype."""
    single = "float32" if dtype == "float64" else dtype
    groups = w.reshape(*w.shape[:-1], w.shape[-1] // group, group)
    scale = rounded(np.abs(groups).max(-1) / np.float32(448 if bits == 8 else 6), single)
    factor = None if global_scale is None else GLOBAL / np.float32(global_scale)
    if mode == "nvfp4":
        codes = to_fp8(scale if factor is None else scale * factor)
        divisor = from_fp8(codes).astype(np.float32)
    else:
        mantissa, exponent = np.frexp(scale.astype(np.float64))
        exponent = np.where(scale == 0, 0, exponent - (mantissa == 0.5))
        exponent = np.maximum(exponent, -127)
        finite = np.isfinite(scale)
        # A group without a scale is divided by 0.
        none = 128 if single == "float32" else 0
        codes = np.where(finite, exponent + 127, none).astype(np.uint8)
        divisor = rounded(np.where(finite, np.exp2(exponent.astype(np.float64)), 0.0), single)
    x = rounded(groups / divisor[..., None], single)
    x = (x if factor is None else x * factor).reshape(w.shape)
    if bits == 8:
        return pack(to_fp8(x), 8), codes, None
    size = np.abs(x)
    near = (size[..., None] > MIDDLES).sum(-1)
    # There is no -0. Infinities arise from a scale of 0.
    near = np.where(np.isinf(x), 0, near)
    return pack(np.where((x < 0) & (near > 0), near + 8, near), 4), codes, None


def terms(
    words: np.ndarray,
    scales: np.ndarray,
    biases: np.ndarray | None,
    group: int,
    bits: int,
    mode: str = "affine",
    global_scale: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """What packed numbers are in float64: their values, and the sizes of the terms that make them.

    `global_scale` is a number, or an array of one for each matrix.
    """
    codes = unpack(words, bits)
    each = lambda a: np.repeat(np.asarray(a, np.float64), group, -1)
    with np.errstate(invalid="ignore"):
        if biases is not None:
            product, bias = codes * each(scales), each(biases)
            return product + bias, np.abs(product) + np.abs(bias)
        if mode == "nvfp4":
            factor = from_fp8(scales)
            if global_scale is not None:
                own = np.asarray(global_scale, np.float64)
                factor = factor * own.reshape(own.shape + (1, 1) * (own.ndim > 0)) / 2688
        else:
            factor = np.where(scales == 255, np.inf, np.exp2(scales.astype(np.float64) - 127))
        value = (E2M1 if bits == 4 else E4M3)[codes] * each(factor)
    return value, np.abs(value)


# --- values -------------------------------------------------------------------------------


def bank(seed: int, columns: int = 128, rows: int = 8) -> dict[str, np.ndarray]:
    """Matrices of many distributions, groups without a range, and numbers that are none, in float32."""
    r = np.random.default_rng(seed)
    shape = (rows, columns)
    normal = lambda: r.standard_normal(shape)
    powers = lambda low, high, s=(rows, 1): np.exp2(r.integers(low, high, s).astype(float))
    ties = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]
    odd = [np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 0, -0.0, 1e-45, 65504, 1e30, -1e30]
    parts = columns // 16
    made = {
        "normal": normal(),
        "uniform": r.uniform(-1, 1, shape),
        "positive": r.uniform(0, 3, shape),
        "negative": -r.uniform(0, 3, shape),
        "rows of sizes": normal() * powers(-40, 30),
        "many sizes": normal() * powers(-30, 15, shape),
        "tiny": normal() * powers(-30, -8),
        "subnormal": normal() * powers(-149, -118),
        "big": normal() * powers(100, 126),
        "integers": r.integers(-15, 16, shape),
        "eighths": r.integers(-400, 400, shape) / 8,
        "ties of 4 bits": np.where(
            np.arange(columns) % 16 == 0, 15.0, r.integers(0, 31, shape) / 2
        ),
        "ties of E2M1": np.where(
            np.arange(columns) % 16 == 0, 6.0, r.choice([*ties, *np.negative(ties), -0.0], shape)
        ),
        "long tails": r.standard_cauchy(shape),
        "offset": 100 + normal() * 0.01,
        "mostly zeros": np.where(r.random(shape) < 0.9, 0, normal()),
        "near the least scale": r.uniform(0, 1, shape)
        * 1e-7
        * r.choice([1, 2, 15, 31, 255], (rows, 1)),
        "constant groups": np.repeat(
            r.choice([0, -0.0, 1, -1, 1e-10, 1e-45, 3e38, 0.1, 448, 65504, 1e-7], (rows, parts)),
            16,
            1,
        ),
        "some odd": np.where(r.random(shape) < 0.01, r.choice(odd, shape), normal()),
        "odd": r.choice(odd, shape),
        "not finite": np.repeat(r.choice([np.inf, -np.inf, np.nan], (rows, parts)), 16, 1),
        "any bits": r.integers(0, 2**32, shape, dtype=np.uint32).view(np.float32),
    }
    with np.errstate(over="ignore", invalid="ignore"):
        return {name: np.asarray(data).astype(np.float32) for name, data in made.items()}
