"""Figures of a GPU, beside torch in the same process: bandwidth, elementwise, rows, rope, products, layers, products with
matrices of few bits, small operations, replays, uploads, reads of parts, DLPack, what vendors have libraries for, models.

    python -m bench.gpu.figures [--figures FILE] [GROUP ...]

A figure is the median of several runs of many steps each. Its limit is bytes over the copy bandwidth that is measured
here. Results are compared with torch's before they are timed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ultramarine as mx
from bench import record
from bench.gpu import timing
from bench.gpu.clock import seconds
from bench.gpu.layers import layers
from bench.gpu.libraries import libraries
from bench.gpu.models import models
from bench.gpu.quantized import quantized
from bench.gpu.replays import replays
from bench.gpu.timing import FIGURES, close, ours, pair, row, theirs, torch
from bench.gpu.training import training


def bandwidth() -> float:
    """Bytes per second of a copy, read and written."""
    n = 1 << 28
    x, t = pair((n,))
    mine = ours(lambda: -x)
    other = theirs(lambda: t.clone())
    name = "1 GiB read and written (-x, clone)"
    row("bandwidth", name, mine, other, amount=8 * n / 1e9, unit="GB/s")
    return 8 * n / min(mine, other or mine)


def elementwise(rate: float) -> None:
    shape = (4096, 4096)
    n = shape[0] * shape[1]
    (x, t), (y, u) = pair(shape), pair(shape, seed=1)
    close("4x+2y", 4 * x + 2 * y, 4 * t + 2 * u if t is not None else None, 1e-6)
    row(
        "elementwise",
        "4*x + 2*y, 4096^2 float32",
        ours(lambda: 4 * x + 2 * y),
        theirs(lambda: 4 * t + 2 * u),
        12 * n / rate,
    )

    def gelu(x: mx.array) -> mx.array:
        return x * (1 + mx.erf(x * 0.7071067811865476)) * 0.5

    g = torch.nn.functional.gelu if torch is not None else None
    close("gelu", gelu(x), g(t) if g else None, 1e-5)
    row(
        "elementwise",
        "gelu (erf), 4096^2 float32",
        ours(lambda: gelu(x)),
        theirs(lambda: g(t)),
        8 * n / rate,
    )
    b, c = pair(shape, "bfloat16")
    row(
        "elementwise",
        "gelu (erf), 4096^2 bfloat16",
        ours(lambda: gelu(b)),
        theirs(lambda: g(c)),
        4 * n / rate,
    )
    row(
        "elementwise",
        "x.T copied, 4096^2 float32",
        ours(lambda: mx.contiguous(x.T)),
        theirs(lambda: t.T.contiguous()),
        8 * n / rate,
    )
    row(
        "elementwise",
        "exp, 4096^2 float32",
        ours(lambda: mx.exp(x)),
        theirs(lambda: t.exp()),
        8 * n / rate,
    )


def rows(rate: float) -> None:
    shape = (16384, 4096)
    n = shape[0] * shape[1]
    x, t = pair(shape)
    s = torch.softmax if torch is not None else None
    close("softmax", mx.softmax(x, axis=-1), s(t, -1) if s else None, 1e-5)
    row(
        "rows",
        "softmax rows, 16384 x 4096",
        ours(lambda: mx.softmax(x, axis=-1)),
        theirs(lambda: s(t, -1)),
        8 * n / rate,
    )
    close("sum", x.sum(axis=1), t.sum(1) if t is not None else None, 1e-5)
    row("rows", "sum of rows", ours(lambda: x.sum(axis=1)), theirs(lambda: t.sum(1)), 4 * n / rate)
    row(
        "rows",
        "sum of columns",
        ours(lambda: x.sum(axis=0)),
        theirs(lambda: t.sum(0)),
        4 * n / rate,
    )
    row("rows", "sum of all", ours(lambda: x.sum()), theirs(lambda: t.sum()), 4 * n / rate)
    row(
        "rows",
        "logsumexp rows",
        ours(lambda: mx.logsumexp(x, axis=-1)),
        theirs(lambda: torch.logsumexp(t, -1)),
        4 * n / rate,
    )
    row(
        "rows",
        "argmax rows",
        ours(lambda: mx.argmax(x, axis=-1)),
        theirs(lambda: t.argmax(-1)),
        4 * n / rate,
    )
    row(
        "rows",
        "cumsum rows",
        ours(lambda: mx.cumsum(x, axis=-1)),
        theirs(lambda: t.cumsum(-1)),
        8 * n / rate,
    )
    y, u = pair((1 << 24,))
    row(
        "rows",
        "sort 2^24 float32",
        ours(lambda: mx.sort(y)),
        theirs(lambda: u.sort()),
        8 * (1 << 24) / rate,
    )

    largest(y, u, rate)
    largest(*pair((4096, 16384)), rate)


def largest(x: mx.array, t: Any, rate: float, k: int = 64) -> None:
    """The k largest of each row, in order; the limit reads them once."""
    n, name = x.size, f"topk {k} of {' x '.join(map(str, x.shape))}"
    close(
        name,
        mx.topk(x, k, axis=-1),
        t.topk(k, -1).values.flip(-1) if t is not None else None,
        0.0,
    )
    row(
        "rows",
        name,
        ours(lambda: mx.topk(x, k, axis=-1)),
        theirs(lambda: t.topk(k, -1)),
        4 * n / rate,
    )
    row(
        "rows",
        f"argpartition at {k} of {' x '.join(map(str, x.shape))}",
        ours(lambda: mx.argpartition(x, -k, axis=-1)),
        theirs(lambda: t.topk(k, -1, sorted=False)),
        4 * n / rate,
    )


def ropes(rate: float) -> None:
    shape = (8, 32, 2048, 128)
    n = 8 * 32 * 2048 * 128
    half = shape[-1] // 2
    # Angles are up to 2048, of which float32 keeps about four places behind the point.
    for dtype, size, rtol in [("bfloat16", 2, 2e-2), ("float32", 4, 1e-3)]:
        x, t = pair(shape, dtype)
        cos = sin = None
        if torch is not None:
            steps = 10000.0 ** (-torch.arange(half, device="cuda") / half)
            angles = torch.arange(shape[2], device="cuda")[:, None] * steps
            angles = torch.cat([angles, angles], -1)
            cos, sin = angles.cos().to(t.dtype), angles.sin().to(t.dtype)

        def turned(t: Any = t, cos: Any = cos, sin: Any = sin) -> Any:
            rotated = torch.cat([-t[..., half:], t[..., :half]], -1)
            return t * cos + rotated * sin

        def mine(x: mx.array = x, traditional: bool = False) -> mx.array:
            return mx.fast.rope(
                x, shape[-1], traditional=traditional, base=10000.0, scale=1.0, offset=0
            )

        def paired(x: mx.array, a: int, b: int) -> mx.array:
            return mx.contiguous(x.reshape(*shape[:-1], a, b).swapaxes(-1, -2).reshape(shape))

        want = turned() if torch is not None else None
        close(f"rope {dtype}", mine(), want, rtol)
        # Neighbours are what halves are when the elements are in another order.
        neighbours = paired(mine(paired(x, 2, half), True), half, 2)
        close(f"rope of neighbours {dtype}", neighbours, want, rtol)
        other = theirs(turned)
        row("rope", f"rope, {shape} {dtype}", ours(mine), other, 2 * size * n / rate)
        row(
            "rope",
            f"rope of neighbours, {dtype}",
            ours(lambda mine=mine: mine(traditional=True)),
            other,
            2 * size * n / rate,
        )


def products() -> None:
    for dtype, n in [("bfloat16", 8192), ("float16", 8192), ("float32", 4096)]:
        (x, t), (y, u) = pair((n, n), dtype), pair((n, n), dtype, seed=1)
        close(
            f"matmul {dtype}",
            x @ y,
            t @ u if t is not None else None,
            2e-2 if dtype != "float32" else 1e-5,
        )
        mine, other = ours(lambda x=x, y=y: x @ y), theirs(lambda t=t, u=u: t @ u)
        row("matmul", f"{dtype} {n}^3", mine, other, amount=2 * n**3 / 1e12, unit="TFLOP/s")


def small() -> None:
    x, t = pair((16,))

    def adds() -> mx.array:
        y = x
        for _ in range(1000):
            y = y + x
            mx.async_eval(y)
        return y

    def chain() -> mx.array:
        y = x
        for _ in range(1000):
            y = y + x
        return y

    def torch_adds() -> Any:
        u = t
        for _ in range(1000):
            u = u + t
        return u

    mine, other = seconds(adds, mx.synchronize, 0.05), theirs(torch_adds)
    row("small", "1000 adds of 16, each evaluated", mine, other)
    row("small", "1000 adds of 16, one eval", ours(chain), other)


def cache() -> None:
    """A decoder's writes into a cache, at an offset in memory of the device, and at a number."""
    shape, row_shape = (1, 8, 4096, 128), (1, 8, 1, 128)
    (kept, other), (u, v) = pair(shape, "bfloat16"), pair(row_shape, "bfloat16", seed=1)
    places = [mx.array([i]) for i in range(1000, 1064)]
    mx.eval(places)
    state = {"c": kept}
    del kept

    def by_array() -> mx.array:
        for at in places:
            state["c"] = mx.slice_update(state["c"], u, at, (2,))
            mx.async_eval(state["c"])
        return state["c"]

    def by_number() -> mx.array:
        c = state.pop("c")
        for i in range(1000, 1064):
            c[:, :, i : i + 1] = u
            mx.async_eval(c)
        state["c"] = c
        return c

    def torch_by_array(places: Any) -> None:
        for at in places:
            other.index_copy_(2, at, v)

    def torch_by_number() -> None:
        for i in range(1000, 1064):
            other[:, :, i : i + 1] = v

    at = [torch.tensor([i]).cuda() for i in range(1000, 1064)] if torch is not None else []
    mine, theirs_ = seconds(by_array, mx.synchronize), theirs(lambda: torch_by_array(at))
    row("cache", "64 writes at an offset in memory", mine, theirs_)
    close("cache", state["c"], other, 0.0)
    mine, theirs_ = seconds(by_number, mx.synchronize), theirs(torch_by_number)
    row("cache", "64 writes at a number", mine, theirs_)


