"""Charts and tables of measured speed for the README and docs/performance.md, from files of bench/history.

    python -m bench.chart            writes docs/images/speed-*.svg and the tables of docs/performance.md
    python -m bench.chart --check    fails if they are not what the files give

The files are the last of each machine in `CHARTS`. A chart has a row for each workload and a dot for each library, at its time divided by
Ultramarine's: dots to the right of 1 are slower.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from bench.record import HISTORY, LESS, ROOT, Figure, figures, read
from bench.table import number

PAGE = ROOT / "docs" / "performance.md"
IMAGES = ROOT / "docs" / "images"


@dataclass(frozen=True)
class Chart:
    """A chart: where its figures come from, and which rows it has."""

    name: str
    device: str
    on: str
    title: str
    peers: tuple[str, ...]
    # Groups of the table, and names of the workloads that are drawn.
    groups: tuple[str, ...]
    drawn: tuple[str, ...]


CHARTS = (
    Chart(
        "cpu",
        "amd-epyc",
        "cpu",
        "on the CPU",
        ("numpy", "torch", "jax", "mlx"),
        ("workloads",),
        (
            "4x + 2y",
            "tanh-gelu",
            "softmax",
            "layer norm",
            "sum rows",
            "matmul 2048",
            "matmul 1024 bf16",
            "fast attention",
            "conv2d",
            "conv2d by channel",
            "sort 16M",
            "embedding",
            "normals",
            "cumsum rows",
            "rfft",
            "svd",
            "1000 tiny ops",
            "training step",
        ),
    ),
    Chart(
        "gpu",
        "nvidia-h200",
        "gpu",
        "on the GPU",
        ("torch",),
        ("elementwise", "rows", "rope", "matmul", "small", "uploads"),
        (
            "4*x + 2*y, 4096^2 float32",
            "gelu (erf), 4096^2 bfloat16",
            "softmax rows, 16384 x 4096",
            "sum of rows",
            "cumsum rows",
            "sort 2^24 float32",
            "topk 64 of 4096 x 16384",
            "rope, (8, 32, 2048, 128) bfloat16",
            "bfloat16 8192^3",
            "float32 4096^3",
            "1000 adds of 16, each evaluated",
            "1000 adds of 16, one eval",
        ),
    ),
)
NAMES = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX", "mlx": "MLX"}
# Colours by Okabe and Ito, which readers with any sight tell apart; shapes say the same.
COLOURS = {"numpy": "#0072b2", "torch": "#d55e00", "jax": "#009e73", "mlx": "#cc79a7"}

ROW, LEFT, WIDTH, TOP = 22, 230, 720, 58


@dataclass(frozen=True)
class Run:
    """What a chart needs of a file."""

    device: str
    cores: int
    date: str
    commit: str
    results: list[Figure]


def last(device: str) -> Run:
    """The newest run of a machine that is kept."""
    kept = sorted(HISTORY.glob(f"{device}-2*.json"))
    if not kept:
        raise SystemExit(f"bench/history has no file of {device}. Run `cargo xtask bench --keep`.")
    given = read(kept[-1])
    about = (given["device"], given["cpu"]["cores"], given["date"][:10], given["commit"])
    return Run(*about, figures(given))


def workloads(run: Run, chart: Chart) -> dict[str, dict[str, Figure]]:
    """The figures of each workload that has some library beside Ultramarine, by library."""
    found: dict[str, dict[str, Figure]] = {}
    for figure in run.results:
        if figure.group in chart.groups and figure.on == chart.on:
            found.setdefault(figure.name, {})[figure.library] = figure
    return {
        name: by
        for name, by in found.items()
        if "ultramarine" in by and any(peer in by for peer in chart.peers)
    }


def ratio(other: Figure, ours: Figure) -> float:
    """The other's time divided by ours; rates are turned over."""
    return other.value / ours.value if ours.unit in LESS else ours.value / other.value


def mark(peer: str, x: float, y: float) -> str:
    """A library's dot."""
    fill = f'fill="{COLOURS[peer]}"'
    if peer == "numpy":
        return f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" {fill}/>'
    if peer == "jax":
        points = f"{x:.1f},{y - 6:.1f} {x + 6:.1f},{y + 5:.1f} {x - 6:.1f},{y + 5:.1f}"
        return f'<polygon points="{points}" {fill}/>'
    if peer == "mlx":
        points = f"{x:.1f},{y - 6:.1f} {x + 6:.1f},{y:.1f} {x:.1f},{y + 6:.1f} {x - 6:.1f},{y:.1f}"
        return f'<polygon points="{points}" {fill}/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" {fill}/>'


