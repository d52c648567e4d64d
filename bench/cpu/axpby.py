"""alpha x + beta y of two 4096 x 4096 float32 arrays: the machine's limit, one expression, a kernel of one's own, and others.

Each way runs in a process of its own, in turns with the limit (three streams read and written by plain loops), several rounds;
figures are the best and the median of all. For ours the traffic is counted in the same run: bytes that commands read and wrote,
in arrays. ``--limits PROGRAM`` is the native bench ``limits``; ``--rounds N``; ``--seconds S`` per way and round.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench import record
from bench.cpu.data import N, normal
from bench.table import show

ALPHA, BETA = 4.0, 2.0
BYTES = N * N * 4
Thunk = Callable[[], object]


def data():
    return normal(N, N), normal(N, N, seed=1)


def composed(x, y):
    return ALPHA * x + BETA * y


def in_mx(module: str, function: Callable | None = None, compiled: bool = False):
    def make() -> tuple[Thunk, object]:
        mx = importlib.import_module(module)
        f = function or composed
        f = mx.compile(f) if compiled else f
        x, y = map(mx.array, data())
        mx.eval(x, y)
        return lambda: mx.eval(f(x, y)), f(x, y)

    return make


def custom():
    axpby = importlib.import_module("ultramarine_axpby").axpby
    return in_mx("ultramarine", lambda x, y: axpby(x, y, ALPHA, BETA))()


def unfused():
    importlib.import_module("ultramarine").backends.set_fusion(False)
    return in_mx("ultramarine")()


def in_torch():
    torch = importlib.import_module("torch")
    x, y = map(torch.from_numpy, data())
    return lambda: composed(x, y), composed(x, y)


def in_numpy():
    x, y = data()
    return lambda: composed(x, y), composed(x, y)


def in_jax():
    jax = importlib.import_module("jax")
    x, y = map(jax.numpy.asarray, data())
    f = jax.jit(composed)
    return lambda: f(x, y).block_until_ready(), f(x, y)


WAYS: dict[str, Callable[[], tuple[Thunk, object]]] = {
    "custom": custom,
    "composed": in_mx("ultramarine"),
    "compiled": in_mx("ultramarine", compiled=True),
    "unfused": unfused,
    "mlx composed": in_mx("mlx.core"),
    "mlx compiled": in_mx("mlx.core", compiled=True),
    "torch": in_torch,
    "numpy": in_numpy,
    "jax, jit": in_jax,
}
OURS = ("custom", "composed", "compiled", "unfused")


def child(way: str, seconds: float) -> None:
    """Times one way and prints its milliseconds, and the arrays that each run moves."""
    import numpy as np

    run, result = WAYS[way]()
    x, y = data()
    right = bool(np.allclose(np.asarray(result), ALPHA * x + BETA * y, atol=1e-5))
    del x, y, result
    for _ in range(5):
        run()
    streams = None
    if way in OURS:
        backends = importlib.import_module("ultramarine").backends
        backends.reset_stats()
        run()
        counted = backends.stats()
        streams = (counted.bytes_read + counted.bytes_written) / BYTES
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 10 or (time.perf_counter() < end and len(times) < 1000):
        started = time.perf_counter()
        run()
        times.append((time.perf_counter() - started) * 1e3)
    print(json.dumps({"times": times, "streams": streams, "right": right}))


def limit(program: str) -> float:
    """Milliseconds of three streams over all cores."""
    words = [program, "--json", "axpby, all cores"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    (figure,) = record.lines(printed)
    return 3 * BYTES / figure.value / 1e6


def rate(ms: float) -> float:
    return 3 * BYTES / ms / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--limits", type=Path)
    parser.add_argument("--figures", type=Path, help="file for the figures")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.seconds)
        return 0
    load = os.getloadavg()[0]
    print(f"{ALPHA:g} x + {BETA:g} y, {N} x {N} float32; {os.cpu_count()} processors, load {load:.1f}"
          + (": too much for figures to be trusted" if load > 1 else ""))  # fmt: skip
    times: dict[str, list[float]] = {}
    streams: dict[str, float] = {}
    limits: list[float] = []
    complaints: dict[str, str] = {}
    good = True
    for _ in range(args.rounds):
        if args.limits:
            limits.append(limit(str(args.limits.resolve())))
        for way in WAYS:
            if way in complaints:
                continue
            words = [sys.executable, "-m", "bench.cpu.axpby", "--child", way]
            words += ["--seconds", str(args.seconds)]
            done = subprocess.run(words, cwd=record.ROOT, capture_output=True, text=True)
            if done.returncode:
                complaints[way] = (done.stderr.strip().splitlines() or ["no message"])[-1]
                continue
            answer = json.loads(done.stdout.splitlines()[-1])
            times.setdefault(way, []).extend(answer["times"])
            if not answer["right"]:
                complaints[way] = "WRONG VALUES"
                good = False
            if answer["streams"] is not None:
                streams[way] = answer["streams"]
    best = {way: min(t) for way, t in times.items()}
    lines = [["", "best ms", "(median)", "GB/s", "of the limit", "arrays moved"]]
    least = min(limits) if limits else None
    if least:
        median = statistics.median(limits)
        lines.append(["limit", f"{least:.3f}", f"({median:.3f})", f"{rate(least):.1f}", "", "3"])
    for way, t in times.items():
        share = f"{least / best[way]:.1%}" if least else ""
        moved = f"{streams[way]:.2f}" if way in streams else ""
        median = statistics.median(t)
        lines.append(
            [way, f"{best[way]:.3f}", f"({median:.3f})", f"{rate(best[way]):.1f}", share, moved]
        )
    show(lines)
    for way, text in complaints.items():
        print(f"{way} left out: {text}")

    def held(text: str, value: float, most: float) -> None:
        print(f"{text}: {value:.3f}, at most {most:.3f}: {'met' if value <= most else 'NOT MET'}")

    if least and "custom" in best:
        held("custom over limit", best["custom"] / least, 1 / 0.9)
    if "custom" in best and "composed" in best:
        held("composed over custom", best["composed"] / best["custom"], 1.1)
    for way, most in (("composed", 3), ("unfused", 7)):
        if way in streams:
            good &= round(streams[way], 2) == most
            print(
                f"{way} moves {streams[way]:.2f} arrays, as it should: {round(streams[way], 2) == most}"
            )
    if "mlx composed" in best and "composed" in best:
        print(f"mlx composed over ours: {best['mlx composed'] / best['composed']:.2f}")
    if args.figures:
        record.save(args.figures, figures(times, least))
    return 0 if good else 1


def figures(times: dict[str, list[float]], least: float | None) -> list[record.Figure]:
    """A figure for each way. Those of ultramarine carry the limit in milliseconds."""
    return [
        record.Figure(
            group="axpby",
            name=way if way in OURS else way.partition(" ")[2].strip() or "composed",
            library="ultramarine" if way in OURS else way.replace(",", "").split()[0],
            value=min(t),
            unit="ms",
            limit=least if way in OURS else None,
            median=statistics.median(t),
            samples=len(t),
        )
        for way, t in times.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
