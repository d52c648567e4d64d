"""Tables for people: aligned columns, short numbers."""

from __future__ import annotations

from collections.abc import Sequence


def number(value: float | None) -> str:
    """A value with about three significant digits; `-` for none."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def show(lines: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    """Prints rows of equal length. The columns in `left` are aligned to the left, the others to the right."""
    if not lines:
        return
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        cells = [
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip(), flush=True)
