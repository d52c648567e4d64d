"""Checks and times the CUDA backend on a machine with a GPU, from the bundle that `cargo xtask gpu` made. No Rust is needed.

    python3 testing/gpu-checks/check.py [STEP ...] [--out DIR]

Without a STEP: correctness, then figures if everything was right. DIR gets check.log, the output of all parts, and the
figures as one JSON file. The figures of a correct run are copied to bench/history, too, and compared with the device's
last run there: each drop by more than 5 % is a line at the end.

The exit status is 0 if all steps passed, 1 if one failed, 2 without a GPU or a bundle.
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import steps
from steps import BUNDLE, PLUGIN, ROOT, STEPS, Part

sys.path.insert(0, str(ROOT))
from bench import compare, record

PASSED, FAILED, SKIPPED = "passed", "FAILED", "SKIPPED"


@dataclass(frozen=True)
class Outcome:
    """The result of a part."""

    name: str
    state: str
    seconds: float
    text: str

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "state": self.state, "seconds": round(self.seconds, 1)}


class Runner:
    """Runs parts, prints a summary of each and appends its output to one log."""

    def __init__(self, out: Path, env: dict[str, str], until: float) -> None:
        self.log = out / "check.log"
        self.log.write_text("")
        self.env = env
        # No part runs beyond this moment of the monotonic clock.
        self.until = until
        self.lock = Lock()
        self.outcomes: list[Outcome] = []

    def run(self, part: Part) -> Outcome:
        outcome, output = self.try_part(part)
        with self.lock:
            self.outcomes.append(outcome)
            with self.log.open("a") as log:
                log.write(f"== {part.name}: {' '.join(part.command)}\n{output}\n\n")
            print(f"{outcome.state:8} {part.name}: {outcome.text}", flush=True)
        return outcome

    def try_part(self, part: Part) -> tuple[Outcome, str]:
        missing = [module for module in part.needs if not steps.has(module)]
        if missing:
            state = FAILED if part.required else SKIPPED
            return Outcome(part.name, state, 0, f"without {', '.join(missing)}"), ""
        begun = time.monotonic()
        limit = min(part.limit, self.until - begun)
        if limit <= 0:
            return Outcome(part.name, FAILED, 0, "not begun: no time was left"), ""
        # A file, so that the output of a part that is stopped is kept.
        with tempfile.TemporaryFile("w+", errors="replace") as file:
            try:
                status = subprocess.run(
                    part.command,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    env={**self.env, **dict(part.env)},
                    cwd=ROOT,
                    timeout=limit,
                ).returncode
                how = f"exit status {status}" if status else "ok"
            except subprocess.TimeoutExpired:
                status, how = 1, f"stopped after {limit:.0f} s"
            except OSError as error:
                status, how = 1, str(error)
            file.seek(0)
            output = file.read().rstrip()
        seconds = time.monotonic() - begun
        text = "\n    ".join([f"{how}, {seconds:.1f} s", *output.splitlines()[-part.lines :]])
        return Outcome(part.name, FAILED if status else PASSED, seconds, text), output

    def run_lanes(self, lanes: list[list[Part]]) -> bool:
        """Runs lanes side by side. Returns whether nothing failed."""
        with ThreadPoolExecutor(len(lanes)) as pool:
            done = list(pool.map(lambda lane: [self.run(part) for part in lane], lanes))
        return all(outcome.state != FAILED for lane in done for outcome in lane)


def device(env: dict[str, str]) -> str | None:
    """The name of the backend's first GPU; None, after a message, where there is none."""
    ask = (
        "import ultramarine as mx\n"
        "if mx.is_available(mx.gpu): print(mx.device_info(mx.gpu).get('device_name', 'a GPU'))"
    )
    words = [sys.executable, "-c", ask]
    done = subprocess.run(words, env=env, cwd=ROOT, capture_output=True, text=True)
    name = done.stdout.strip()
    if name:
        return name
    print("no GPU: the CUDA backend shows no device. The load report says why:")
    report = [sys.executable, "-m", "ultramarine", "backends"]
    reported = subprocess.run(report, env=env, cwd=ROOT, capture_output=True, text=True)
    print((done.stderr + reported.stdout + reported.stderr).rstrip())
    return None


