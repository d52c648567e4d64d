"""Products of matrices and their relatives."""

from __future__ import annotations

import numpy as np
from support.harness import COMPLEX, FLOATS

from ..draw import Case, Entry, Gen, e

MOSTLY_FLOATS = [*FLOATS, *FLOATS, *FLOATS, *COMPLEX, "int32", "bool_", "uint8"]


COMPUTED = ["float32", "float32", "float64", "complex64", "float16", "bfloat16"]


def product_size(c: Case) -> float:
    """The size of a product's terms together."""
    size = 1.0
    for i in c.inputs.values():
        data = np.abs(np.asarray(i.data).astype(np.complex128))
        data = data[np.isfinite(data)]
        size *= max(1.0, float(data.max(initial=1)))
    longest = max((max(s, default=1) for s in c.shapes), default=1)
    return size * max(4, longest)


def matrices(g: Gen, dtypes=MOSTLY_FLOATS) -> tuple[str, str]:
    m, k, n = (g.of(1, 2, 3, 4, 7) for _ in range(3))
    if g.chance(0.06):
        m, k, n = g.of((0, 3, 2), (2, 0, 3), (2, 3, 0), (33, 40, 20), (1, 300, 1))
    batch = g.of((), (), (), (2,), (1,), (3, 2), (0,))
    a, b = (*batch, m, k), (*g.partner(batch), k, n)
    if g.chance(0.12):
        a = a[-1:]
    if g.chance(0.12):
        b = (k,)
    if g.chance(0.04):
        b = g.shape(small=True)
    kind = [g.of(*dtypes)] if g.chance(0.6) else dtypes
    return g.arr(kind, a, "few", 0.05), g.arr(kind, b, g.of("few", "any"), 0.05)


def draw_matmul(g: Gen) -> str:
    a, b = matrices(g)
    name = g.entry.name
    if name.startswith("array."):
        which = name.removeprefix("array.__").removesuffix("__")
        if which == "imatmul":
            return f"updated({a}, operator.__imatmul__, {b})"
        if g.chance(0.05):
            b = g.of("2", "'a'", "None", "[1, 2]")
        return f"operator.__matmul__({a}, {b})"
    return g.call([a, b])


def draw_addmm(g: Gen) -> str:
    a, b = matrices(g)
    try:
        out = np.matmul(np.zeros(g.size(a)), np.zeros(g.size(b))).shape
    except ValueError:
        out = (2, 2)
    c = g.arr([g.dtype_of(a)] if g.chance(0.7) else MOSTLY_FLOATS, g.partner(out), "few", 0)
    number = lambda: g.maybe(0.4, "0", "1.0", "2", "-0.5")
    return g.call([c, a, b], pos=[("alpha", number()), ("beta", number())])


def draw_inner(g: Gen) -> str:
    k = g.of(1, 3, 5)
    a = g.arr(MOSTLY_FLOATS, g.of((k,), (2, k), (2, 3, k), ()), "few", 0)
    b = g.arr(MOSTLY_FLOATS, g.of((k,), (4, k), (), (k + 1,)), "few", 0)
    return g.call([a, b])


def draw_outer(g: Gen) -> str:
    a = g.arr(shape=g.of((3,), (), (0,), (2, 2), (5,)), specials=0)
    b = g.arr(shape=g.of((4,), (), (1,), (2, 3)), specials=0)
    return g.call([a, b])


def draw_vecdot(g: Gen) -> str:
    shape = g.shape(1, small=True)
    a = g.arr(shape=shape, domain="few", specials=0)
    b = g.arr(shape=g.of(shape, g.partner(shape)), domain="few", specials=0)
    return g.call([a, b], kw=[("axis", g.maybe(0.5, g.axis(a)))])


def draw_kron(g: Gen) -> str:
    a = g.arr(shape=g.of((), (3,), (2, 2), (0,), (2, 1, 2)), specials=0)
    b = g.arr(shape=g.of((), (2,), (3, 2), (1, 4)), specials=0)
    return g.call([a, b])


def draw_tensordot(g: Gen) -> str:
    a = g.arr(MOSTLY_FLOATS, (2, 3, 4), "few", 0)
    axes, shape = g.of(
        ("0", (2, 2)),
        ("1", (4, 2)),
        ("2", (3, 4, 2)),
        ("3", (2, 3, 4)),
        ("[[0], [1]]", (5, 2)),
        ("[[-1], [0]]", (4, 5)),
        ("[[2, 1], [0, 1]]", (4, 3)),
        ("([1], [0])", (3,)),
        ("[[0, 1], [0]]", (2, 3)),
        ("[[0], [7]]", (2, 3)),
        ("4", (2, 3, 4)),
        ("-1", (4, 2)),
        ("[[0], [0]]", (3, 2)),
    )
    b = g.arr(MOSTLY_FLOATS, shape, "few", 0)
    return g.call([a, b], pos=[("axes", axes if axes != "2" or g.chance(0.5) else None)])


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("i,j->ij", (2,), (3,)),
    ("i,i->", (3,), (3,)),
    ("bij,bjk->bik", (2, 3, 2), (2, 2, 3)),
    ("...ij,...jk->...ik", (2, 2, 3), (3, 2)),
    ("...i->...", (2, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)),
    ("ij,ij,ij->j", (2, 3), (2, 3), (2, 3)),
    ("a b, b c -> a c", (2, 3), (3, 2)),
    ("ijk,ilm,njm,nlk,abc->", (2, 2, 2), (2, 2, 2), (2, 2, 2), (2, 2, 2), (2, 2, 2)),
    ("iij->ij", (2, 2, 3)),
    ("i", (3,)),
    ("", ()),
    ("ij,jk->ikz", (2, 3), (3, 4)),
    ("ij,jk->ii", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (4, 4)),
    ("ijk->ij", (2, 3)),
    ("i1->i", (2, 3)),
    ("ij,jk->ik", (2, 3)),
    ("ij->i->j", (2, 3)),
    ("i...,...->i...", (2, 3), (3,)),
]


def draw_einsum(g: Gen) -> str:
    subscripts, *shapes = g.of(*EINSUMS)
    kind = [g.of(*MOSTLY_FLOATS)] if g.chance(0.7) else MOSTLY_FLOATS
    args = [g.arr(kind, s, "few", 0) for s in shapes]
    stream = "" if g.entry.name == "einsum_path" else "keyword"
    return g.call([repr(subscripts), *args], stream=stream)


P = {"ulps": 64, "scale": product_size}


ENTRIES: list[Entry] = [
    e("matmul", draw_matmul, 1.3, **P),
    e("array.__matmul__", draw_matmul, 0.5, **P),
    e("array.__imatmul__", draw_matmul, 0.4, **P),
    e("addmm", draw_addmm, **P),
    e("inner", draw_inner, 0.8, **P),
    e("outer", draw_outer, 0.8, ulps=4),
    e("vecdot", draw_vecdot, 0.8, **P),
    e("kron", draw_kron, 0.8, ulps=4),
    e("tensordot", draw_tensordot, **P),
    e("einsum", draw_einsum, 1.2, **P),
    e("einsum_path", draw_einsum, 0.4),
]
