"""Calls of compiled functions that a backend replays as one recording, where it has them: the same bits as commands that
are given to it one by one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.repeats import bits, numbers, until_repeated

import ultramarine as mx

pytestmark = [pytest.mark.ops, pytest.mark.always]

# Backends that serve `ultramarine.replay/2`.
RECORDING = ("cuda",)


def records() -> bool:
    return mx.device_info(mx.default_device())["backend"] in RECORDING


def replays() -> int:
    return mx.backends.stats().replays


def chain(x: mx.array, w: mx.array) -> mx.array:
    """Products, sums that want scratch memory, a sort, and a copy."""
    for _ in range(6):
        x = mx.tanh(x @ w) + mx.sum(x, axis=0, keepdims=True)
    return mx.sort(x, axis=0) + mx.concatenate([x[1:], x[:1]], axis=0)


def until_replayed(f: Callable[..., Any], *given: mx.array) -> None:
    """Calls a function until its calls are replays, where there are any."""
    if records():
        before = replays()
        until_repeated(lambda: mx.eval(f(*given)), replays)
        assert replays() > before


def test_later_calls_are_replays() -> None:
    f = mx.compile(chain)
    w = numbers(16, 16) * 0.1
    mx.eval(w)
    until_replayed(f, numbers(12, 16), w)
    given = [numbers(12, 16, seed=i) for i in range(6)]
    want = [bits(chain(x, w)) for x in given]
    before = replays()
    assert [bits(f(x, w)) for x in given] == want
    assert replays() - before == (6 if records() else 0)


@pytest.mark.parametrize("mode", ["affine", "mxfp4"])
def test_products_that_ask_for_their_matrix_early(mode: str) -> None:
    """Kernels of a replay that begin before the one before them has ended read its result all the same; and a matrix that
    the replay itself writes."""

    def halves(*shape: int, seed: int) -> mx.array:
        return numbers(*shape, seed=seed).astype(mx.bfloat16)

    # Kernels begin early on a real device alone; elsewhere they take up to a hundredth of a second.
    early = records() and "Emulated" not in mx.device_info(mx.default_device())["device_name"]
    n = 2048 if early else 64
    deep, wide = (
        [mx.quantize(halves(*shape, seed=i) * 0.1, mode=mode) for i in range(2)]
        for shape in ((n, 2048), (2048, n))
    )
    mx.eval(deep, wide)

    def step(x: mx.array, by: mx.array) -> mx.array:
        for down, up in zip(deep, wide, strict=True):
            x = mx.quantized_matmul(mx.tanh(x), *down, mode=mode)
            x = mx.quantized_matmul(x, *up, mode=mode)
        made = mx.quantize(by * 0.1, mode=mode)
        return mx.quantized_matmul(mx.tanh(x), *made, mode=mode)

    f = mx.compile(step)
    given = [[halves(1, 2048, seed=i), halves(64, 2048, seed=9 + i)] for i in range(2)]
    mx.eval(given)
    until_replayed(f, *given[0])
    want = [bits(step(*pair)) for pair in given]
    for _ in range(50 if early else 1):
        assert [bits(f(*pair)) for pair in given] == want


@pytest.mark.parametrize("mode", ["affine", "mxfp4", "nvfp4"])
@pytest.mark.parametrize("rows", [1, 4])
def test_products_of_the_same_rows_run_as_one(mode: str, rows: int) -> None:
    """Two, three and four matrices beside each other, of several widths, some of which are no multiple of a tile."""

    def halves(*shape: int, seed: int) -> mx.array:
        return (numbers(*shape, seed=seed) * 0.1).astype(mx.bfloat16)

    widths = [[48, 16], [16, 40, 8], [8, 8, 24, 16]]
    several = [
        [mx.quantize(halves(n, 2048, seed=n + i), mode=mode) for i, n in enumerate(each)]
        for each in widths
    ]
    w = halves(8, 2048, seed=3)
    mx.eval(several, w)

    def step(x: mx.array) -> list[mx.array]:
        made = []
        for each in several:
            x = mx.tanh(x)
            # Operations between them do not part them.
            made += [mx.exp(mx.quantized_matmul(x, *q, mode=mode)) for q in each]
            x = made[-1][..., :8] @ w
        return made

    f = mx.compile(step)
    given = [halves(rows, 2048, seed=20 + i) for i in range(3)]
    mx.eval(given)
    until_replayed(f, given[0])
    assert [bits(f(x)) for x in given] == [bits(step(x)) for x in given]


def test_memory_that_changes() -> None:
    """Operands and results in other memory each time, and a slice of a larger array."""
    f = mx.compile(chain)
    w = numbers(16, 16) * 0.1
    kept = []
    for i in range(12):
        x = numbers(12, 16, seed=i)
        # What is let go meanwhile is memory for others.
        kept = kept[i % 3 :]
        kept.append((f(x, w), bits(chain(x, w))))
        mx.eval(kept[-1][0])
    for result, want in kept:
        assert bits(result) == want
    for i in range(5):
        rows = numbers(40, 16, seed=i)[i : i + 12]
        mx.eval(rows)
        assert bits(f(rows, w)) == bits(chain(rows, w))


def test_operands_that_are_taken_over() -> None:
    def step(x: mx.array, v: mx.array) -> tuple[mx.array, mx.array]:
        for _ in range(5):
            v = 0.9 * v + mx.sum(x, axis=0, keepdims=True) * 0.01
            x = x - 0.1 * v
        return x, v

    f = mx.compile(step)
    x, v = numbers(6, 8), numbers(6, 8, seed=1)
    y, u = x + 0, v + 0
    mx.eval(x, v, y, u)
    for _ in range(8):
        x, v = f(x, v)
        y, u = step(y, u)
        mx.eval(x, v, y, u)
    assert bits([x, v]) == bits([y, u])
    held, values = x, bits(x)
    x, v = f(x, v)
    mx.eval(x, v)
    assert bits(held) == values


def test_threads_and_allocations_beside_a_replay() -> None:
    """One executable from several threads and streams, while others record and allocate."""
    f = mx.compile(chain)
    w = numbers(16, 16) * 0.1
    given = [numbers(12, 16, seed=i) for i in range(4)]
    want = [bits(chain(x, w)) for x in given]
    wrong: list[object] = []

    def run(i: int) -> None:
        with mx.stream(mx.new_stream(mx.default_device())):
            wrong.extend((i, n) for n in range(20) if bits(f(given[i], w)) != want[i])

    def record(i: int) -> None:
        for n in range(6):
            rows = 3 + i + n
            g, x = mx.compile(chain), numbers(rows, 16, seed=n)
            expected = bits(chain(x, w))
            wrong.extend(("recorded", n) for _ in range(4) if bits(g(x, w)) != expected)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    threads += [threading.Thread(target=record, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_many_replays_keep_their_size() -> None:
    f = mx.compile(chain)
    x, w = numbers(3, 4), numbers(4, 4, seed=1) * 0.1
    mx.eval(w)
    until_replayed(f, x, w)
    mx.eval([f(x, w) for _ in range(8)])
    mx.synchronize()
    before, memory = replays(), mx.get_active_memory()
    # The emulated driver takes a while for each.
    many = 1_000 if records() else 10_000
    for _ in range(many):
        mx.eval(f(x, w))
    mx.synchronize()
    assert mx.get_active_memory() <= memory + (4 << 10)
    if records():
        assert replays() - before == many


def test_functions_that_come_and_go() -> None:
    """What a recording holds goes with its function."""
    w = numbers(16, 16)
    mx.eval(w)
    sizes = []
    for i in range(12):
        f = mx.compile(chain)
        for _ in range(4):
            mx.eval(f(w, w))
        del f
        mx.synchronize()
        sizes.append(mx.get_active_memory())
        assert i < 2 or sizes[-1] <= sizes[1] + (64 << 10), sizes


class Decoder:
    """Layers that append to caches and attend to what is there, as programs for language models do it."""

    def __init__(self, layers: int = 3, capacity: int = 64) -> None:
        self.caches = [mx.zeros((1, 2, capacity, 16)) for _ in range(2 * layers)]
        self.length = 0

    def step(self, x: mx.array) -> mx.array:
        before, self.length = self.length, self.length + x.shape[2]
        for i in range(0, len(self.caches), 2):
            for cache, new in ((i, x), (i + 1, mx.tanh(x))):
                self.caches[cache][..., before : self.length, :] = new[:, :2]
            k, v = (self.caches[i + j][..., : self.length, :] for j in range(2))
            x = mx.fast.scaled_dot_product_attention(x, k, v, scale=0.5, mask="causal") + 0.1 * x
        return x


def replays_of_steps(many: int) -> list[int]:
    """Runs steps of a decoder on the default device and on the CPU. Returns the number of replays of each."""
    decoder, on_cpu = Decoder(), Decoder()
    made = []
    for i in range(many):
        x = numbers(1, 4, 1, 16, seed=i)
        before = replays()
        y = decoder.step(x)
        mx.eval(y, decoder.caches)
        made.append(replays() - before)
        with mx.stream(mx.cpu):
            want = on_cpu.step(x)
        assert mx.allclose(y, want, rtol=1e-4, atol=1e-5), i
    for ours, theirs in zip(decoder.caches, on_cpu.caches, strict=True):
        assert mx.allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    return made


def test_steps_that_append_to_a_cache_are_replays() -> None:
    made = replays_of_steps(40)
    if records():
        # Fused programs are compiled in the background, for more than these steps where the machine is busy.
        deadline = time.monotonic() + 120
        while made[-4:] != [1, 1, 1, 1] and time.monotonic() < deadline:
            made = replays_of_steps(40)
        # Each of the last steps is one recording, whatever the cache's length.
        assert made[-4:] == [1, 1, 1, 1], made


@pytest.mark.parametrize("queries", [1, 5])
@pytest.mark.parametrize("mask", [None, "causal"])
@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16])
def test_what_lies_behind_a_cache_s_length_counts_for_nothing(
    queries: int, mask: str | None, dtype: mx.Dtype
) -> None:
    q = numbers(2, 4, queries, 16).astype(dtype)
    k, v = (numbers(2, 2, 48, 16, seed=i).astype(dtype) for i in (1, 2))
    behind = mx.array(np.arange(48)[:, None] >= 21)
    for nothing in (float("nan"), float("inf")):
        caches = [mx.where(behind, mx.array(nothing, dtype), a) for a in (k, v)]
        mx.eval(caches)
        y = mx.fast.scaled_dot_product_attention(
            q, *(c[:, :, :21] for c in caches), scale=0.5, mask=mask
        )
        want = mx.fast.scaled_dot_product_attention(
            q, *(mx.contiguous(a[:, :, :21]) for a in (k, v)), scale=0.5, mask=mask
        )
        assert mx.allclose(y, want, rtol=1e-2, atol=1e-2)


def test_a_slice_of_a_cache_that_is_asked_for_is_there() -> None:
    cache = numbers(1, 2, 32, 16)
    part = cache[:, :, :9]
    y = mx.fast.scaled_dot_product_attention(part, part, part, scale=1.0)
    mx.eval(y, part)
    assert bits(part) == bits(mx.contiguous(cache[:, :, :9]))
    cache[:, :, 30:] = mx.zeros((2, 16))
    assert mx.all(cache[:, :, 30:] == 0) and bits(cache[:, :, :9]) == bits(part)
