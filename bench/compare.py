"""Compares a run with the last run of the same device: a line for each figure that dropped.

python -m bench.compare NEW.json [--history bench/history] [--percent 5]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from bench import record, table

PERCENT = 5.0


def last(document: dict[str, Any], folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """The newest earlier run of the device in `folder`. Its name begins with the device, its date decides."""
    found = []
    for path in folder.glob("*.json"):
        other = record.read(path)
        if other["device"] == document["device"] and other["date"] < document["date"]:
            found.append((other["date"], path, other))
    if not found:
        return None
    _, path, other = max(found, key=lambda entry: entry[0])
    return path, other


def drops(
    old: dict[str, Any], new: dict[str, Any], percent: float = PERCENT
) -> list[tuple[record.Figure, record.Figure]]:
    """Pairs of Ultramarine's figures, before and now, that are worse by more than `percent`, the worst first.

    Figures of the CPU count only if the processor and its number of cores are the same.
    """
    same_cpu = old["cpu"] == new["cpu"]
    before = {figure.key: figure for figure in record.figures(old)}
    pairs = [
        (before[figure.key], figure)
        for figure in record.figures(new)
        if figure.library == "ultramarine"
        and figure.key in before
        and before[figure.key].value > 0
        and (figure.on == "gpu" or same_cpu)
    ]
    pairs = [(a, b) for a, b in pairs if b.slowdown(a) > percent / 100]
    return sorted(pairs, key=lambda pair: -pair[1].slowdown(pair[0]))


def report(document: dict[str, Any], folder: Path, percent: float = PERCENT) -> int:
    """Prints the drops of a run. Returns how many there are."""
    found = last(document, folder)
    if found is None:
        print(f"no earlier run of {document['device']} in {folder}")
        return 0
    path, old = found
    worse = drops(old, document, percent)
    print(f"{len(worse)} figures dropped by more than {percent:g} % since {path.name}")
    if old["cpu"] != document["cpu"]:
        print("figures of the CPU are not compared: another processor or number of cores")
    rows = [
        [
            f"DROPPED {now.group}: {now.name} ({now.on})",
            table.number(before.value),
            "->",
            table.number(now.value),
            now.unit,
            f"{100 * now.slowdown(before):.1f} % worse",
        ]
        for before, now in worse
    ]
    table.show(rows, left=(0, 2, 4))
    return len(worse)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--history", type=Path, default=record.HISTORY)
    parser.add_argument("--percent", type=float, default=PERCENT)
    asked = parser.parse_args()
    report(record.read(asked.run), asked.history, asked.percent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
