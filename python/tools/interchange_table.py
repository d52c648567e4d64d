"""Writes the tables of docs/interchange.md by trying every library, both ways.

Run it where the package and the libraries of python/requirements/interchange.txt are
importable:

    PYTHONPATH=python python python/tools/interchange_table.py [--check | --write] [--time]

What it found is printed; `--write` puts it between the markers of the page, `--check` fails if
the page says something else. Times are measured only with `--time`, and are never checked.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "interchange.md"
sys.path.insert(0, str(ROOT / "python" / "tests"))

import numpy as np
from support.capsules import READ_ONLY, address, header
from support.libraries import (
    ARRAYS,
    DTYPES,
    LAYOUTS,
    LIBRARIES,
    STORAGE,
    THEIR_ERRORS,
    Library,
    numbers,
    versions,
)

import ultramarine as mx

SHARED, COPIED, REFUSED, ABSENT = "shared", "copied", "refused", "absent"


def attempt(work: Callable[[], str]) -> str:
    try:
        return work()
    except THEIR_ERRORS:
        return REFUSED


def ours(values: Any, dtype: str) -> mx.array:
    made = mx.array(values).astype(getattr(mx, dtype))
    mx.eval(made)
    return made


# What becomes of a dtype or of a layout, from their side and from ours.


def dtype_from(library: Library, dtype: str) -> str:
    def work() -> str:
        x = mx.from_dlpack(library.make(numbers(dtype), dtype))
        kept = x.dtype == getattr(mx, dtype)
        return SHARED if kept else str(x.dtype).rpartition(".")[2]

    return attempt(work)


def dtype_to(library: Library, dtype: str) -> str:
    def work() -> str:
        back = mx.from_dlpack(library.take(ours(numbers(dtype), dtype)))
        kept = back.dtype == getattr(mx, dtype)
        return SHARED if kept else str(back.dtype).rpartition(".")[2]

    return attempt(work)


def layout_from(library: Library, layout: str) -> str:
    if layout not in library.layouts() or layout in library.lacks:
        return ABSENT

    def work() -> str:
        theirs = library.laid_out(layout)
        x = mx.from_dlpack(theirs)
        return SHARED if layout == "empty" or address(x) == library.address(theirs) else COPIED

    return attempt(work)


def layout_to(library: Library, layout: str) -> str:
    if layout not in library.layouts():
        return ABSENT

    def work() -> str:
        x = LAYOUTS[layout](ours(library.numbers(), "float32"))
        theirs = library.take(x)
        return SHARED if layout == "empty" or library.address(theirs) == address(x) else COPIED

    return attempt(work)


def read_only_from(library: Library) -> str:
    """Says whether the library reports read-only memory as such."""
    if library.name == "numpy":
        theirs = np.zeros(3, np.float32)
        theirs.setflags(write=False)
    elif library.writes is None:
        theirs = library.make([1, 2, 3], "float32")
    else:
        return "-"
    return "reported" if header(mx.from_dlpack(theirs)).flags & READ_ONLY else "not reported"


def read_only_to(library: Library) -> str:
    held = np.arange(3, dtype=np.float32)
    held.setflags(write=False)

    def work() -> str:
        theirs = library.take(mx.from_dlpack(held))
        if library.address(theirs) != held.ctypes.data:
            return COPIED
        marked = header(mx.from_dlpack(theirs)).flags & READ_ONLY
        return "kept" if marked else "lost"

    return attempt(work)


# Names of the values in the table.


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)


def dtypes(found: dict[str, str], names: list[str]) -> str:
    """The dtypes that arrive as they are, in few words."""
    names = [n for n in names if n in found]
    kept = [n for n in names if found[n] == SHARED]
    refused = [n for n in names if found[n] == REFUSED]
    changed = [f"`{n}` becomes `{found[n]}`" for n in names if found[n] not in (SHARED, REFUSED)]
    if not names:
        return "-"
    if not kept and not changed:
        return "none"
    if not refused:
        words = "all"
    elif len(refused) <= len(kept):
        words = f"all but {listed(refused)}"
    else:
        words = listed(kept)
    return "; ".join([words, *changed])


def layouts(found: dict[str, str]) -> str:
    there = {name: fate for name, fate in found.items() if fate != ABSENT}
    words = []
    for fate in (COPIED, REFUSED):
        names = [name for name, what in there.items() if what == fate]
        if len(names) == len(there):
            return f"all {fate}"
        if names:
            words.append(f"{', '.join(names)} {fate}")
    if not words:
        return "all shared" if len(there) == len(LAYOUTS) else f"shared: {', '.join(there)}"
    return "; ".join(words)


def rows() -> list[list[str]]:
    lines = []
    for library in LIBRARIES:
        if not library.is_there():
            raise SystemExit(f"{library.module} is not installed")
        for arrow, dtype, layout, read_only in (
            ("to ours", dtype_from, layout_from, read_only_from),
            ("from ours", dtype_to, layout_to, read_only_to),
        ):
            kinds = {name: dtype(library, name) for name in DTYPES}
            places = {name: layout(library, name) for name in LAYOUTS}
            lines.append(
                [
                    library.name,
                    arrow,
                    "yes" if places["whole"] == SHARED else "no",
                    dtypes(kinds, ARRAYS),
                    dtypes(kinds, STORAGE),
                    layouts(places),
                    read_only(library),
                ]
            )
    return lines


def table(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def what_happens() -> str:
    found = ", ".join(f"{name} {version}" for name, version in versions().items())
    head = ["library", "direction", "zero-copy", "dtypes", "storage dtypes", "layouts", "read-only"]
    return f"With {found}:\n\n{table(head, rows())}"


# Times.


def nanoseconds(work: Callable[[], object]) -> str:
    """The best of 101 rounds of about a millisecond each: what else the machine does only adds."""
    n = 1
    while True:
        begin = time.perf_counter_ns()
        for _ in range(n):
            work()
        took = time.perf_counter_ns() - begin
        if took > 1_000_000:
            break
        n *= 2
    rounds = []
    for _ in range(101):
        begin = time.perf_counter_ns()
        for _ in range(n):
            work()
        rounds.append((time.perf_counter_ns() - begin) / n)
    # Two digits: more would not come again.
    return f"{float(f'{min(rounds):.2g}'):,.0f}"


def times() -> str:
    x = ours([1, 2, 3, 4], "float32")

    def row(library: Library) -> list[str]:
        theirs = library.make([1, 2, 3, 4], "float32")
        there = nanoseconds(lambda: mx.from_dlpack(theirs))
        return [library.name, there, nanoseconds(lambda: library.take(x))]

    gc.disable()
    body = [row(library) for library in LIBRARIES]
    gc.enable()
    return table(["library", "to ours, ns", "from ours, ns"], body)


def between(text: str, name: str) -> tuple[str, str, str]:
    """The page before, in and after the part with that name."""
    begin, end = (
        f"<!-- {name}: made by python/tools/interchange_table.py -->\n",
        f"<!-- end of {name} -->",
    )
    head, _, rest = text.partition(begin)
    part, _, tail = rest.partition(end)
    if not rest or not tail:
        raise SystemExit(f"{PAGE} has no part {name!r}")
    return head + begin, part, end + tail


def main(arguments: list[str]) -> int:
    text = PAGE.read_text()
    parts = {"table": what_happens()}
    if "--time" in arguments:
        parts["times"] = times()
    stale = []
    for name, part in parts.items():
        print(part, end="\n\n")
        before, old, after = between(text, name)
        new = f"\n{part}\n\n"
        if old != new and name != "times":
            stale.append(name)
        text = before + new + after
    if "--write" in arguments:
        PAGE.write_text(text)
    elif "--check" in arguments and stale:
        print(f"{PAGE} is stale: run this with --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