def uploads() -> None:
    """Steps that each bring an operand from the host, alone and behind work that takes longer."""
    (a, b), (x, t) = pair((4096, 4096), "bfloat16"), pair((4096, 4096), "bfloat16", seed=1)
    for name, n in [("4 KiB", 1 << 10), ("16 MiB", 1 << 22)]:
        host = np.random.default_rng(2).standard_normal(n, dtype=np.float32)
        w, v = pair((n,), seed=3)

        def torch_step(v: Any = v, host: Any = host) -> Any:
            return v * torch.from_numpy(host).to("cuda")

        def torch_busy(step: Callable[[], Any] = torch_step) -> Any:
            return b @ t, step()

        def busy(w: mx.array = w, host: Any = host) -> None:
            mx.async_eval(a @ x)
            mx.async_eval(w * mx.from_dlpack(host))

        close(f"upload of {name}", w * mx.array(host), torch_step() if torch else None, 1e-6)
        other = theirs(torch_step)
        for way, bring in [("array", mx.array), ("from_dlpack", mx.from_dlpack)]:

            def step(w: mx.array = w, host: Any = host, bring: Any = bring) -> mx.array:
                return w * bring(host)

            mine = ours(step)
            row("uploads", f"w * {way}(host), {name}", mine, other)
        mine, other = seconds(busy, mx.synchronize), theirs(torch_busy)
        row("uploads", f"w * from_dlpack(host) behind a product, {name}", mine, other)


