"""What the tests compare with."""

import numpy as np

import ultramarine as um

ALPHA, BETA = 1.3, -0.7
FLOATS = ["float16", "bfloat16", "float32", "float64", "complex64"]
INTEGERS = ["bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
SPECIAL = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-7, 6e4]


def values(shape, dtype, seed=0):
    """An array of a dtype (by name): numbers of several magnitudes, special ones in front where there is room."""
    rng = np.random.default_rng(seed)
    numbers = np.asarray(rng.normal(size=shape) * 10.0 ** rng.integers(-3, 3, size=shape))
    if dtype == "complex64":
        numbers = numbers + 1j * rng.normal(size=shape)
    elif dtype in INTEGERS:
        numbers = np.clip(np.rint(numbers), 0 if dtype[0] in "bu" else -100, 100)
    elif numbers.size >= 2 * len(SPECIAL):
        # At both ends, in opposite orders: they meet ordinary ones and each other.
        flat = numbers.reshape(-1)
        flat[: len(SPECIAL)] = SPECIAL if seed else SPECIAL[::-1]
        flat[-len(SPECIAL) :] = SPECIAL
    kind = {"complex64": np.complex64}.get(dtype, np.float64)
    made = um.array(
        numbers.astype(kind), dtype=um.complex64 if dtype == "complex64" else um.float64
    )
    return um.astype(made, getattr(um, dtype), stream=um.cpu)


def composed(x, y, alpha=ALPHA, beta=BETA):
    """The expression with ordinary operations; integers and bool count as float32."""
    dtype = um.result_type(x, y)
    if not um.issubdtype(dtype, um.inexact):
        dtype = um.float32
    return x.astype(dtype) * alpha + y.astype(dtype) * beta


def bits(array):
    """The elements as NumPy has them, with bfloat16 as float32."""
    return np.array(array.astype(um.float32) if array.dtype == um.bfloat16 else array)


def same(got, want):
    """Equal shapes, dtypes and bits; NaN is NaN."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    got, want = bits(got), bits(want)
    np.testing.assert_array_equal(got, want)
    for g, w in [(got.real, want.real), (got.imag, want.imag)]:
        number = ~np.isnan(w)
        np.testing.assert_array_equal(np.signbit(g[number]), np.signbit(w[number]))


def near(got, want):
    """Equal but for the order in which sums were made."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(bits(got), bits(want), rtol=1e-6)
