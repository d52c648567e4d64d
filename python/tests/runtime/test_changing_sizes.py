"""Evaluations of which parts have other sizes or offsets each time: the other parts run the commands of earlier ones."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import numpy as np
import pytest
from support.repeats import bits, numbers, on_the_cpu, plainly, repeated

import ultramarine as mx

pytestmark = [pytest.mark.ops, pytest.mark.usefixtures("executables")]

N, HEADS, EACH, LENGTH = 8, 2, 4, 40
STEPS = 20

# Parts that stay.
FIXED: list[Callable[[mx.array], mx.array]] = [
    mx.tanh,
    lambda a: a.T,
    lambda a: mx.softmax(a, axis=-1),
    lambda a: mx.tanh(a @ a),
    lambda a: mx.fast.rms_norm(a, None, 1e-5),
    lambda a: mx.sort(a, axis=1),
    lambda a: a * 0.5 + mx.sum(a, axis=0),
    lambda a: mx.split(a, 2, axis=1)[1][:, :1] + a,
    lambda a: a.reshape(N // 2, 2 * N).T.reshape(N, N),
]
# Parts in which `i` is a size, an offset or a number.
CHANGING: list[Callable[[mx.array, int], mx.array]] = [
    lambda a, i: mx.concatenate([a] * (i % 5 + 2))[i % N : i % N + N],
    lambda a, i: mx.sum(mx.broadcast_to(a, (i + 1, N, N)), axis=0),
    lambda a, i: a[i % N : i % N + 1] + a,
    lambda a, i: mx.slice_update(a, a[:1], mx.array([i % N]), (0,)),
    lambda a, i: mx.where(mx.array(np.arange(N)) <= i % N, a, 0.25),
    lambda a, i: a + mx.full((N, i), 2.0) @ mx.ones((i, N)),
    lambda a, i: a * (i + 0.5),
    lambda a, i: mx.roll(a, i, axis=0),
    lambda a, i: a.at[i % N].add(1.5),
    lambda a, i: mx.pad(a, ((0, i), (0, 0)))[:N],
]


def graph(seed: int, x: mx.array, i: int) -> list[mx.array]:
    """The arrays of a random graph; most of its operations are the same for each `i`."""
    choose = random.Random(seed)
    pool = [x]
    for _ in range(choose.randint(3, 5)):
        for _ in range(choose.randint(4, 12)):
            pool.append(choose.choice(FIXED)(choose.choice(pool[-2:])))
        y = choose.choice(CHANGING)(choose.choice(pool[-3:]), i)
        pool += [y, choose.choice(pool) + y]
    return pool


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    def evaluated(i: int) -> list[bytes]:
        choose = random.Random((seed, i // 7).__repr__())
        x = numbers(N, N, seed=i)
        mx.eval(x)
        kept = choose.random() < 0.5
        pool = graph(seed, x if kept else x + 0, i)
        asked = pool[-1:] + [a for a in pool if choose.random() < 0.1]
        some = [a for a in pool if choose.random() < 0.1]
        del pool
        if choose.random() < 0.3:
            mx.async_eval(asked)
        mx.eval(asked)
        return bits([*asked, *some, *([x] if kept else [])])

    # All at once: executables that are switched on look at everything again.
    want = plainly(lambda: [evaluated(i) for i in range(1, STEPS)])
    assert [evaluated(i) for i in range(1, STEPS)] == want


def test_parts_are_repeated() -> None:
    before = repeated()
    for seed in range(40):
        for i in range(1, STEPS):
            x = numbers(N, N, seed=i)
            mx.eval(x)
            mx.eval(graph(seed, x, i)[-1])
    # Nine in ten have parts that are worth it. Elsewhere kernels may not be compiled yet.
    assert repeated() - before >= 500 or not on_the_cpu()


class Cache:
    """Keys and values of the rows so far."""

    def __init__(self) -> None:
        self.k = self.v = mx.zeros((1, HEADS, LENGTH, EACH))
        self.offset = 3

    def window(self, k: mx.array, v: mx.array) -> tuple[mx.array, mx.array, mx.array | None]:
        """Written at a Python offset, and read up to there."""
        at = self.offset
        self.k[..., at : at + 1, :] = k
        self.v[..., at : at + 1, :] = v
        self.offset += 1
        return self.k[..., : at + 1, :], self.v[..., : at + 1, :], None

    def padded(self, k: mx.array, v: mx.array) -> tuple[mx.array, mx.array, mx.array | None]:
        """Written at a Python offset, and read whole under a mask."""
        at = self.offset
        self.window(k, v)
        return self.k, self.v, mx.array(np.arange(LENGTH)) <= at

    def joined(self, k: mx.array, v: mx.array) -> tuple[mx.array, mx.array, mx.array | None]:
        """Concatenated."""
        if self.offset == 3:
            self.k, self.v = self.k[..., :3, :], self.v[..., :3, :]
        self.k, self.v = mx.concatenate([self.k, k], axis=2), mx.concatenate([self.v, v], axis=2)
        self.offset += 1
        return self.k, self.v, None


def heads(y: mx.array) -> mx.array:
    return y.reshape(1, 1, HEADS, EACH).transpose(0, 2, 1, 3)


def token(x: mx.array, ws: list[mx.array], caches: list[Cache], grow: str) -> mx.array:
    """A step of blocks with attention over their caches."""
    for w, cache in zip(ws, caches, strict=True):
        h = mx.fast.rms_norm(x, None, 1e-5)
        q, k, v = (heads(h @ w[n]) for n in range(3))
        q, k = (
            mx.fast.rope(y, EACH, traditional=False, base=1e4, scale=1.0, offset=cache.offset)
            for y in (q, k)
        )
        k, v, mask = getattr(cache, grow)(k, v)
        scores = (q * EACH**-0.5) @ k.swapaxes(2, 3)
        if mask is not None:
            scores = mx.where(mask, scores, -1e9)
        o = mx.softmax(scores, axis=-1) @ v
        x = x + o.transpose(0, 2, 1, 3).reshape(1, 1, HEADS * EACH) @ w[3]
        h = mx.fast.rms_norm(x, None, 1e-5)
        g = h @ w[4]
        x = x + (g * mx.sigmoid(g) * (h @ w[5])) @ w[6]
    return x


def weights(seed: int) -> list[mx.array]:
    size = HEADS * EACH
    return [numbers(7, size, size, seed=(seed, i)) * 0.3 for i in range(3)]


def tokens(ws: list[mx.array], grow: str, steps: int = STEPS) -> list[bytes]:
    caches = [Cache() for _ in ws]
    x = numbers(1, 1, HEADS * EACH)
    found = []
    for _ in range(steps):
        x = mx.tanh(token(x, ws, caches, grow))
        mx.eval(x)
        found.append(x)
    return bits([*found, *(c.k for c in caches), *(c.v for c in caches)])


@pytest.mark.parametrize("grow", ["window", "padded", "joined"])
def test_steps_with_a_cache_that_grows(grow: str) -> None:
    ws = weights(0)
    mx.eval(ws)
    want = plainly(lambda: tokens(ws, grow))
    before = repeated()
    assert tokens(ws, grow) == want
    if on_the_cpu():
        # Four blocks' parts a step, once some steps have shown what differs.
        assert repeated() - before >= 4 * (STEPS - 12)


def test_writes_go_into_the_cache() -> None:
    """A step that is cut into parts writes as many bytes as one that is not, and takes over the cache's memory."""
    ws = weights(1)
    mx.eval(ws)
    names = ("bytes_written", "donations")

    def counted() -> list[list[int]]:
        caches, counts = [Cache() for _ in ws], []
        x = numbers(1, 1, HEADS * EACH)
        for _ in range(STEPS):
            before = mx.backends.stats()
            x = token(x, ws, caches, "window")
            mx.eval(x)
            mx.synchronize()
            after = mx.backends.stats()
            counts.append([getattr(after, n) - getattr(before, n) for n in names])
        return counts

    # Kernels may be compiled beside the work, and others run meanwhile.
    counted()
    want, got = plainly(counted), counted()
    if on_the_cpu():
        for plain, cut in zip(want[-5:], got[-5:], strict=True):
            # Programs end where parts do, and what goes from one to the other is written.
            assert cut[0] <= plain[0] + (1 << 12)


