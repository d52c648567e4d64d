"""Reductions, arg-reductions, scans, sorting, softmax and their kin."""

import math

import numpy as np
import pytest
from support.harness import ALL, FLOATS, LAYOUTS, REALS, Tally, given, sample, um

SHAPES = [(), (1,), (7,), (0,), (3, 0), (4, 5), (2, 3, 4), (37, 67), (3, 1025), (1025, 3)]


def axes_of(ndim: int) -> list:
    single = [None, *range(-ndim, ndim)]
    return single + ([(0, 1), (-1, 0), ()] if ndim > 1 else [()])


def cases_over(shapes: list, *more: list) -> list:
    out = []
    for shape in shapes:
        for layout in LAYOUTS if shape else LAYOUTS[:1]:
            for axis in axes_of(len(shape)):
                out.append((shape, layout, axis))
    return out


# name: domain, units in the last place of the largest result, with NaN and infinities
REDUCTIONS = {
    "sum": ("any", 16, False),
    "prod": ("unit", 512, False),
    "max": ("any", 0, True),
    "min": ("any", 0, True),
    "all": ("few", 0, True),
    "any": ("few", 0, True),
    "mean": ("any", 16, False),
    "var": ("any", 256, False),
    "std": ("any", 256, False),
    "logsumexp": ("any", 64, False),
}


def size_of(op: str, data: np.ndarray, count: int) -> str | float:
    """What the rounding errors of a reduction are a part of: terms may cancel in the result.

    The variance of equal numbers is 0 here; in mlx it is the square of its mean's error.
    """
    if op in ("var", "std") and data.size:
        square = float((np.abs(data.astype(np.complex128)) ** 2).mean())
        return square if op == "var" else math.sqrt(square)
    if op in ("sum", "mean", "logsumexp") and data.size:
        # From ROUNDED units on, the comparison of float64 is one of float32: here is the room
        # for mlx's adding one after the other.
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


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_arg_reductions(tally: Tally, op: str, dtype: str) -> None:
    """Values repeat: of equals, the first counts."""
    for shape, layout, axis in sample(cases_over(SHAPES), 40, op, dtype):
        if isinstance(axis, tuple):
            continue
        x = given(dtype, shape, layout, "few")
        for keep in (False, True):

            def case(mx, x, axis=axis, keep=keep):
                return getattr(mx, op)(x, axis=axis, keepdims=keep)

            tally.same(f"{shape} {layout.name} axis {axis} {keep}", case, x)


SCANS = {
    "cumsum": ("any", 64),
    "cumprod": ("unit", 512),
    "cummax": ("any", 0),
    "cummin": ("any", 0),
    "logcumsumexp": ("any", 256),
}


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("op", SCANS)
def test_scans(tally: Tally, op: str, dtype: str) -> None:
    domain, ulps = SCANS[op]
    any_turns = (op, dtype) == ("logcumsumexp", "complex64") and um.default_device() != um.cpu
    # The error of an angle of many turns, seen in its sine.
    ulps *= 16 if any_turns else 1
    for shape, layout, axis in sample(cases_over(SHAPES), 30, op, dtype):
        if isinstance(axis, tuple):
            continue
        x = given(dtype, shape, layout, domain)
        for reverse, inclusive in ((False, True), (True, True), (False, False), (True, False)):

            def case(mx, x, axis=axis, reverse=reverse, inclusive=inclusive):
                y = getattr(mx, op)(x, axis=axis, reverse=reverse, inclusive=inclusive)
                if any_turns:
                    # Multiples of 2 pi depend on the order of adding, which is a device's own.
                    return mx.real(y), mx.cos(mx.imag(y)), mx.sin(mx.imag(y))
                return y

            name = f"{shape} {layout.name} axis {axis} {reverse} {inclusive}"
            tally.same(name, case, x, ulps=ulps, scale="largest")


@pytest.mark.parametrize("dtype", ALL)
def test_sort(tally: Tally, dtype: str) -> None:
    for shape, layout, axis in sample(cases_over(SHAPES), 60, dtype):
        if isinstance(axis, tuple):
            continue
        x = given(dtype, shape, layout, "few", dtype in FLOATS)
        name = f"{shape} {layout.name} axis {axis}"
        tally.same(f"sort {name}", lambda mx, x: mx.sort(x, axis), x)
        tally.same(
            f"argsort gives the order {name}",
            lambda mx, x: mx.take_along_axis(x, mx.argsort(x, axis), axis),
            x,
        )


@pytest.mark.parametrize("dtype", REALS)
def test_argsort_of_distinct_values(tally: Tally, dtype: str) -> None:
    n = {"bool_": 2, "uint8": 100, "int8": 100, "bfloat16": 100}.get(dtype, 1000)
    x = given(dtype, (n,), domain="distinct")
    tally.same("distinct", lambda mx, x: mx.argsort(x), x)
    tally.same("reversed", lambda mx, x: mx.argsort(x[::-1]), x)


@pytest.mark.parametrize("dtype", ALL)
def test_partition(tally: Tally, dtype: str) -> None:
    """What partition and topk promise: which values, not their order."""
    x = given(dtype, (5, 40))
    for k in (1, 7, 39):
        tally.same(f"partition {k}", lambda mx, x: mx.partition(x, k)[:, k], x)
        tally.same(f"topk {k}", lambda mx, x: mx.sort(mx.topk(x, k)), x)
        tally.same(
            f"argpartition {k}",
            lambda mx, x: mx.take_along_axis(x, mx.argpartition(x, k), -1)[:, k],
            x,
        )


@pytest.mark.parametrize("dtype", ALL)
def test_softmax(tally: Tally, dtype: str) -> None:
    for shape, layout, axis in sample(cases_over(SHAPES), 60, dtype):
        x = given(dtype, shape, layout)
        for precise in (False, True):

            def case(mx, x, axis=axis, precise=precise):
                return mx.softmax(x, axis=axis, precise=precise)

            name = f"{shape} {layout.name} axis {axis} {precise}"
            if 0 in shape or axis not in (-1, len(shape) - 1):
                name += " not along the last"
            tally.same(name, case, x, ulps=64, scale="largest")


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_of_infinities(tally: Tally, dtype: str) -> None:
    x = given(dtype, (3, 8), specials=True)
    tally.same("softmax", lambda mx, x: mx.softmax(x, axis=-1), x, ulps=64)
    tally.same("logsumexp", lambda mx, x: mx.logsumexp(x, axis=-1), x, ulps=64)
    low = lambda mx, x: mx.softmax(mx.full((4,), -mx.inf, dtype=x.dtype))  # all masked
    tally.same("all minus infinity", low, x)
