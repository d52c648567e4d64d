"""Llama blocks of random weights beside torch, over a prompt and one token at a time.

Torch runs each as written, and as a graph of its launches where shapes are fixed; its bare products alone, as a graph, are
what a prompt cannot go below.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import ultramarine as mx
import ultramarine.nn as nn
from bench.gpu.timing import captured, close, pair, row, theirs, torch, warmed

BLOCKS, WIDE, HEADS, INNER, PROMPT, CACHED = 4, 2048, 16, 5632, 1024, 512
EACH = WIDE // HEADS
# Names of a block's matrices, with their numbers of outputs and inputs.
MATRICES = {
    "q": (WIDE, WIDE),
    "k": (WIDE, WIDE),
    "v": (WIDE, WIDE),
    "o": (WIDE, WIDE),
    "gate": (INNER, WIDE),
    "up": (INNER, WIDE),
    "down": (WIDE, INNER),
}


def weights() -> list[dict[str, tuple[mx.array, Any]]]:
    blocks = []
    for b in range(BLOCKS):
        block = {}
        for i, (name, (rows, columns)) in enumerate(MATRICES.items()):
            w, t = pair((rows, columns), "bfloat16", 10 * b + i)
            w = w * (1 / math.sqrt(columns))
            mx.eval(w)
            block[name] = (w, t * (1 / math.sqrt(columns)) if t is not None else None)
        for name in ("norm1", "norm2"):
            block[name] = pair((WIDE,), "bfloat16", 100 + b)
        blocks.append(block)
    return blocks


Caches = list[tuple[mx.array, mx.array]]


def our_blocks(x: mx.array, blocks: Any, caches: Caches | None = None) -> tuple[mx.array, Caches]:
    """The blocks over x (1, length, WIDE), after what the caches (1, HEADS, CACHED, EACH) hold."""
    length, kept = x.shape[1], []

    def heads(x: mx.array) -> mx.array:
        return x.reshape(1, length, HEADS, EACH).transpose(0, 2, 1, 3)

    offset = caches[0][0].shape[2] if caches else 0
    turn = partial(mx.fast.rope, dims=EACH, traditional=False, base=1e4, scale=1.0, offset=offset)
    for i, w in enumerate(blocks):
        h = mx.fast.rms_norm(x, w["norm1"], 1e-5)
        q, k, v = (heads(h @ w[name].T) for name in "qkv")
        q, k = turn(q), turn(k)
        if caches:
            k = mx.concatenate([caches[i][0], k], axis=2)
            v = mx.concatenate([caches[i][1], v], axis=2)
        kept.append((k, v))
        mask = "causal" if length > 1 else None
        a = mx.fast.scaled_dot_product_attention(q, k, v, scale=EACH**-0.5, mask=mask)
        x = x + a.transpose(0, 2, 1, 3).reshape(1, length, WIDE) @ w["o"].T
        h = mx.fast.rms_norm(x, w["norm2"], 1e-5)
        x = x + (nn.silu(h @ w["gate"].T) * (h @ w["up"].T)) @ w["down"].T
    return x, kept


def torch_blocks(x: Any, blocks: Any, turn: tuple[Any, Any], caches: Any = None) -> Any:
    f = torch.nn.functional
    length = x.shape[1]

    def turned(x: Any) -> Any:
        half = EACH // 2
        return x * turn[0] + torch.cat([-x[..., half:], x[..., :half]], -1) * turn[1]

    for i, w in enumerate(blocks):
        h = f.rms_norm(x, (WIDE,), w["norm1"], 1e-5)
        q, k, v = (
            f.linear(h, w[name]).view(1, length, HEADS, EACH).transpose(1, 2) for name in "qkv"
        )
        q, k = turned(q), turned(k)
        if caches:
            k, v = torch.cat([caches[i][0], k], 2), torch.cat([caches[i][1], v], 2)
        a = f.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        x = x + f.linear(a.transpose(1, 2).reshape(1, length, WIDE), w["o"])
        h = f.rms_norm(x, (WIDE,), w["norm2"], 1e-5)
        x = x + f.linear(f.silu(f.linear(h, w["gate"])) * f.linear(h, w["up"]), w["down"])
    return x


def angles(start: int, length: int) -> tuple[Any, Any]:
    steps = 10000.0 ** (-torch.arange(EACH // 2, device="cuda") / (EACH // 2))
    at = torch.arange(start, start + length, device="cuda")[:, None] * steps
    at = torch.cat([at, at], -1)
    return at.cos().bfloat16(), at.sin().bfloat16()


def bare(blocks: Any, length: int) -> float | None:
    """Seconds of the blocks' products alone in torch, as a graph."""
    if torch is None:
        return None
    inputs = {n: pair((length, n), "bfloat16", 700)[1] for n in (WIDE, INNER)}

    def step() -> None:
        for block in blocks:
            for name, (_, columns) in MATRICES.items():
                torch.mm(inputs[columns], block[name].T)

    return theirs(captured(step))


def run(name: str, both: Any, rate: float, length: int, cached: int) -> None:
    mine = [{name: of[0] for name, of in block.items()} for block in both]
    other = [{name: of[1] for name, of in block.items()} for block in both]
    x, t = pair((1, length, WIDE), "bfloat16", 500)
    pairs = [
        [pair((1, HEADS, cached, EACH), "bfloat16", 600 + 2 * b + i) for i in range(2)]
        for b in range(BLOCKS if cached else 0)
    ]
    flat = [of[0] for kv in pairs for of in kv]

    def ahead(x: mx.array, *flat: mx.array) -> Any:
        return our_blocks(x, mine, list(zip(flat[::2], flat[1::2], strict=True)) or None)

    eager = graph = None
    if torch is not None:
        turn, kept = angles(cached, length), [(k[1], v[1]) for k, v in pairs] or None

        def step() -> Any:
            with torch.no_grad():
                return torch_blocks(t, other, turn, kept)

        close(name, ahead(x, *flat)[0], step(), 5e-2)
        eager, graph = theirs(step), theirs(captured(step))
    # Only one token's limit is bytes.
    size = sum(of.nbytes for block in mine for of in block.values()) + sum(c.nbytes for c in flat)
    limit = size / rate if length == 1 else None
    label = f"{BLOCKS} Llama blocks, {name}"
    for way, call, peer in [("", ahead, eager), (", compiled", mx.compile(ahead), graph)]:
        step_ = partial(lambda call: mx.async_eval(call(x, *flat)), call)
        row("models", label + way, warmed(step_, mx.synchronize), peer, limit)
    if (products := bare(other, length)) is not None:
        print(f"{label}: products alone, by torch, {products * 1e3:.3f} ms")


def models(rate: float) -> None:
    both = weights()
    run(f"prompt of {PROMPT}", both, rate, PROMPT, 0)
    run(f"one token after {CACHED}", both, rate, 1, CACHED)