def parts() -> None:
    """Reads of little of an array on the other side: a batch of a data set on the host, and one element of a result."""
    host = np.random.default_rng(4).standard_normal((60_000, 28, 28), dtype=np.float32)
    data = mx.array(host, device=mx.cpu)
    mx.eval(data)
    other = torch.from_numpy(host) if torch is not None else None
    at = 0

    def batch() -> slice:
        nonlocal at
        at = (at + 32) % 59_000
        return slice(at, at + 32)

    mine = ours(lambda: data[batch()] * 2)
    row(
        "parts",
        "data[i:i+32] * 2, data of 188 MB on the host",
        mine,
        theirs(lambda: other[batch()].cuda() * 2),
    )
    x, t = pair((1 << 24,))
    mine = seconds(lambda: (x + 1)[0].item(), lambda: None)
    row("parts", "(x + 1)[0].item() of 64 MiB", mine, theirs(lambda: (t + 1)[0].item()))


def exchange() -> None:
    if torch is None:
        return
    x, t = pair((1024,))
    out = seconds(lambda: torch.from_dlpack(x), lambda: None, 0.02)
    into = seconds(lambda: mx.from_dlpack(t), lambda: None, 0.02)
    row("dlpack", "ultramarine to torch", out, None, amount=1e6, unit="us")
    row("dlpack", "torch to ultramarine", into, None, amount=1e6, unit="us")


