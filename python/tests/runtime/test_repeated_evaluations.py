"""Evaluations that run the commands of an earlier one of the same structure: the same bits, and nothing else changes."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Callable

import numpy as np
import pytest
from support.repeats import (
    N,
    bits,
    check_one_buffer_in_two_operands,
    numbers,
    on_the_cpu,
    plainly,
    repeated,
    until_repeated,
)

import ultramarine as mx

pytestmark = [pytest.mark.ops, pytest.mark.usefixtures("executables")]

ROUNDS = 5

UNARY: list[Callable[[mx.array], mx.array]] = [
    mx.tanh,
    mx.abs,
    mx.negative,
    lambda a: mx.softmax(a, axis=-1),
    lambda a: a.T,
    lambda a: a[::-1],
    lambda a: a.reshape(N * N)[: N * N].reshape(N, N),
    lambda a: mx.broadcast_to(mx.sum(a, axis=0), (N, N)),
    lambda a: mx.sum(a, axis=1, keepdims=True) * mx.ones((N, N)),
    lambda a: mx.sort(a, axis=1),
    lambda a: mx.split(a, 2, axis=1)[1][:, :1] + a,
    lambda a: a + mx.random.normal((N, N), key=mx.random.key(3)),
    lambda a: mx.where(a > 0, a, 0.5),
    lambda a: (a * 3).astype(mx.int32).astype(mx.float32),
]
BINARY: list[Callable[[mx.array, mx.array], mx.array]] = [
    mx.add,
    mx.subtract,
    mx.multiply,
    mx.maximum,
    lambda a, b: mx.tanh(a @ b),
    lambda a, b: mx.concatenate([a, b], axis=0)[1 : N + 1],
    lambda a, b: mx.slice_update(a, b[:2, :3], mx.array([1, 0]), axes=(0, 1)),
]


def operands(seed: int, values: object) -> list[mx.array]:
    """Evaluated operands: arrays, views of one buffer, transposed ones, constants."""
    base = numbers(3, N, N, seed=values)
    arrays = [numbers(N, N, seed=(values, 1)), base[0], base[1], numbers(N, N, seed=(values, 2)).T]
    if seed % 3 == 0:
        arrays += [mx.zeros((N, N)), mx.full((N, N), 1.5)]
    mx.eval(base, arrays)
    return arrays


def graph(seed: int, given: list[mx.array]) -> list[mx.array]:
    """All arrays of a random graph, the operands first."""
    choose = random.Random(seed)
    pool = list(given)
    for _ in range(choose.randint(8, 30)):
        if choose.random() < 0.5:
            pool.append(choose.choice(UNARY)(choose.choice(pool)))
        else:
            pool.append(choose.choice(BINARY)(choose.choice(pool), choose.choice(pool)))
    return pool


def evaluated(seed: int, values: object, kept: int) -> tuple[list[bytes], list[bytes]]:
    """Bits of the results that a graph gives, and of the operands that are held all the time."""
    choose = random.Random((seed, "held").__repr__())
    given = operands(seed, values)
    held = [a for a in given if choose.random() < kept / 2]
    pool = graph(seed, given)
    asked = pool[-1:] + [a for a in pool[len(given) :] if choose.random() < 0.1]
    some = [a for a in pool[len(given) :] if choose.random() < 0.1]
    later = [pool[len(given)] + 1] if choose.random() < 0.3 else []
    del given, pool
    if choose.random() < 0.3:
        mx.async_eval(asked)
    mx.eval(asked)
    return bits(asked + some + later), bits(held)


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    for i in range(ROUNDS):
        # Some seeds hold other operands at every other evaluation.
        kept = i % 2 if seed % 4 == 1 else seed % 3
        want = plainly(lambda i=i, kept=kept: evaluated(seed, i, kept))
        assert evaluated(seed, i, kept) == want, i


@pytest.mark.parametrize("index", range(len(UNARY) + len(BINARY)))
def test_operations_are_repeated(index: int) -> None:
    if not on_the_cpu():
        pytest.skip("other devices lack some operations")
    x, y = numbers(N, N), numbers(N, N, seed=1)
    mx.eval(x, y)

    def step() -> mx.array:
        a = x
        for _ in range(8):
            a = mx.tanh(UNARY[index](a) if index < len(UNARY) else BINARY[index - len(UNARY)](a, y))
        return a

    want = plainly(lambda: bits([step()]))
    before = repeated()
    for _ in range(4):
        result = step()
        mx.eval(result)
        assert bits([result]) == want
    assert repeated() == before + 2


def test_what_is_held_has_its_value() -> None:
    def step(x: mx.array) -> list[mx.array]:
        a = mx.tanh(x) * 2
        b = a @ a
        c = b.reshape(-1)[N:]
        d = mx.softmax(b + a, axis=-1)
        return [mx.sum(d, axis=0) + mx.sum(c), a, b, c]

    for i in range(ROUNDS):
        want = plainly(lambda i=i: bits(step(numbers(N, N, seed=i))))
        results = step(numbers(N, N, seed=i))
        mx.eval(results[0])
        gc.collect()
        assert bits(results) == want


def test_operands_are_overwritten_as_by_an_evaluation() -> None:
    def donations(f: Callable[[], None]) -> int:
        before = mx.backends.stats().donations
        f()
        return mx.backends.stats().donations - before

    def step(x: mx.array, w: mx.array) -> mx.array:
        for _ in range(3):
            x = mx.tanh(x + 1) * 0.5 + mx.sum(x @ w, axis=1, keepdims=True)
        return x

    w = numbers(N, N) * 0.1
    mx.eval(w)

    def alone() -> None:
        x = numbers(5, N)
        for _ in range(ROUNDS):
            x = step(x, w)
            mx.eval(x)

    def held() -> None:
        x = numbers(5, N)
        for _ in range(ROUNDS):
            before, values = x, np.array(x)
            x = step(x, w)
            mx.eval(x)
            np.testing.assert_array_equal(np.array(before), values)

    for f in (alone, held):
        until_repeated(f)
        want = plainly(lambda f=f: donations(f))
        assert [donations(f), donations(f)] == [want, want]


@pytest.mark.parametrize("views", [False, True])
def test_one_buffer_in_two_operands(views: bool) -> None:
    check_one_buffer_in_two_operands(lambda step: step, views)


def test_many_operands() -> None:
    """Structures of more and fewer operands in turn, each recorded by the thread that looks the next one up."""

    def mixed(operands: list[mx.array]) -> mx.array:
        x = operands[0]
        for y in operands[1:]:
            x = mx.tanh(x @ y) + x
        return x

    before = repeated()
    for count in (12, 30, 10, 25, 9, 40):
        operands = [numbers(4, 4, seed=i) for i in range(count)]
        want = plainly(lambda operands=operands: bits([mixed(operands)]))
        for _ in range(ROUNDS):
            assert bits([mixed(operands)]) == want
    # Not for each: where most evaluations of so many nodes were new, few are looked at. Elsewhere kernels may not be
    # compiled yet.
    assert repeated() > before or not on_the_cpu()


def test_numbers_that_change() -> None:
    def step(x: mx.array, factor: float) -> mx.array:
        for _ in range(4):
            x = mx.tanh(x * factor + 0.5) @ x
        return x

    x = numbers(N, N)
    factors = [1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.5, 1.0, 0.125]
    for factor in factors:
        want = plainly(lambda factor=factor: bits([step(x, factor)]))
        assert bits([step(x, factor)]) == want
    mx.synchronize()
    before = mx.get_active_memory()
    for i in range(300):
        mx.eval(step(x, i / 300))
    mx.synchronize()
    assert mx.get_active_memory() <= before + (1 << 16)


NUMBERED: list[Callable[[mx.array, float], mx.array]] = [
    lambda a, c: a * c,
    lambda a, c: c - a,
    lambda a, c: mx.tanh(a + c) @ a,
    lambda a, c: mx.where(a > c, a, c),
    lambda a, c: mx.sum(a * c, axis=0, keepdims=True) + a,
    lambda a, c: mx.concatenate([a[1:], mx.full((1, N), c)], axis=0),
    lambda a, c: a @ mx.full((N, N), c),
    lambda a, c: mx.softmax(a * c, axis=-1),
    lambda a, c: mx.softmax(mx.full((N, N), c), axis=-1) + a,
    lambda a, c: mx.maximum(a.astype(mx.int32), int(c == 1)).astype(mx.float32) + a,
    lambda a, c: a + mx.sum(mx.full((N, N), c)) * 0.125,
    lambda a, c: mx.fast.rms_norm(a, None, 1e-5) * c,
    lambda a, c: a.T + mx.sort(mx.full((N, N), c), axis=0),
    lambda a, c: mx.clip(a, -abs(c), abs(c)),
]


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs_of_numbers(seed: int) -> None:
    """Numbers that are equal at one evaluation and differ at the next, wherever they go."""

    def graph(x: mx.array, values: list[float]) -> list[mx.array]:
        choose = random.Random(seed)
        pool = [x]
        for _ in range(choose.randint(6, 14)):
            f = choose.choice(NUMBERED)
            pool.append(f(choose.choice(pool[-3:]), values[choose.randrange(len(values))]))
        kept = mx.full((N, N), values[0])
        return [pool[-1] + kept, mx.sum(pool[-2]), *([kept] if choose.random() < 0.3 else [])]

    choose = random.Random((seed, "numbers").__repr__())
    x = numbers(N, N)
    mx.eval(x)
    common = [0.5, 1.0, 1e-5, -0.0, 0.0, 2.0, float("nan"), 0.125, 1.5]
    for i in range(12):
        values = [choose.choice(common) if i % 3 else 1.0 + i + k for k in range(3)]
        want = plainly(lambda values=values: bits(graph(x, values)))
        results = graph(x, values)
        mx.eval(results[:2])
        assert bits(results) == want, values


def test_steps_with_numbers_are_repeated() -> None:
    """Adam, whose corrections are other numbers at each step."""

    def train(losses: list[mx.array]) -> list[bytes]:
        w, m, v = numbers(N, N), mx.zeros((N, N)), mx.zeros((N, N))
        x = numbers(4, N, seed=1)
        step = mx.value_and_grad(lambda w: mx.mean(mx.square(mx.tanh(x @ w) @ w - x)))
        for t in range(1, 61):
            loss, g = step(w)
            m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
            w = w - 0.1 * (m / (1 - 0.9**t)) / (mx.sqrt(v / (1 - 0.99**t)) + 1e-8)
            mx.eval(w, m, v, loss)
            losses.append(loss)
        return bits([w, m, v, *losses])

    want = plainly(lambda: train([]))
    before = repeated()
    assert train([]) == want
    if on_the_cpu():
        # A structure is recorded after up to 33 evaluations if many others were recorded in vain before.
        assert repeated() >= before + 20


def test_many_structures_keep_their_size() -> None:
    def step(x: mx.array, n: int) -> mx.array:
        for i in range(8 + n % 20):
            x = mx.tanh(x @ x) if n >> i & 1 else x + x.T
        return x

    x = numbers(N, N)
    for n in range(300):
        mx.eval(step(x, n))
    mx.synchronize()
    before = mx.get_active_memory()
    for n in range(300):
        for _ in range(3):
            result = step(x, n)
            mx.eval(result)
        if n % 50 == 0:
            assert bits([result]) == plainly(lambda n=n: bits([step(x, n)]))
    del result
    mx.synchronize()
    assert mx.get_active_memory() <= before + (1 << 18)


def test_memory_is_flat() -> None:
    def step(x: mx.array, w: mx.array) -> mx.array:
        for _ in range(3):
            x = mx.softmax(mx.tanh(x @ w), axis=-1)
        return x + mx.sum(x, axis=0)

    x, w = numbers(4, N), numbers(N, N)
    mx.eval(x, w)
    mx.eval(step(x, w))
    mx.synchronize()
    before = mx.get_active_memory()
    for _ in range(10000 if on_the_cpu() else 100):
        mx.eval(step(x, w))
    mx.synchronize()
    assert mx.get_active_memory() <= before + (1 << 14)


def test_training() -> None:
    def loss(params: list[mx.array], x: mx.array) -> mx.array:
        h = mx.maximum(x @ params[0] + params[1], 0)
        h = h * mx.random.bernoulli(0.9, h.shape)
        return mx.mean(mx.square(h @ params[2] - x))

    step = mx.value_and_grad(loss)

    def train() -> list[bytes]:
        mx.random.seed(7)
        params = [numbers(N, 8) * 0.1, mx.zeros(8), numbers(8, N) * 0.1]
        moments = [mx.zeros(p.shape) for p in params]
        losses = []
        for i in range(8):
            value, gradients = step(params, numbers(4, N, seed=i))
            moments = [
                0.9 * m + 0.1 * mx.square(g) for m, g in zip(moments, gradients, strict=True)
            ]
            params = [
                p - 0.1 * g / (mx.sqrt(m) + 1e-3)
                for p, g, m in zip(params, gradients, moments, strict=True)
            ]
            mx.eval(params, moments, value)
            losses.append(value)
        return bits([*params, *moments, *losses])

    want = plainly(train)
    before = repeated()
    assert [train(), train()] == [want, want]
    assert repeated() > before or not on_the_cpu()


def test_evaluations_inside_of_traces() -> None:
    def loss(x: mx.array) -> mx.array:
        y = x
        for _ in range(4):
            y = mx.tanh(y @ y) + x
        mx.eval(y)
        return mx.sum(y)

    for i in range(ROUNDS):
        x = numbers(N, N, seed=i)
        want = plainly(lambda x=x: bits(mx.value_and_grad(loss)(x)))
        assert bits(mx.value_and_grad(loss)(x)) == want


def test_operands_after_a_recording() -> None:
    """Nothing of a structure that was recorded is taken for a part of the next one, whose nodes may be in its place."""

    def graph(arrays: list[mx.array], n: int) -> mx.array:
        total = arrays[0]
        for k in range(n):
            total = mx.tanh(total + (k + 1) * arrays[k % len(arrays)])
        return total

    for i in range(60):
        size = 12 + i % 5
        arrays = [numbers(N, N, seed=(i, k)) for k in range(size)]
        mx.eval(arrays)
        random.Random(i).shuffle(arrays)
        want = plainly(lambda arrays=arrays, i=i: bits([graph(arrays, 14 + i // 5)]))
        kept = graph(arrays, 13 + i // 5)
        later = kept + 1
        result = graph([kept, *arrays[1:]], 2)
        del kept
        mx.eval(result)
        assert bits([graph(arrays, 14 + i // 5)]) == want
        assert bits([later]) == plainly(lambda a=arrays, i=i: bits([graph(a, 13 + i // 5) + 1]))


def test_threads() -> None:
    def step(x: mx.array, w: mx.array) -> mx.array:
        for _ in range(4):
            x = mx.tanh(x @ w) + x * 0.5
        return x

    given = [(numbers(N, N, seed=i), numbers(N, N, seed=i + 9)) for i in range(4)]
    mx.eval(given)
    want = plainly(lambda: [bits([step(*g)]) for g in given])
    stream = mx.default_stream(mx.default_device())
    wrong: list[int] = []

    def run(i: int) -> None:
        with mx.stream(stream):
            for n in range(30):
                x = given[i][0] + 0
                mx.eval(x)
                result = step(x, given[i][1])
                del x
                if n % 2:
                    mx.async_eval(result)
                if bits([result]) != want[i]:
                    wrong.append(n)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_counts_are_those_of_an_evaluation() -> None:
    x, w = numbers(N, N), numbers(N, N)

    def step() -> mx.array:
        y = x
        for _ in range(3):
            y = mx.softmax(y @ w, axis=-1) + mx.sum(y, axis=0)
        return y

    def counts() -> dict[str, list[int]]:
        all_ = mx.backends.op_counts()
        return {f"{c.op} on {c.device}": [c.native, c.decomposed, c.cpu] for c in all_}

    def ran() -> tuple[dict[str, list[int]], list[int]]:
        before, stats = counts(), mx.backends.stats()
        mx.eval(step())
        # A worker counts what it did a moment after the arrays are there.
        mx.synchronize()
        now = {op: np.subtract(n, before.get(op, [0, 0, 0])).tolist() for op, n in counts().items()}
        after = mx.backends.stats()
        names = (
            "commands",
            "fused",
            "fused_operations",
            "bytes_read",
            "bytes_written",
            "donations",
        )
        return {op: n for op, n in now.items() if any(n)}, [
            getattr(after, name) - getattr(stats, name) for name in names
        ]

    mx.eval(step())
    mx.synchronize()
    want = plainly(ran)
    assert [ran() for _ in range(4)] == [want] * 4


@pytest.mark.host("the CPU's decompositions fail")
@pytest.mark.parametrize("donated", [False, True])
def test_errors_are_those_of_an_evaluation(donated: bool) -> None:
    """What does not depend on the operation that fails is computed, and the operand stays what it is."""

    def step(a: mx.array, b: mx.array) -> list[mx.array]:
        d = mx.tanh(mx.tanh(b) @ b)
        c = mx.linalg.inv(a * 2)
        e = c @ b + 1
        f = mx.sum(mx.tanh(b) + 3, axis=0)
        return [e, f, mx.sum(e) + d, d + f, c]

    def outcome(a: mx.array) -> list[bytes | str]:
        b = numbers(4, 4)
        a = a + 0
        mx.eval(a, b)
        kept = [] if donated else [a, b]
        results = step(a, b)
        del a, b
        try:
            mx.eval(results)
        except RuntimeError as error:
            assert "singular" in str(error)
        all_: list[bytes | str] = []
        for array in results + kept:
            try:
                all_ += bits([array])
            except RuntimeError as error:
                assert "singular" in str(error)
                all_.append("failed")
        return all_

    good, bad = mx.eye(4) * 3, mx.zeros((4, 4)) * mx.ones(4)
    mx.eval(good, bad)
    want = plainly(lambda: (outcome(good), outcome(bad)))
    assert want[1].count("failed") == 3
    for _ in range(4):
        assert (outcome(good), outcome(bad)) == want
