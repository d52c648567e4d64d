"""Transforms of every public function: derivatives against central differences, batching against a loop.

The table is the package `rules`; its head says how a function is added. A function that is in none of its
tables fails here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import rules
from rules.case import Case
from support.compare import assert_close
from support.harness import largest, rng

import ultramarine as um

# Modules of functions of arrays.
MODULES = ["", "random", "linalg", "fft", "fast"]

TABLES = [importlib.import_module(f"rules.{m.name}") for m in pkgutil.iter_modules(rules.__path__)]
CASES: list[Case] = [c for table in TABLES for c in getattr(table, "CASES", [])]
EXEMPT: dict[str, str] = {k: v for t in TABLES for k, v in getattr(t, "EXEMPT", {}).items()}
SMOOTH = [c for c in CASES if c.smooth]

BATCH = 3


def public() -> Iterator[tuple[str, Any]]:
    """Every callable with the name that tables use."""
    for module in MODULES:
        space = getattr(um, module, None) if module else um
        if space is None:
            continue
        for name in dir(space):
            value = getattr(space, name)
            if not name.startswith("_") and callable(value) and not isinstance(value, um.Dtype):
                yield (f"{module}.{name}" if module else name), value


def test_every_function_is_there() -> None:
    covered = {c.covers for c in CASES}
    names = {name for name, _ in public()}
    assert sorted(names - covered - set(EXEMPT)) == [], "in no table: see python/tests/rules"
    assert sorted(covered & set(EXEMPT)) == [], "both covered and exempt"
    assert [n for n, why in EXEMPT.items() if not why.strip()] == [], "without a reason"
    methods = {f"array.{name}" for name in dir(um.array)}
    assert sorted(covered - names - methods) == [], "covered, and not there"


def test_every_module_is_there() -> None:
    """A module with functions is enumerated, or is known to have none of arrays of its own."""
    others = {"array_api", "backends", "metal", "cuda"}
    # These have tests of their own, in folders of their names, and programs/test_distributed.py.
    others |= {"as_mlx", "distributed", "extension", "launch", "nn", "optimizers", "utils"}
    found = {n for n in dir(um) if isinstance(getattr(um, n), ModuleType) and not n.startswith("_")}
    assert found - set(MODULES) - others == set()


def test_every_method_is_there() -> None:
    """A method is a function of the same name, or known to be none of arrays."""
    covered = {c.covers for c in CASES} | set(EXEMPT)
    others = {"T", "at", "device", "dtype", "item", "itemsize", "mT", "nbytes", "ndim", "shape"}
    others |= {"size", "tolist", "to_device"}
    methods = {n for n in dir(um.array) if not n.startswith("_")}
    assert sorted(methods - covered - others) == []


def test_names_are_unique() -> None:
    names = [c.name for c in CASES]
    assert sorted({n for n in names if names.count(n) > 1}) == []


def precision(case: Case) -> tuple[Any, float, float]:
    """Dtype, step of central differences, and error that passes."""
    return (np.float32, 1e-2, 2e-3) if case.single else (np.float64, 1e-5, 2e-7)


def arrays(case: Case, batch: tuple[int, ...] = ()) -> list[np.ndarray]:
    r = case.rng()
    dtype = precision(case)[0]
    drawn = [o.draw(r, batch) for o in case.operands]
    return [x.astype(dtype) if o.kind == "real" else x for x, o in zip(drawn, case.operands)]


def given(x: np.ndarray) -> Any:
    """The array in its own dtype (float64 becomes float32 otherwise)."""
    return um.array(x, um.float64) if x.dtype == np.float64 else um.array(x)


def close(what: str, got: Any, want: Any, tolerance: float) -> None:
    """Floats may be `tolerance` of the largest expected one (or of 1) apart, and all else is exact."""
    want = np.asarray(want)
    inexact = want.dtype.kind in "fc"
    atol = tolerance * max(1.0, largest(want)) if inexact else 0.0
    assert_close(got, want, atol=atol, nan=False, dtype=False, where=what)


def numbers(outputs: list[Any]) -> list[np.ndarray]:
    return [np.array(o) for o in outputs]


def reals(case: Case) -> list[int]:
    """The operands that there are derivatives for."""
    return [i for i, o in enumerate(case.operands) if o.kind == "real"]


def with_reals(case: Case, x: list[Any], values: Any) -> list[Any]:
    full = list(x)
    for i, v in zip(reals(case), values):
        full[i] = v
    return full


def along(case: Case, x: list[np.ndarray], directions: list[np.ndarray]) -> list[np.ndarray]:
    """Central differences of the outputs along directions of the real operands."""
    step = precision(case)[1]

    def at(h: float) -> list[np.ndarray]:
        moved = [x[i] + x[i].dtype.type(h) * d for i, d in zip(reals(case), directions)]
        return numbers(case(um, *map(given, with_reals(case, x, moved))))

    return [(up - down) / (2 * step) for up, down in zip(at(step), at(-step))]


@pytest.mark.parametrize("case", SMOOTH, ids=lambda c: c.name)
def test_forward_and_reverse_rules(case: Case) -> None:
    """The products with random vectors are those of central differences; each operand alone, too."""
    tolerance = precision(case)[2]
    r = rng("forward and reverse")
    x = arrays(case)
    at = [given(v) for v in x]
    outputs = numbers(case(um, *at))
    weights = [r.uniform(-1, 1, o.shape).astype(o.dtype) for o in outputs]
    where = reals(case)
    for chosen in [where, *([i] for i in where if len(where) > 1)]:
        directions = [
            r.uniform(-1, 1, x[i].shape).astype(x[i].dtype) * (i in chosen) for i in where
        ]
        want = along(case, x, directions)

        def f(*values: Any, chosen=chosen) -> list[Any]:
            full = list(at)
            for i, v in zip(chosen, values):
                full[i] = v
            return case(um, *full)

        chosen_directions = [given(d) for i, d in zip(where, directions) if i in chosen]
        _, tangents = um.jvp(f, [at[i] for i in chosen], chosen_directions)
        for k, (t, w) in enumerate(zip(tangents, want)):
            close(f"jvp for {chosen}, output {k}", t, w, tolerance)
        _, gradients = um.vjp(f, [at[i] for i in chosen], [given(w) for w in weights])
        got = sum(
            float((np.array(g).astype(np.float64) * d).sum())
            for g, d in zip(gradients, (d for i, d in zip(where, directions) if i in chosen))
        )
        total = sum(float((w.astype(np.float64) * t).sum()) for w, t in zip(weights, want))
        for i, g in zip(chosen, gradients):
            assert (g.shape, g.dtype) == (at[i].shape, at[i].dtype), f"gradient of {i}"
        close(f"vjp for {chosen}", got, total, tolerance * 4)


@pytest.mark.parametrize("case", SMOOTH, ids=lambda c: c.name)
def test_second_derivatives(case: Case) -> None:
    """The gradient's own gradient, against central differences of the gradient."""
    if case.single:
        pytest.skip("float32 is too coarse for differences of differences")
    r = rng("second")
    x = arrays(case)
    at = [given(v) for v in x]
    weights = [given(r.uniform(-1, 1, o.shape)) for o in case(um, *at)]
    where = reals(case)
    inner = [given(r.uniform(-1, 1, x[i].shape)) for i in where]

    def slope(*values: Any) -> Any:
        f = lambda *v: case(um, *with_reals(case, at, v))
        _, g = um.vjp(f, list(values), weights)
        return sum(((a * b).sum() for a, b in zip(g, inner)), um.array(0.0, um.float64))

    values = [at[i] for i in where]
    _, gradients = um.vjp(slope, values, [um.array(1.0, um.float64)])
    step, tolerance = precision(case)[1:]
    directions = [r.uniform(-1, 1, x[i].shape) for i in where]
    moved = lambda h: slope(*(given(x[i] + h * d) for i, d in zip(where, directions))).item()
    want = (moved(step) - moved(-step)) / (2 * step)
    got = sum(float((np.array(g) * d).sum()) for g, d in zip(gradients, directions))
    close("second derivative", got, want, tolerance * 10)