def clocks() -> dict[str, int]:
    """The GPU's clocks in MHz, read by nvidia-smi while it computes products."""
    x, _ = pair((4096, 4096), "bfloat16")
    try:
        asked = subprocess.Popen([sys.executable, "-c", READ], stdout=subprocess.PIPE, text=True)
    except OSError:
        return {}
    while asked.poll() is None:
        for _ in range(20):
            mx.async_eval(x @ x)
        mx.synchronize()
    printed = asked.stdout.read() if asked.stdout else ""
    return json.loads(printed or "{}")


READ = "import json; from bench import record; print(json.dumps((record.gpu() or {}).get('clocks', {})))"

# Those that need the bandwidth, and those that do not.
BOUND: dict[str, Callable[[float], None]] = {
    "elementwise": elementwise,
    "rows": rows,
    "rope": ropes,
    "replays": replays,
    "quantized": quantized,
    "libraries": libraries,
    "models": models,
}
FREE: dict[str, Callable[[], None]] = {
    "matmul": products,
    "layers": layers,
    "small": small,
    "cache": cache,
    "uploads": uploads,
    "parts": parts,
    "dlpack": exchange,
    "training": training,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join([*BOUND, *FREE]))
    parser.add_argument("--figures", type=Path, help="file for the figures")
    parser.add_argument("--torch-compile", action="store_true", help="time torch.compile as well")
    asked = parser.parse_args()
    timing.TORCH_COMPILE = asked.torch_compile
    if unknown := set(asked.groups) - {*BOUND, *FREE}:
        parser.error(f"no group {', '.join(sorted(unknown))}")
    if not mx.is_available(mx.gpu):
        print("no GPU: `python -m ultramarine backends` says why")
        return 2
    mx.set_default_device(mx.gpu)
    details: dict[str, Any] = {}
    try:
        rate = bandwidth()
        for name, bound in BOUND.items():
            if not asked.groups or name in asked.groups:
                bound(rate)
        for name, free in FREE.items():
            if not asked.groups or name in asked.groups:
                free()
        details["clocks"] = clocks()
    finally:
        if asked.figures:
            record.save(asked.figures, FIGURES, **details)
    return 0


if __name__ == "__main__":
    sys.exit(main())