def test_compiled_calls_among_other_operations() -> None:
    inner = mx.compile(lambda a: mx.softmax(mx.tanh(a @ a) @ a, axis=0) @ a @ a @ a @ a @ a @ a)

    def step(a: mx.array) -> mx.array:
        for _ in range(3):
            for _ in range(5):
                a = mx.tanh(a @ a) + 0.5
            a = inner(a)
        return a

    xs = [numbers(N, N, seed=i) for i in range(STEPS)]
    want = plainly(lambda: [bits([step(x)]) for x in xs])
    before = repeated()
    assert [bits([step(x)]) for x in xs] == want
    if on_the_cpu():
        # The calls, and the parts before and between them.
        assert repeated() - before >= 6 * (STEPS - 10)


def test_shapeless_functions() -> None:
    def step(x: mx.array, kept: mx.array, w: mx.array) -> tuple[mx.array, mx.array]:
        for _ in range(4):
            x = mx.tanh(x @ w) + x
        kept = mx.concatenate([kept, x])
        y = mx.softmax(x @ kept.T, axis=-1) @ kept
        for _ in range(4):
            y = mx.tanh(y @ w) + y
        return y, kept

    def run(f: Callable[..., tuple[mx.array, mx.array]]) -> list[bytes]:
        x, kept, w = numbers(1, N), numbers(2, N, seed=1), numbers(N, N)
        found = []
        for _ in range(STEPS):
            x, kept = f(x, kept, w)
            mx.eval(x, kept)
            found.append(x)
        return bits([*found, kept])

    want = plainly(lambda: run(step))
    assert run(mx.compile(step, shapeless=True)) == want


