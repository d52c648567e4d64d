"""Counts what the six programs cost to write, and puts the table into README.md.

    python examples/rust/count.py            # writes the table
    python examples/rust/count.py --check    # fails where it is out of date

Lines are those that are neither blank nor comments. Marks are counted outside of comments and strings: `?`, `&` (not `&&`),
`.clone()`, and `.unwrap()` with `.expect(`.
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
LIBRARIES = ["ultramarine", "candle", "burn"]
PROGRAMS = ["regression", "mlp", "convolution", "files", "primitive", "devices"]
MARKS = {
    "`?`": re.compile(r"\?"),
    "`&`": re.compile(r"(?<!&)&(?!&)"),
    "`.clone()`": re.compile(r"\.clone\(\)"),
    "unwraps": re.compile(r"\.unwrap\(\)|\.expect\("),
}
COMMENT_OR_STRING = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"')
# Of six such programs, not these, as a newcomer wrote them before the interface was made for it: lines, `?`, `&`.
BEFORE = (160, 117, 137)
START, END = "<!-- written by count.py -->\n", "<!-- end -->\n"


def count(path: Path) -> list[int]:
    """Lines of a program and its marks."""
    code = COMMENT_OR_STRING.sub(lambda m: '""' if m[0][0] == '"' else "", path.read_text())
    lines = [line for line in code.splitlines() if line.strip()]
    return [len(lines), *(len(mark.findall(code)) for mark in MARKS.values())]


def table() -> str:
    """The counts in Markdown: a row for each program, a cell for each count, in the libraries' order."""
    rows = {
        program: [count(HERE / library / "src/bin" / f"{program}.rs") for library in LIBRARIES]
        for program in PROGRAMS
    }
    total = [[sum(column) for column in zip(*counts)] for counts in zip(*rows.values())]
    rows["**all six**"] = total
    lines = ["| program | " + " | ".join(["lines", *MARKS]) + " |", "|---" * (len(MARKS) + 2) + "|"]
    for name, counts in rows.items():
        cells = [" / ".join(map(str, cell)) for cell in zip(*counts)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    shares = [
        " and ".join(f"{100 * n / of:.0f} {mark}" for n, mark in zip(marks, MARKS))
        for of, *marks in (total[0][:3], BEFORE)
    ]
    lines += ["", f"Ultramarine has {shares[0]} in a hundred lines."]
    lines += [f"Other six that were written before had {shares[1]}: {BEFORE[0]} lines in all."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the table, or checks it."""
    readme = HERE / "README.md"
    text = readme.read_text()
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    new = f"{before}{START}{table()}{END}{after}"
    if "--check" not in sys.argv[1:]:
        readme.write_text(new)
    elif new != text:
        sys.exit(
            "The table in examples/rust/README.md is out of date: python examples/rust/count.py"
        )
    print(table(), end="")


if __name__ == "__main__":
    main()
