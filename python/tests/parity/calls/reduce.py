"""Reductions and arg-reductions."""

from __future__ import annotations

import math

import numpy as np

from ..draw import Case, Entry, Gen


def mass(c: Case) -> float:
    """The size of all terms together: what the rounding errors of a sum are a part of."""
    first = next(iter(c.inputs.values()), None)
    if first is None or not first.data.size:
        return 1.0
    data = np.abs(first.data.astype(np.complex128))
    data = data[np.isfinite(data)]
    return max(1.0, float(data.mean()) * math.prod(first.shape)) if data.size else 1.0


def average(c: Case) -> float:
    return max(1.0, mass(c) / max(1, math.prod(next(iter(c.inputs.values())).shape)))


def spread(c: Case) -> float:
    """The mean of the squares: var's rounding errors are a part of it, std's of its root."""
    first = next(iter(c.inputs.values()), None)
    if first is None:
        return 1.0
    data = np.abs(first.data.astype(np.complex128)) ** 2
    square = float(data[np.isfinite(data)].max(initial=1))
    return square if "var" in c.name else math.sqrt(square)


def keep(g: Gen) -> tuple[str, str | None]:
    return ("keepdims", g.maybe(0.4, "True", "False"))


# name: domain, units, scale, with NaN and infinities
REDUCTIONS = {
    "sum": ("any", 32, mass, 0.1),
    "prod": (("unit", "few"), 512, "largest", 0.05),
    "max": ("any", 0, "each", 0.3),
    "min": ("any", 0, "each", 0.3),
    "minmax": ("any", 0, "each", 0.3),
    "all": ("few", 0, "each", 0.2),
    "any": ("few", 0, "each", 0.2),
    "mean": ("any", 64, average, 0.1),
    "var": ("any", 512, spread, 0.05),
    "std": ("any", 512, spread, 0.05),
    "logsumexp": ("any", 64, average, 0.15),
    "median": ("any", 4, "each", 0.0),
    "count_nonzero": ("few", 0, "each", 0.1),
}


def reduction(name: str) -> list[Entry]:
    domain, ulps, scale, specials = REDUCTIONS[name]

    def draw(g: Gen) -> str:
        x = g.arr(domain=domain, specials=specials)
        axis = ("axis", g.maybe(0.75, g.axes(x)))
        method = g.entry.name.startswith("array.")
        if name == "count_nonzero":
            return g.call([x], kw=[axis, keep(g)])
        if name in ("var", "std"):
            ddof = ("ddof", g.maybe(0.3, "0", "1", "2", "5"))
            extra = [("correction", g.maybe(0.2, "0", "1", "2"))] if method else []
            return g.call([x], pos=[axis, keep(g), ddof], kw=extra)
        return g.call([x], pos=[axis, keep(g)])

    made = [Entry(name, draw, ulps, scale, by_numpy=True, weight=1.5)]
    if name not in ("median", "count_nonzero", "minmax"):
        made.append(Entry(f"array.{name}", draw, ulps, scale, by_numpy=True, weight=0.6))
    return made


def arg_reduction(name: str) -> list[Entry]:
    def draw(g: Gen) -> str:
        x = g.arr(domain=("few", "any"), specials=0.15)
        return g.call([x], pos=[("axis", g.maybe(0.7, g.axis(x), "None")), keep(g)])

    return [Entry(name, draw), Entry(f"array.{name}", draw, weight=0.5)]


ENTRIES = [
    *(e for n in REDUCTIONS for e in reduction(n)),
    *(e for n in ("argmax", "argmin") for e in arg_reduction(n)),
]
