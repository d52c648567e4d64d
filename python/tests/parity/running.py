"""Running many cases in child processes, which mlx may take down."""

from __future__ import annotations

import fnmatch
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from support.paths import TESTS

from .draw import Entry
from .table import TABLE, present

# A case that takes longer hangs.
PATIENCE = 30.0


def plan(total: int, only: str = "", first: int = 0) -> list[tuple[Entry, int]]:
    """Cases of a run of about `total`: each entry's from number `first` on, by weight."""
    entries = [e for e in TABLE if fnmatch.fnmatchcase(e.name, only or "*") and present(e.name)]
    weight = sum(e.weight for e in entries)
    counts = {e.name: max(3, round(total * e.weight / weight)) for e in entries}
    # Interleaved, so that shards have alike work.
    return [
        (e, first + i) for i in range(max(counts.values())) for e in entries if i < counts[e.name]
    ]


@dataclass
class Outcome:
    """Outcome of a run."""

    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, int, str, str]] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(sum(c.values()) for c in self.counts.values())

    def report(self, limit: int = 40) -> str:
        by_name = Counter(name for name, *_ in self.wrong)
        lines = [f"{len(self.wrong)} of {self.total} cases differ from mlx:"]
        for name, i, difference, line in self.wrong[:limit]:
            difference, line = difference.replace("\n", " "), line.replace("\n", "; ")
            lines.append(f"  {name}/{i}: {difference[:300]}\n    {line[:600]}")
        if len(self.wrong) > limit:
            lines.append(f"  and {len(self.wrong) - limit} more: {dict(by_name)}")
        return "\n".join(lines)


def child(total: int, only: str, first: int, shard: int, shards: int, skip: int) -> None:
    """Runs a shard's cases from `skip` on; tells each step in a line."""
    import mlx.core as mlx

    from .outcome import outcome_of

    mlx.set_default_device(mlx.cpu)
    out = os.dup(1)
    # mlx writes warnings where our lines go.
    os.dup2(2, 1)

    def tell(*what: object) -> None:
        os.write(out, (json.dumps(what) + "\n").encode())

    for n, (entry, index) in enumerate(plan(total, only, first)[shard::shards]):
        if n < skip:
            continue
        tell("case", n)
        case = entry.case(index)
        result, detail = outcome_of(case, lambda library: tell("in", library))
        line = case.reproducer() if result == "differs" else ""
        tell("done", result, detail, line)


def lines_of(process: subprocess.Popen[bytes]) -> Iterator[list | None]:
    """The lines of a child as they come; None when it is silent for too long."""
    assert process.stdout is not None
    fd = process.stdout.fileno()
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while True:
            if not selector.select(PATIENCE):
                yield None
                return
            data = os.read(fd, 1 << 16)
            if not data:
                return
            *whole, pending = (pending + data).split(b"\n")
            for line in whole:
                yield json.loads(line)


def run_shard(total: int, only: str, first: int, shard: int, shards: int, into: Outcome) -> None:
    cases = plan(total, only, first)[shard::shards]
    skip = 0
    # The package that the parent has, wherever it was found.
    paths = [str(TESTS), *(str(Path(p).resolve()) for p in sys.path if p)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    # Calls that write files may write one here.
    folder = tempfile.TemporaryDirectory()
    while skip < len(cases):
        command = [sys.executable, "-m", "parity", "child", str(total), only, str(first)]
        process = subprocess.Popen(
            [*command, str(shard), str(shards), str(skip)],
            stdout=subprocess.PIPE,
            cwd=folder.name,
            env=environment,
        )
        library, finished, silent = "start", skip, False
        for line in lines_of(process):
            if line is None:
                silent = True
                process.kill()
                break
            match line:
                case ["in", which]:
                    library = which
                case ["done", result, detail, text]:
                    entry, index = cases[finished]
                    into.counts[entry.name][result] += 1
                    if result in ("purpose", "crash"):
                        into.reasons[detail] += 1
                    if result == "differs":
                        into.wrong.append((entry.name, index, detail, text))
                    finished, library = finished + 1, "start"
        code = process.wait()
        skip = finished
        if finished < len(cases):
            entry, index = cases[finished]
            what = "hangs" if silent else f"ends the process ({code})"
            into.counts[entry.name]["differs"] += 1
            line = entry.case(index).reproducer()
            into.wrong.append((entry.name, index, f"{library}: {what}", line))
            skip += 1
    folder.cleanup()


def run(total: int, only: str = "", shards: int = 2, first: int = 0) -> Outcome:
    """Runs about `total` cases, numbered from `first`, in `shards` processes at a time."""
    from threading import Thread

    outcome = Outcome()
    parts = [Outcome() for _ in range(shards)]
    threads = [
        Thread(target=run_shard, args=(total, only, first, i, shards, part))
        for i, part in enumerate(parts)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for part in parts:
        for name, counts in part.counts.items():
            outcome.counts[name].update(counts)
        outcome.reasons.update(part.reasons)
        outcome.wrong += part.wrong
    outcome.wrong.sort()
    return outcome


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["child"]:
        total, only, *rest = arguments[1:]
        child(int(total), only, *map(int, rest))
        return 0
    if arguments[:1] == ["one"]:
        from .outcome import outcome_of

        entry = next(e for e in TABLE if e.name == arguments[1])
        case = entry.case(int(arguments[2]))
        print(case.reproducer(), *outcome_of(case), sep="\n")
        return 0
    total = int(arguments[0]) if arguments else 6000
    only = arguments[1] if len(arguments) > 1 else ""
    begin = time.monotonic()
    outcome = run(total, only)
    took = time.monotonic() - begin
    print(outcome.report(10**9))
    results: Counter[str] = Counter()
    for counts in outcome.counts.values():
        results.update(counts)
    print(dict(results), f"in {took:.0f} s")
    return 1 if outcome.wrong else 0
