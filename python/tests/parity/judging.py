"""Judging cases that mlx does not survive: by NumPy, or by a rule of ours."""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from support.harness import name_of, to_numpy, um

from . import reference
from .draw import Case

# Names whose cases here change nothing: updates of no elements.
UNCHANGED = ("array.__setitem__", "array.at.")
# Names whose cases here have a wrong argument, which is refused.
REFUSED = ("conv", "unflatten", "array.reshape", "slice")


def differs(case: Case, kind: str, got: Any, space: dict[str, Any]) -> str | None:
    """The outcome's fault; "" for none, None if there is no answer to compare it with."""
    if kind == "raises":
        return "" if case.name.startswith(REFUSED) or refused(case, space) else None
    results = list(got) if isinstance(got, (list, tuple)) else [got]
    if case.code.startswith("updated"):
        # The other parts are about names, not numbers.
        results = results[:1]
    if not all(isinstance(r, um.array) for r in results):
        return None
    try:
        want = list(answers(case, results[0].dtype, space))
    except Exception:
        return None
    if len(want) != len(results):
        return f"{len(results)} results, {len(want)} by the reference"
    told = (unlike(to_numpy(o), t, case) for o, t in zip(results, want))
    return next(filter(None, told), "")


def refused(case: Case, space: dict[str, Any]) -> bool:
    """NumPy refuses these operands, too: their shapes or kinds of numbers."""
    try:
        list(answers(case, um.int64, space))
    except (ValueError, IndexError):
        return True
    except Exception:
        return False
    return False


def answers(case: Case, dtype: um.Dtype, space: dict[str, Any]) -> Iterator[np.ndarray]:
    if case.name.startswith(UNCHANGED):
        yield operand(case, "x")
    elif re.search("divmod|floor_?div|mod|remainder", case.name):
        yield from quotients(case, dtype, space)
    else:
        with warnings.catch_warnings():
            # The mean of nothing, and the like.
            warnings.simplefilter("ignore", RuntimeWarning)
            yield from reference.answer(case, space)


def operand(case: Case, name: str) -> np.ndarray:
    given = case.inputs[name]
    return np.asarray(given.layout.view(np, given.data, given.shape))


def quotients(case: Case, result: um.Dtype, space: dict[str, Any]) -> list[np.ndarray]:
    """Quotients and remainders in the dtype of the result: the schema's rule where that is one of integers, NumPy's
    numbers where it is one of floats."""
    dtype = name_of(result)
    if dtype == "complex64" or dtype == "bfloat16":
        raise NotImplementedError
    whole = dtype.startswith(("int", "uint", "bool"))
    into = np.dtype(dtype.rstrip("_") if dtype == "bool_" else dtype)

    def cast(a: Any) -> np.ndarray:
        return np.asarray(a).real.astype(into)

    def floor(a: Any, b: Any) -> np.ndarray:
        a, b = np.broadcast_arrays(cast(a), cast(b))
        return each(lambda p, q: p // q if q else 0, a, b) if whole else np.floor(a / b)

    def remainder(a: Any, b: Any) -> np.ndarray:
        a, b = np.broadcast_arrays(cast(a), cast(b))
        return each(lambda p, q: p % q if q else p, a, b) if whole else np.remainder(a, b)

    def each(rule: Callable[[int, int], int], a: np.ndarray, b: np.ndarray) -> np.ndarray:
        # Integers wrap to the dtype: -128 // -1 is -128 in int8.
        bits = 8 * into.itemsize
        found = [rule(int(p), int(q)) % 2**bits for p, q in zip(a.flat, b.flat)]
        return np.array(found, f"u{into.itemsize}").view(into).reshape(a.shape)

    class Divisions:
        floor_divide = staticmethod(lambda a, b, **_: floor(a, b))
        remainder = staticmethod(lambda a, b, **_: remainder(a, b))
        divmod = staticmethod(lambda a, b, **_: [floor(a, b), remainder(a, b)])

    code = re.sub(r", stream=.*\)$", ")", case.code)
    code = re.sub(r"updated\(x, operator\.__i(\w+)__, (.*)\)$", r"operator.__\1__(x, \2)", code)
    code = re.sub(r"x\.__r(\w+)__\((.*)\)$", r"operator.__\1__(\2, x)", code)
    code = re.sub(r"x\.__(\w+)__\((.*)\)$", r"operator.__\1__(x, \2)", code)
    code = re.sub(r"operator\.__floordiv__", "mx.floor_divide", code)
    code = re.sub(r"operator\.__mod__", "mx.remainder", code)
    with np.errstate(all="ignore"):
        given = {name: operand(case, name) for name in case.inputs}
        out = eval(code, {**space, "operator": operator, "mx": Divisions, **given})
    return out if isinstance(out, list) else [out]


def unlike(ours: np.ndarray, theirs: np.ndarray, case: Case) -> str:
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, {theirs.shape} by the reference"
    if ours.dtype.kind in "iub":
        same = ours == theirs.astype(ours.dtype)
    else:
        ours = ours.astype(np.complex128 if ours.dtype.kind == "c" else np.float64)
        size = np.float32 if case.entry.ulps else np.float64
        near = 64 * np.finfo(size).eps
        with np.errstate(all="ignore"):
            same = np.isclose(ours, theirs, rtol=near, atol=0, equal_nan=True)
    if np.all(same):
        return ""
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{ours[at]} at {at}, {theirs[at]} by the reference"
