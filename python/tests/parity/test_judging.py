"""The judge of cases that mlx does not survive finds wrong results, and knows what it cannot judge."""

from typing import Any

import numpy as np
import pytest
from support.harness import um

from parity import judging, outcome, table
from parity.crashes import CRASHES
from parity.draw import Case


def cases(name: str) -> list[Case]:
    entry = next(e for e in table.TABLE if e.name == name)
    drawn = (entry.case(i) for i in range(100))
    return [c for c in drawn if any(r.covers(c) for r in CRASHES)]


def judged(case: Case, change: Any = lambda result: result) -> str | None:
    kind, got = outcome.run_in(um, case)
    if kind == "value":
        got = change(got)
    return judging.differs(case, kind, got, outcome.GLOBALS)


@pytest.mark.parametrize(
    "name", ["floor_divide", "remainder", "array.__mod__", "sum", "any", "trace", "array.at.add"]
)
def test_wrong_results_are_found(name: str) -> None:
    found = 0
    for case in cases(name):
        told = judged(case)
        assert not told, case.reproducer()
        kind, got = outcome.run_in(um, case)
        if told == "" and kind == "value" and got.size:
            found += 1
            assert judged(case, lambda a: (a.astype(um.float32) + 3).astype(a.dtype)) or (
                got.dtype == um.bool_ or not np.isfinite(np.array(got.astype(um.float32))).all()
            )
            assert judged(case, lambda a: a[None])
    assert found or name == "array.at.add"


def test_an_error_is_right_where_numpy_has_one_too() -> None:
    case = next(c for c in cases("floor_divide") if outcome.run_in(um, c)[0] == "value")
    assert judging.differs(case, "raises", ValueError(), outcome.GLOBALS) is None
    wrong = [
        c
        for c in cases("array.__floordiv__")
        if "cannot be broadcast" in str(outcome.run_in(um, c)[1])
    ]
    assert [judged(c) for c in wrong] == [""] * len(wrong)
