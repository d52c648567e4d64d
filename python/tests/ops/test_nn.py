"""Softmax, over shapes, layouts and axes."""

import pytest
from support.harness import ALL, FLOATS, Tally, given, sample

from .axes import SHAPES, cases_over


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