def patterns(case: Case) -> list[tuple[int | None, ...]]:
    """Mapped operands and their axes: all in front, all behind, each alone."""
    n = len(case.operands)
    found: list[tuple[int | None, ...]] = [(0,) * n, (-1,) * n]
    if n > 1:
        for k, operand in enumerate(case.operands):
            alone: list[int | None] = [None] * n
            alone[k] = len(operand.shape) // 2
            found.append(tuple(alone))
    return found


def batched(case: Case, axes: tuple[int | None, ...]) -> tuple[list[Any], list[list[Any]]]:
    """Inputs for vmap, and the operands of each single example."""
    x = arrays(case, (BATCH,))
    inputs = [given(v[0] if a is None else np.moveaxis(v, 0, a)) for v, a in zip(x, axes)]
    single = [[given(v[0 if a is None else i]) for v, a in zip(x, axes)] for i in range(BATCH)]
    return inputs, single


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_batching_rules(case: Case) -> None:
    """A mapped function is a loop, for each pattern of mapped axes."""
    tolerance = 1e-5 if case.single else 1e-9
    for axes in patterns(case):
        inputs, single = batched(case, axes)
        run = lambda *x: case(um, *x)
        if case.no_vmap:
            with pytest.raises(ValueError, match=case.no_vmap):
                um.eval(um.vmap(run, in_axes=axes)(*inputs))
            continue
        want = [np.stack(o) for o in zip(*(numbers(case(um, *s)) for s in single))]
        for k, (got, w) in enumerate(zip(um.vmap(run, in_axes=axes)(*inputs), want)):
            close(f"vmap {axes}, output {k}", got, w, tolerance)
        moved = um.vmap(run, in_axes=axes, out_axes=-1)(*inputs)
        for k, (got, w) in enumerate(zip(moved, want)):
            close(
                f"vmap {axes} to the end, output {k}",
                np.moveaxis(np.array(got), -1, 0),
                w,
                tolerance,
            )


