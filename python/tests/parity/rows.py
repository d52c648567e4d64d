"""Rows for generated cases that are no comparison with mlx, and the conditions that they have."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """An outcome of some generated cases (parity/), and why that is no fault."""

    # Names of the surface, or patterns of them, apart by spaces.
    names: str
    reason: str
    # Of these names' cases, which.
    when: Callable[[Any], bool] = lambda case: True
    # Regular expression of the difference; empty for any.
    message: str = ""

    def covers(self, case: Any) -> bool:
        named = any(fnmatch.fnmatchcase(case.name, n) for n in self.names.split())
        return named and self.when(case)

    def matches(self, message: str) -> bool:
        return re.search(self.message, message) is not None


def whole(case: Any) -> bool:
    """Whether the index of an assignment is made of None, Ellipsis and () alone."""
    part = r"(None|\.\.\.|\(\)|slice\(None, None, None\)|[,() ])*"
    return re.search(rf"(assigned\(x, |at\[){part}(\]|, [^ ])", case.code) is not None


def of(*kinds: str) -> Callable[[Any], bool]:
    """Cases with an operand of a dtype whose name begins so."""
    return lambda case: any(d.startswith(kinds) for d in case.dtypes)


def written(pattern: str) -> Callable[[Any], bool]:
    """Cases whose text has this."""
    return lambda case: re.search(pattern, case.code) is not None


def narrower_updates(case: Any) -> bool:
    """Updates of an unsigned dtype that has fewer bits than that of `x`."""
    bits = lambda name: int(re.sub(r"\D", "", name) or 8)
    updates = (i.dtype for n, i in case.inputs.items() if n != "x" and i.dtype.startswith("uint"))
    return any(bits(dtype) < bits(case.inputs["x"].dtype) for dtype in updates)


def not_finite(case: Any) -> bool:
    """Tests for an infinity or NaN among the operands."""
    return not all(np.isfinite(np.asarray(i.data, complex)).all() for i in case.inputs.values())


def empty(case: Any) -> bool:
    return any(0 in s for s in case.shapes)


def zeros(case: Any) -> bool:
    """Whether there is a zero among the integers."""
    if re.search(r"\b(0|False)\b(?!\.)", case.code):
        return True
    return any(
        i.dtype.startswith(("int", "uint", "bool")) and not i.data.all()
        for i in case.inputs.values()
    )


def nothing_selected(case: Any) -> bool:
    """Whether an assignment by index arrays is one to no elements."""
    found = re.match(r"(?:assigned\(x, |x\.at\[)(.*)", case.code)
    text = found[1] if found else ""
    given = {n: np.asarray(i.layout.view(np, i.data, i.shape)) for n, i in case.inputs.items()}
    for end in (i for i, c in enumerate(text) if c in ",]"):
        try:
            index = eval(text[:end], {"mx": np, **given})
            return given["x"].size == 0 or given["x"][index].size == 0
        except Exception:
            continue
    return False


def empty_diagonal(case: Any) -> bool:
    """Whether a trace is one of nothing."""
    none: list[bool] = []

    def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, *_: Any, **__: Any) -> None:
        none.append(np.diagonal(np.empty(a.shape, np.int8), offset, axis1, axis2).size == 0)

    library = SimpleNamespace(trace=trace)
    given = {n: np.empty(i.shape, np.int8) for n, i in case.inputs.items()}
    try:
        eval(
            re.sub(r"mx\.(?!trace)[a-z0-9_.]+(\(mx.cpu(, 0)?\)|\(\))?", "None", case.code),
            {"mx": library, **given},
        )
    except Exception:
        return False
    return any(none)
