"""Compiled functions: results and number of traces beside mlx's, errors, what is left behind."""

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

import numpy as np
from support.both import same

import ultramarine as um


def traces(calls: Any, **options: Any) -> list[int]:
    """Number of calls of a compiled function after each call of `calls(mx)`."""

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


def test_the_last_256_traces_are_kept() -> None:
    """A constant that differs at each call has the function traced each time, and traces do not pile up."""

    class Constant(float):
        """One that can be asked whether it is alive."""

    calls: list[float] = []

    @um.compile
    def f(x: um.array, n: float) -> um.array:
        calls.append(float(n))
        return x * n

    x = um.array(2.0)
    alive = []
    for n in range(300):
        constant = Constant(n)
        alive.append(weakref.ref(constant))
        assert f(x, constant).item() == 2 * n
        assert f(x, 1.0).item() == 2.0  # a trace that is in use stays
    del constant
    gc.collect()
    assert len(calls) == 301
    assert sum(ref() is not None for ref in alive) == 255
    f(x, Constant(299))
    f(x, Constant(45))
    assert len(calls) == 301
    f(x, Constant(44))
    assert len(calls) == 302


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
