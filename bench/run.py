"""Our figures beside those of other libraries and the machine's limits, in one run.

Each library runs in a process of its own, one after the other, on the same inputs; a library that
cannot be imported is left out and named. Options: ``--limits FILE`` (JSON of the example
``limits`` of ultramarine-cpu), ``--seconds S`` per workload; further words pick workloads by part of the name.
"""

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from data import N, measure

# A column: the module that holds the workloads, and what the environment says to it.
COLUMNS: dict[str, tuple[str, dict[str, str]]] = {
    "ours": ("ultramarine", {}),
    "unfused": ("ultramarine", {"ULTRAMARINE_FUSION": "0"}),
    "numpy": ("numpy", {}),
    "torch": ("torch", {}),
    "jax": ("jax", {}),
    "mlx": ("mlx", {}),
}
PEERS = ("numpy", "torch", "jax", "mlx")

Figures = dict[str, float]  # of one workload: milliseconds by column
Limits = dict[str, float]


class Row(NamedTuple):
    """A workload: the machine's limit, and what the project holds itself to, in milliseconds."""

    limit: Callable[[Limits], float] | None = None
    target: Callable[[Figures, Limits], float] | None = None
    means: str = ""  # what the target is, in words
    column: str = "ours"


def streams(kind: str) -> Callable[[Limits], float]:
    return lambda limits: limits[f"{kind}_all_ms"]


def flops(count: float) -> Callable[[Limits], float]:
    return lambda limits: count / limits["multiply_add_all_gflops"] / 1e6


def best_peer(figures: Figures, limits: Limits) -> float:
    return min(v for k, v in figures.items() if k in PEERS)


# Workloads that are held to what others need.
ORDINARY = (
    "sort",
    "sort 16M",
    "sort columns",
    "argsort",
    "top 64",
    "partition",
    "argpartition",
    "embedding",
    "normals",
    "cumsum rows",
    "cumsum columns",
    "cumsum 16M",
    "rfft",
    "conv2d",
)

ROWS: dict[str, Row] = {
    "4x + 2y": Row(streams("axpby"), lambda f, m: 1.25 * m["axpby_all_ms"], "1.25 x limit"),
    "tanh-gelu": Row(streams("map"), lambda f, m: 6.0, "6 ms"),
    "exp": Row(streams("map")),
    "x + row": Row(streams("map")),
    "transpose": Row(streams("map")),
    "sum rows": Row(streams("read"), best_peer, "best peer"),
    "sum columns": Row(streams("read"), best_peer, "best peer"),
    "softmax": Row(streams("map")),
    "layer norm": Row(streams("map")),
    "matmul 2048": Row(
        flops(2 * 2048**3), lambda f, m: flops(2 * 2048**3)(m) / 0.85, "85% of peak"
    ),
    "matmul 1024 A^T": Row(flops(2 * 1024**3)),
    "matmul 1024 bf16": Row(),
    "matrix-vector": Row(streams("read")),
    "batched matmul": Row(flops(2 * 64 * 128**3)),
    "attention": Row(flops(4 * 8 * 1024**2 * 64)),
    **{name: Row(None, lambda f, m: 1.5 * best_peer(f, m), "1.5 x best") for name in ORDINARY},
    "1000 tiny ops": Row(None, lambda f, m: 0.8, "0.8 ms"),
    "training step": Row(None, lambda f, m: f["torch"], "torch"),
}
# A second line for a workload that has a target of its own without fusion.
UNFUSED = {"1000 tiny ops": Row(None, lambda f, m: 1.5, "1.5 ms", "unfused")}


def child(module: str, names: list[str], seconds: float) -> None:
    """Runs the workloads of one library and prints a line of JSON after each."""
    if module in ("ultramarine", "mlx"):
        mx = importlib.import_module("ultramarine" if module == "ultramarine" else "mlx.core")
        table = importlib.import_module("with_mx").workloads(mx)
    else:
        table = importlib.import_module(f"with_{module}").workloads()
    for name in names:
        if name not in table:
            continue
        try:
            result: object = measure(table[name](), seconds)
        except Exception as error:  # one workload that fails must not hide the others
            result = f"{type(error).__name__}: {error}"
        print(json.dumps([name, result]), flush=True)


def collect(column: str, names: list[str], seconds: float) -> tuple[dict[str, list], list[str]]:
    """Figures of one column, and complaints."""
    module, settings = COLUMNS[column]
    words = [sys.executable, __file__, "--child", module, "--seconds", str(seconds), *names]
    done = subprocess.run(words, env=os.environ | settings, capture_output=True, text=True)
    figures, complaints = {}, []
    for line in done.stdout.splitlines():
        name, result = json.loads(line)
        if isinstance(result, str):
            complaints.append(f"{column}, {name}: {result}")
        else:
            figures[name] = result
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        complaints.append(f"{column} left out: {last}")
    return figures, complaints


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def show(names: list[str], results: dict[str, dict[str, list]], limits: Limits) -> None:
    """One table: best of several, with our median beside our best."""
    columns = [c for c in COLUMNS if c in results and c != "unfused"]
    head = ["milliseconds, best of several", "ours", "(median)"]
    head += [c for c in columns if c != "ours"] + ["limit", "target", ""]
    lines = [head]
    for name in names:
        for row in (ROWS[name], *([UNFUSED[name]] if name in UNFUSED else [])):
            best = {c: results[c][name][0] for c in results if name in results[c]}
            ours = results.get(row.column, {}).get(name)
            label = name if row.column == "ours" else f"{name}, {row.column}"
            line = [label, number(ours and ours[0]), f"({number(ours and ours[1])})"]
            line += [number(best.get(c)) for c in columns if c != "ours"]
            try:
                limit = row.limit(limits) if row.limit else None
            except KeyError:
                limit = None
            line.append(number(limit))
            verdict = target = ""
            if row.target:
                try:
                    least = row.target(best, limits)
                    target = f"{number(least)} ({row.means})"
                    if ours:
                        verdict = "met" if ours[0] <= least else "NOT MET"
                except (KeyError, ValueError):
                    target = f"? ({row.means})"
            lines.append([*line, target, verdict])
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        cells = [c.ljust(w) if i in (0, len(head) - 2, len(head) - 1) else c.rjust(w)
                 for i, (c, w) in enumerate(zip(line, widths))]  # fmt: skip
        print("  ".join(cells).rstrip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", metavar="MODULE", help=argparse.SUPPRESS)
    parser.add_argument("--limits", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.child:
        child(args.child, args.names, args.seconds)
        return
    names = [n for n in ROWS if not args.names or any(a.lower() in n.lower() for a in args.names)]
    if not names:
        sys.exit(f"no workload matches; there are: {', '.join(ROWS)}")
    limits = json.loads(args.limits.read_text()) if args.limits else {}
    print(f"{platform.machine()}, {os.cpu_count()} processors; large arrays are {N} x {N} float32")
    if limits:
        print(
            f"measured limits, all cores: {limits['multiply_add_all_gflops']:.0f} GFLOP/s float32 "
            f"({limits['registers']}); 4x + 2y {limits['axpby_all_gbs']:.0f} GB/s, "
            f"one core {limits['axpby_one_gbs']:.0f} GB/s"
        )
    results, complaints = {}, []
    for column in COLUMNS:
        wanted = [n for n in names if column != "unfused" or n in UNFUSED]
        if not wanted:
            continue
        print(f"running {column} ...", flush=True)
        figures, told = collect(column, wanted, args.seconds)
        complaints += told
        if figures:
            results[column] = figures
    print()
    show(names, results, limits)
    for line in complaints:
        print(line)


if __name__ == "__main__":
    main()
