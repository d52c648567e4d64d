"""Reductions, over shapes, layouts and axes."""

import math
from typing import Any

import numpy as np
import pytest
from support.harness import ALL, FLOATS, ROUNDED, Tally, by_dtype, given, sample

from .axes import SHAPES, cases_over

# name: domain, units in the last place of the largest result, with NaN and infinities
REDUCTIONS = {
    "sum": ("any", 16, False),
    "prod": ("unit", 512, False),
    "max": ("any", 0, True),
    "min": ("any", 0, True),
    "all": ("few", 0, True),
    "any": ("few", 0, True),
    "mean": ("any", 16, False),
    # mlx rounds squares of 16-bit floats to the dtype; the largest is ten times their mean.
    "var": ("any", by_dtype(256, float16=16, bfloat16=16), False),
    "std": ("any", by_dtype(256, float16=16, bfloat16=16), False),
    # Along other axes than the last one mlx rounds the parts to the dtype.
    "logsumexp": ("any", by_dtype(ROUNDED, float16=4, bfloat16=4), False),
}


def size_of(op: str, data: np.ndarray, count: int) -> str | float:
    """Magnitude that rounding errors of a reduction are relative to: terms may cancel in the result.

    The variance of equal numbers is 0 here; in mlx it is the square of its mean's error.
    """
    if op in ("var", "std") and data.size:
        square = float((np.abs(data.astype(np.complex128)) ** 2).mean())
        return square if op == "var" else math.sqrt(square)
    if op in ("sum", "mean", "logsumexp") and data.size:
        # mlx adds float64 up one after the other.
        share = 0.25 if data.dtype == np.float64 else 8
        return max(1.0, float(np.abs(data.astype(np.complex128)).mean()) * count / share)
    return "largest"


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(tally: Tally, op: str, dtype: str) -> None:
    domain, ulps, specials = REDUCTIONS[op]
    if op == "sum":
        # mlx adds rows, and complex numbers, up one after the other.
        ulps = {"float32": 512, "float64": 48, "complex64": 512}.get(dtype, ulps)
    # Over no elements mlx either raises or may never return: beyond_mlx/test_empty.py has those.
    shapes = SHAPES if op in ("max", "min", "logsumexp") else [s for s in SHAPES if 0 not in s]
    for shape, layout, axis in sample(cases_over(shapes), 40, op, dtype):
        x = given(dtype, shape, layout, domain, specials and dtype in FLOATS)
        for keep in (False, True):

            def case(mx, x, axis=axis, keep=keep):
                return getattr(mx, op)(x, axis=axis, keepdims=keep)

            name = f"{shape} {layout.name} axis {axis} {'kept' if keep else ''}"
            tally.same(name, case, x, ulps=ulps, scale=size_of(op, x.data, math.prod(shape)))
    x = given(dtype, (4, 5), domain=domain)
    tally.same("method", lambda mx, x: getattr(x, op)(1), x, ulps=ulps, scale="largest")


@pytest.mark.parametrize("dtype", FLOATS)
def test_spread_with_ddof(tally: Tally, dtype: str) -> None:
    x = given(dtype, (4, 5))
    for ddof in (0, 1, 2):
        for op in ("var", "std"):

            def case(mx, x, op=op, ddof=ddof):
                return getattr(mx, op)(x, axis=1, ddof=ddof)

            tally.same(f"{op} {ddof}", case, x, ulps=128, scale="largest")


def test_median_of_complex_nan(tally: Tally) -> None:
    nan = math.nan
    rows = [
        [1j, complex(nan, 1), 2],
        [1, complex(1, nan), 3],
        [complex(nan, nan), 1, 2],
        [1 + 1j, 2, 3],
    ]

    def case(mx: Any, axis: int | None, keepdims: bool) -> Any:
        return mx.median(mx.array(rows, mx.complex64), axis=axis, keepdims=keepdims)

    for axis in (None, 0, 1):
        for keepdims in (False, True):
            tally.same(f"{axis} {keepdims}", lambda mx, a=axis, k=keepdims: case(mx, a, k))
    for row in rows:
        tally.same(f"even {row}", lambda mx, row=row: mx.median(mx.array(row[1:], mx.complex64)))
