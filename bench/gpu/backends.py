"""The same work by several backends of one GPU: times, and each one's rate relative to the first.

    python -m bench.gpu.backends PLUGIN PLUGIN ... [--only WORD ...] [--rounds 2] [--figures FILE]

A PLUGIN is the file of a backend. Each runs in processes of its own, in turns, and its best round counts. Results are
compared with cpu:0 before they are timed, relative to the largest element.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench import record, table


class Work(NamedTuple):
    """Work on arrays of the given shapes; `tolerance` is that of its result."""

    name: str
    make: Callable[..., object]
    shapes: list[tuple[int, ...]]
    dtype: str = "float32"
    tolerance: float = 1e-5


def works() -> list[Work]:
    """The workloads. Only a measuring process imports Ultramarine."""
    import ultramarine as mx

    square = (4096, 4096)

    def gelu(x: mx.array) -> mx.array:
        return x * (1 + mx.erf(x * 0.7071067811865476)) * 0.5

    def tiny(x: mx.array, y: mx.array) -> mx.array:
        for _ in range(500):
            x = mx.stop_gradient((x + y) * 0.99)
        return x

    def each(x: mx.array, y: mx.array) -> mx.array:
        for _ in range(1000):
            x = x + y
            mx.async_eval(x)
        return x

    def decode(x: mx.array, w: mx.array) -> mx.array:
        return x @ w.T

    heads, long = (1, 16, 2048, 128), (1 << 24,)
    return [
        Work("4x + 2y", lambda x, y: 4 * x + 2 * y, [square] * 2),
        Work("exp", mx.exp, [square]),
        Work("gelu (erf)", gelu, [square]),
        Work("gelu (erf), bfloat16", gelu, [square], "bfloat16", 2e-2),
        Work("x + row", lambda x, r: x + r, [square, (4096,)]),
        Work("x.T copied", lambda x: mx.contiguous(x.T), [square]),
        Work("sum of rows", lambda x: x.sum(axis=1), [square]),
        Work("sum of columns", lambda x: x.sum(axis=0), [square]),
        Work("sum of all", lambda x: x.sum(), [square], tolerance=1e-3),
        Work("argmax of rows", lambda x: mx.argmax(x, axis=1), [square], tolerance=0),
        Work("softmax of rows", lambda x: mx.softmax(x, axis=-1), [square]),
        Work("rms_norm", lambda x, w: mx.fast.rms_norm(x, w, 1e-5), [square, (4096,)]),
        Work("product 4096^3", mx.matmul, [square] * 2),
        Work("product 4096^3, float16", mx.matmul, [square] * 2, "float16", 1e-2),
        Work("product 1 x 4096 x 4096", decode, [(1, 4096), square]),
        Work("attention", attend, [heads] * 3, "float16", 1e-2),
        Work("cumsum of 2^24", lambda x: mx.cumsum(x), [long], tolerance=1e-3),
        Work("sort of 2^24", lambda x: mx.sort(x), [long], tolerance=0),
        Work("1000 tiny operations, fused", tiny, [(16,)] * 2),
        Work("1000 tiny operations, each evaluated", each, [(16,)] * 2),
    ]


def attend(q: object, k: object, v: object) -> object:
    import ultramarine as mx

    return mx.fast.scaled_dot_product_attention(q, k, v, scale=0.088, mask="causal")


def measure(words: list[str]) -> None:
    """Prints a JSON line with the seconds of each workload on gpu:0, or with why it failed."""
    import ultramarine as mx
    from bench.gpu.clock import seconds

    for work in works():
        if words and not any(word in work.name for word in words):
            continue
        generators = map(np.random.default_rng, range(len(work.shapes)))
        drawn = [g.standard_normal(s, np.float32) for g, s in zip(generators, work.shapes)]
        line: dict[str, object] = {"name": work.name}
        try:
            results = []
            for device in (mx.cpu, mx.gpu):
                with mx.stream(device):
                    given = [mx.array(x).astype(getattr(mx, work.dtype)) for x in drawn]
                    results.append(np.array(work.make(*given).astype(mx.float32)))
            want, got = results
            error = float(np.abs(want - got).max()) / (float(np.abs(want).max()) or 1.0)
            if not error <= work.tolerance:
                raise ArithmeticError(f"differs from cpu:0 by {error:.2g} of the largest element")
            mx.set_default_device(mx.gpu)
            given = [mx.array(x).astype(getattr(mx, work.dtype)) for x in drawn]
            mx.eval(given)
            line["seconds"] = seconds(
                lambda work=work, given=given: mx.async_eval(work.make(*given)), mx.synchronize
            )
        except Exception as why:
            line["failed"] = str(why).splitlines()[0]
        print(json.dumps(line), flush=True)


def run(plugin: Path, words: list[str], seconds: dict[str, float]) -> None:
    """Measures a backend in a process of its own and keeps the best of each workload."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / plugin.name).symlink_to(plugin.resolve())
        env = {**os.environ, "ULTRAMARINE_BACKEND_PATH": folder, "ULTRAMARINE_CUDA_FUSE": "wait"}
        command = [sys.executable, "-m", "bench.gpu.backends", "--measure", "--only", *words]
        done = subprocess.run(command, env=env, cwd=record.ROOT, stdout=subprocess.PIPE, text=True)
    for line in map(json.loads, done.stdout.splitlines()):
        name = line["name"]
        if "failed" in line:
            print(f"{plugin.name}: {name}: {line['failed']}", flush=True)
        else:
            seconds[name] = min(line["seconds"], seconds.get(name, float("inf")))
    if done.returncode:
        print(f"{plugin.name}: exit status {done.returncode}", flush=True)


def short(plugin: Path) -> str:
    return plugin.stem.removeprefix("lib").removeprefix("ultramarine-")


def show(measured: dict[str, dict[str, float]]) -> list[record.Figure]:
    """Prints the table and returns the figures."""
    first, *others = measured
    names = list(dict.fromkeys(name for figures in measured.values() for name in figures))
    lines = [["milliseconds", *measured, *(f"{other} : {first}" for other in others)]]
    for name in names:
        own = measured[first].get(name)
        times = [figures.get(name) for figures in measured.values()]
        rates = [f"{own / t:.2f}" if own and t else "-" for t in times[1:]]
        lines.append([name, *(table.number(t and t * 1e3) for t in times), *rates])
    table.show(lines)
    return [
        record.Figure("backends", name, f"ultramarine, {column}", value * 1e3, "ms", on="gpu")
        for column, figures in measured.items()
        for name, value in figures.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plugins", nargs="*", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="words that names contain")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        measure(asked.only)
        return 0
    absent = [str(plugin) for plugin in asked.plugins if not plugin.is_file()]
    if absent or not asked.plugins:
        parser.error(f"no such file: {', '.join(absent)}" if absent else "name a plugin")
    measured: dict[str, dict[str, float]] = {short(plugin): {} for plugin in asked.plugins}
    for _ in range(asked.rounds):
        for plugin in asked.plugins:
            run(plugin, asked.only, measured[short(plugin)])
    figures = show(measured)
    if asked.figures:
        record.save(asked.figures, figures)
    return 0 if all(measured.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
