"""Selection and limits, over dtypes, shapes and layouts."""

import pytest
from support.harness import ALL, REALS, Tally, given

from .test_elementwise import PAIRS, layouts_for


@pytest.mark.parametrize("dtype", ALL)
def test_select_and_clip(tally: Tally, dtype: str) -> None:
    for a, b in PAIRS:
        for layout in layouts_for(a):
            x, y = given(dtype, a, layout, key="x"), given(dtype, b, key="y")
            for c in (given("bool_", a, layout), given(dtype, b, domain="few")):
                name = f"where {c.dtype} {c.shape} {a} {b} {layout.name}"
                tally.same(name, lambda mx, c, x, y: mx.where(c, x, y), c, x, y)
    x = given(dtype, (4, 5), specials=dtype in REALS)
    for low, high in ((-1, 1), (None, 2), (0.5, None), (None, None), (3, 1)):
        tally.same(f"clip {low} {high}", lambda mx, x: mx.clip(x, low, high), x)
    tally.same("clip by arrays", lambda mx, x: mx.clip(x, x[0], x[1] + x[1]), x)
