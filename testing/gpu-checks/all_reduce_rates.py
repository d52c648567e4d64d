"""Times of all-reduce through our NCCL communicator beside torch.distributed's, in turn in the same processes, for two_ranks.py."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

MIB = 1 << 20


def torch_group(r: Any) -> Any:
    """torch with its own NCCL communicator on this rank's GPU, or None."""
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        return None
    if not torch.cuda.is_available() or torch.cuda.device_count() < r.size:
        return None
    torch.cuda.set_device(r.rank)
    address = f"tcp://127.0.0.1:{os.environ['CHECK_TORCH_PORT']}"
    dist.init_process_group("nccl", init_method=address, rank=r.rank, world_size=r.size)
    return torch


def medians(steps: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of steps that wait for their end, in turn."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for k in range(rounds + 3):
        for name, step in steps.items():
            begun = time.perf_counter()
            step()
            if k >= 3:
                times[name].append(time.perf_counter() - begun)
    return {name: statistics.median(all_times) for name, all_times in times.items()}


CHAIN = 100  # operations without a wait, for the time of one


def rows(r: Any, mx: Any, group: Any, torch: Any, sizes: list[int]) -> None:
    for size in sizes:
        n = size // 4
        x = mx.zeros((n,), dtype=mx.float32)
        mx.eval(x)
        chain = 10 if size > MIB else CHAIN

        def once(x: Any = x) -> None:
            mx.eval(mx.distributed.all_sum(x, group=group))

        def many(x: Any = x, chain: int = chain) -> None:
            for _ in range(chain):
                x = mx.distributed.all_sum(x, group=group)
            mx.eval(x)

        steps: dict[str, Callable[[], object]] = {"one": once, "many": many}
        if torch is not None:
            t = torch.zeros(n, device="cuda", dtype=torch.float32)

            def torch_many(t: Any = t, chain: int = chain) -> None:
                for _ in range(chain):
                    torch.distributed.all_reduce(t)
                torch.cuda.synchronize()

            def torch_once(t: Any = t) -> None:
                torch.distributed.all_reduce(t)
                torch.cuda.synchronize()

            steps |= {"torch one": torch_once, "torch many": torch_many}
        found = medians(steps, 6 if size > MIB else 20)
        one, many_ = found["one"] * 1e6, found["many"] / chain * 1e6
        row = f"       {size / 1024:>9.0f} KiB  {one:>9.1f} us alone  {many_:>9.1f} us in a row  {size / many_ / 1e3:>7.1f} GB/s"
        if torch is not None:
            t_one, t_many = found["torch one"] * 1e6, found["torch many"] / chain * 1e6
            row += f"   torch {t_one:>9.1f} {t_many:>9.1f} us {size / t_many / 1e3:>7.1f} GB/s   ours/torch {t_many / many_:.2f}, {many_ - t_many:+.1f} us"
        r.note(row)


def speedup(r: Any, mx: Any, group: Any) -> None:
    """Steps of a net of products: data-parallel with a batch for each rank, and one GPU with the joint batch."""
    for batch in (4096, 16384):
        speedup_of(r, mx, group, batch)


def speedup_of(r: Any, mx: Any, group: Any, batch: int, width: int = 4096) -> None:
    """One size: `batch` rows for each rank. "alone" leaves the sums out: what a rank takes for its own share. "sums" are the
    sums alone; "behind" has them wait for the whole backward pass."""
    import ultramarine.nn as nn

    layers = 8
    weights = [
        mx.random.normal((width, width), key=mx.random.key(k)).astype(mx.bfloat16) / 64
        for k in range(layers)
    ]
    x = mx.random.normal((batch * r.size, width), key=mx.random.key(99)).astype(mx.bfloat16)
    share = mx.contiguous(x[r.rank * batch : (r.rank + 1) * batch])
    mx.eval(weights, x, share)

    def loss(weights: list[Any], x: Any) -> Any:
        for w in weights:
            x = mx.maximum(x @ w, 0)
        return (x.astype(mx.float32) ** 2).mean()

    gradient = mx.grad(loss)

    def step(x: Any, mean: Callable[[Any], Any]) -> Callable[[], None]:
        return lambda: mx.eval(
            [w - 1e-4 * g for w, g in zip(weights, mean(gradient(weights, x)), strict=True)]
        )

    def averages(gradients: Any) -> Any:
        return nn.average_gradients(gradients, group=group)

    def behind(gradients: Any) -> Any:
        mx.eval(gradients)
        return averages(gradients)

    steps = {
        "joint": step(x, lambda g: g),
        "parallel": step(share, averages),
        "behind": step(share, behind),
        "alone": step(share, lambda g: g),
        "sums": lambda: mx.eval(averages(weights)),
    }
    found = {name: seconds * 1e3 for name, seconds in medians(steps, 8).items()}
    one, two = found["joint"], found["parallel"]
    r.note(
        f"       a step of {layers} products of {width}, {batch} rows a rank: joint batch on one GPU {one:.2f} ms, "
        f"data-parallel {two:.2f} ms: {one / two:.2f} times. Without sums {found['alone']:.2f} ms (limit "
        f"{one / found['alone']:.2f} times), the sums alone {found['sums']:.2f}, with sums behind the backward pass "
        f"{found['behind']:.2f}: {found['behind'] - two:.2f} ms are hidden"
    )
