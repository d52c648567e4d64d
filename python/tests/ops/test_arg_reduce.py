"""Indices of extrema, over shapes, layouts and axes."""

import pytest
from support.harness import ALL, Tally, given, sample

from .axes import SHAPES, cases_over


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
