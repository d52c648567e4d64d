"""Steps that are compiled once and run again, beside graphs that torch captured."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import ultramarine as mx
from bench.gpu.clock import seconds
from bench.gpu.timing import captured, close, ours, pair, row, theirs, torch


def chains() -> None:
    """A thousand operations that depend on each other."""
    (x, t), (w, u) = pair((16,)), pair((16,), seed=1)

    @mx.compile
    def adds(x: mx.array, w: mx.array) -> mx.array:
        for _ in range(1000):
            x = x + w
        return x

    def torch_adds() -> Any:
        y = t
        for _ in range(1000):
            y = y + u
        return y

    graph = captured(torch_adds)
    mine = ours(lambda: adds(x, w))
    row("replays", "1000 adds of 16, compiled", mine, theirs(graph) if graph else None)
    close("adds", adds(x, w), torch_adds() if torch else None, 1e-4)

    (x, t), (w, u) = pair((64, 64)), pair((64, 64), seed=1)
    # An orthogonal matrix keeps lengths.
    q = np.linalg.qr(np.array(w))[0]
    w, u = mx.array(q), torch.from_numpy(q).cuda() if torch else None

    @mx.compile
    def products(x: mx.array, w: mx.array) -> mx.array:
        for _ in range(1000):
            x = x @ w
        return x

    def torch_products() -> Any:
        y = t
        for _ in range(1000):
            y = y @ u
        return y

    name = "1000 products of 64 x 64"
    row("replays", f"{name}, torch eager", ours(lambda: products(x, w)), theirs(torch_products))
    graph = captured(torch_products)
    mine = ours(lambda: products(x, w))
    row("replays", f"{name}, torch's graph", mine, theirs(graph) if graph else None)
    close("products", products(x, w), torch_products() if torch else None, 1e-2)


HIDDEN, HEADS, INNER, BLOCKS, LENGTH = 2048, 16, 5632, 4, 512
EACH = HIDDEN // HEADS


def weights(dtype: str) -> list[dict[str, tuple[mx.array, Any]]]:
    shapes = {
        "q": (HIDDEN, HIDDEN),
        "k": (HIDDEN, HIDDEN),
        "v": (HIDDEN, HIDDEN),
        "o": (HIDDEN, HIDDEN),
        "gate": (HIDDEN, INNER),
        "up": (HIDDEN, INNER),
        "down": (INNER, HIDDEN),
    }
    rng = np.random.default_rng(0)
    blocks = []
    for _ in range(BLOCKS):
        block = {}
        for name, shape in shapes.items():
            host = rng.standard_normal(shape, dtype=np.float32) / shape[0] ** 0.5
            mine = mx.array(host).astype(getattr(mx, dtype))
            other = torch.from_numpy(host).cuda().to(getattr(torch, dtype)) if torch else None
            block[name] = (mine, other)
        blocks.append(block)
    mx.eval([w[0] for b in blocks for w in b.values()])
    return blocks


def token(rate: float) -> None:
    """One token of four Llama blocks in bfloat16, with composed attention over a cache; the limit reads the weights."""
    blocks = weights("bfloat16")
    (x, t) = pair((1, 1, HIDDEN), "bfloat16")
    shape = (1, HEADS, LENGTH + 1, EACH)
    caches = [pair(shape, "bfloat16", seed=i) for i in range(2 * BLOCKS)]
    place = mx.array([LENGTH])
    mine = [{n: w[0] for n, w in b.items()} for b in blocks]
    other = [{n: w[1] for n, w in b.items()} for b in blocks]
    mx.eval(place)

    def heads(y: mx.array) -> mx.array:
        return y.reshape(1, 1, HEADS, EACH).transpose(0, 2, 1, 3)

    def written(cache: mx.array, y: mx.array, place: mx.array | int) -> tuple[mx.array, mx.array]:
        """The cache with a new row, and the part of it that is read: all, or up to a Python number."""
        if isinstance(place, mx.array):
            cache = mx.slice_update(cache, y, place, (2,))
            return cache, cache
        cache[..., place : place + 1, :] = y
        return cache, cache[..., : place + 1, :]

    def step(
        x: mx.array, kept: list[mx.array], place: mx.array | int
    ) -> tuple[mx.array, list[mx.array]]:
        new = []
        at = place[0] if isinstance(place, mx.array) else place
        for i, w in enumerate(mine):
            h = mx.fast.rms_norm(x, None, 1e-5)
            q, k, v = (heads(h @ w[n]) for n in "qkv")
            q, k = (
                mx.fast.rope(y, EACH, traditional=False, base=10000.0, scale=1.0, offset=at)
                for y in (q, k)
            )
            (cache_k, ks), (cache_v, vs) = (
                written(kept[2 * i + j], y, place) for j, y in enumerate((k, v))
            )
            new += [cache_k, cache_v]
            scores = mx.softmax((q * EACH**-0.5) @ ks.swapaxes(2, 3), axis=-1, precise=True)
            x = x + (scores @ vs).transpose(0, 2, 1, 3).reshape(1, 1, HIDDEN) @ w["o"]
            h = mx.fast.rms_norm(x, None, 1e-5)
            g = h @ w["gate"]
            x = x + (g * mx.sigmoid(g) * (h @ w["up"])) @ w["down"]
        return x, new

    compiled = mx.compile(step)
    state = {"c": [c[0] for c in caches]}
    theirs_caches = [c[1] for c in caches]
    del caches

    def ours_step(f: Any = compiled) -> mx.array:
        # The caches are given away.
        y, state["c"] = f(x, state.pop("c"), place)
        mx.async_eval(y, state["c"])
        return y

    def turned(y: Any, cos: Any, sin: Any) -> Any:
        a, b = y[..., : EACH // 2].float(), y[..., EACH // 2 :].float()
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(y.dtype)

    if torch:
        steps = 10000.0 ** (-torch.arange(EACH // 2, device="cuda") / (EACH // 2))
        cos, sin = torch.cos(LENGTH * steps), torch.sin(LENGTH * steps)
        at = torch.tensor([LENGTH]).cuda()

    def torch_step(length: int | None = None) -> Any:
        y = t
        for i, w in enumerate(other):
            h = torch.nn.functional.rms_norm(y, (HIDDEN,), eps=1e-5)
            q, k, v = ((h @ w[n]).view(1, 1, HEADS, EACH).transpose(1, 2) for n in "qkv")
            q, k = turned(q, cos, sin), turned(k, cos, sin)
            ks, vs = theirs_caches[2 * i], theirs_caches[2 * i + 1]
            if length is None:
                ks.index_copy_(2, at, k)
                vs.index_copy_(2, at, v)
            else:
                ks[:, :, length : length + 1], vs[:, :, length : length + 1] = k, v
                ks, vs = ks[:, :, : length + 1], vs[:, :, : length + 1]
            o = torch.nn.functional.scaled_dot_product_attention(q, ks, vs)
            y = y + o.transpose(1, 2).reshape(1, 1, HIDDEN) @ w["o"]
            h = torch.nn.functional.rms_norm(y, (HIDDEN,), eps=1e-5)
            y = y + (torch.nn.functional.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
        return y

    plain = seconds(lambda: ours_step(step), mx.synchronize)
    row("replays", "a token of four blocks, plain and eager", plain, theirs(torch_step))
    ours_step()
    mx.synchronize()
    before = mx.backends.stats().commands
    ours_step()
    mx.synchronize()
    commands = mx.backends.stats().commands - before
    name = f"a token of four blocks, {commands / BLOCKS:g} commands each"
    graph = captured(torch_step)
    bytes_ = 2 * BLOCKS * (4 * HIDDEN**2 + 3 * HIDDEN * INNER)
    mine_ = seconds(ours_step, mx.synchronize)
    row("replays", name, mine_, theirs(graph) if graph else None, bytes_ / rate)
    close("token", ours_step(), torch_step() if torch else None, 5e-2)

    lengths = itertools.cycle(range(LENGTH // 2, LENGTH))

    def window_step() -> None:
        y, state["c"] = step(x, state.pop("c"), next(lengths))
        mx.async_eval(y, state["c"])

    name = "a token of four blocks, a length more each time, plain and eager"
    grown = seconds(window_step, mx.synchronize)
    row("replays", name, grown, theirs(lambda: torch_step(next(lengths))))
    mx.backends.set_executables(False)
    row("replays", f"{name}, planned anew", seconds(window_step, mx.synchronize), None)
    mx.backends.set_executables(True)


def replays(rate: float) -> None:
    chains()
    token(rate)
