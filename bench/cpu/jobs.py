"""Whole programs, in Rust and in Python: digits, text, and with `--model DIR` the generation of text.

Both do the same work on the same numbers. They run in turns, several rounds; figures are the best of all rounds, and the
processor time is that of a whole program, from its start to its end. The Rust programs have to be built before:
`cargo build --release -p ultramarine-nn --examples`.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import record
from bench.record import ROOT, Figure
from bench.table import number, show

PROGRAMS = ROOT / "target" / "release" / "examples"
NUMBER = r"([\d.]+)"
LIBRARIES = {"Rust": "ultramarine in Rust", "Python": "ultramarine"}


@dataclass(frozen=True)
class Job:
    """A program that there is in both languages."""

    name: str
    arguments: tuple[str, ...]
    # Names and units of what it prints, by patterns.
    figures: dict[str, tuple[str, str]]
    # Patterns of what has to be the same in both.
    same: tuple[str, ...]

    def command(self, language: str, out: str) -> list[str]:
        given = [*self.arguments, *(("--out", out) if self.name == "text" else ())]
        if language == "Rust":
            return [str(PROGRAMS / self.name), *given]
        return [sys.executable, str(ROOT / "examples" / f"{self.name}.py"), *given]


def jobs(steps: int, model: Path | None) -> list[Job]:
    digits = Job(
        "digits",
        (),
        {rf"Trained in {NUMBER} s": ("training", "s")},
        (rf"to a loss of {NUMBER}\.", rf"accuracy: {NUMBER}%"),
    )
    text = Job(
        "text",
        ("--steps", str(steps)),
        {
            rf"{NUMBER} steps a second": ("steps", "steps/s"),
            rf"{NUMBER} a second\.\n": ("writing", "tokens/s"),
        },
        (rf"Held-out loss: {NUMBER} ",),
    )
    generate = Job(
        "generate",
        ("--model", str(model), "--max-tokens", "100"),
        {
            rf"Prompt: \d+ tokens, {NUMBER} a second": ("prompt", "tokens/s"),
            rf"Generation: \d+ tokens, {NUMBER} a second": ("generation", "tokens/s"),
        },
        (r"Generation: (\d+) tokens",),
    )
    return [digits, text, *([generate] if model else [])]


def run(job: Job, language: str) -> tuple[dict[tuple[str, str], float], list[str]]:
    """The figures of one run, and what has to be the same in both languages."""
    with tempfile.TemporaryDirectory() as out:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(job.command(language, out), capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = done.stdout + done.stderr
    if done.returncode:
        raise RuntimeError(f"{job.name} in {language}: exit status {done.returncode}\n{printed}")

    def found(pattern: str) -> str:
        match = re.search(pattern, printed)
        if match is None:
            raise RuntimeError(f"{job.name} in {language} does not print {pattern!r}:\n{printed}")
        return match.group(1)

    figures = {what: float(found(pattern)) for pattern, what in job.figures.items()}
    spent = sum(getattr(after, kind) - getattr(before, kind) for kind in ("ru_utime", "ru_stime"))
    return {**figures, ("processor time", "s"): spent}, [found(pattern) for pattern in job.same]


def best(unit: str, values: list[float]) -> float:
    return min(values) if unit in record.LESS else max(values)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, metavar="DIR", help="a language model's folder")
    parser.add_argument("--steps", type=int, default=200, help="steps of text's training")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--figures", type=Path, help="file for the figures")
    asked = parser.parse_args()
    rows = [["job", "figure", "unit", *LIBRARIES, "Rust / Python"]]
    figures, different = [], 0
    for job in jobs(asked.steps, asked.model):
        taken: dict[tuple[str, str], dict[str, list[float]]] = {}
        results = {}
        for _ in range(asked.rounds):
            for language in LIBRARIES:
                values, results[language] = run(job, language)
                for what, value in values.items():
                    taken.setdefault(what, {}).setdefault(language, []).append(value)
        for (name, unit), runs in taken.items():
            ours = {language: best(unit, runs[language]) for language in LIBRARIES}
            ratio = f"{ours['Rust'] / ours['Python']:.2f}"
            rows.append([job.name, name, unit, *(number(v) for v in ours.values()), ratio])
            for language, library in LIBRARIES.items():
                samples = len(runs[language])
                figures.append(
                    Figure(
                        "jobs",
                        f"{job.name}: {name}",
                        library,
                        ours[language],
                        unit,
                        samples=samples,
                    )
                )
        if results["Rust"] != results["Python"]:
            different += 1
            print(f"{job.name}: Rust says {results['Rust']}, Python {results['Python']}")
    show(rows, left=(0, 1, 2))
    if asked.figures:
        record.save(asked.figures, figures)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
