"""Workloads by number of cores, in each library: how much faster each gets with more of them.

    python -m bench.cpu.scaling [--cores 1,2,4,8,16] [--columns ours,numpy,torch] [--figures FILE] [NAME ...]

Each pair of a library and a number of cores is a process of its own, bound to those cores; libraries that take their number of
threads from the environment are told it. Words pick workloads by part of the name.
"""

import argparse
import os
import sys
from pathlib import Path

from bench import record
from bench.cpu.workloads import ROWS, collect
from bench.table import number, show

# Variables by which libraries take their number of threads.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def counts(available: int) -> list[int]:
    """1, 2, 4 and so on, up to all cores."""
    powers = [1 << i for i in range(available.bit_length()) if 1 << i < available]
    return [*powers, available]


def main() -> None:
    cores = sorted(os.sched_getaffinity(0))
    usual = ",".join(map(str, counts(len(cores))))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", default=usual, help="numbers of cores, separated by commas")
    parser.add_argument("--columns", default="ours,numpy,torch", help="libraries, likewise")
    parser.add_argument("--seconds", type=float, default=0.2, help="per workload and process")
    parser.add_argument("--figures", type=Path, help="file for the figures")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    names = [n for n in ROWS if not args.names or any(a.lower() in n.lower() for a in args.names)]
    numbers = [int(word) for word in args.cores.split(",")]
    if not names or min(numbers) < 1 or max(numbers) > len(cores):
        sys.exit(f"workloads: {', '.join(ROWS)}; cores: 1 to {len(cores)}")
    columns = args.columns.split(",")
    taken: dict[tuple[str, int, str], float] = {}
    for count in numbers:
        for column in columns:
            os.sched_setaffinity(0, cores[:count])
            os.environ.update({name: str(count) for name in THREADS})
            times, complaints = collect(column, names, args.seconds)
            print(*complaints, sep="\n", end="\n" if complaints else "", flush=True)
            taken |= {(column, count, name): best for name, (best, *_) in times.items()}
    os.sched_setaffinity(0, cores)
    lines = [["milliseconds by cores", *(f"{c} {n}" for c in columns for n in numbers), "speedups"]]
    figures = []
    for name in names:
        line, speedups = [name], []
        for column in columns:
            row = [taken.get((column, count, name)) for count in numbers]
            line += [number(value) for value in row]
            first, last = row[0], row[-1]
            speedups.append(f"{first / last:.1f}" if first and last else "-")
            library = "ultramarine" if column == "ours" else column
            figures += [
                record.Figure("scaling", f"{name}, {count} cores", library, value, "ms")
                for count, value in zip(numbers, row, strict=True)
                if value
            ]
        lines.append([*line, " / ".join(speedups)])
    show(lines, left=(0, len(lines[0]) - 1))
    if args.figures:
        record.save(args.figures, figures)


if __name__ == "__main__":
    main()
