"""Infinities, NaN and signed zeros: what the standard says of them, here and in the main namespace."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from support import complex_special
from support.array_api_data import ours, same

import ultramarine as um
import ultramarine.array_api as xp

INF, NAN = math.inf, math.nan


def function(space: Any, name: str) -> Any:
    """A function by its name in the core."""
    return getattr(space, name.replace("arc", "a") if space is xp else name)


@pytest.mark.parametrize("space", [xp, um], ids=["array_api", "main"])
@pytest.mark.parametrize("name", complex_special.NAMES)
def test_complex_functions(name: str, space: Any) -> None:
    if name == "expm1" and space is um:
        pytest.skip("MLX has it of real numbers")
    rows = complex_special.rows(name)
    assert len(rows) > 15
    z = np.array([complex(r.x, r.y) for r in rows], np.complex64)
    found = np.asarray(function(space, name)(um.array(z)))
    wrong = [
        f"{name}({given}) is {got}, expected {row.re} and {row.im}"
        for row, given, got in zip(rows, z, found)
        if not (row.re.matches(float(got.real)) and row.im.matches(float(got.imag)))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_table_tells_wrong_values() -> None:
    zero = complex_special.Part(-0.0)
    assert zero.matches(-0.0) and not zero.matches(0.0) and not zero.matches(NAN)
    assert complex_special.Part(INF, any_sign=True).matches(-INF)
    (row,) = [r for r in complex_special.rows("sin") if (r.x, r.y) == (0, -INF)][:1]
    assert (row.re.value, row.im.value) == (0, -INF)


def test_expm1_near_zero() -> None:
    z = np.array(
        [1e-7 - 2e-7j, -3e-6 + 0j, 1e-3 - 1j, 2 + 3j, -1e-12 + 1e-9j, 80 + 2j], np.complex64
    )
    want = np.expm1(z.astype(np.complex128)).astype(np.complex64)
    found = np.asarray(xp.expm1(ours(z)))
    np.testing.assert_allclose(found.real, want.real, rtol=2e-6)
    np.testing.assert_allclose(found.imag, want.imag, rtol=2e-6)


DIVIDENDS = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 6.0, -6.0, INF, -INF, NAN]


def modulo(a: float, b: float) -> float:
    return NAN if b == 0 or math.isinf(a) else a % b


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_remainders(dtype: str) -> None:
    pairs = list(product(DIVIDENDS, DIVIDENDS))
    a, b = (um.array([p[i] for p in pairs], dtype=getattr(um, dtype)) for i in (0, 1))
    want = np.array([modulo(*p) for p in pairs])
    for found in (xp.remainder(a, b), um.remainder(a, b), a % b, um.divmod(a, b)[1]):
        got = np.asarray(found.astype(um.float64))
        np.testing.assert_array_equal(got, want)
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


def test_floors_of_quotients() -> None:
    pairs = list(product(DIVIDENDS, DIVIDENDS))
    a, b = (np.array([p[i] for p in pairs], np.float32) for i in (0, 1))
    with np.errstate(all="ignore"):
        want = np.floor(a / b)
    got = np.asarray(xp.floor_divide(ours(a), ours(b)))
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_signs(dtype: str) -> None:
    x = xp.asarray([NAN, 0.0, -0.0, 2.0, -INF], dtype=getattr(xp, dtype))
    found = np.asarray(xp.sign(x))
    np.testing.assert_array_equal(found, [NAN, 0, 0, 1, -1])
    assert not np.signbit(found[1:3]).any()


def test_axes_of_vecdot() -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    for axis in (-2, -1, 0, 1):
        same(xp.vecdot(ours(a), ours(b), axis=axis), np.vecdot(a, b, axis=axis))
    # Counted from the front, an axis of arrays of several ranks is not one axis.
    for x, axis in ((b[0], 0), (b, 2), (b, -3)):
        with pytest.raises(IndexError):
            xp.vecdot(ours(a), ours(x), axis=axis)
    for axis in (-1, -2):
        with pytest.raises(ValueError, match="match"):
            xp.vecdot(xp.ones((3, 3)), xp.ones((1, 1)), axis=axis)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_real_transforms_of_any_size(size: int) -> None:
    x = np.linspace(1, 2, 2 * size, dtype=np.float32).reshape(2, size)
    z = (x + 1j * x[::-1]).astype(np.complex64)
    for name, given in (("rfft", x), ("ihfft", x), ("irfft", z), ("hfft", z)):
        for n in (None, 1, 2, 3, 7):
            got = getattr(xp.fft, name)(ours(given), n=n)
            if n is None and size == 1 and name in ("irfft", "hfft"):
                # 2 (size - 1) numbers.
                assert (got.shape, got.dtype) == ((2, 0), xp.float32)
                continue
            want = getattr(np.fft, name)(given, n=n)
            assert got.shape == want.shape
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5)
    got = xp.fft.irfftn(ours(z))
    if size == 1:
        assert (got.shape, got.dtype) == ((2, 0), xp.float32)
    else:
        np.testing.assert_allclose(np.asarray(got), np.fft.irfftn(z), rtol=1e-5, atol=1e-5)


def test_nested_integers_beyond_int64() -> None:
    large = 2**63 + 1
    for nested in ([large, 1], [[large], [True]], (1, large), [xp.asarray([large]), [1]]):
        for dtype in (None, xp.uint64):
            if dtype is None and isinstance(nested[0], um.array):
                continue
            found = xp.asarray(nested, dtype=dtype)
            assert found.dtype == xp.uint64
            assert int(np.asarray(found).max()) == large
    assert xp.asarray([large, -1]).dtype == um.result_type(um.int64, um.uint64)
    assert xp.asarray([large, 0.5]).dtype == xp.float32
    assert xp.asarray([large, 1j]).dtype == xp.complex64
    # As a single number is: to the bits that fit.
    assert xp.asarray([large], dtype=xp.int64).tolist() == [-(2**63) + 1]


def test_nested_arrays() -> None:
    x = xp.asarray([[1, 2], [3, 4]], dtype=xp.int8)
    for nested in (
        [x[0], x[1]],
        [[x[0, 0], 2], [3, x[1, 1]]],
        (x[0], (3, 4)),
        [x[0], [3, x[1, 1]]],
    ):
        found = xp.asarray(nested)
        assert found.tolist() == [[1, 2], [3, 4]]
    assert xp.asarray([x, x]).dtype == xp.int8
    assert xp.asarray([x[0], x[1]], dtype=xp.float64).dtype == xp.float64
    assert xp.asarray([x[0], xp.asarray([0.5, 1.5])]).dtype == xp.float32
    for uneven in ([x[0], 1], [x[0], x], [x[0], x[0, :1]]):
        with pytest.raises(ValueError, match="non-uniform"):
            xp.asarray(uneven)
