"""The workloads in every library, beside the machine's limits and the project's targets.

Each library runs in a process of its own, one after the other, on the same inputs. A library that cannot be imported is
left out and named. Words pick workloads by part of the name.
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

from bench import record
from bench.cpu.data import QUANTIZED, TOKENS, N, measure
from bench.table import number, show

# A column: the module that holds the workloads, and what the environment says to it.
COLUMNS: dict[str, tuple[str, dict[str, str]]] = {
    "ours": ("ultramarine", {}),
    "unfused": ("ultramarine", {"ULTRAMARINE_FUSION": "0"}),
    "numpy": ("numpy", {}),
    "torch": ("torch", {}),
    "jax": ("jax", {}),
    "mlx": ("mlx", {}),
    "llama.cpp": ("ggml", {}),
}
PEERS = ("numpy", "torch", "jax", "mlx", "llama.cpp")

Figures = dict[str, float]  # of one workload: milliseconds by column
Limits = dict[str, float]  # of the bench `limits`: GB/s or GFLOP/s by name
# Arrays of N x N float32 that a loop of the limits reads and writes.
STREAMS = {"read": 1, "map": 2, "axpby": 3}


class Row(NamedTuple):
    """A workload: the machine's limit, and what the project holds itself to, in milliseconds."""

    limit: Callable[[Limits], float] | None = None
    target: Callable[[Figures, Limits], float] | None = None
    means: str = ""  # what the target is, in words
    column: str = "ours"


def streams(kind: str) -> Callable[[Limits], float]:
    """Milliseconds of a loop over whole arrays on all cores."""
    return lambda limits: STREAMS[kind] * 4 * N * N / limits[f"{kind}, all cores"] / 1e6


def flops(count: float) -> Callable[[Limits], float]:
    """Milliseconds of so many operations on all cores."""
    return lambda limits: count / limits["multiply-add, all cores"] / 1e6


def read(count: float) -> Callable[[Limits], float]:
    """Milliseconds in which all cores read so many bytes."""
    return lambda limits: count / limits["read, all cores"] / 1e6


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
    "conv2d by channel",
    "eigvalsh",
    "eigh",
    "singular values",
    "svd",
)
# Layers, and their gradients, that are held to the best peer.
LAYERS = (
    "fast attention, causal",
    "fast attention gradient",
    "conv2d by input",
    "conv2d by weight",
)

# Multiply-adds of a row with a matrix of few bits, which are its elements.
ELEMENTS = QUANTIZED[0] * QUANTIZED[1]
# Bytes of one of 4 bits with a float32 scale and bias for each 64 elements.
FOUR_BITS = ELEMENTS * (4 / 8 + 8 / 64)

ROWS: dict[str, Row] = {
    "4x + 2y": Row(streams("axpby"), lambda f, m: 1.25 * streams("axpby")(m), "1.25 x limit"),
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
    "matrix-vector bf16": Row(
        read(2 * ELEMENTS), lambda f, m: read(2 * ELEMENTS)(m) / 0.8, "80% of the bytes"
    ),
    "4 bits, 1 row": Row(
        read(FOUR_BITS),
        lambda f, m: min(read(FOUR_BITS)(m) / 0.8, best_peer(f, m)),
        "80% of the bytes, best peer",
    ),
    "float32, 512 rows": Row(flops(2 * TOKENS * ELEMENTS)),
    "4 bits, 512 rows": Row(
        flops(2 * TOKENS * ELEMENTS),
        lambda f, m: f["float32, 512 rows"] / 0.6,
        "60% of float32's rate",
    ),
    "batched matmul": Row(flops(2 * 64 * 128**3)),
    "attention": Row(flops(4 * 8 * 1024**2 * 64)),
    **{name: Row(None, lambda f, m: 1.5 * best_peer(f, m), "1.5 x best") for name in ORDINARY},
    "fast attention": Row(flops(4 * 8 * 1024**2 * 64), lambda f, m: 8.0, "8 ms"),
    **{name: Row(None, best_peer, "best peer") for name in LAYERS},
    "64 cache writes": Row(),
    "1000 tiny ops": Row(None, lambda f, m: 0.8, "0.8 ms"),
    "1000 tiny ops, compiled": Row(None, lambda f, m: 0.3, "0.3 ms"),
    "small layer, compiled": Row(None, lambda f, m: 0.04, "0.04 ms"),
    "training step": Row(None, lambda f, m: f["torch"], "torch"),
    "small training step": Row(),
    "small training step, compiled": Row(None, best_peer, "best peer"),
}
# A second line for a workload that has a target of its own without fusion.
UNFUSED = {"1000 tiny ops": Row(None, lambda f, m: 1.5, "1.5 ms", "unfused")}


