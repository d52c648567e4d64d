"""Results as a table, as JSON, and as Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from ultramarine_dlpack_check.case import CASES
from ultramarine_dlpack_check.runner import Result, Run

OUTCOMES = ["pass", "fail", "crash", "hang", "n.a.", "skip"]


def rows(runs: Sequence[Run]) -> list[str]:
    """Names of cases that any of the runs has, in the order of the suite."""
    seen = dict.fromkeys(r.case for run in runs for r in run.results)
    return sorted(seen, key=lambda n: (list(CASES).index(n) if n in CASES else len(CASES), n))


def cell(result: Result | None) -> str:
    """A result in a word. Crashes have their signal."""
    if result is None:
        return ""
    if result.outcome == "crash":
        return (
            "crash" if "aftermath" in result.case else f"crash ({result.message.split(' in ')[0]})"
        )
    return result.outcome


def kind(name: str) -> str:
    """Whose the rule is."""
    case = CASES.get(name)
    return "ours" if case is not None and case.optional else ""


def table(runs: Sequence[Run]) -> str:
    """One line for each case, one column for each library."""
    names = [run.module for run in runs]
    found = [{r.case: r for r in run.results} for run in runs]
    lines = []
    wide = max([len(n) for n in rows(runs)] + [4])
    columns = [
        max([len(name)] + [len(cell(r)) for r in by.values()]) for name, by in zip(names, found)
    ]

    def line(first: str, whose: str, cells: Sequence[str]) -> str:
        padded = "  ".join(c.ljust(w) for c, w in zip(cells, columns))
        return f"{first:<{wide}}  {whose:<4}  {padded}".rstrip()

    lines.append(line("case", "rule", names))
    for name in rows(runs):
        lines.append(line(name, kind(name), [cell(by.get(name)) for by in found]))
    return "\n".join(lines)


def totals(run: Run) -> str:
    """A library in a line."""
    if run.missing:
        return f"{run.module}: cannot be judged: {run.missing}"
    required = Counter(r.outcome for r in run.results if not r.optional)
    ours = Counter(r.outcome for r in run.results if r.optional)

    def counts(of: Counter[str]) -> str:
        return ", ".join(f"{of[o]} {o}" for o in OUTCOMES if of[o]) or "none"

    title = f"{run.module} {run.version}".strip()
    return f"{title}: required: {counts(required)}; ours: {counts(ours)}"


def findings(run: Run) -> str:
    """What is not a pass, with what came."""
    lines = []
    for result in run.results:
        if result.outcome == "pass":
            continue
        case = CASES.get(result.case)
        whose = " (ours)" if result.optional else ""
        lines.append(f"{run.module}: {result.outcome}: {result.case}{whose}: {result.message}")
        if result.bad and case is not None:
            lines.append(f"    rule: {case.rule} [{case.source}]")
    return "\n".join(lines)


def to_json(runs: Sequence[Run]) -> str:
    """Everything."""
    return json.dumps(
        [
            {
                "module": run.module,
                "version": run.version,
                "missing": run.missing,
                "results": [
                    {
                        "case": r.case,
                        "outcome": r.outcome,
                        "told": r.message,
                        "required": not r.optional,
                        "seconds": round(r.seconds, 2),
                    }
                    for r in run.results
                ],
            }
            for run in runs
        ],
        indent=1,
    )


def markdown(runs: Sequence[Run]) -> str:
    """Totals by library, and a table of the cases that not all of them pass."""
    heads = [f"{run.module} {run.version}".strip() for run in runs]
    lines = ["| outcome | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(runs)]
    for optional, whose in [(False, "required"), (True, "ours")]:
        for outcome in OUTCOMES:
            counts = [
                sum(r.outcome == outcome and r.optional == optional for r in run.results)
                for run in runs
            ]
            if any(counts):
                row = " | ".join(str(c) for c in counts)
                lines.append(f"| {whose}: {outcome} | {row} |")
    lines += ["", "| case | rule | " + " | ".join(run.module for run in runs) + " |"]
    lines.append("| --- | --- |" + " --- |" * len(runs))
    found = [{r.case: r for r in run.results} for run in runs]
    for name in rows(runs):
        cells = [cell(by.get(name)) for by in found]
        if any(c.startswith(("fail", "crash", "hang")) for c in cells):
            shown = " | ".join("" if c == "pass" else c for c in cells)
            lines.append(f"| {name} | {kind(name) or 'required'} | {shown} |")
    return "\n".join(lines) + "\n"


def listing() -> str:
    """The cases with their rules."""
    lines = []
    for case in CASES.values():
        mark = " (ours: optional for others)" if case.optional else ""
        lines.append(f"{case.name}{mark}\n    {case.rule} [{case.source}]")
    return "\n".join(lines)
