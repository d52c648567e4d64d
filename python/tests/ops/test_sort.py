"""Sorting and partitions."""

import pytest
from support.harness import ALL, FLOATS, REALS, Tally, given, sample

from .axes import SHAPES, cases_over


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
    """The values of partition and topk are defined, not their order."""
    x = given(dtype, (5, 40))
    for k in (1, 7, 39):
        tally.same(f"partition {k}", lambda mx, x: mx.partition(x, k)[:, k], x)
        tally.same(f"topk {k}", lambda mx, x: mx.sort(mx.topk(x, k)), x)
        tally.same(
            f"argpartition {k}",
            lambda mx, x: mx.take_along_axis(x, mx.argpartition(x, k), -1)[:, k],
            x,
        )
