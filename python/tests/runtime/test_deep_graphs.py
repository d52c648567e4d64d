"""Graphs of a million operations."""

import gc

import pytest

import ultramarine as mx

DEPTH = 1_000_000


def chain(x: mx.array, depth: int = DEPTH) -> mx.array:
    for _ in range(depth):
        x = x + 1
    return x


def test_a_deep_chain_evaluates() -> None:
    x = chain(mx.array([0, 1], mx.int32))
    assert x.tolist() == [DEPTH, DEPTH + 1]


def test_a_deep_chain_is_dropped_unevaluated() -> None:
    x = chain(mx.array(0))
    del x
    gc.collect()
    assert (mx.array(1) + 1).item() == 2


def test_a_deep_chain_of_views() -> None:
    x = mx.arange(4)
    for _ in range(100_000):
        x = x[::-1]
    assert x.tolist() == [0, 1, 2, 3]


def test_a_deep_ladder() -> None:
    """Two strands that meet at each rung: paths double, nodes do not."""
    x = y = mx.array(1.0)
    for _ in range(50_000):
        x, y = (x + y) * 0.5, (x - y) + 1.0
    mx.eval(x, y)
    assert x.item() == pytest.approx(1.0, abs=1)


def test_gradient_of_a_deep_chain() -> None:
    def f(x: mx.array) -> mx.array:
        for _ in range(20_000):
            x = x + 1
        return x * x

    assert mx.grad(f)(mx.array(2.0)).item() == 2 * 20002


def test_a_wide_graph() -> None:
    parts = [mx.array(i) * 2 for i in range(20_000)]
    assert mx.stack(parts).sum().item() == 20_000 * 19_999
    assert mx.concatenate([p[None] for p in parts]).shape == (20_000,)
