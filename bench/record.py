"""Benchmark results: figures, the machine they were taken on, and the JSON file that holds both.

README.md describes the format. Programs hand figures to the runner in a file of this module's `save`, or as JSON lines.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HISTORY = ROOT / "bench" / "history"
# Names the commit that was built, where it is not the checked-out one.
COMMIT = "ULTRAMARINE_BENCH_COMMIT"

# Units by the direction that is better.
LESS = ("ns", "us", "ms", "s")
MORE = ("GB/s", "GFLOP/s", "TFLOP/s", "tokens/s", "steps/s")


@dataclass(frozen=True)
class Figure:
    """One measured value."""

    group: str
    name: str
    # `ultramarine`, another library, or `machine` for limits.
    library: str
    # The best of all runs where `median` says the median, else as the group defines it.
    value: float
    unit: str
    # The processor that computes: cpu or gpu.
    on: str = "cpu"
    # The machine's limit and the project's aim, in the same unit.
    limit: float | None = None
    target: float | None = None
    median: float | None = None
    samples: int = 1

    def __post_init__(self) -> None:
        if self.unit not in LESS + MORE:
            raise ValueError(
                f"{self.name}: unknown unit {self.unit!r}. Use {', '.join(LESS + MORE)}."
            )
        if self.on not in ("cpu", "gpu"):
            raise ValueError(f"{self.name}: on {self.on!r}. Use cpu or gpu.")

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the figure across runs."""
        return (self.on, self.group, self.name, self.library, self.unit)

    def slowdown(self, other: Figure) -> float:
        """The share by which this figure is worse than `other`: 0.05 for 5 %, negative if it is better."""
        if self.unit in LESS:
            return self.value / other.value - 1
        return 1 - self.value / other.value

    def to_json(self) -> dict[str, Any]:
        """The figure's keys without those that are None, numbers with six digits."""
        given = {key: value for key, value in asdict(self).items() if value is not None}
        return {
            key: float(f"{value:.6g}") if isinstance(value, float) else value
            for key, value in given.items()
        }

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Figure:
        """Reads a figure; keys that this version does not know are ignored."""
        known = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in given.items() if key in known})


def save(path: Path, figures: Iterable[Figure], **details: Any) -> None:
    """Writes what one benchmark program measured, for the runner."""
    results = [figure.to_json() for figure in figures]
    path.write_text(json.dumps({"results": results, **details}))


def load(path: Path) -> tuple[list[Figure], dict[str, Any]]:
    """Reads what `save` wrote: figures, and details such as clocks."""
    given = json.loads(path.read_text())
    return [Figure.from_json(result) for result in given.pop("results")], given


def lines(text: str) -> list[Figure]:
    """Reads the JSON lines of a native benchmark."""
    return [Figure.from_json(json.loads(line)) for line in text.splitlines() if line.strip()]


def cpu() -> dict[str, Any]:
    """The processor's model and the number of cores that this process may use."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        model = found.group(1).strip() if found else model
    has = hasattr(os, "sched_getaffinity")
    return {"model": model, "cores": len(os.sched_getaffinity(0)) if has else os.cpu_count()}


def gpu() -> dict[str, Any] | None:
    """Name, driver and clocks (MHz) of the first NVIDIA GPU, by nvidia-smi; None without one."""
    asked = ("name", "driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem")
    command = ["nvidia-smi", f"--query-gpu={','.join(asked)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    words = [word.strip() for word in done.stdout.partition("\n")[0].split(",")]
    if len(words) != len(asked):
        return None
    names = ("sm", "memory", "sm_max", "memory_max")
    clocks = {
        name: int(word) for name, word in zip(names, words[2:], strict=True) if word.isdigit()
    }
    return {"name": words[0], "driver": words[1], "clocks": clocks}


def commit() -> str:
    """The commit of this tree, `-changed` behind it if files differ, unless the environment names another."""
    if built := os.environ.get(COMMIT):
        return built
    git = ["git", "-C", str(ROOT)]
    try:
        done = subprocess.run(
            [*git, "rev-parse", "--short=9", "HEAD"], capture_output=True, text=True, check=True
        )
        changes = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True
        )
        return done.stdout.strip() + ("-changed" if changes.stdout.strip() else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def document(
    figures: Iterable[Figure],
    gpu: dict[str, Any] | None = None,
    clocks: dict[str, int] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """All of a run in the format of README.md. Pass `clocks` that were read under load."""
    processor = cpu()
    return {
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "device": gpu["name"] if gpu else processor["model"],
        "driver": gpu["driver"] if gpu else None,
        "clocks": (clocks or gpu["clocks"]) if gpu else None,
        "cpu": processor,
        **more,
        "results": [figure.to_json() for figure in figures],
    }


def file_name(document: dict[str, Any]) -> str:
    """DEVICE-DATE-COMMIT.json, in letters, digits, `-` and `.`."""
    device = re.sub(r"[^a-z0-9]+", "-", document["device"].lower()).strip("-")
    date = re.sub(r"[^0-9TZ]", "", document["date"])
    return f"{device}-{date}-{document['commit']}.json"


def write(document: dict[str, Any], folder: Path) -> Path:
    """Writes a run under its name, a result a line, so that differences of two files can be read."""
    head = {key: value for key, value in document.items() if key != "results"}
    rows = ",\n  ".join(json.dumps(result) for result in document["results"])
    text = json.dumps(head, indent=1)[: -len("\n}")] + f',\n "results": [\n  {rows}\n ]\n}}\n'
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file_name(document)
    path.write_text(text)
    return path


def read(path: Path) -> dict[str, Any]:
    """Reads a run.

    Raises:
        ValueError: the file is no run, with what is missing.
    """
    given = json.loads(path.read_text())
    missing = [k for k in ("commit", "date", "device", "cpu", "results") if k not in given]
    if missing:
        raise ValueError(f"{path}: not a benchmark run, without {', '.join(missing)}")
    return given


def figures(document: dict[str, Any]) -> list[Figure]:
    """The figures of a run."""
    return [Figure.from_json(result) for result in document["results"]]