def run_steps(names: list[str], runner: Runner, out: Path) -> list[str]:
    """Runs steps in order and prints the minutes of each. Returns those that failed."""
    failed: list[str] = []
    by_name = steps.parts()
    for name in names:
        if name == "figures" and "correctness" in failed:
            print("SKIPPED  figures: something is wrong, so that none are recorded")
            continue
        begun = time.monotonic()
        lanes = STEPS[name].lanes(out) if name in STEPS else [[by_name[name]]]
        if name == "figures":
            lanes = [[with_checks(part, runner) for part in lane] for lane in lanes]
        right = runner.run_lanes([list(lane) for lane in lanes])
        print(f"{name}: {(time.monotonic() - begun) / 60:.1f} minutes\n", flush=True)
        if not right:
            failed.append(name)
    return failed


def with_checks(part: Part, runner: Runner) -> Part:
    """The figures' part with the outcomes so far among the details of its file."""
    checks = [outcome.to_json() for outcome in runner.outcomes]
    details = Path(tempfile.mkdtemp()) / "details.json"
    details.write_text(json.dumps({"checks": checks}))
    command = [*part.command, "--details", str(details)]
    return Part(part.name, command, part.limit, part.needs, part.lines, part.env)


def keep(out: Path, history: Path, before: set[Path], correct: bool) -> None:
    """Copies the new figures of a correct run to `history` and prints what dropped since the device's last run."""
    for path in sorted(set(out.glob("*.json")) - before):
        print(f"figures: {path}")
        compare.report(record.read(path), history)
        if correct:
            history.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, history / path.name)
            print(f"kept in {history}")
        else:
            print("not kept in the history: run correctness and figures in one call")


def list_steps() -> str:
    lines = [f"{'step':14} {'minutes':>7}  about"]
    for name, step in STEPS.items():
        usual = " (by default)" if step.usual else ""
        lines.append(f"{name:14} {step.minutes:7g}  {step.about}{usual}")
    lines.append(f"parts of correctness, each a step by name: {', '.join(steps.parts())}")
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__,
        epilog=list_steps(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("steps", nargs="*", metavar="STEP", help="see below")
    made.add_argument("--out", type=Path, default=BUNDLE / "out", help="default: target/gpu/out")
    made.add_argument("--minutes", type=float, default=9.5, help="for all steps (default: 9.5)")
    made.add_argument("--dry-run", action="store_true", help="print the commands only")
    return made


def main() -> int:
    asked = parser().parse_args()
    names = asked.steps or [name for name, step in STEPS.items() if step.usual]
    unknown = [name for name in names if name not in STEPS and name not in steps.parts()]
    if unknown:
        print(f"no step {', '.join(unknown)}\n{list_steps()}")
        return 2
    if asked.dry_run:
        for name in names:
            lanes = STEPS[name].lanes(asked.out) if name in STEPS else [[steps.parts()[name]]]
            for part in (part for lane in lanes for part in lane):
                print(f"{part.name} (at most {part.limit} s): {' '.join(part.command)}")
        return 0
    until = time.monotonic() + 60 * asked.minutes
    steps.unpack_programs()
    if not PLUGIN.is_file():
        print(f"no bundle: {PLUGIN} is missing. Run `cargo xtask gpu` where there is Rust.")
        return 2
    env = steps.environment()
    name = device(env)
    if name is None:
        return 2
    # The bundle's: the machine may have another history, or none.
    commit = (BUNDLE / "commit").read_text().strip()
    os.environ[record.COMMIT] = env[record.COMMIT] = commit
    print(f"{name}; commit {commit}; {record.cpu()['cores']} cores\n", flush=True)
    asked.out.mkdir(parents=True, exist_ok=True)
    before = set(asked.out.glob("*.json"))
    runner = Runner(asked.out, env, until)
    failed = run_steps(names, runner, asked.out)
    for outcome in runner.outcomes:
        print(f"{outcome.state:8} {outcome.name} {outcome.seconds:.0f} s")
    correct = "correctness" in names and not failed
    keep(asked.out, record.HISTORY, before, correct)
    print(f"failed: {', '.join(failed)}" if failed else "all steps passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
