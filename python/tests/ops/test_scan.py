"""Scans and differences, over shapes, layouts, axes and directions."""

import pytest
from support.harness import ALL, LAYOUTS, Tally, by_dtype, exactly, given, sample, um

from .axes import SHAPES, cases_over

# mlx rounds each step of 16-bit floats to the dtype, where ours are float32 until the end, and takes logarithms of
# float64 in float32: test_accuracy.py has ours.
SCANS = {
    "cumsum": ("any", by_dtype(64, float16=64, bfloat16=64)),
    "cumprod": ("unit", 512),
    "cummax": ("any", 0),
    "cummin": ("any", 0),
    "logcumsumexp": ("any", by_dtype(256, float16=256, bfloat16=256, float64=256 * 2.0**29)),
}


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("op", SCANS)
def test_scans(tally: Tally, op: str, dtype: str) -> None:
    domain, ulps = SCANS[op]
    any_turns = (op, dtype) == ("logcumsumexp", "complex64") and um.default_device() != um.cpu
    # The error of an angle of many turns, seen in its sine.
    times = 16 if any_turns else 1
    # Sums of one repeated value drift with the order of adding, which is a device's own.
    times *= 4 if op == "cumsum" and um.default_device() != um.cpu else 1
    ulps = {d: n * times for d, n in by_dtype(ulps).items()}
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
def test_diff(tally: Tally, dtype: str) -> None:
    cases = []
    for shape in [(), (0,), (1,), (6,), (3, 4), (2, 0, 3), (2, 3, 4)]:
        for layout in LAYOUTS if shape else LAYOUTS[:1]:
            for n in (0, 1, 2, 3, 9, -1):
                for axis in (-1, 0, 1, -2, 5):
                    cases.append((shape, layout, n, axis))
    for shape, layout, n, axis in sample(cases, 80, dtype):
        x = given(dtype, shape, layout)

        def case(mx, x, n=n, axis=axis):
            return mx.diff(x, n=n, axis=axis)

        tally.same(f"{shape} {layout.name} n {n} axis {axis}", case, x)
    x = exactly([3, 1, 0, 1], dtype)
    tally.same("default", lambda mx, x: mx.diff(x), x)
    tally.same("prepend", lambda mx, x: mx.diff(x, prepend=x), x)
    tally.same("a by name", lambda mx, x: mx.diff(a=x), x)