def svg(run: Run, chart: Chart) -> str:
    """The chart, readable on light and on dark ground."""
    table = workloads(run, chart)
    rows = [(name, table[name]) for name in chart.drawn if name in table]
    ratios = [ratio(f[p], f["ultramarine"]) for _, f in rows for p in chart.peers if p in f]
    low = math.floor(math.log10(min(ratios) * 0.95) * 4) / 4
    high = math.ceil(math.log10(max(ratios)) * 4) / 4
    right = WIDTH - 24

    def place(value: float) -> float:
        return LEFT + (math.log10(value) - low) / (high - low) * (right - LEFT)

    bottom = TOP + ROW * len(rows)
    title = f"Time divided by Ultramarine's, {chart.title}: {run.device}, {run.cores} cores"
    if chart.on == "gpu":
        title = f"Time divided by Ultramarine's, {chart.title}: {run.device}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 44}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="12" role="img">',
        f"<title>{escape(title)}, {run.date}</title>",
        "<style>text{fill:#24292f}.axis{stroke:#8c959f;stroke-opacity:.45}.one{stroke:#24292f}"
        "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.one{stroke:#e6edf3}}</style>",
        f'<text x="12" y="18" font-weight="bold">{escape(title)}, {run.date}</text>',
    ]
    x = float(LEFT)
    for peer in chart.peers:
        lines.append(mark(peer, x, 36))
        lines.append(f'<text x="{x + 10:.1f}" y="40">{NAMES[peer]}</text>')
        x += 88
    ticks = [v for e in range(-2, 4) for v in (10.0**e, 2 * 10.0**e, 5 * 10.0**e)]
    for tick in ticks:
        if not low <= math.log10(tick) <= high:
            continue
        kind = "one" if tick == 1 else "axis"
        at = place(tick)
        lines.append(
            f'<line class="{kind}" x1="{at:.1f}" y1="{TOP - 6}" x2="{at:.1f}" y2="{bottom}"/>'
        )
        lines.append(f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}x</text>')
    for row, (name, by) in enumerate(rows):
        y = TOP + ROW * (row + 0.5)
        lines.append(
            f'<text x="{LEFT - 12}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>'
        )
        for peer in chart.peers:
            if peer in by:
                lines.append(mark(peer, place(ratio(by[peer], by["ultramarine"])), y))
    note = "right of 1x: slower than Ultramarine; left of it: faster"
    lines.append(f'<text x="{LEFT}" y="{bottom + 36}">{note}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def markdown(run: Run, chart: Chart) -> str:
    """The table of all workloads."""
    head = ["workload", "unit", "Ultramarine", *(NAMES[peer] for peer in chart.peers)]
    rows = [head, ["---", "---", *["--:"] * (len(head) - 2)]]
    for name, by in workloads(run, chart).items():
        values = [by.get(library) for library in ("ultramarine", *chart.peers)]
        cells = [number(figure.value) if figure else "" for figure in values]
        rows.append([name, by["ultramarine"].unit, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def with_table(text: str, chart: Chart, run: Run) -> str:
    """The page with the chart's table between its marks."""
    begin, end = f"<!-- {chart.name} -->\n", f"<!-- end of {chart.name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{PAGE.name} lacks the marks {begin.strip()} and {end}. Add them.")
    source = f"{run.device}, {run.date}, commit `{run.commit}`.\n\n"
    return f"{before}{begin}\n{source}{markdown(run, chart)}\n{end}{after}"


def generated() -> dict[Path, str]:
    """The text of each file."""
    page, wanted = PAGE.read_text(), {}
    for chart in CHARTS:
        run = last(chart.device)
        wanted[IMAGES / f"speed-{chart.name}.svg"] = svg(run, chart)
        page = with_table(page, chart, run)
    return {**wanted, PAGE: page}


def main(arguments: list[str] | None = None) -> int:
    """Writes the files, or compares them."""
    parser = argparse.ArgumentParser(description="Charts and tables of measured speed.")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args(arguments).check
    stale = {p: t for p, t in generated().items() if not p.is_file() or p.read_text() != t}
    if check:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale. Run python -m bench.chart.")
        return 1 if stale else 0
    IMAGES.mkdir(exist_ok=True)
    for path, text in stale.items():
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
