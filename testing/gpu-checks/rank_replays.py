"""Evaluations that communicate and repeat, for two_ranks.py: their executables and recordings over many steps, in shuffled
orders, in compiled functions, with messages beside the computations; the order of a training step; a rank that dies; and the rate
of a sharded decoder's steps."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

WIDTH, LAYERS = 64, 6


def weights(seed: int) -> list[np.ndarray]:
    """Matrices of small integers, so that sums are exact."""
    source = np.random.default_rng(seed)
    return [
        source.integers(-1, 2, (WIDTH, WIDTH)).astype(np.float32)
        * (source.random((WIDTH, 1)) < 0.1)
        for _ in range(LAYERS)
    ]


def of_numpy(all_ranks: list[list[np.ndarray]], x: np.ndarray) -> np.ndarray:
    """The sharded net with all parts in one place."""
    for k in range(LAYERS):
        total = sum(np.maximum(x @ parts[k], 0) for parts in all_ranks)
        x = np.clip(total + x, -64, 64)
    return x


def replays(r: Any) -> None:
    import ultramarine as mx

    group = mx.distributed.init(strict=True, backend="nccl")
    all_ranks = [weights(rank) for rank in range(r.size)]
    own = [mx.array(w) for w in all_ranks[r.rank]]

    def net(x: Any) -> Any:
        for w in own:
            total = mx.distributed.all_sum(mx.maximum(x @ w, 0), group=group)
            x = mx.clip(total + x, -64, 64)
        return x

    def start(step: int) -> np.ndarray:
        return np.random.default_rng(step).integers(-4, 5, (2, WIDTH)).astype(np.float32)

    def same(found: Any, step: int) -> None:
        assert np.array_equal(np.array(found), of_numpy(all_ranks, start(step))), f"step {step}"

    def many() -> None:
        before = mx.backends.stats().replays
        for step in range(20):
            same(net(mx.array(start(step))), step)
        made = mx.backends.stats().replays - before
        assert made >= 8, f"{made} replays in 20 steps"
        r.note(f"       20 steps of {LAYERS} sums: {made} replays")

    r.check("steps with sums are replayed", many)

    def ahead() -> None:
        # As a decoder does: the next step is built while this one runs, and reads its result.
        x, wanted = mx.array(start(0)), start(0)
        for _ in range(12):
            x, wanted = net(x), of_numpy(all_ranks, wanted)
            mx.async_eval(x)
        assert np.array_equal(np.array(x), wanted)

    r.check("steps that run ahead", ahead)

    def shuffled() -> None:
        source = np.random.default_rng(r.rank)
        for _ in range(6):
            made = [net(mx.array(start(k))) for k in range(5)]
            for k in source.permutation(5):
                same(made[k], k)

    r.check("replays in shuffled orders", shuffled)

    def compiled() -> None:
        f = mx.compile(net)
        for step in range(12):
            same(f(mx.array(start(step))), step)
            # Between calls, outside of the function.
            y = mx.distributed.all_max(mx.array([r.rank + step]), group=group)
            if step % 2 == r.rank % 2:
                assert y.item() == r.size - 1 + step

    r.check("compiled functions with sums", compiled)

    def large() -> None:
        # Messages of more than a mebibyte go beside the computations, small ones behind them.
        n = 520
        for step in range(12):
            x = mx.full((n, n), float(step + r.rank))
            first = mx.distributed.all_sum(x.T * 2 + 1, group=group)
            beside = mx.cumsum(x[:, :2], axis=1) * 2
            small = mx.distributed.all_sum(beside[0], group=group)
            second = mx.distributed.all_sum(first + beside[:, :1], group=group)
            last = (second.T + 1) * 2 + small[1]
            gathered = mx.distributed.all_gather(last[:1], group=group)
            total = sum(step + rank for rank in range(r.size))
            wanted = 2.0 * ((2 * total + r.size) * r.size + 2 * total + 1) + 4 * total
            assert np.array_equal(np.array(last), np.full((n, n), wanted, np.float32)), step
            assert np.array_equal(np.array(gathered), np.full((r.size, n), wanted, np.float32))

    r.check("large messages beside computations", large)

    def messages() -> None:
        to, source = (r.rank + 1) % r.size, (r.rank - 1) % r.size
        for step in range(12):
            x = mx.array(start(step)) * (r.rank + 1)
            y = (x * 2 + 1) * 3 - x
            if r.rank % 2 == 0:
                sent = mx.distributed.send(y, to, group=group)
                z = mx.distributed.recv_like(y, source, group=group)
            else:
                z = mx.distributed.recv_like(y, source, group=group)
                sent = mx.distributed.send(y, to, group=group)
            total = mx.distributed.all_sum(z + 1, group=group) - 1
            mx.eval(sent, total)
            each = [start(step) * (rank + 1) * 5 + 3 for rank in range(r.size)]
            assert np.array_equal(np.array(total), sum(e + 1 for e in each) - 1), step

    r.check("messages in steps that repeat", messages)

    def groups() -> None:
        # Each rank gives the device the operations of two groups in another order, also the first ones, with which NCCL
        # connects the ranks.
        one, other = group.split(0), group.split(0)
        for step in range(8):
            x = mx.full((8,), float(step + r.rank))
            a = mx.distributed.all_sum(x * 2 + 1, group=one)
            b = mx.distributed.all_sum(x * 3 - 1, group=other)
            for y in (a, b) if r.rank % 2 == 0 else (b, a):
                mx.async_eval(y)
            total = sum(step + rank for rank in range(r.size))
            assert a.tolist() == [2.0 * total + r.size] * 8, step
            assert b.tolist() == [3.0 * total - r.size] * 8, step

    r.check("two groups in another order on each rank", groups)

    def between() -> None:
        # One evaluation of computations behind each group's operations, in another order on each rank.
        one, other = group.split(0), group.split(0)
        total = sum(range(r.size))
        for step in range(8):
            x = mx.full((8,), float(step + r.rank))
            made = []
            for part, factor in ((one, 2.0), (other, 3.0)):
                y = mx.distributed.all_sum(x * factor, group=part) + 1
                made.append(mx.distributed.all_sum(y * 2, group=part) - x)
            mx.eval(made if r.rank % 2 == 0 else made[::-1])
            for y, factor in zip(made, (2.0, 3.0)):
                wanted = 2 * r.size * (factor * (step * r.size + total) + 1) - step - r.rank
                assert y.tolist() == [wanted] * 8, step

    r.check("computations between operations of two groups in another order", between)

    def order() -> None:
        import ultramarine.nn as nn

        matrices = [mx.random.normal((WIDTH, WIDTH), key=mx.random.key(k)) for k in range(LAYERS)]
        x = mx.random.normal((8, WIDTH), key=mx.random.key(99))

        def loss(matrices: list[Any], x: Any) -> Any:
            for w in matrices:
                x = mx.tanh(x @ w)
            return (x * x).mean()

        gradients = nn.average_gradients(mx.grad(loss)(matrices, x), group=group, all_reduce_size=0)
        mx.synchronize()
        with mx.profile() as p:
            mx.eval([w - 0.1 * g for w, g in zip(matrices, gradients, strict=True)])
        named = [{event["op"], *event["fused"]} for event in p.events()]
        ops = [op for names in named for op in ("all_sum", "matmul") if op in names]
        assert ops.count("all_sum") == LAYERS, ops
        behind = len(ops) - 1 - ops.index("all_sum")
        wanted = 2 * (LAYERS - 1) - 1 + LAYERS - 1
        assert behind >= wanted, f"{behind} operations behind the first sum, not {wanted}: {ops}"

    r.check("the first sum of a backward pass comes before its end", order)


def ends_beside_a_group(r: Any) -> None:
    """Exits right behind the last use of a part of the group, while NCCL ends it in a thread."""
    import ultramarine as mx

    group = mx.distributed.init(strict=True, backend="nccl")

    def sums() -> None:
        for color in range(3):
            part = group.split(color)
            total = mx.distributed.all_sum(mx.full((8,), float(r.rank + color)), group=part)
            wanted = float(sum(range(r.size)) + r.size * color)
            assert total.tolist() == [wanted] * 8

    r.check("parts of a group that end at the exit", sums)


def dies_in_a_replay(r: Any) -> None:
    import ultramarine as mx

    group = mx.distributed.init(strict=True, backend="nccl")
    own = [mx.array(w) for w in weights(r.rank)]

    def net(x: Any) -> Any:
        for w in own:
            total = mx.distributed.all_sum(mx.maximum(x @ w, 0), group=group)
            x = mx.clip(total + x, -64, 64)
        return x

    # Recordings begin once their kernels are compiled. All ranks take the same steps: each goes on while any has none.
    begun, fewest = time.monotonic(), 0
    while fewest < 4 and time.monotonic() - begun < 30:
        for step in range(20):
            mx.eval(net(mx.full((2, WIDTH), step)))
        replays = mx.array(mx.backends.stats().replays, dtype=mx.int32)
        fewest = mx.distributed.all_min(replays, group=group).item()
    assert fewest >= 4, f"{fewest} replays in {time.monotonic() - begun:.0f} s"
    if r.rank == 1:
        os._exit(7)

    def error() -> None:
        begun = time.monotonic()
        try:
            for step in range(4):
                mx.eval(net(mx.full((2, WIDTH), step)))
        except RuntimeError as why:
            said = str(why)
            assert "rank 1" in said and "all_sum" in said, said
        else:
            raise AssertionError("no error was raised")
        seconds = time.monotonic() - begun
        assert seconds < 30, f"it took {seconds:.0f} s"
        r.note(f"       after {seconds:.1f} s: {said[:200]}")
        # The device and the rest of the program go on.
        assert (mx.ones((1000,)) + 1).sum().item() == 2000

    r.check("a rank that dies in a replay is an error on the others", error)


def decoder(r: Any, mx: Any, group: Any, width: int = 2048, layers: int = 16) -> None:
    """Time of a step of products and sums with a decoder's sizes, one behind the other, beside the same without sums."""
    part = 4 * width // r.size
    keys = mx.random.split(mx.random.key(r.rank), 2 * layers)
    up = [mx.random.normal((width, part), key=k).astype(mx.bfloat16) / 64 for k in keys[::2]]
    down = [mx.random.normal((part, width), key=k).astype(mx.bfloat16) / 64 for k in keys[1::2]]
    mx.eval(up, down)

    def steps_of(total: Any) -> float:
        def step(x: Any) -> Any:
            for u, d in zip(up, down, strict=True):
                x = mx.fast.rms_norm(x, None, 1e-5)
                x = x + total(mx.maximum(x @ u, 0) @ d)
                x = x + total(x * 2)
            return x

        x = mx.ones((1, width), dtype=mx.bfloat16)
        times = []
        for k in range(8):
            begun = time.perf_counter()
            for _ in range(20):
                x = step(x)
                mx.async_eval(x)
            mx.eval(x)
            if k >= 3:
                times.append((time.perf_counter() - begun) / 20)
        return sorted(times)[len(times) // 2]

    alone = steps_of(lambda x: x)
    both = steps_of(lambda x: mx.distributed.all_sum(x, group=group))
    r.note(
        f"       a decoder's step of {layers} layers, {2 * layers} sums of {2 * width} bytes: {both * 1e6:.0f} us, without sums "
        f"{alone * 1e6:.0f} us: {(both - alone) / (2 * layers) * 1e6:.1f} us a sum"
    )
