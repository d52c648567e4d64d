"""Compiled functions inside and outside of transforms, and generated programs compiled and as they are."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from support.both import same
from support.compare import assert_identical
from support.harness import rng

import ultramarine as um

# --- transforms -----------------------------------------------------------------------------


def test_transforms_inside_and_outside() -> None:
    def case(mx: Any) -> Any:
        f = lambda x: (x * x * x).sum()
        x, b = mx.array([1.0, 2.0, 3.0]), mx.arange(6.0).reshape(2, 3)
        c = mx.compile(f)
        return [
            mx.grad(c)(x),
            mx.compile(mx.grad(f))(x),
            mx.compile(mx.grad(c))(x),
            mx.vmap(c)(b),
            mx.compile(mx.vmap(f))(b),
            mx.compile(mx.vmap(mx.grad(c)))(b),
            mx.grad(mx.grad(mx.compile(lambda x: x**3)))(mx.array(2.0)),
            mx.jvp(mx.compile(lambda x: x * x), [x], [x]),
            mx.vjp(mx.compile(lambda x: x * x), [x], [x]),
            mx.compile(mx.checkpoint(f))(x),
            mx.grad(mx.compile(mx.checkpoint(f)))(x),
            mx.compile(mx.grad(mx.checkpoint(f)))(x),
            c(x),
        ]

    same(case)


def test_custom_functions_inside() -> None:
    def case(mx: Any) -> Any:
        @mx.custom_function
        def f(x: Any) -> Any:
            return mx.sin(x)

        @f.vjp
        def rule(x: Any, cotangent: Any, output: Any) -> Any:
            return cotangent * 10

        g = mx.compile(lambda x: f(x) * 2)
        x = mx.array(0.0)
        return [g(x), mx.grad(g)(x), mx.compile(mx.grad(lambda x: f(x) * 2))(x), g(x)]

    assert same(case) == [0.0, 20.0, 20.0, 0.0]


def test_closures_over_arguments_of_transforms() -> None:
    # mlx gives 0 here: what is closed over is a constant to it.
    def outer(w: Any) -> Any:
        return um.compile(lambda x: x * w)(um.array(3.0))

    assert um.grad(outer)(um.array(2.0)).item() == 3.0
    assert um.vmap(outer)(um.array([2.0, 3.0])).tolist() == [6.0, 9.0]
    assert um.compile(outer)(um.array(4.0)).item() == 12.0
    kept: list[Any] = []

    def again(w: Any) -> Any:
        kept[:1] = [w]
        if len(kept) == 1:
            kept.append(um.compile(lambda x: x * kept[0]))
        return kept[1](um.array(3.0))

    for w in (2.0, 7.0):
        value, gradient = um.value_and_grad(again)(um.array(w))
        assert (value.item(), gradient.item()) == (3 * w, 3.0)


# --- generated programs ---------------------------------------------------------------------

UNARY = ["exp", "sin", "abs", "negative", "square", "tanh", "sigmoid", "floor"]
BINARY = ["add", "multiply", "subtract", "maximum", "minimum", "arctan2"]


def program(seed: int) -> Any:
    """A random function of two arrays of shape (3, 4), with repeated, unused and constant parts."""

    def f(a: Any, b: Any) -> Any:
        r = rng("program", seed)
        pool = [a, b, um.ones((3, 4)), um.array(0.5), um.arange(4.0)]
        for _ in range(int(r.integers(3, 25))):
            x, y = (pool[int(r.integers(len(pool)))] for _ in range(2))
            match int(r.integers(8)):
                case 0 | 1:
                    made = getattr(um, UNARY[int(r.integers(len(UNARY)))])(x)
                case 2 | 3 | 4:
                    made = getattr(um, BINARY[int(r.integers(len(BINARY)))])(x, y)
                case 5:
                    made = x.sum(axis=-1, keepdims=True) if x.ndim else x * 2
                case 6:
                    made = um.where(x > 0.25, x, y)
                case _:
                    made = um.broadcast_to(x, (3, 4)).T.T[:, ::-1]
            pool.append(made)
            if r.random() < 0.3:
                pool.append(getattr(um, UNARY[0])(x))
        outputs = [pool[int(i)] for i in r.integers(len(pool), size=3)]
        return [um.broadcast_to(o, (3, 4)) for o in outputs] + [um.tanh(pool[-1]).sum()]

    return f


@pytest.mark.parametrize("seed", range(60))
def test_generated_programs(seed: int) -> None:
    r = rng("operands", seed)
    f = program(seed)
    compiled = um.compile(f)
    for _ in range(2):
        a, b = (um.array(r.standard_normal((3, 4)).astype(np.float32)) for _ in range(2))
        assert_identical(compiled(a, b), f(a, b))
        loss = lambda g, a, b: sum((o.sum() for o in g(a, b)), um.array(0.0))
        grads = um.grad(partial(loss, f), argnums=(0, 1))
        assert_identical(um.grad(partial(loss, compiled), argnums=(0, 1))(a, b), grads(a, b))
        for found, wanted in zip(um.compile(grads)(a, b), grads(a, b), strict=True):
            np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=2e-5, atol=1e-5)
        batch = [um.stack([x, x * 2]) for x in (a, b)]
        assert_identical(um.vmap(compiled)(*batch), um.vmap(f)(*batch))
        assert_identical(um.compile(um.vmap(f))(*batch), um.vmap(f)(*batch))
