"""The operation of the example extensions against the same expression written with ordinary operations:
values, derivatives, batching and what transforms make of each other, over random operands.

The packages are built and installed by `cargo xtask test`. Where one is missing its cases are skipped, unless
ULTRAMARINE_NEEDS_EXTENSIONS=1.
"""

from __future__ import annotations

import importlib
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.compare import assert_close
from support.harness import EPS, FULL, INTS, LAYOUTS, Input, given, rng, to_numpy

import ultramarine as um

# By kernels where a device takes their languages, else composed.
pytestmark = pytest.mark.ops

PACKAGES = ["ultramarine_axpby", "ultramarine_axpby_c"]
DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "int32", "uint8", "bool_"]
SHAPES = [(), (0,), (1,), (5,), (3, 4), (2, 3, 4), (1, 4), (3, 1), (2, 0, 3), (33, 17)]
FACTORS = [0.0, 1.0, -1.0, 0.5, 2.0, -3.25, 1e-3]
SEEDS = range(400 if FULL else 60)

Axpby = Callable[..., um.array]


@pytest.fixture(params=PACKAGES, scope="module")
def axpby(request: pytest.FixtureRequest) -> Axpby:
    try:
        return importlib.import_module(request.param).axpby
    except ImportError as error:
        if os.environ.get("ULTRAMARINE_NEEDS_EXTENSIONS") == "1":
            raise
        pytest.skip(str(error))


def composed(x: um.array, y: um.array, alpha: float, beta: float, stream: Any = None) -> um.array:
    """What axpby says, by ordinary operations."""
    dtype = (um.zeros((1,), x.dtype) + um.zeros((1,), y.dtype)).dtype
    if not um.issubdtype(dtype, um.inexact):
        dtype = um.float32
    x, y = x.astype(dtype), y.astype(dtype)
    left = um.multiply(um.array(alpha, dtype), x, stream=stream)
    return um.add(left, um.multiply(um.array(beta, dtype), y, stream=stream), stream=stream)


@dataclass(frozen=True)
class Case:
    """Operands and factors."""

    x: Input
    y: Input
    alpha: float
    beta: float

    def make(self) -> tuple[um.array, um.array]:
        return self.x.make(um), self.y.make(um)

    def of(self, function: Axpby) -> Callable[[um.array, um.array], um.array]:
        return lambda x, y: function(x, y, self.alpha, self.beta)

    def reference(self) -> np.ndarray:
        """In double precision, of the very numbers that the arrays hold."""
        x, y = (to_numpy(a) for a in self.make())
        wide = np.complex128 if "complex64" in (self.x.dtype, self.y.dtype) else np.float64
        # Factors have the result's dtype.
        dtype = composed(*self.make(), 1, 1).dtype
        alpha, beta = (to_numpy(um.array(f, dtype)) for f in (self.alpha, self.beta))
        return alpha.astype(wide) * x.astype(wide) + beta.astype(wide) * y.astype(wide)