def child(module: str, names: list[str], seconds: float) -> None:
    """Runs the workloads of one library and prints a line of JSON after each."""
    if module in ("ultramarine", "mlx"):
        mx = importlib.import_module("ultramarine" if module == "ultramarine" else "mlx.core")
        table = importlib.import_module("bench.cpu.with_mx").workloads(mx)
    else:
        table = importlib.import_module(f"bench.cpu.with_{module}").workloads()
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
    words = [sys.executable, "-m", "bench.cpu.workloads", "--child", module]
    words += ["--seconds", str(seconds), *names]
    done = subprocess.run(
        words, cwd=record.ROOT, env=os.environ | settings, capture_output=True, text=True
    )
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


def estimate(row: Row, limits: Limits) -> float | None:
    """The limit of a workload in milliseconds, where it is known."""
    try:
        return row.limit(limits) if row.limit else None
    except KeyError:
        return None


def aim(row: Row, best: Figures, limits: Limits) -> float | None:
    """The target of a workload in milliseconds, where what it depends on was measured."""
    try:
        return row.target(best, limits) if row.target else None
    except (KeyError, ValueError):
        return None


def rows_of(name: str) -> list[Row]:
    return [ROWS[name], *([UNFUSED[name]] if name in UNFUSED else [])]


def print_table(names: list[str], results: dict[str, dict[str, list]], limits: Limits) -> None:
    """One table: best of several, with our median beside our best."""
    columns = [c for c in COLUMNS if c in results and c != "unfused"]
    head = ["milliseconds, best of several", "ours", "(median)"]
    head += [c for c in columns if c != "ours"] + ["limit", "target", ""]
    lines = [head]
    for name in names:
        for row in rows_of(name):
            best = {c: results[c][name][0] for c in results if name in results[c]}
            ours = results.get(row.column, {}).get(name)
            label = name if row.column == "ours" else f"{name}, {row.column}"
            line = [label, number(ours and ours[0]), f"({number(ours and ours[1])})"]
            line += [number(best.get(c)) for c in columns if c != "ours"]
            line.append(number(estimate(row, limits)))
            verdict = target = ""
            if row.target:
                least = aim(row, best, limits)
                target = f"{number(least) if least else '?'} ({row.means})"
                if least and ours:
                    verdict = "met" if ours[0] <= least else "NOT MET"
            lines.append([*line, target, verdict])
    show(lines, left=(0, len(head) - 2, len(head) - 1))


def figures_of(
    names: list[str], results: dict[str, dict[str, list]], limits: Limits
) -> list[record.Figure]:
    """The figures of all columns; the project's own carry limit and target."""
    figures = []
    for name in names:
        best = {c: results[c][name][0] for c in results if name in results[c]}
        rows = {row.column: row for row in rows_of(name)}
        for column in best:
            row = rows.get(column)
            value, median, samples = results[column][name]
            figures.append(
                record.Figure(
                    group="workloads",
                    name=f"{name}, unfused" if column == "unfused" else name,
                    library="ultramarine" if column in ("ours", "unfused") else column,
                    value=value,
                    unit="ms",
                    limit=estimate(row, limits) if row else None,
                    target=aim(row, best, limits) if row else None,
                    median=median,
                    samples=samples,
                )
            )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", metavar="MODULE", help=argparse.SUPPRESS)
    parser.add_argument("--limits", type=Path, help="figures of the bench `limits`")
    parser.add_argument("--figures", type=Path, help="file for the figures")
    parser.add_argument("--seconds", type=float, default=1.0, help="per workload and library")
    parser.add_argument(
        "--columns", default=",".join(COLUMNS), help="libraries, separated by commas"
    )
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.child:
        child(args.child, args.names, args.seconds)
        return
    names = [n for n in ROWS if not args.names or any(a.lower() in n.lower() for a in args.names)]
    if not names:
        sys.exit(f"no workload matches; there are: {', '.join(ROWS)}")
    measured = record.load(args.limits)[0] if args.limits else []
    limits = {figure.name: figure.value for figure in measured}
    print(f"{platform.machine()}, {os.cpu_count()} processors; large arrays are {N} x {N} float32")
    if limits:
        print(
            f"measured limits, all cores: {limits['multiply-add, all cores']:.0f} GFLOP/s float32; "
            f"4x + 2y {limits['axpby, all cores']:.0f} GB/s, one core {limits['axpby, one core']:.0f} GB/s"
        )
    results, complaints = {}, []
    for column in args.columns.split(","):
        wanted = [n for n in names if column != "unfused" or n in UNFUSED]
        if not wanted:
            continue
        print(f"running {column} ...", flush=True)
        times, found = collect(column, wanted, args.seconds)
        complaints += found
        if times:
            results[column] = times
    print()
    print_table(names, results, limits)
    for line in complaints:
        print(line)
    if args.figures:
        record.save(args.figures, figures_of(names, results, limits))
    if "ours" not in results:
        sys.exit("no figure of ultramarine")


if __name__ == "__main__":
    main()
