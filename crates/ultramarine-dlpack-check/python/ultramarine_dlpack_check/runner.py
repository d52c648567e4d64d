"""Runs cases in worker processes. One that dies or hangs is a result, and a fresh one goes on."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ultramarine_dlpack_check.case import CASES, Case
from ultramarine_dlpack_check.cases import load

# Seconds that the import of a library may take.
IMPORT = 180.0


@dataclass
class Result:
    """What came of a case."""

    case: str
    outcome: str
    message: str = ""
    optional: bool = False
    seconds: float = 0.0
    output: str = field(default="", repr=False)

    @property
    def bad(self) -> bool:
        return self.outcome in ("fail", "crash", "hang")


@dataclass
class Run:
    """The results of a library. `missing` says why there are none."""

    module: str
    version: str = ""
    missing: str = ""
    results: list[Result] = field(default_factory=list)

    def failed(self, strict: bool) -> list[Result]:
        """What counts against the library."""
        strict = strict or self.module == "ultramarine"
        return [r for r in self.results if r.bad and (strict or not r.optional)]


class Died(Exception):
    """The worker is gone."""


class Hung(Died):
    """It was too slow and was ended."""


class Worker:
    """A process in which cases run."""

    def __init__(self, module: str, loops: int) -> None:
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        out, there = os.pipe()
        command = [sys.executable, "-m", "ultramarine_dlpack_check.worker"]
        self.process = subprocess.Popen(
            [*command, module, str(there), str(loops)],
            stdin=subprocess.PIPE,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            pass_fds=[there],
            text=True,
        )
        os.close(there)
        self.out = out
        self.pending = b""
        self.cases: list[str] = []
        try:
            self.hello = self.answer(IMPORT)
        except Died as died:
            self.hello = {"missing": f"its import: {died}"}

    def answer(self, seconds: float) -> dict[str, Any]:
        """The next line that it says."""
        end = time.monotonic() + seconds
        while b"\n" not in self.pending:
            ready, _, _ = select.select([self.out], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self.process.kill()
                self.process.wait()
                raise Hung(f"no end within {seconds:.0f} s")
            data = os.read(self.out, 65536)
            if not data:
                raise Died(ended(self.process.wait()))
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        said: dict[str, Any] = json.loads(line)
        return said

    def run(self, case: Case, limit: float | None) -> Result:
        """Runs a case; Died if it does not come back."""
        self.log.seek(0)
        self.log.truncate()
        begun = time.monotonic()
        self.cases.append(case.name)
        stdin = self.process.stdin
        try:
            if stdin is not None:
                stdin.write(case.name + "\n")
                stdin.flush()
        except BrokenPipeError:
            raise Died(ended(self.process.wait())) from None
        said = self.answer(case.seconds if limit is None else limit)
        spent = time.monotonic() - begun
        message, printed = said["message"], self.printed()
        return Result(case.name, said["outcome"], message, case.optional, spent, printed)

    def printed(self) -> str:
        """What the library printed meanwhile."""
        self.log.seek(0, os.SEEK_SET)
        return self.log.read()

    def close(self) -> None:
        if self.process.stdin is not None:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        self.log.close()


def ended(code: int) -> str:
    """How a process ended."""
    if code >= 0:
        return f"exit {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def chosen(only: Iterable[str] = ()) -> list[Case]:
    """The cases that one of the patterns names; all without patterns."""
    from fnmatch import fnmatch

    load()
    patterns = list(only)
    return [
        c
        for c in CASES.values()
        if not patterns or any(fnmatch(c.name, p) or p in c.name for p in patterns)
    ]


class Runner:
    """One library through all cases."""

    def __init__(self, module: str, loops: int, limit: float | None) -> None:
        self.module, self.loops, self.limit = module, loops, limit
        self.worker = Worker(module, loops)

    def fresh(self) -> None:
        self.worker.close()
        self.worker = Worker(self.module, self.loops)

    def results_of(self, case: Case) -> list[Result]:
        """The result of a case. A worker that dies in it may have been hurt before: then the case
        passes in a fresh one, and the death is reported as a result of its own."""
        try:
            return [self.worker.run(case, self.limit)]
        except Died as died:
            hung = isinstance(died, Hung)
            message, first = str(died), len(self.worker.cases) == 1
            output, before = self.worker.printed(), self.worker.cases[:-1]
            self.fresh()
        kind = "hang" if hung else "crash"
        crashed = Result(case.name, kind, message, case.optional, output=output)
        if first or hung:
            return [crashed]
        try:
            again = self.worker.run(case, self.limit)
        except Died as died:
            self.fresh()
            crashed.message = str(died)
            return [crashed]
        hurt = f"{message} in {case.name}, which passes alone; after {', '.join(before[-3:])}"
        return [again, Result(f"{case.group}/aftermath", "crash", hurt, output=output)]


def run(
    module: str,
    only: Iterable[str] = (),
    *,
    loops: int = 100_000,
    limit: float | None = None,
    tell: Callable[[Result], None] = lambda _: None,
) -> Run:
    """Judges a library by the cases that the patterns name, each within `limit` seconds if given
    (else within its own)."""
    done = Run(module)
    runner = Runner(module, loops, limit)
    try:
        done.version = runner.worker.hello.get("version", "")
        done.missing = runner.worker.hello.get("missing", "")
        for case in [] if done.missing else chosen(only):
            for result in runner.results_of(case):
                done.results.append(result)
                tell(result)
    finally:
        runner.worker.close()
    return done
