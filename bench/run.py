"""Runs benchmarks, prints their tables and writes one JSON file (see README.md).

    python -m bench.run [NAME ...] [--out target/bench] [--keep]

A NAME is a group or a part of the name of a workload. Without names all groups of the CPU run that are not marked
"by name". Groups run one after the other, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import compare, record, table

# Fused programs of a GPU are compiled before their first call, not beside the timed ones.
WAIT = {"ULTRAMARINE_CUDA_FUSE": "wait"}


@dataclass
class Run:
    """What was asked for, and what was measured so far."""

    native: Path
    seconds: float
    columns: str
    folder: Path
    workloads: list[str] = field(default_factory=list)
    figures: list[record.Figure] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    @property
    def limits(self) -> Path:
        return self.folder / "limits.json"


@dataclass(frozen=True)
class Group:
    """A benchmark: how it runs, how long at most in seconds, and whether a run without names has it."""

    about: str
    start: Callable[[Run], None]
    limit: int
    usual: bool = True


def python(module: str, *arguments: str) -> Callable[[Run], None]:
    """A module that prints its own table and saves its figures."""

    def start(run: Run) -> None:
        path = run.folder / f"{module}.json"
        words = [sys.executable, "-m", module, "--figures", str(path), *arguments]
        if module == "bench.cpu.workloads":
            words += ["--seconds", str(run.seconds), "--columns", run.columns, *run.workloads]
        if module == "bench.cpu.workloads" and run.limits.is_file():
            words += ["--limits", str(run.limits)]
        if module == "bench.cpu.axpby" and (run.native / "limits").is_file():
            words += ["--limits", str(run.native / "limits")]
        try:
            limit = GROUPS[name_of(module)].limit
            done = subprocess.run(words, cwd=record.ROOT, env={**os.environ, **WAIT}, timeout=limit)
            if done.returncode:
                raise RuntimeError(f"exit status {done.returncode}")
        finally:
            if path.is_file():
                figures, details = record.load(path)
                run.figures += figures
                run.details |= details

    return start


def name_of(module: str) -> str:
    return "gpu" if module == "bench.gpu.figures" else module.rpartition(".")[2]


def native(name: str) -> Callable[[Run], None]:
    """A program of bench/native, whose figures are printed here."""

    def start(run: Run) -> None:
        program = run.native / name
        if not program.is_file():
            print(
                f"SKIPPED {name}: {program} is missing. Run `cargo build --release -p ultramarine-bench`."
            )
            return
        limit = GROUPS[name].limit
        done = subprocess.run([program, "--json"], stdout=subprocess.PIPE, text=True, timeout=limit)
        figures = record.lines(done.stdout)
        table.show([row(figure) for figure in figures], left=(0, 2, 3))
        run.figures += figures
        if name == "limits":
            record.save(run.limits, figures)
        if done.returncode:
            raise RuntimeError(f"exit status {done.returncode}")

    return start


def row(figure: record.Figure) -> list[str]:
    """A line of the table of a native benchmark."""
    note = ""
    if figure.limit:
        share = figure.limit / figure.value
        share = share if figure.unit in record.LESS else 1 / share
        note = f"{share:.1%} of the limit"
    if figure.target:
        over = record.Figure(figure.group, figure.name, "", figure.target, figure.unit)
        met = figure.slowdown(over) <= 0
        note += f" target {table.number(figure.target)}: {'met' if met else 'NOT MET'}"
    return [figure.name, table.number(figure.value), figure.unit, note.strip()]


GROUPS: dict[str, Group] = {
    "gpu": Group(
        "a GPU's bandwidth, operations and products, beside torch",
        python("bench.gpu.figures"),
        300,
        usual=False,
    ),
    "dlpack": Group("arrays from one library to another", python("bench.cpu.dlpack"), 300),
    "limits": Group("the machine's memory bandwidth and multiply-add peak", native("limits"), 120),
    "axpby": Group("one expression, and a kernel of one's own", python("bench.cpu.axpby"), 600),
    "boundary": Group("the boundary to backends", native("boundary"), 120),
    "plugins": Group("plugins made by the C compiler", native("plugins"), 300),
    "gemm": Group("matrix products of the CPU crate", native("gemm"), 300, usual=False),
    "elementwise": Group(
        "elementwise programs, copies, reductions of the CPU crate",
        native("elementwise"),
        300,
        usual=False,
    ),
    "jobs": Group(
        "whole programs, in Rust and in Python", python("bench.cpu.jobs"), 900, usual=False
    ),
    "tiny": Group(
        "tiny work from Python, beside numpy and torch", python("bench.cpu.tiny"), 300, usual=False
    ),
    "workloads": Group(
        "the workloads, beside other libraries", python("bench.cpu.workloads"), 1800
    ),
}


def choose(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The groups and workloads that names pick, in the order of the table. Workloads want the limits first."""
    if not names:
        return [name for name, group in GROUPS.items() if group.usual], []
    workloads = [name for name in names if name not in GROUPS]
    chosen = set(names) & set(GROUPS)
    if workloads:
        chosen.add("workloads")
    if "workloads" in chosen:
        chosen.add("limits")
    return [name for name in GROUPS if name in chosen], workloads


def parser() -> argparse.ArgumentParser:
    lines = [
        f"  {name:12} {group.about}{'' if group.usual else ' (by name)'}"
        for name, group in GROUPS.items()
    ]
    made = argparse.ArgumentParser(
        description=__doc__,
        epilog="groups:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    target = record.ROOT / "target"
    made.add_argument("names", nargs="*", metavar="NAME")
    made.add_argument(
        "--native", type=Path, default=target / "release", help="folder of bench/native's programs"
    )
    made.add_argument("--out", type=Path, default=target / "bench", help="folder for the JSON file")
    made.add_argument("--details", type=Path, help="JSON object with more keys for the file")
    made.add_argument("--keep", action="store_true", help="copy it to bench/history")
    made.add_argument("--seconds", type=float, default=1.0, help="per workload and library")
    made.add_argument(
        "--columns",
        default="ours,unfused,numpy,torch,jax,mlx",
        help="libraries of the workloads, separated by commas",
    )
    return made


def main() -> int:
    asked = parser().parse_args()
    chosen, workloads = choose(asked.names)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(asked.native, asked.seconds, asked.columns, Path(folder), workloads)
        for name in chosen:
            print(f"\n== {name}: {GROUPS[name].about}", flush=True)
            begun = time.monotonic()
            try:
                GROUPS[name].start(run)
            except (OSError, RuntimeError, subprocess.SubprocessError, ValueError) as error:
                print(f"FAILED {name}: {error}")
                run.failed.append(name)
            print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    if not run.figures:
        print("no figures")
        return 1
    if asked.details:
        run.details |= json.loads(asked.details.read_text())
    gpu = record.gpu() if any(figure.on == "gpu" for figure in run.figures) else None
    document = record.document(run.figures, gpu, **run.details, failed=run.failed)
    path = record.write(document, asked.out)
    print(f"\n{len(run.figures)} figures in {path}")
    compare.report(document, record.HISTORY)
    if asked.keep and not run.failed:
        record.HISTORY.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, record.HISTORY)
        print(f"kept in {record.HISTORY / path.name}")
    if run.failed:
        print(f"failed: {', '.join(run.failed)}")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
