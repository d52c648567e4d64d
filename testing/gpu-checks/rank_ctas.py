"""Groups whose kernels have a limit of thread blocks (ULTRAMARINE_NCCL_MAX_CTAS), for two_ranks.py: that sums are right with one, and
the time of a data-parallel step for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from all_reduce_rates import medians

NAME = "ULTRAMARINE_NCCL_MAX_CTAS"
# 0: NCCL's own choice.
LIMITS = (0, 1, 2, 4, 8, 16, 32)
BATCHES = (4096, 16384)


@contextmanager
def limit(ctas: int | str) -> Iterator[None]:
    before = os.environ.get(NAME)
    os.environ[NAME] = str(ctas)
    try:
        yield
    finally:
        if before is None:
            del os.environ[NAME]
        else:
            os.environ[NAME] = before


def limited(r: Any) -> None:
    import ultramarine as mx

    group = mx.distributed.init(strict=True, backend="nccl")

    def sums() -> None:
        # A part of a limited group has NCCL's own choice again.
        for ctas in (4, 0, 64):
            with limit(ctas):
                part = group.split(0)
            again = part.split(0)
            for g in (part, again, group):
                total = mx.distributed.all_sum(mx.full((3, 5), r.rank + 1.0), group=g)
                wanted = np.full((3, 5), r.size * (r.size + 1) / 2, np.float32)
                assert np.array_equal(np.array(total), wanted), ctas

    r.check("sums of groups with a limit of thread blocks", sums)

    def wrong() -> None:
        for text in ("65", "many"):
            with limit(text):
                try:
                    group.split(0)
                except (RuntimeError, ValueError) as error:
                    assert f"{NAME}={text}" in str(error), error
                else:
                    raise AssertionError(f"{text} was taken")

    r.check("a limit that makes no sense is an error", wrong)


def table(r: Any) -> None:
    """One line for each limit and number of rows a rank: the step, how much of the sums is hidden, and the sums alone."""
    import ultramarine as mx

    group = mx.distributed.init(strict=True, backend="nccl")
    groups = {}
    for ctas in LIMITS:
        with limit(ctas):
            groups[ctas] = group.split(0)
    r.check("steps were timed", lambda: [rows(r, mx, groups, batch) for batch in BATCHES])


def rows(r: Any, mx: Any, groups: dict[int, Any], batch: int, width: int = 4096) -> None:
    import ultramarine.nn as nn

    layers = 8
    keys = mx.random.split(mx.random.key(1), layers + 1)
    weights = [mx.random.normal((width, width), key=k).astype(mx.bfloat16) / 64 for k in keys[1:]]
    x = mx.random.normal((batch * r.size, width), key=keys[0]).astype(mx.bfloat16)
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

    def averages(group: Any) -> Callable[[Any], Any]:
        return lambda gradients: nn.average_gradients(gradients, group=group)

    steps: dict[str, Callable[[], object]] = {
        "joint": step(x, lambda g: g),
        "alone": step(share, lambda g: g),
    }
    for ctas, group in groups.items():
        steps[f"step {ctas}"] = step(share, averages(group))
        steps[f"sums {ctas}"] = lambda group=group: mx.eval(averages(group)(weights))
    found = {name: seconds * 1e3 for name, seconds in medians(steps, 8).items()}
    r.note(
        f"       {batch} rows a rank, {layers} products of {width}: the joint batch on one GPU {found['joint']:.2f} ms, a rank's "
        f"share without sums {found['alone']:.2f} ms (limit {found['joint'] / found['alone']:.2f} times)"
    )
    r.note("         CTAs    step ms   times one GPU's   sums alone ms   sums that are hidden")
    for ctas in groups:
        both, sums = found[f"step {ctas}"], found[f"sums {ctas}"]
        hidden = 1 - (both - found["alone"]) / sums
        r.note(
            f"      {ctas or 'NCCL':>7} {both:>10.2f} {found['joint'] / both:>17.2f} {sums:>15.2f} {100 * hidden:>20.0f} %"
        )