def test_many_constants() -> None:
    """Constants that only what differs reads, and constants that several parts read."""

    def step(x: mx.array, i: int) -> mx.array:
        shared, y = mx.full((N,), i + 0.5), x
        for _ in range(8):
            y = mx.tanh(y @ x) + shared
        ones = [mx.ones((1, N)) if k % 2 else mx.zeros((1, N)) for k in range(12)]
        rows = mx.concatenate([y[: i + 1], *ones])
        z = mx.softmax(y @ rows.T, axis=-1) @ rows + shared
        y = y * shared
        for _ in range(8):
            z = mx.tanh(z @ x) + shared + y
        return z

    xs = [numbers(N, N, seed=i) for i in range(STEPS)]
    want = plainly(lambda: [bits([step(x, i % N)]) for i, x in enumerate(xs)])
    before = repeated()
    assert [bits([step(x, i % N)]) for i, x in enumerate(xs)] == want
    assert repeated() > before or not on_the_cpu()


def test_sizes_that_alternate_are_found_whole() -> None:
    """Evaluations of two sizes in turn repeat, each as a whole."""

    def step(x: mx.array, w: mx.array) -> mx.array:
        for _ in range(10):
            x = mx.tanh(x @ w) * 0.5
        return mx.sum(x, axis=0) @ w

    w, xs = numbers(N, N), [numbers(3, N), numbers(5, N)]
    mx.eval(w, xs)
    for i in range(12):
        before = repeated()
        mx.eval(step(xs[i % 2], w))
        if i >= 8 and on_the_cpu():
            assert repeated() == before + 1


def test_many_graphs() -> None:
    """More than are kept, each with an offset of its own."""
    x = numbers(N, N)

    def step(n: int, i: int) -> mx.array:
        y = x
        for k in range(30 + n):
            y = mx.tanh(y @ x) if n >> k & 1 else y + y.T
        z = y[i % N : i % N + 1] + y
        for _ in range(10):
            z = mx.tanh(z @ z)
        return z

    mx.eval(x)
    for i in range(12):
        for n in range(24):
            result = step(n, i)
            mx.eval(result)
            if (i + n) % 6 == 0:
                assert bits([result]) == plainly(lambda n=n, i=i: bits([step(n, i)]))


def test_threads() -> None:
    ws = [weights(s) for s in range(3)]
    mx.eval(ws)
    want = [plainly(lambda w=w: tokens(w, "window")) for w in ws]
    found: list[list[bytes] | None] = [None] * 3

    def work(i: int) -> None:
        with mx.stream(mx.new_stream(mx.default_device())):
            for _ in range(3):
                found[i] = tokens(ws[i], "window")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == want


@pytest.mark.host("the CPU's decompositions fail")
def test_errors_are_those_of_an_evaluation() -> None:
    """What fails between two parts that repeat fails what follows, and nothing else."""

    def step(a: mx.array, i: int) -> list[mx.array]:
        b = a
        for _ in range(6):
            b = mx.tanh(b @ a) + 1
        bad = mx.linalg.inv(mx.concatenate([mx.zeros((4, 4)), mx.eye(4)])[i % 2 * 4 :][:4] + a * 0)
        e, f = bad @ b[:4, :4], b
        for _ in range(6):
            e, f = mx.tanh(e @ e) + 1, mx.tanh(f) @ f
        return [e, f, mx.sum(e) + f, b]

    def outcome(i: int) -> list[bytes | str]:
        a = numbers(4, 4, seed=i)
        results = step(a, i)
        try:
            mx.eval(results)
        except RuntimeError as error:
            assert "singular" in str(error)
        all_: list[bytes | str] = []
        for array in [*results, a]:
            try:
                all_ += bits([array])
            except RuntimeError as error:
                assert "singular" in str(error)
                all_.append("failed")
        return all_

    want = plainly(lambda: [outcome(i) for i in range(STEPS)])
    assert [w.count("failed") for w in want] == [2, 0] * (STEPS // 2)
    before = repeated()
    assert [outcome(i) for i in range(STEPS)] == want
    assert repeated() > before