def shapes(random: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast."""
    whole = SHAPES[random.integers(len(SHAPES))]

    def part() -> tuple[int, ...]:
        kept = whole[random.integers(len(whole) + 1) if random.integers(3) == 0 else 0 :]
        return tuple(1 if random.integers(5) == 0 else n for n in kept)

    return (whole, part()) if random.integers(2) else (part(), whole)


def drawn(seed: int, dtypes: list[str], domain: str = "any") -> Case:
    random = rng("axpby", seed)
    x_shape, y_shape = shapes(random)
    x_dtype = dtypes[random.integers(len(dtypes))]
    y_dtype = x_dtype if random.integers(3) else dtypes[random.integers(len(dtypes))]

    def operand(dtype: str, shape: tuple[int, ...], key: str) -> Input:
        layout = LAYOUTS[random.integers(len(LAYOUTS))]
        return given(dtype, shape, layout, domain, key=(key, seed))

    alpha, beta = random.choice(FACTORS, 2)
    x, y = operand(x_dtype, x_shape, "x"), operand(y_dtype, y_shape, "y")
    return Case(x, y, float(alpha), float(beta))


def close(want: Any, got: Any, ulps: float, scale: float = 8.0) -> None:
    """Apart by units in the last place of `scale`, which is more than the terms of the sums here reach."""
    assert_close(got, want, ulps=ulps, scale=scale, nan=False)


def singles(a: um.array) -> um.array:
    return a.astype(um.float32) if a.dtype == um.float64 else a


def largest(case: Case) -> float:
    """What no term of the sum exceeds."""
    sizes = [float(np.abs(to_numpy(a)).max(initial=0)) for a in case.make()]
    return 1 + abs(case.alpha) * sizes[0] + abs(case.beta) * sizes[1]


@pytest.mark.parametrize("seed", SEEDS)
def test_values(axpby: Axpby, seed: int) -> None:
    case = drawn(seed, DTYPES)
    want, got = case.of(composed)(*case.make()), case.of(axpby)(*case.make())
    assert (want.dtype, want.shape) == (got.dtype, got.shape)
    exact = case.reference()
    error = np.abs(to_numpy(got) - exact).max(initial=0)
    name = str(got.dtype).rsplit(".", 1)[-1]
    assert error <= 2 * EPS[name] * largest(case)
    # Whoever computes wide and rounds once is nearer than that.
    close(want, got, 4, largest(case))


def inexact(seed: int) -> Case:
    return drawn(seed, [d for d in DTYPES if d not in INTS and d != "bool_"], "unit")


def bent(a: um.array) -> um.array:
    """A curve that stays small, for complex numbers too."""
    return a * a * 0.25 + 0.5


def cotangent(case: Case) -> um.array:
    """Of the result's shape and dtype."""
    result = case.of(composed)(*case.make())
    weights = np.cos(np.arange(result.size, dtype=np.float64)).reshape(result.shape)
    return um.array(weights).astype(result.dtype)


# Each takes a function of x and y, the operands and the result's cotangent.
DERIVATIVES: dict[str, Callable[..., Any]] = {
    "vjp": lambda f, x, y, c: um.vjp(f, [x, y], [c])[1],
    "vjp of x": lambda f, x, y, c: um.vjp(lambda a: f(a, y), [x], [c])[1],
    "vjp of y": lambda f, x, y, c: um.vjp(lambda b: f(x, b), [y], [c])[1],
    "vjp of both as one": lambda f, x, y, c: um.vjp(lambda a: f(a, a), [x], [f(x, x) * 0 + 1])[1],
    "jvp": lambda f, x, y, c: um.jvp(f, [x, y], [bent(x), bent(y)])[1],
    "jvp of x": lambda f, x, y, c: um.jvp(lambda a: f(a, y), [x], [bent(x)])[1],
    "jvp of y": lambda f, x, y, c: um.jvp(lambda b: f(x, b), [y], [bent(y)])[1],
    "vjp of vjp": lambda f, x, y, c: um.vjp(
        lambda a, b: um.vjp(lambda a, b: f(a * b, bent(b)), [a, b], [c_like(f, a, b)])[1],
        [x, y],
        [bent(x), bent(y)],
    )[1],
    "jvp of vjp": lambda f, x, y, c: um.jvp(
        lambda a, b: um.vjp(lambda a, b: f(a * a, b), [a, b], [c])[1], [x, y], [x, y]
    )[1],
    "vjp of jvp": lambda f, x, y, c: um.vjp(
        lambda a, b: um.jvp(lambda a, b: f(bent(a), b * b), [a, b], [x, y])[1][0],
        [x, y],
        [c],
    )[1],
    "checkpoint": lambda f, x, y, c: um.vjp(um.checkpoint(f), [x, y], [c])[1],
    "custom_function": lambda f, x, y, c: um.vjp(um.custom_function(f), [x, y], [c])[1],
    "compile inside": lambda f, x, y, c: um.vjp(um.compile(f), [x, y], [c])[1],
    "compile outside": lambda f, x, y, c: um.compile(lambda x, y, c: um.vjp(f, [x, y], [c])[1])(
        x, y, c
    ),
}


def c_like(f: Callable[..., um.array], a: um.array, b: um.array) -> um.array:
    """A cotangent that depends on nothing."""
    return um.stop_gradient(f(a * b, b)) * 0 + 1


@pytest.mark.parametrize("which", DERIVATIVES)
def test_derivatives(axpby: Axpby, which: str) -> None:
    for seed in SEEDS[::4]:
        case = inexact(seed)
        x, y = case.make()
        c = cotangent(case)
        want = DERIVATIVES[which](case.of(composed), x, y, c)
        got = DERIVATIVES[which](case.of(axpby), x, y, c)
        # Cotangents of broadcast operands are sums.
        close(want, got, 16, largest(case) ** 2 * max(1, c.size) ** 0.5)


def mapped(case: Case, axes: tuple[int | None, int | None]) -> tuple[um.array, um.array]:
    """The operands with an axis more where one is mapped."""
    made = []
    for operand, axis in zip(case.make(), axes):
        if axis is not None:
            copies = [operand, bent(operand), operand + operand]
            operand = um.stack([c.astype(operand.dtype) for c in copies], axis)
        made.append(operand)
    return made[0], made[1]


AXES = [a for a in itertools.product([None, 0, 1, -1], repeat=2) if a != (None, None)]


def fits(case: Case, axes: tuple[int | None, int | None]) -> bool:
    operands = zip((case.x, case.y), axes)
    return all(a is None or (a if a >= 0 else 0) <= len(o.shape) for o, a in operands)


def loop(
    f: Callable[..., um.array], axes: tuple[int | None, int | None], *operands: um.array
) -> Any:
    """vmap by a loop."""

    def at(operand: um.array, axis: int | None, i: int) -> um.array:
        return operand if axis is None else um.take(operand, i, axis)

    return um.stack([f(*(at(o, a, i) for o, a in zip(operands, axes))) for i in range(3)])


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_vmap(axpby: Axpby, axes: tuple[int | None, int | None]) -> None:
    tried = 0
    for seed in SEEDS:
        case = drawn(seed, DTYPES)
        if not fits(case, axes):
            continue
        tried += 1
        operands = mapped(case, axes)
        got = um.vmap(case.of(axpby), in_axes=axes)(*operands)
        want = loop(case.of(composed), axes, *operands)
        scale = 2 * largest(case)
        close(want, got, 4, scale)
        last = um.vmap(case.of(axpby), in_axes=axes, out_axes=-1)(*operands)
        close(want, um.moveaxis(last, -1, 0), 4, scale)
        # vmap of vmap: the other operand is mapped in the outer one.
        doubled = [um.stack([o, o + o]).astype(o.dtype) for o in operands]
        for outer in ((0, 0), (0, None), (None, 0)):
            both = [d if o == 0 else p for d, o, p in zip(doubled, outer, operands)]
            nested = um.vmap(um.vmap(case.of(axpby), in_axes=axes), in_axes=outer)(*both)
            plain = um.vmap(um.vmap(case.of(composed), in_axes=axes), in_axes=outer)(*both)
            close(plain, nested, 4, 2 * scale)
    assert tried > 10


MIXED: dict[str, Callable[..., Any]] = {
    "vmap of vjp": lambda f, axes, x, y: um.vmap(
        lambda x, y: um.vjp(f, [x, y], [bent(f(x, y))])[1], in_axes=axes
    )(x, y),
    "vjp of vmap": lambda f, axes, x, y: um.vjp(
        um.vmap(f, in_axes=axes), [x, y], [bent(um.vmap(f, in_axes=axes)(x, y))]
    )[1],
    "vmap of jvp": lambda f, axes, x, y: um.vmap(
        lambda x, y: um.jvp(f, [x, y], [bent(x), bent(y)])[1], in_axes=axes
    )(x, y),
    "jvp of vmap": lambda f, axes, x, y: um.jvp(
        um.vmap(f, in_axes=axes), [x, y], [bent(x), bent(y)]
    )[1],
    "vmap of compile": lambda f, axes, x, y: [um.vmap(um.compile(f), in_axes=axes)(x, y)],
    "compile of vmap": lambda f, axes, x, y: [um.compile(um.vmap(f, in_axes=axes))(x, y)],
    "compile of vmap of vjp": lambda f, axes, x, y: um.compile(
        um.vmap(lambda x, y: um.vjp(f, [x, y], [bent(f(x, y))])[1], in_axes=axes)
    )(x, y),
    "vmap of checkpoint": lambda f, axes, x, y: [um.vmap(um.checkpoint(f), in_axes=axes)(x, y)],
}


@pytest.mark.parametrize("which", MIXED)
def test_transforms_of_transforms(axpby: Axpby, which: str) -> None:
    for seed, axes in zip(SEEDS, itertools.cycle(AXES)):
        case = inexact(seed)
        if not fits(case, axes):
            continue
        x, y = mapped(case, axes)
        want = MIXED[which](case.of(composed), axes, x, y)
        got = MIXED[which](case.of(axpby), axes, x, y)
        if um.complex64 in (x.dtype, y.dtype):
            # Derivatives by a float64 operand pass through complex64, which has float32's precision.
            want, got = ([singles(a) for a in all_of] for all_of in (want, got))
        close(want, got, 32, 2 * largest(case) ** 2 * max(1, x.size, y.size) ** 0.5)


def test_under_grad_of_a_loss(axpby: Axpby) -> None:
    """A descent with it goes as one without."""
    x, y = (given("float32", (16,), key=k).make(um) for k in ("loss x", "loss y"))

    def descend(f: Axpby) -> tuple[um.array, um.array]:
        w = um.zeros_like(x)
        step = um.value_and_grad(lambda w: um.mean(um.square(f(w, x, 2.0, -0.5) - y)))
        for _ in range(25):
            loss, slope = step(w)
            w = f(w, slope, 1.0, -0.8)
        return w, loss

    close(descend(composed), descend(axpby), 64)


def test_streams_and_devices(axpby: Axpby) -> None:
    x, y = given("float32", (7,), key="sx").make(um), given("float32", (7,), key="sy").make(um)
    want = composed(x, y, 4.0, 2.0)
    for place in (None, um.cpu, um.Device(um.cpu, 0), um.new_stream(um.cpu)):
        close(want, axpby(x, y, 4.0, 2.0, stream=place), 2, 64)
    with pytest.raises(TypeError):
        axpby(x, y, 4.0, 2.0, stream="cpu")


def test_functions_with_it_go_to_files(axpby: Axpby, tmp_path: Path) -> None:
    path = tmp_path / "f"
    x, y = um.array([1.0, 2.0]), um.array([3.0, 5.0])
    f = lambda x, y: axpby(um.exp(x), y, 2.0, -0.5)
    um.export_function(path, f, x, y)
    imported = um.import_function(path)
    assert bytes(memoryview(imported(x, y)[0])) == bytes(memoryview(f(x, y)))
    gradient = um.grad(lambda x: imported(x, y)[0].sum())
    assert np.allclose(np.array(gradient(x)), 2 * np.exp([1.0, 2.0]), rtol=1e-6)
    # Files that say what the package never wrote.
    written = path.read_bytes()
    for right, wrong, says in [
        (b'"version":1}', b'"version":7}', "version"),
        (b"[0,0,0,0,0,0,0,64,0,", b"[0,0,0,0,0,0,64,0,  ", "bytes|truncated"),
    ]:
        path.with_name("wrong").write_bytes(written.replace(right, wrong))
        with pytest.raises(RuntimeError, match=f"axpby.*({says})"):
            um.import_function(path.with_name("wrong"))
    # A program without the package.
    code = f"import ultramarine as um; um.import_function({str(path)!r})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert (
        f"The operation belongs to the package {axpby.__module__.split('.')[0]}, which is not imported"
        in run.stderr
    )
