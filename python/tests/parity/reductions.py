"""Reductions, arg-reductions, scans, sorting, searching."""

from __future__ import annotations

import math

import numpy as np
from support.harness import ALL, FLOATS, INTS, REALS

from .draw import Case, Entry, Gen


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

    made = [Entry(name, draw, ulps, scale, judge=True, weight=1.5)]
    if name not in ("median", "count_nonzero", "minmax"):
        made.append(Entry(f"array.{name}", draw, ulps, scale, judge=True, weight=0.6))
    return made


def arg_reduction(name: str) -> list[Entry]:
    def draw(g: Gen) -> str:
        x = g.arr(domain=("few", "any"), specials=0.15)
        return g.call([x], pos=[("axis", g.maybe(0.7, g.axis(x), "None")), keep(g)])

    return [Entry(name, draw), Entry(f"array.{name}", draw, weight=0.5)]


SCANS = {
    "cumsum": ("any", 64, mass),
    "cumprod": (("unit", "few"), 512, "largest"),
    "cummax": ("any", 0, "each"),
    "cummin": ("any", 0, "each"),
    "logcumsumexp": ("any", 256, average),
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

    return Entry(name, draw, ulps, scale, weight=weight)


def draw_softmax(g: Gen) -> str:
    x = g.arr(specials=0.1)
    return g.call(
        [x],
        pos=[("axis", g.maybe(0.8, g.axes(x)))],
        kw=[("precise", g.maybe(0.3, "True", "False"))],
    )


def one(_: Case) -> float:
    """Rows that were normalized have elements of about this size."""
    return 1.0


def layer_size(c: Case) -> float:
    """The largest element, which turns with others."""
    first = next(iter(c.inputs.values()))
    data = np.abs(first.data.astype(np.float64))
    return max(1.0, float(data.max())) if data.size else 1.0


def draw_norm(g: Gen) -> str:
    """A norm of the last axis, with parameters of its size, mostly."""
    x = g.arr([*FLOATS, *FLOATS, "int32", "complex64"], specials=0.1)
    last = g.size(x)[-1:] or (3,)
    floats = FLOATS if g.chance(0.3) else [g.dtype_of(x)]

    def parameter() -> str:
        if g.chance(0.3):
            return "None"
        return g.arr(floats, last if g.chance(0.9) else g.of((), (2,), (1, *last)), specials=0)

    parameters = [parameter()] if "rms" in g.entry.name else [parameter(), parameter()]
    return g.call([x, *parameters, g.of("1e-5", "1e-3", "0.25", "1")])


def draw_rope(g: Gen) -> str:
    last = g.of(2, 3, 4, 5, 6, 8)
    shape = (*g.of((2, 3), (1, 5), (3, 2, 4), (2, 1, 3, 2), (2, 0), (2, 7, 1)), last)
    x = g.arr(FLOATS, shape if g.chance(0.95) else (3, 4), specials=0)
    dims = g.of(2, last // 2 * 2) if g.chance(0.9) else g.of(0, -2, 3, last + 2)
    offset = g.of("0", "3", "-2", "mx.array(5)", "mx.array([1])", "7", "100")
    if g.chance(0.05):
        offset = g.of("1.5", "True", "mx.array([[1]])")
    if g.chance(0.3):
        offset = f"mx.arange({shape[0] if g.chance(0.9) else shape[0] + 1})"
    base = "None" if g.chance(0.3) else g.of("10.0", "100", "10000.0")
    freqs = None
    if (base == "None") == g.chance(0.9):
        freqs = f"mx.arange(1, {max(dims, 0) // 2 + (1 if g.chance(0.9) else 2)})"
    named = [
        ("traditional", g.flag()),
        ("base", base),
        ("scale", g.of("1.0", "0.5", "2")),
        ("offset", offset),
        ("freqs", freqs),
    ]
    return g.call([x, str(dims)], kw=named)


def draw_sort(g: Gen) -> str:
    x = g.arr(domain=("any", "few"), specials=0.2)
    return g.call([x], pos=[("axis", g.maybe(0.6, g.axis(x), g.axis(x), "None"))])


def draw_argsort(g: Gen) -> str:
    """Equal elements: any order of indices is right, so they are compared by what they pick."""
    x = g.arr(specials=0.0, domain=("distinct", "any"))
    return g.call([x], pos=[("axis", g.maybe(0.6, g.axis(x), g.axis(x), "None"))])


def draw_partition(g: Gen) -> str:
    """Of a partition only what is at kth, and which values are before, is defined."""
    x = g.arr(specials=0.0, domain=("distinct", "few"))
    n = max(g.size(x), default=1)
    kth = str(g.r.randrange(-n - 1, n + 1)) if n else "0"
    return g.call([x, kth], pos=[("axis", g.maybe(0.5, g.axis(x), "None"))])


def defined_partition(g: Gen) -> str:
    """The kth smallest, and the sum of what is up to it, along the last axis."""
    if g.chance(0.5):
        return f"mx.sort({draw_partition(g)}, axis=None)"
    x = g.arr(specials=0.0, domain=("distinct", "few"), low=1)
    n = g.size(x)[-1]
    k = g.r.randrange(n) if n else 0
    call = f"mx.{g.entry.name}({x}, {g.of(k, k - n)})"
    if g.entry.name == "argpartition":
        call = f"mx.take_along_axis({x}, {call}, -1)"
    return f"(lambda p: (p[..., {k}], mx.sort(p[..., :{k + 1}], -1)))({call})"


def draw_topk(g: Gen) -> str:
    x = g.arr(specials=0.0, domain=("distinct", "few"))
    n = max(g.size(x), default=1)
    k = str(g.r.randrange(0, n + 2))
    axis = g.maybe(0.5, g.axis(x), "None")
    return f"mx.sort({g.call([x, k], pos=[('axis', axis)])}, axis={axis or -1})"


def draw_searchsorted(g: Gen) -> str:
    dtypes = [g.of(*REALS)] if g.chance(0.8) else ALL
    x = g.few(dtypes, shape=g.of((0,), (1,), (5,), (9,), (2, 4), (3, 5)))
    sequence = f"mx.sort({x})" if g.chance(0.9) else x
    rank = g.rank(x)
    lead = g.size(x)[:-1]
    shape = (*lead, g.of(1, 3)) if rank > 1 and g.chance(0.8) else g.shape(small=True)
    v = g.few(dtypes, shape=shape)
    return g.call([sequence, v], pos=[("side", g.maybe(0.6, "'left'", "'right'", "'up'"))])


def draw_unique(g: Gen) -> str:
    x = g.few([*INTS, *FLOATS, "bool_"], small=True)
    flags = [
        (n, g.maybe(0.3, "True", "False"))
        for n in ("return_index", "return_inverse", "return_counts")
    ]
    return g.call(
        [x, g.number(0, 1, 3, 5, 8)], pos=[*flags, ("fill_value", g.maybe(0.3, "0", "-1", "7"))]
    )


ENTRIES = [
    *(e for n in REDUCTIONS for e in reduction(n)),
    *(e for n in ("argmax", "argmin") for e in arg_reduction(n)),
    *(scan(n, n, 1.2) for n in SCANS),
    *(scan(f"array.{n}", n, 0.5) for n in SCANS),
    scan("cumulative_sum", "cumsum", 0.4),
    scan("cumulative_prod", "cumprod", 0.4),
    Entry("softmax", draw_softmax, 64, "largest", judge=True),
    Entry("fast.rms_norm", draw_norm, 64, one, judge=True),
    Entry("fast.layer_norm", draw_norm, 64, one, judge=True),
    Entry("fast.rope", draw_rope, 128, layer_size, judge=True),
    Entry("sort", draw_sort),
    Entry("argsort", draw_argsort),
    Entry("partition", defined_partition),
    Entry("argpartition", defined_partition),
    Entry("topk", draw_topk),
    Entry("searchsorted", draw_searchsorted),
    Entry("unique", draw_unique),
]
