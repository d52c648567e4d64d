"""Products with matrices of few bits, beside torch's bfloat16 product; and a mixture of experts beside a batch of dense products.

Matrices are taken in turn, so that no cache holds them, and many products are one step, so that the host's share is small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import ultramarine as mx
from bench.gpu.clock import seconds
from bench.gpu.timing import close, pair, row, theirs, torch

# Columns and rows of a matrix, as a language model's layers have them; matrices that are taken in turn; products of a step.
SIZES = (4096, 11008)
SETS = 8
STEP = 64
# Experts, those that a token takes, tokens, and an expert's columns and rows.
EXPERTS = (64, 4, 512, 2048, 1408)
MODES: dict[str, dict[str, Any]] = {
    "4 bits": {"bits": 4},
    "8 bits": {"bits": 8},
    "mxfp4": {"mode": "mxfp4"},
    "nvfp4": {"mode": "nvfp4"},
}


def each(step: Callable[[], Any], wait: Callable[[], Any]) -> float:
    """Seconds of one of a step's products."""
    return seconds(step, wait) / STEP


def products(x: mx.array, sets: list[tuple[mx.array, ...]], how: dict[str, Any]) -> float:
    @mx.compile
    def step(x: mx.array) -> list[mx.array]:
        return [mx.quantized_matmul(x, *sets[i % SETS], **how) for i in range(STEP)]

    return each(lambda: mx.async_eval(step(x)), mx.synchronize)


def quantized(rate: float) -> None:
    k, n = SIZES
    weights = [pair((n, k), "bfloat16", seed) for seed in range(SETS)]

    def dense(t: Any) -> Callable[[], None]:
        def step() -> None:
            for i in range(STEP):
                torch.mm(t, weights[i % SETS][1].T)

        return step

    for m in (1, 8, 512):
        x, t = pair((m, k), "bfloat16", 99)
        other = each(dense(t), torch.cuda.synchronize) if torch is not None else None
        for name, how in MODES.items():
            sets = [tuple(mx.quantize(w, **how)) for w, _ in weights]
            mx.eval(sets)
            if torch is not None:
                back = mx.dequantize(*sets[0], dtype=mx.bfloat16, **how)
                want = t.float() @ torch.from_dlpack(back).float().T
                close(name, mx.quantized_matmul(x, *sets[0], **how), want, 1e-2)
            read = sum(part.nbytes for part in sets[0])
            label = f"{m} x {k} x {n}, {name} (torch: bfloat16)"
            row("quantized", label, products(x, sets, how), other, read / rate if m < 9 else None)
    experts()


def experts() -> None:
    """Rows that experts share out, and as many in equal parts."""
    count, taken, tokens, k, n = EXPERTS
    w, _ = pair((count, n, k), "bfloat16")
    x, _ = pair((tokens, 1, 1, k), "bfloat16", 1)
    chosen = np.random.default_rng(2).integers(0, count, (tokens, taken)).astype(np.uint32)
    indices = mx.array(chosen)
    packed = mx.quantize(w, bits=4)
    mx.eval(indices, packed)
    plain = lambda: mx.gather_mm(x, w.swapaxes(1, 2), rhs_indices=indices)
    coded = lambda: mx.gather_qmm(x, *packed, rhs_indices=indices, bits=4)
    rows = pair((count, tokens * taken // count, k), "bfloat16", 3)[1]
    other = theirs(lambda: torch.bmm(rows, torch.from_dlpack(w).mT))
    if torch is not None:
        all_ = torch.from_dlpack(w)[torch.from_numpy(chosen.astype(np.int64)).cuda()]
        want = torch.einsum("tk,tenk->ten", torch.from_dlpack(x)[:, 0, 0].float(), all_.float())
        close("experts", plain()[:, :, 0], want, 1e-2)
    for name, make in (("bfloat16", plain), ("4 bits", coded)):

        def step(make: Callable[[], mx.array] = make) -> None:
            mx.async_eval([make() for _ in range(STEP)])

        label = f"{count} experts, {taken} for each of {tokens} tokens, {name} (torch: bmm)"
        row("quantized", label, each(step, mx.synchronize), other)
