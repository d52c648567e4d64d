"""Compiled functions: results and number of traces beside mlx's, captured state, errors, what is left behind."""

from __future__ import annotations

import gc
import inspect
import subprocess
import sys
import threading
import weakref
from collections import namedtuple
from functools import partial
from typing import Any

import mlx.core as mlx
import numpy as np
import pytest
from support.both import same, values
from support.harness import rng

import ultramarine as um


def traces(calls: Any, **options: Any) -> list[int]:
    """How often a compiled function was called after each call of `calls(mx)`."""

    def case(mx: Any) -> list[int]:
        count = 0

        def f(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            return args[0]

        compiled, counts = mx.compile(f, **options), []
        for args, kwargs in calls(mx):
            compiled(*args, **kwargs)
            counts.append(count)
        return counts

    return same(case)


# --- when a function is traced --------------------------------------------------------------


def test_traced_for_each_shape_and_dtype() -> None:
    shapes = [(2,), (2,), (3,), (2,), (2, 2), (), (0,)]
    assert traces(lambda mx: [((mx.zeros(s),), {}) for s in shapes])[-1] == 5
    dtypes = ["float32", "int32", "float32", "bool_"]
    assert traces(lambda mx: [((mx.zeros((2,), getattr(mx, d)),), {}) for d in dtypes])[-1] == 3


def test_traced_for_each_constant() -> None:
    constants = [
        1,
        1,
        2,
        1.0,
        "a",
        "a",
        "b",
        "",
        None,
        None,
        -0.0,
        float("nan"),
        float("nan"),
        2**40,
        -1,
    ]
    counts = traces(lambda mx: [((mx.zeros(2), c), {}) for c in constants])
    assert counts[-1] == 11
    # True is 1 to mlx; here the function may tell them apart.
    f = um.compile(lambda x, c: x + (10 if c is True else c))
    assert [f(um.array(1), c).item() for c in (1, True, 1, False, 0)] == [2, 11, 2, 1, 1]
    assert um.compile(lambda n: um.array(n > 10**30))(10**40).item()


def test_traced_for_each_structure() -> None:
    def calls(mx: Any) -> Any:
        x = mx.zeros(2)
        args: list[Any] = [
            (x,),
            (x, x),
            (x, [x]),
            (x, [[x]]),
            (x, [x, x]),
            (x, {"a": x}),
            (x, {"b": x}),
            (x, []),
            (x,),
        ]
        return [(a, {}) for a in args] + [
            ((x,), {"k": x}),
            ((x,), {"k": 1}),
            ((x,), {"k": 1}),
            ((x,), {"j": 1}),
        ]

    assert traces(calls)[-1] == 11
    # What looks alike to mlx.
    types = um.compile(lambda x: um.array(float(isinstance(x, list))))
    assert (types([um.array(1)]).item(), types((um.array(1),)).item()) == (1.0, 0.0)
    pair = namedtuple("pair", "a b")
    named = um.compile(lambda p: um.array(hasattr(p, "a")))
    assert (named(pair(um.array(1), 2)).item(), named((um.array(1), 2)).item()) == (True, False)


def test_keys_are_not_mistaken_for_each_other() -> None:
    f = um.compile(lambda *a, **k: um.array(float(len(repr((a, k))))))
    for args in [
        ("a", "bc"),
        ("ab", "c"),
        ("abc",),
        (["a"], "b"),
        (["a", "b"],),
        ((1,), 2),
        ((1, 2),),
        ({1: 2},),
        (1, 2),
    ]:
        assert f(*args).item() == len(repr((args, {})))
    for name in ["a", "ab", "é", "x" * 100]:
        assert f(**{name: 1}).item() == len(repr(((), {name: 1})))


def test_closures_are_constant() -> None:
    def case(mx: Any) -> Any:
        k = mx.array(2.0)
        f = mx.compile(lambda x: x * k)
        first = f(mx.array(3.0))
        k = mx.array(5.0)
        return first, f(mx.array(3.0))

    assert same(case) == [6.0, 6.0]


def test_shapeless() -> None:
    def case(f: Any, *shapes: Any) -> Any:
        def run(mx: Any) -> Any:
            count = 0

            def counted(*args: Any) -> Any:
                nonlocal count
                count += 1
                return f(mx, *args)

            compiled = mx.compile(counted, shapeless=True)
            each = [compiled(mx.arange(float(np.prod(s))).reshape(s)) for s in shapes]
            return each, [f(mx, mx.arange(float(np.prod(s))).reshape(s)) for s in shapes]

        return run

    def check(f: Any, *shapes: Any) -> None:
        found, expected = same(case(f, *shapes))
        assert found == expected

    check(lambda mx, x: mx.square(x) + 1, (2,), (4,), (1,))
    check(lambda mx, x: x.flatten(), (2, 3), (4, 3))
    check(lambda mx, x: x.sum(axis=0), (2, 3), (4, 3))
    # More in test_shapeless.py.


# --- state ----------------------------------------------------------------------------------


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


# --- results and arguments ------------------------------------------------------------------


def test_results_may_be_anything() -> None:
    thing = object()
    for given in [1, None, "a", 1.5, (1, 2), [], (), {}, thing, [None]]:
        f = um.compile(lambda x, given=given: given)
        assert f(um.array(1)) == given and f(um.array(1)) == given
    pair = namedtuple("pair", "a b")

    def tree(mx: Any) -> Any:
        f = mx.compile(lambda x: (x, {"a": [x, 1], "b": None}, pair(x + 1, 2)))
        return [(r := f(mx.array(1))), isinstance(r[2], pair), f(mx.array(2))][1:]

    assert same(tree)[0] is True


def test_errors() -> None:
    assert same(lambda mx: mx.compile(1)) is TypeError
    assert same(lambda mx: mx.compile()) is TypeError
    assert same(lambda mx: mx.compile(lambda x: x, 1, 2, 3, 4)) is TypeError
    for bad in [
        object(),
        b"a",
        lambda: 1,
        set(),
        range(3),
        1j,
        slice(0, 1),
        Ellipsis,
        np.ones(2),
        np.float32(1),
    ]:
        assert same(lambda mx, bad=bad: mx.compile(lambda x: mx.array(1))(bad)) is ValueError
        assert same(lambda mx, bad=bad: mx.compile(lambda x: mx.array(1))([bad])) is ValueError
        assert same(lambda mx, bad=bad: mx.compile(lambda x: mx.array(1))(x=bad)) is ValueError
    assert same(lambda mx: mx.compile(lambda x: mx.array(1))(mx.float32)) is ValueError
    assert same(lambda mx: mx.compile(lambda x: x)()) is TypeError
    assert same(lambda mx: mx.compile(lambda x: x)(mx.array(1), y=mx.array(1))) is TypeError
    assert same(lambda mx: mx.compile(lambda x: x + mx.ones(3))(mx.ones(2))) is ValueError
    for name in ["enable_compile", "disable_compile"]:
        assert same(lambda mx, name=name: getattr(mx, name)(1)) is TypeError


def test_values_inside_are_errors() -> None:
    asks = [
        lambda mx, x: mx.eval(x),
        lambda mx, x: mx.async_eval(x),
        lambda mx, x: x.item(),
        lambda mx, x: bool(x > 1),
        lambda mx, x: repr(x),
        lambda mx, x: x.tolist(),
        lambda mx, x: np.array(x),
        lambda mx, x: float(x),
    ]
    for ask in asks:
        assert (
            same(lambda mx, ask=ask: mx.compile(lambda x: (ask(mx, x), x)[1])(mx.array(2.0)))
            is ValueError
        )
    # Of what does not depend on an argument they may be had.
    g = um.array(3.0)
    assert um.compile(lambda x: x * g.item() + um.ones(2).sum().item())(um.array(2.0)).item() == 8.0


def test_looks_like_the_function() -> None:
    def f(x: Any, y: int = 2) -> Any:
        "What f does."
        return x * y

    compiled = um.compile(f)
    assert (compiled.__name__, compiled.__doc__, compiled.__wrapped__) == ("f", "What f does.", f)
    assert str(inspect.signature(compiled)) == str(inspect.signature(f))
    assert "compile of" in repr(compiled)
    assert [
        compiled(um.array(2)).item(),
        compiled(um.array(2), 5).item(),
        compiled(um.array(2), y=4).item(),
    ] == [4, 10, 8]

    class Model:
        def __init__(self) -> None:
            self.k = um.array(3.0)
            self.forward = um.compile(self.forward)  # type: ignore[method-assign]

        def forward(self, x: Any) -> Any:
            return x * self.k

    assert Model().forward(um.array(2.0)).item() == 6.0


def test_recursion_and_nesting() -> None:
    def deeper(x: Any) -> Any:
        return x if x.ndim == 3 else compiled(x[None])

    compiled = um.compile(deeper)
    assert compiled(um.array(1.0)).shape == (1, 1, 1)
    f = um.compile(um.compile(lambda x: x * x))
    assert f(um.array(3.0)).item() == 9.0


# --- what is left behind --------------------------------------------------------------------


def test_collected_with_its_function() -> None:
    def make() -> Any:
        def f(x: Any) -> Any:
            return x

        f.compiled = um.compile(f, inputs=[f], outputs=[f])  # type: ignore[attr-defined]
        f.compiled(um.array(1.0))  # type: ignore[attr-defined]
        return weakref.ref(f)

    gone = make()
    gc.collect()
    assert gone() is None


def test_memory_does_not_grow() -> None:
    state = [um.zeros((64, 64)), um.random.state]

    def f(x: Any) -> Any:
        state[0] = state[0] * 0.5 + um.random.normal((64, 64)) + x
        return state[0].sum()

    compiled = um.compile(f, inputs=state, outputs=state)
    x = um.ones((64, 64))
    for i in range(1100):
        um.eval(compiled(x), state)
        if i == 100:
            before = um.get_active_memory()
    assert um.get_active_memory() <= before + (64 << 10)


def test_many_threads() -> None:
    count = []

    def f(x: Any) -> Any:
        count.append(1)
        return (x * um.random.uniform(shape=(4,), key=um.random.key(0)) + x).sum()

    compiled = um.compile(f)
    expected = {n: f(um.full((n, 4), 2.0)).item() for n in range(1, 5)}
    failures = []

    def work() -> None:
        for i in range(50):
            n = i % 4 + 1
            if compiled(um.full((n, 4), 2.0)).item() != expected[n]:
                failures.append(n)

    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failures and 8 <= len(count) <= 4 + 4 * 8


# --- switches -------------------------------------------------------------------------------


def test_switched_off() -> None:
    def case(mx: Any) -> Any:
        count = 0

        def f(x: Any) -> Any:
            nonlocal count
            count += 1
            return x

        compiled, counts = mx.compile(f), []
        try:
            for switch in (mx.disable_compile, mx.enable_compile):
                switch()
                for _ in range(2):
                    compiled(mx.array(1))
                    counts.append(count)
            mx.disable_compile()
            # The function itself: values may be had.
            counts.append(mx.compile(lambda x: x * x.item())(mx.array(3)))
        finally:
            mx.enable_compile()
        return counts

    assert same(case) == [1, 2, 3, 3, 9]


def test_environment() -> None:
    text = "import ultramarine as um; print(um.compile(lambda x: x * x.item())(um.array(3)).item())"
    run = partial(subprocess.run, [sys.executable, "-c", text], capture_output=True, text=True)
    import os

    off = run(env={**os.environ, "ULTRAMARINE_DISABLE_COMPILE": "1"})
    assert off.stdout.strip() == "9", off.stderr
    assert "during function transformations" in run().stderr
