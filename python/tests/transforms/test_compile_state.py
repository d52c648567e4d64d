"""State that compiled functions capture: inputs and outputs, random numbers, training steps."""

from __future__ import annotations

from functools import partial
from typing import Any

import mlx.core as mlx
import numpy as np
import pytest
from support.both import same, values
from support.harness import rng

import ultramarine as um


def test_state_is_captured() -> None:
    def case(mx: Any) -> Any:
        state = [mx.array(1.0), {"a": mx.array(2.0), "s": "x", "n": 3}]

        @partial(mx.compile, inputs=state, outputs=state)
        def f(x: Any) -> Any:
            state[0] = state[0] + x
            state[1]["a"] = state[1]["a"] * 2
            return x * state[0]

        return [[values(f(mx.array(float(i)))), values(state)] for i in range(4)]

    same(case)


def test_outputs_that_appear() -> None:
    def case(mx: Any) -> Any:
        state: dict[str, Any] = {}

        def f(x: Any) -> Any:
            state["y"] = x * 2
            state["deep"] = {"z": [x + 1]}
            return x

        compiled = mx.compile(f, inputs=state, outputs=state)
        return [[values(compiled(mx.array(float(i)))), values(state)] for i in range(3)]

    same(case)


def test_inputs_alone_keep_their_arrays() -> None:
    # mlx leaves arrays without values behind.
    state = [um.array(1.0)]

    def f(x: Any) -> Any:
        state[0] = state[0] + x
        return state[0]

    compiled = um.compile(f, inputs=state)
    for i in range(3):
        assert compiled(um.array(float(i))).item() == 1.0 + i
        assert state[0].item() == 1.0
    state[0] = um.array(7.0)
    assert compiled(um.array(1.0)).item() == 8.0


def test_state_is_back_after_an_error() -> None:
    inner = um.array(2.0)
    state: dict[str, Any] = {"a": um.array(1.0), "b": {"c": inner}}
    before = um.random.state[0].tolist()

    def f(x: Any) -> Any:
        state["a"] = state["a"] + x
        state["new"] = x
        state["b"]["c"] = x
        um.random.uniform()
        raise KeyError("no")

    compiled = um.compile(f, inputs=[state, um.random.state], outputs=[state, um.random.state])
    for _ in range(2):
        with pytest.raises(KeyError):
            compiled(um.array(1.0))
    assert values(state) == {"a": 1.0, "b": {"c": 2.0}} and state["b"]["c"] is inner
    assert um.random.state[0].tolist() == before


def test_what_is_not_captured_has_no_value() -> None:
    def case(mx: Any) -> Any:
        state = [mx.array(1.0)]

        def f(x: Any) -> Any:
            state[0] = state[0] + x
            return x

        mx.compile(f)(mx.array(1.0))
        return state[0].item()

    assert same(case) is RuntimeError


def test_uncaptured_inputs() -> None:
    def case(mx: Any) -> Any:
        state: list[Any] = []

        def f(x: Any) -> Any:
            state.append(x)
            return state[0] + x

        compiled = mx.compile(f)
        compiled(mx.zeros(2))
        return compiled(mx.zeros(3))

    assert same(case) is ValueError


def test_odd_state() -> None:
    def case(mx: Any) -> Any:
        given = [3, "a", mx.array(1), [1], [None], {}]
        return [mx.compile(lambda x: x + 1, inputs=g)(mx.array(2)) for g in given]

    assert same(case) == [3] * 6


def test_random_state() -> None:
    def case(inputs: bool, outputs: bool) -> Any:
        def run(mx: Any) -> Any:
            mx.random.seed(3)
            state = mx.random.state
            f = mx.compile(
                lambda: mx.random.uniform(shape=(2,)),
                inputs=state if inputs else None,
                outputs=state if outputs else None,
            )
            drawn = [f().tolist(), f().tolist()]
            return [*drawn, mx.random.uniform(shape=(2,)).tolist(), f().tolist()]

        return run

    one, two, three, four = same(case(True, True))
    um.random.seed(3)
    assert [one, two, three, four] == [um.random.uniform(shape=(2,)).tolist() for _ in range(4)]
    one, two, _, four = same(case(False, False))
    assert one == two == four
    same(case(False, True))
    # Inputs alone: the state is what it was.
    one, two, three, _ = case(True, False)(um)
    assert one == two == three


def test_random_state_in_a_list() -> None:
    def case(mx: Any) -> Any:
        state = [{"w": mx.zeros(2)}, mx.random.state]
        mx.random.seed(1)

        def step() -> Any:
            state[0]["w"] = state[0]["w"] + mx.random.normal((2,))
            return state[0]["w"]

        compiled = mx.compile(step, inputs=state, outputs=state)
        return [compiled().tolist() for _ in range(3)]

    found = case(um)
    np.testing.assert_allclose(found, case(mlx), rtol=1e-5)


def test_training_steps() -> None:
    x = rng("compile").standard_normal((16, 4)).astype(np.float32)
    y = (x @ np.array([1, -2, 3, 0.5], np.float32))[:, None]

    def train(compiled: bool) -> Any:
        um.random.seed(0)
        model = {"w1": um.random.normal((4, 8)), "w2": um.random.normal((8, 1))}
        momentum = {k: um.zeros_like(v) for k, v in model.items()}
        state = [model, momentum, um.random.state]

        def loss(p: Any, x: Any, y: Any) -> Any:
            hidden = um.maximum(x @ p["w1"], 0)
            kept = um.random.bernoulli(0.9, hidden.shape)
            return (um.square((hidden * kept) @ p["w2"] - y)).mean()

        def step(x: Any, y: Any) -> Any:
            value, gradients = um.value_and_grad(loss)(model, x, y)
            for k, g in gradients.items():
                momentum[k] = 0.9 * momentum[k] + g
                model[k] = model[k] - 0.01 * momentum[k]
            return value

        run = um.compile(step, inputs=state, outputs=state) if compiled else step
        losses = []
        for _ in range(20):
            losses.append(run(um.array(x), um.array(y)))
            um.eval(state, losses[-1])
        return [v.item() for v in losses], values(model)

    (losses, model), (expected, expected_model) = train(True), train(False)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for k, v in model.items():
        np.testing.assert_allclose(v, expected_model[k], rtol=1e-4)
    assert losses[-1] < losses[0] / 2
