"""Infinities, NaN and signed zeros of real functions, as the standard lists them, in every float dtype."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import ultramarine as um
import ultramarine.array_api as xp

INF, NAN = math.inf, math.nan
DTYPES = ["float16", "bfloat16", "float32", "float64"]
VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 1e4, INF, NAN]
GRID = [sign * value for value in VALUES for sign in (1.0, -1.0)]
# Functions of the standard that NumPy has by another name, or not at all.
WANTED: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "floor_divide": lambda a, b: np.floor(a / b),
    "pow": np.power,
    "round": np.rint,
    "reciprocal": lambda a: 1.0 / a,
}
UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "negative",
    "positive",
    "reciprocal",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]
BINARY = [
    "add",
    "atan2",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "less",
    "less_equal",
    "logaddexp",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "pow",
    "subtract",
]
# Functions whose zeros may have either sign.
ZEROS = {"logaddexp", "maximum", "minimum"}
TOLERANCE = {"float16": 1e-2, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-13}


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """Float64 as the dtype holds it, in float64."""
    return np.asarray(um.array(values, dtype=um.float64).astype(getattr(um, dtype)), np.float64)


def check(name: str, dtype: str, *operands: np.ndarray) -> None:
    given = [rounded(x, dtype) for x in operands]
    with np.errstate(all="ignore"):
        want = WANTED.get(name, getattr(np, name, None))(*given)
    made = [um.array(x, dtype=um.float64).astype(getattr(um, dtype)) for x in given]
    found = getattr(xp, name)(*made)
    if want.dtype == bool:
        assert found.dtype == xp.bool
        np.testing.assert_array_equal(np.asarray(found), want)
        return
    assert found.dtype == getattr(um, dtype)
    got = np.asarray(found.astype(um.float64))
    if name == "nextafter":
        # The neighbour is the dtype's.
        moved = np.isfinite(want) & (given[0] != given[1])
        assert ((got > given[0]) == (given[1] > given[0]))[moved].all()
        assert (got != given[0])[moved].all()
        want = np.where(moved, got, want)
    want = rounded(want, dtype)
    near = np.isclose(got, want, rtol=TOLERANCE[dtype], atol=0, equal_nan=True)
    signed = np.isnan(want) | (np.signbit(got) == np.signbit(want)) | (name in ZEROS)
    # The least numbers have few digits, and pi has no exact sine.
    small = (np.abs(want) < 1e-3) & (want != 0)
    near |= small & np.isclose(got, want, rtol=0, atol=TOLERANCE[dtype])
    wrong = [
        f"{name}{case} of {dtype} is {g}, not {w}"
        for case, w, g, right in zip(zip(*given), want, got, near & signed)
        if not right
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str, dtype: str) -> None:
    # Three times, so that whole vectors and what is left of them have each.
    check(name, dtype, np.array(GRID * 3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name: str, dtype: str) -> None:
    pairs = list(product(GRID, GRID))
    check(name, dtype, *(np.array([p[i] for p in pairs]) for i in (0, 1)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_signs_of_nan(dtype: str) -> None:
    nan = um.array([NAN] * 20, dtype=getattr(um, dtype))
    minus = um.array([-1.0, -0.0, -INF, -2.5] * 5, dtype=nan.dtype)
    for sign in (minus, xp.copysign(nan, minus)):
        found = xp.copysign(nan, sign)
        assert xp.all(xp.isnan(found)) and xp.all(xp.signbit(found))
        assert not xp.any(xp.signbit(xp.copysign(found, -minus)))
        assert xp.all(xp.copysign(xp.ones_like(nan), found) == -1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_limits_that_are_nan(dtype: str) -> None:
    x = um.array([1.0, NAN, -INF, 3.0], dtype=getattr(um, dtype))
    nan = um.array(NAN, dtype=x.dtype)
    for limits in ({"min": NAN}, {"max": NAN}, {"min": nan, "max": 2.0}, {"min": 0.0, "max": nan}):
        assert xp.all(xp.isnan(xp.clip(x, **limits)))
    np.testing.assert_array_equal(
        np.asarray(xp.clip(x, 0.0, 2.0).astype(um.float32)), [1, NAN, 0, 2]
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [2, 70])
def test_nan_spreads_through_reductions(length: int, dtype: str) -> None:
    for place in (0, length - 1):
        values = np.ones((3, length))
        values[1, place] = NAN
        x = um.array(values).astype(getattr(um, dtype))
        for name in ("max", "mean", "min", "prod", "std", "sum", "var"):
            found = np.isnan(np.asarray(getattr(xp, name)(x, axis=1).astype(um.float32)))
            assert found.tolist() == [False, True, False], name
            assert math.isnan(getattr(xp, name)(x).item()), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_of_no_numbers(dtype: str) -> None:
    x = xp.zeros((2, 0), dtype=getattr(um, dtype))
    for name, want in (("mean", NAN), ("std", NAN), ("var", NAN), ("sum", 0.0), ("prod", 1.0)):
        found = np.asarray(getattr(xp, name)(x, axis=1).astype(um.float32))
        np.testing.assert_array_equal(found, [want, want], err_msg=name)
    one = xp.ones((2, 1), dtype=x.dtype)
    for correction in (1, 1.5, 2):
        for name in ("std", "var"):
            assert xp.all(xp.isnan(getattr(xp, name)(one, axis=1, correction=correction)))


def test_averages_of_complex_numbers() -> None:
    x = xp.asarray([complex(NAN, 1), complex(2, 3)])
    mean = complex(xp.mean(x))
    assert math.isnan(mean.real) and mean.imag == 2
    mean = complex(xp.mean(xp.asarray([complex(1, NAN), complex(2, 3)])))
    assert mean.real == 1.5 and math.isnan(mean.imag)
    empty = complex(xp.mean(xp.zeros((0,), dtype=xp.complex64)))
    assert math.isnan(empty.real) and math.isnan(empty.imag)
