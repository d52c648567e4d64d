"""The comparison fails where it should, and the patterns of deliberate differences match whole names."""

import fnmatch
import math
from typing import Any

import mlx.core as mlx
import numpy as np
import pytest

import ultramarine as um
from support.compare import assert_close, assert_identical
from support.differences import DELIBERATE
from support.harness import ROUNDED, Units, by_dtype, deliberate, unequal

ONE = np.float32([1.0, 2.0])

EQUAL: list[tuple[Any, Any, dict[str, Any]]] = [
    (um.array([1.0, 2.0]), ONE, {}),
    (um.array([1.0, 2.0], um.bfloat16), mlx.array([1.0, 2.0], mlx.bfloat16), {}),
    (um.array([True]), np.array([True]), {}),
    ([1, (2.0,)], [1, (2.0,)], {}),
    (ONE + np.float32(0.5), ONE, {"atol": 0.5}),
    (ONE * np.float32(1.25), ONE, {"rtol": 0.25}),
    (ONE + np.float32(2**-20), ONE, {"ulps": 8}),
    (np.float64(ONE), ONE, {"dtype": False}),
    ([math.nan], [math.nan], {}),
]
UNEQUAL: list[tuple[Any, Any, dict[str, Any]]] = [
    (um.array([1.0, 3.0]), ONE, {}),
    (ONE[:1], ONE, {}),
    (np.float64(ONE), ONE, {}),
    ([1], [1, 2], {}),
    ({"a": 1}, {"b": 1}, {}),
    ([2**62 + 1], [2**62], {}),
    (ONE + np.float32(0.5), ONE, {"atol": 0.4}),
    (ONE + np.float32(2**-20), ONE, {"ulps": 4, "scale": 1.5}),
    ([math.nan], [math.nan], {"nan": False}),
    ([math.nan], [math.nan], {"nan": False, "atol": 1.0}),
    ([math.inf], [1.0], {"rtol": 1.0}),
]


def test_bounds() -> None:
    for got, want, how in EQUAL:
        assert_close(got, want, **how)
    for got, want, how in UNEQUAL:
        with pytest.raises(AssertionError):
            assert_close(got, want, **how)
            pytest.fail(f"{got} passes for {want}, {how}")


def test_bits() -> None:
    assert_identical([um.array(-0.0), um.array(math.nan)], [um.array(-0.0), um.array(math.nan)])
    for got, want in [(-0.0, 0.0), (1.0, 2.0), (1, 1.0)]:
        with pytest.raises(AssertionError):
            assert_identical(um.array(got), um.array(want))


def test_deliberate_differences_are_found_by_module() -> None:
    names = [row.replace("[[]", "[").replace("[]]", "]").replace("*", "x") for row in DELIBERATE]
    for name in [*names, "create/test/y", "nothing/of/it"]:
        module = name.partition("/")[0]
        want = any(fnmatch.fnmatchcase(name, row) for row in DELIBERATE)
        assert bool(deliberate(module).match(name)) == want, name


@pytest.mark.parametrize(
    "dtype, ulps, far, near",
    [
        # A difference of half of the value must not pass, whatever the units.
        ("bfloat16", 64, 1.0625, 1.03125),
        ("float16", 2048, 1.005, 1.003),
        ("float16", ROUNDED, 1.003, 1.0019),
        ("bfloat16", by_dtype(4, bfloat16=16), 1.2, 1.1),
        # float64 uses its own units, unless the row says that mlx computes in float32.
        ("float64", 64, 1 + 2.0**-45, 1 + 2.0**-47),
        ("float64", ROUNDED, 1 + 2.0**-16, 1 + 2.0**-18),
        ("float32", ROUNDED, 1 + 2.0**-16, 1 + 2.0**-18),
        ("float32", 0, 1 + 2.0**-23, 1.0),
    ],
)
def test_units_are_the_dtypes(dtype: str, ulps: Units, far: float, near: float) -> None:
    wide = np.float64 if dtype == "float64" else np.float32
    one = np.ones(1, wide)
    assert unequal(one, wide([far]), dtype, ulps, "result", "each")
    assert not unequal(one, wide([near]), dtype, ulps, "result", "each")
