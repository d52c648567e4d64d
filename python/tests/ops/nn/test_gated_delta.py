"""The gated delta rule against its steps one by one in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from parity.reference import Layers
from support.harness import rng, um

pytestmark = pytest.mark.ops

TOLERANCE = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-12}


def operands(
    dtype: str, steps: int, heads: int = 2, group: int = 2, sizes: tuple[int, int] = (8, 5)
) -> tuple[list[um.array], list[np.ndarray]]:
    """Queries, keys of length one, values, decays and rates: arrays, and the same numbers in float64."""
    r, (dk, dv) = rng(f"gated delta {dtype} {steps}"), sizes
    q, k = r.standard_normal((2, 2, steps, heads, dk))
    k /= np.maximum(np.linalg.norm(k, axis=-1, keepdims=True), 1e-6)
    v = r.standard_normal((2, steps, heads * group, dv))
    gamma, beta = r.uniform(0.5, 1, (2, 2, steps, heads * group))
    made = [um.array(a).astype(getattr(um, dtype)) for a in (q, k, v, gamma, beta)]
    return made, [np.array(a.astype(um.float64)) for a in made]


def expected(x: list[np.ndarray], mask: Any = None) -> list[np.ndarray]:
    """Outputs and the last state, step by step."""
    return Layers.gated_delta_update(*x, mask=mask)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("steps", [1, 3, 64, 70, 130])
def test_steps(dtype: str, steps: int) -> None:
    """One chunk, part of one, and several; the state is float32 at least."""
    x, x64 = operands(dtype, steps)
    y, state = um.fast.gated_delta_update(*x)
    wide = um.float64 if dtype == "float64" else um.float32
    assert y.dtype == x[0].dtype and state.dtype == wide
    for got, want in zip((y, state), expected(x64), strict=True):
        error = np.abs(np.array(got.astype(um.float64)) - want).max()
        assert error <= TOLERANCE[dtype] * max(1, np.abs(want).max())


def test_the_state_goes_on() -> None:
    """Two calls are one; a chunk's end is none for the caller."""
    x, x64 = operands("float32", 90)
    first, state = um.fast.gated_delta_update(*[a[:, :37] for a in x])
    second, state = um.fast.gated_delta_update(*[a[:, 37:] for a in x], initial_state=state)
    want, last = expected(x64)
    np.testing.assert_allclose(um.concatenate([first, second], 1), want, atol=2e-5)
    np.testing.assert_allclose(state, last, atol=2e-5)


@pytest.mark.parametrize("steps", [5, 80])
def test_masked_steps_change_nothing(steps: int) -> None:
    x, x64 = operands("float32", steps)
    mask = rng("mask").random((2, steps)) < 0.6
    y, state = um.fast.gated_delta_update(*x, mask=um.array(mask))
    want, last = expected(x64, mask=mask)
    assert np.all(np.array(y)[~mask] == 0)
    np.testing.assert_allclose(y, want, atol=2e-5)
    np.testing.assert_allclose(state, last, atol=2e-5)


def test_decays_may_be_zero() -> None:
    """Nothing is divided by a decay: what was before is forgotten, and gradients are numbers."""
    x, x64 = operands("float32", 70)
    zeros = np.zeros(70, bool)
    zeros[[0, 3, 4, 66]] = True
    x64[3][:, zeros] = 0
    x[3] = um.array(x64[3].astype(np.float32))
    y, state = um.fast.gated_delta_update(*x)
    want, last = expected(x64)
    np.testing.assert_allclose(y, want, atol=2e-5)
    np.testing.assert_allclose(state, last, atol=2e-5)
    total = lambda *a: um.fast.gated_delta_update(*a)[0].square().sum()
    for gradient in um.grad(total, argnums=(0, 1, 2, 3, 4))(*x):
        assert np.all(np.isfinite(np.array(gradient)))


@pytest.mark.parametrize("forgotten", [0, 3])
def test_gradients_across_chunks(forgotten: int) -> None:
    """Each gradient along a direction against a difference in float64, with decays of zero, too."""
    _, x64 = operands("float32", 67, heads=1, group=2, sizes=(4, 3))
    x64[3][:, 10 : 10 + forgotten] = 0
    weight = rng("weight").standard_normal(x64[2].shape)
    x = [um.array(a.astype(np.float32)) for a in x64]
    w = um.array(weight.astype(np.float32))
    total = lambda *a: (um.fast.gated_delta_update(*a)[0] * w).sum()
    gradients = um.grad(total, argnums=(0, 1, 2, 3, 4))(*x)
    for i, gradient in enumerate(gradients):
        along = rng(f"direction {i}").standard_normal(x64[i].shape)

        def at(h: float, i: int = i, along: np.ndarray = along) -> float:
            moved = [a + h * along if i == j else a for j, a in enumerate(x64)]
            return float((expected(moved)[0] * weight).sum())

        want = (at(1e-6) - at(-1e-6)) / 2e-6
        np.testing.assert_allclose((np.array(gradient) * along).sum(), want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("batch", "steps", "heads", "sizes"),
    [(0, 3, 2, (4, 4)), (1, 0, 2, (4, 4)), (1, 3, 0, (4, 4)), (1, 3, 2, (0, 4)), (1, 3, 2, (4, 0))],
)
def test_of_nothing(batch: int, steps: int, heads: int, sizes: tuple[int, int]) -> None:
    """Without steps the state is what it was."""
    dk, dv = sizes
    q, v = um.ones((batch, steps, heads, dk)), um.ones((batch, steps, heads, dv))
    rate, state = um.ones((batch, steps, heads)), um.ones((batch, heads, dv, dk))
    y, after = um.fast.gated_delta_update(q, q, v, rate, rate, state)
    assert y.shape == v.shape and after.shape == state.shape
    assert np.all(np.array(y) == 0) and np.all(np.array(after) == 1)


def test_strided_operands() -> None:
    """Operands that were cut out of one projection."""
    x, x64 = operands("float32", 20, heads=2, group=1, sizes=(4, 4))
    joined = um.concatenate(x[:3], axis=3)
    q, k, v = um.split(joined, 3, axis=3)
    y, _ = um.fast.gated_delta_update(q, k, v, x[3], x[4])
    np.testing.assert_allclose(y, expected(x64)[0], atol=2e-5)


WRONG = {
    "q": ((1, 3, 2), "`q` must have 4 dimensions but has shape"),
    "k": ((1, 3, 2, 5), "Pass `q` and `k` of the same shape"),
    "v": ((1, 3, 3, 4), "heads are a multiple of those of `k`"),
    "gamma": ((1, 3, 1), "`gamma` must have shape"),
    "beta": ((1, 3), "`beta` must have 3 dimensions"),
    "initial_state": ((1, 2, 4), "`initial_state` must have shape"),
    "mask": ((3, 1), "`mask` must have shape"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_shapes(name: str) -> None:
    shape, message = WRONG[name]
    x = dict.fromkeys("qkv", um.ones((1, 3, 2, 4))) | dict.fromkeys(
        ("gamma", "beta"), um.ones((1, 3, 2))
    )
    with pytest.raises(ValueError, match=message):
        um.fast.gated_delta_update(**(x | {name: um.ones(shape)}))


def test_complex_operands() -> None:
    x, one = um.ones((1, 1, 1, 1), dtype=um.complex64), um.ones((1, 1, 1))
    with pytest.raises(ValueError, match="unsupported type complex64"):
        um.fast.gated_delta_update(x, x, x, one, one)
