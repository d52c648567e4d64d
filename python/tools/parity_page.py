"""Writes docs/parity.md: every name of mlx.core, whether it is here, and what cases of it came to.

    PYTHONPATH=python python python/tools/parity_page.py [CASES [NAME]]

runs that many generated cases of all names, or of those like `NAME`, and writes the page. Other counts stay the page's.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT.parent / "docs" / "parity.md"
sys.path.insert(0, str(ROOT / "tests"))

from parity import running, surface, table  # noqa: E402
from parity.crashes import CRASHES  # noqa: E402
from parity.draw import Entry  # noqa: E402
from parity.purpose import PARITY  # noqa: E402
from parity.rows import Row  # noqa: E402
from support.differences import DELIBERATE  # noqa: E402
from support.harness import units  # noqa: E402

# What a case can come to, as columns.
COLUMNS = ("same", "error", "numpy", "accident", "purpose", "crash")
Counts = dict[str, tuple[int, ...]]

HEAD = """# Parity with mlx.core

This page is written by `python/tools/parity_page.py`, which runs generated calls of every name with
`mlx.core` {version} (the CPU wheel) and with `ultramarine` on the same data, and compares structure, shape, dtype and
values of the results, or the type of the error. `python/tests/parity` draws the calls: dtypes, shapes (no axes,
no elements, broadcasting ones), layouts (transposed, stepped, reversed, broadcast, parts of others), special values, all arguments
in all their forms, and wrong ones. Tests fail when this page is not what the table and the installed packages say, or when its counts are not
those that a sample of cases lets expect.

```sh
ULTRAMARINE_PARITY_CASES=100000 python -m pytest python/tests/parity   # the whole; 6,000 cases without it
cd python/tests && python -m parity 20000 'fft.*'                      # some names
cd python/tests && python -m parity one take 17                        # one case, and a line that runs it
```

"""

LEGEND = """
*same*: results agree within the tolerance. *error*: both raise the same type. *by NumPy*: values differ, or mlx does not survive the case,
and NumPy (float64, or exact integers) says that ours are right, or refuses it, too. *mlx lacks*: mlx raises because it has not got it, or by accident. *on purpose*: a difference that is listed below.
*not judged*: inputs that mlx does not survive (listed below)
and NumPy has no answer to: dtypes and arguments that it lacks; ours ran. Tolerances are in units in the last place, of each value or of the size
that is named; 0 is to the bit. They are those of float32: of 16-bit floats 4 at most, where no reason for more is given. Random functions get the same
key.
"""


def tolerance(entry: Entry) -> str:
    if not entry.ulps:
        return "0"
    if entry.scale == "each":
        size = "each value"
    elif entry.scale == "largest":
        size = "the largest"
    else:
        size = {
            "mass": "the sum of magnitudes",
            "average": "the mean magnitude",
            "spread": "the largest square" if "var" in entry.name else "the largest",
            "one": "1",
            "layer_size": "the largest element",
            "value_size": "the largest value",
            "product_size": "the terms' sum",
            "size_of_sum": "the sum of magnitudes",
            "sum_of_inputs": "the operands' sum",
        }[entry.scale.__name__]
    return f"{units(entry.ulps, 'float32'):g} of {size}"


def counts_of_page() -> Counts:
    """The counts that the page has."""
    out: Counts = {}
    for line in PAGE.read_text().split("\n") if PAGE.exists() else []:
        found = re.fullmatch(r"\| `([^`]+)` \| yes \| (\d+) ((?:\| \d+ ){6})\| .* \|", line)
        if found:
            out[found[1]] = tuple(int(n) for n in found[3].split("|")[1:])
    return out


def rows(group: str, counts: Counts) -> list[str]:
    entries = {e.name: e for e in table.TABLE}
    out = []
    for name in sorted({*entries, *surface.LATER}):
        if surface.group_of(name) != group:
            continue
        if name in surface.LATER:
            out.append(f"| `{name}` | later |" + " |" * 8)
        elif not table.present(name):
            out.append(f"| `{name}` | no |" + " |" * 8)
        else:
            numbers = counts.get(name, (0,) * len(COLUMNS))
            cells = " | ".join(str(n) for n in (sum(numbers), *numbers))
            out.append(f"| `{name}` | yes | {cells} | {tolerance(entries[name])} |")
    return out


def named(row: Row) -> str:
    names = row.names.split()
    return "all" if names == ["*"] else " ".join(f"`{n}`" for n in names)


def page(counts: Counts) -> str:
    """The page, with these counts."""
    import mlx.core as mlx

    total = Counter({c: sum(n[i] for n in counts.values()) for i, c in enumerate(COLUMNS)})
    ran = sum(total.values())
    present = [e.name for e in table.TABLE if table.present(e.name)]
    missing = [e.name for e in table.TABLE if not table.present(e.name)]
    text = HEAD.format(version=mlx.__version__)
    text += f"**{len(present)} names are here**, {len(surface.LATER)} are for later"
    text += f", {len(missing)} are missing: {', '.join(missing)}.\n\n" if missing else ".\n\n"
    text += (
        f"The run that wrote the counts had **{ran} cases**: {total['same']} same results, "
        f"{total['error']} same errors, {total['numpy']} decided by NumPy, {total['accident']} that mlx lacks, "
        f"{total['purpose']} different on purpose, {total['crash']} that mlx would not survive and NumPy cannot judge, and none else.\n"
    )
    text += LEGEND
    for group, title in surface.GROUPS.items():
        text += f"\n## {title}\n\n"
        text += "| name | here | cases | same | error | by NumPy | mlx lacks | on purpose | not judged | tolerance |\n"
        text += "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --- |\n"
        text += "\n".join(rows(group, counts)) + "\n"
    text += "\n## Differences on purpose\n\n| names | what and why |\n| --- | --- |\n"
    text += "".join(f"| {named(r)} | {r.reason} |\n" for r in PARITY)
    text += (
        "\nOther tests (`python/tests/ops`) compare by hand-written tables; what they leave out, "
        "by test and case:\n\n| cases | what and why |\n| --- | --- |\n"
    )
    text += "".join(f"| `{k.replace('|', '/')}` | {v} |\n" for k, v in DELIBERATE.items())
    text += "\n## What mlx does not survive\n\n| names | inputs |\n| --- | --- |\n"
    text += "".join(f"| {named(r)} | {r.reason} |\n" for r in CRASHES)
    text += "\n## For later\n\n"
    by_reason = defaultdict(list)
    for name, reason in surface.LATER.items():
        by_reason[reason].append(f"`{name}`")
    text += "".join(f"- {reason}: {', '.join(names)}\n" for reason, names in by_reason.items())
    text += "\n## Names that have no entry\n\n"
    by_reason = defaultdict(list)
    for name, reason in surface.INNER.items():
        by_reason[reason].append(f"`{name}`")
    text += "".join(f"- {', '.join(names)}: {reason}\n" for reason, names in by_reason.items())
    return text


def main() -> None:
    counts = counts_of_page()
    if len(sys.argv) > 1:
        outcome = running.run(int(sys.argv[1]), *sys.argv[2:3])
        if outcome.wrong:
            sys.exit(outcome.report(100))
        fresh = {n: tuple(c[k] for k in COLUMNS) for n, c in outcome.counts.items()}
        counts = counts | fresh if len(sys.argv) > 2 else fresh
        for reason, n in outcome.reasons.most_common():
            print(f"{n:6} {reason}")
    PAGE.write_text(page(counts))


if __name__ == "__main__":
    main()
