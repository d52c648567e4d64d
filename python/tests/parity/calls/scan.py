"""Scans and differences."""

from __future__ import annotations

from support.harness import by_dtype

from ..draw import Entry, Gen
from .reduce import average, mass

SCANS = {
    "cumsum": ("any", 64, mass),
    "cumprod": (("unit", "few"), 512, "largest"),
    "cummax": ("any", 0, "each"),
    "cummin": ("any", 0, "each"),
    # mlx rounds each step of 16-bit floats to the dtype, and takes logarithms of float64 in float32.
    "logcumsumexp": (
        "any",
        by_dtype(256, float16=256, bfloat16=256, float64=256 * 2.0**29),
        average,
    ),
}


def scan(name: str, of: str, weight: float) -> Entry:
    domain, ulps, scale = SCANS[of]

    def draw(g: Gen) -> str:
        x = g.arr(domain=domain, specials=0.1)
        kw = [
            ("reverse", g.maybe(0.4, "True", "False")),
            ("inclusive", g.maybe(0.4, "True", "False")),
        ]
        if of in ("cumsum", "cumprod") and not name.startswith("array."):
            kw.append(("dtype", g.maybe(0.2, g.dtype(), "None")))
        return g.call([x], pos=[("axis", g.maybe(0.7, g.axis(x), g.axis(x), "None"))], kw=kw)

    by_numpy = of in ("cumsum", "cumprod")
    return Entry(name, draw, ulps, scale, by_numpy=by_numpy, weight=weight)


def draw_diff(g: Gen) -> str:
    x = g.arr(low=g.of(0, 1, 1), specials=0)
    return g.call(
        [x],
        pos=[("n", g.maybe(0.5, "0", "1", "2", "3", "9", "-1")), ("axis", g.maybe(0.5, g.axis(x)))],
    )


ENTRIES = [
    *(scan(n, n, 1.2) for n in SCANS),
    *(scan(f"array.{n}", n, 0.5) for n in SCANS),
    scan("cumulative_sum", "cumsum", 0.4),
    scan("cumulative_prod", "cumprod", 0.4),
    Entry("diff", draw_diff, 16, "largest"),
]
