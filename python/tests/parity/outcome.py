"""Running one case in both libraries, and what comes of it."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from support.differences import ACCIDENTS, LACKS
from support.harness import (
    EPS,
    mlx,
    name_of,
    problem,
    refused_as,
    to_numpy,
    um,
    unequal,
    units,
)

from . import judging, reference
from .crashes import CRASHES
from .draw import Case
from .helpers import HELPERS
from .purpose import PARITY

GLOBALS = {
    "np": np,
    "nan": math.nan,
    "inf": math.inf,
    "operator": operator,
    "copy": copy,
    "pickle": pickle,
    "math": math,
    **HELPERS,
}


def run_in(mx: Any, case: Case) -> tuple[str, Any]:
    """Outcome of the case in a library: ("value", tree) or ("raises", exception)."""
    space = {**GLOBALS, "mx": mx}
    *first, last = case.code.split("\n")
    try:
        # Calls without a key go on from the state.
        mx.random.seed(7)
        for name, given in case.inputs.items():
            space[name] = given.make(mx)
        for line in first:
            exec(line, space)
        result = settled(mx, eval(last, space))
        return "value", result
    except Exception as error:
        return "raises", error


def settled(mx: Any, result: Any) -> Any:
    """The result, its arrays evaluated, other objects of the library as their text."""
    if isinstance(result, mx.array):
        mx.eval(result)
        return result
    if isinstance(result, (list, tuple)):
        return type(result)(settled(mx, r) for r in result)
    if isinstance(result, dict):
        return {k: settled(mx, r) for k, r in result.items()}
    if isinstance(result, (mx.Device, mx.DeviceType, mx.DtypeCategory)):
        return str(result)
    if isinstance(result, np.ndarray):
        return (str(result.dtype), result.shape, result.tolist() if result.size < 5000 else 0)
    if isinstance(result, np.generic):
        return (str(result.dtype), result.item())
    return result


def accident(want: BaseException) -> bool:
    """Whether mlx's error is none that it means."""
    return any(words in str(want) for words in ACCIDENTS + LACKS)


def outcome_of(case: Case, step: Any = lambda library: None) -> tuple[str, str]:
    """("same" | "error" | "numpy" | "accident" | "purpose" | "crash" | "differs", detail).

    `step` hears which library runs next, so that a crash has an author.
    """
    row = next((r for r in CRASHES if r.covers(case)), None)
    if row is not None:
        step("ours")
        told = judging.differs(case, *run_in(um, case), GLOBALS)
        # Calls to which no reference has an answer must survive, at least.
        return ("crash", row.reason) if told is None else ("differs" if told else "numpy", told)
    step("mlx")
    kind, want = run_in(mlx, case)
    step("ours")
    our_kind, got = run_in(um, case)
    difference = ""
    if kind == "raises":
        if accident(want):
            return "accident", ""
        if our_kind != "raises":
            difference = f"gives a value, mlx raises {type(want).__name__}: {str(want)[:150]}"
        elif type(want) is type(got) or refused_as(type(want), got):
            return "error", ""
        else:
            difference = f"raises {got!r}, mlx {type(want).__name__}: {str(want)[:150]}"
    elif our_kind == "raises":
        difference = f"raises {got!r}, mlx gives {shown(want)}"
    else:
        scale = case.entry.scale if isinstance(case.entry.scale, str) else case.entry.scale(case)
        difference = problem(want, got, case.entry.ulps, scale=scale)
        same_dtype = ": dtype " not in difference
        if difference and same_dtype and case.entry.by_numpy and nearer(case, got, scale):
            return "numpy", difference
    if not difference:
        return "same", ""
    for row in PARITY:
        if row.covers(case) and row.matches(difference):
            return "purpose", row.reason
    return "differs", difference


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 100 else f"{text[:100]}..."


def nearer(case: Case, got: Any, scale: str | float) -> bool:
    """Whether ours is what NumPy has in float64."""
    results = got if isinstance(got, list) else [got]
    if not all(isinstance(a, um.array) for a in results):
        return False
    try:
        want = reference.answer(case, GLOBALS)
    except Exception:
        return False
    return len(want) == len(results) and all(map(close_to(case, scale), results, want))


def close_to(case: Case, scale: str | float) -> Callable[[Any, np.ndarray], bool]:
    """Whether a result is what the reference has."""

    def check(got: Any, want: np.ndarray) -> bool:
        ours = to_numpy(got)
        if want.shape != ours.shape:
            return False
        dtype = name_of(got.dtype)
        if dtype not in ("float16", "bfloat16", "float32", "float64", "complex64"):
            return False
        if dtype == "complex64":
            want = want.astype(np.complex128)
        elif np.iscomplexobj(want):
            return False
        else:
            # Numbers beyond the dtype are infinite in it.
            limit = {"float16": 65520.0, "bfloat16": 3.3962e38, "float32": 3.4028236e38}.get(dtype)
            want = want.astype(np.float64)
            if limit is not None:
                want = np.where(np.abs(want) >= limit, np.copysign(np.inf, want), want)
            if dtype in ("float16", "bfloat16"):
                # A number that was rounded once is right, however large it is beside the others.
                with np.errstate(invalid="ignore"):
                    once = np.abs(ours - want) <= EPS[dtype] / 2 * np.abs(want)
                want = np.where(once, ours, want)
        return not unequal(want, ours, dtype, max(units(case.entry.ulps, dtype), 64), "", scale)

    return check