@pytest.mark.parametrize("case", [c for c in SMOOTH if not c.no_vmap], ids=lambda c: c.name)
def test_batching_and_gradients(case: Case) -> None:
    """The gradient of each example of a batch, mapped, and of the mapped function."""
    tolerance = 1e-4 if case.single else 1e-8
    r = rng("batches")
    where = reals(case)
    for axes in patterns(case):
        inputs, single = batched(case, axes)
        outputs = case(um, *single[0])
        weights = [given(r.uniform(-1, 1, o.shape).astype(np.array(o).dtype)) for o in outputs]

        def gradients(*x: Any, weights=weights) -> list[Any]:
            f = lambda *v: case(um, *with_reals(case, list(x), v))
            return um.vjp(f, [x[i] for i in where], weights)[1]

        want = [np.stack(g) for g in zip(*(numbers(gradients(*s)) for s in single))]
        for k, (got, w) in enumerate(zip(um.vmap(gradients, in_axes=axes)(*inputs), want)):
            close(f"vmap {axes} of the gradient of {where[k]}", got, w, tolerance)

        def mapped(*values: Any, axes=axes, inputs=inputs) -> list[Any]:
            return um.vmap(lambda *x: case(um, *x), in_axes=axes)(*with_reals(case, inputs, values))

        spread = [um.broadcast_to(w, (BATCH, *w.shape)) for w in weights]
        _, through = um.vjp(mapped, [inputs[i] for i in where], spread)
        for i, got, w in zip(where, through, want):
            axis = axes[i]
            expected = w.sum(0) if axis is None else np.moveaxis(w, 0, axis)
            close(f"gradient of {i} through vmap {axes}", got, expected, tolerance)
