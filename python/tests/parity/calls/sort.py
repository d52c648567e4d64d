"""Sorting and searching."""

from __future__ import annotations

from support.harness import ALL, FLOATS, INTS, REALS

from ..draw import Entry, Gen


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
    Entry("sort", draw_sort),
    Entry("argsort", draw_argsort),
    Entry("partition", defined_partition),
    Entry("argpartition", defined_partition),
    Entry("topk", draw_topk),
    Entry("searchsorted", draw_searchsorted),
    Entry("unique", draw_unique),
]
