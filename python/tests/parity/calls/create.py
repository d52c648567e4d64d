"""Functions that make arrays."""

from __future__ import annotations

from support.harness import FLOATS

from ..draw import Case, Gen, e


def draw_tri(g: Gen) -> str:
    x = g.arr(low=g.of(0, 2, 2, 2, 2))
    return g.call([x], pos=[("k", g.maybe(0.7, "0", "1", "-1", "3", "-9", "9"))])


def draw_meshgrid(g: Gen) -> str:
    args = [
        g.arr(shape=g.of((3,), (2,), (4,), (0,), ()) if g.chance(0.9) else (2, 2))
        for _ in range(g.of(0, 1, 2, 2, 3))
    ]
    return g.call(
        args,
        kw=[
            ("sparse", g.maybe(0.3, "True", "False")),
            ("indexing", g.maybe(0.5, "'xy'", "'ij'", "'ij'", "'no'")),
        ],
    )


def shape_text(g: Gen) -> str:
    return g.of("3", "()", "(2, 3)", "[4]", "0", "(2, 0)", "(1, 2, 3)", "-1", "[]", "(2, -3)", "7")


def draw_zeros(g: Gen) -> str:
    return g.call([], pos=[("shape", shape_text(g)), ("dtype", g.maybe(0.6, g.dtype(), "None"))])


def draw_zeros_like(g: Gen) -> str:
    return g.call([g.arr()], pos=[("dtype", g.maybe(0.4, g.dtype(), "None"))])


def draw_full(g: Gen) -> str:
    value = g.of(g.scalar(), g.scalar(), g.few(shape=g.of((), (3,), (1,), (2, 3))))
    return g.call(
        [],
        pos=[("shape", shape_text(g)), ("vals", value), ("dtype", g.maybe(0.5, g.dtype(), "None"))],
    )


def draw_full_like(g: Gen) -> str:
    value = g.of(g.scalar(), g.scalar(0), g.few(shape=g.of((), (1,))))
    return g.call([g.arr()], pos=[("vals", value), ("dtype", g.maybe(0.4, g.dtype(), "None"))])


def draw_arange(g: Gen) -> str:
    whole = g.chance(0.6)
    n = lambda: (
        g.of("0", "1", "5", "-3", "10", "2") if whole else g.of("0.5", "3.0", "-1.5", "7.25")
    )
    step = g.of("1", "2", "-1", "3", "0") if whole else g.of("0.5", "1.0", "-0.25", "2")
    dtype = ("dtype", g.maybe(0.3, g.dtype(), "None"))
    if g.chance(0.4):
        return g.call([n()], kw=[("step", g.maybe(0.2, step)), dtype])
    args = [n(), n(), *([step] if g.chance(0.5) else [])]
    if g.chance(0.15):
        names = ("start", "stop", "step")
        return g.call([], kw=[*zip(names, args), dtype])
    return g.call(args, kw=[dtype])


def draw_linspace(g: Gen) -> str:
    n = lambda: g.of("0", "1", "-3", "2.5", "10", "1e3", "True", "0.1")
    return g.call(
        [n(), n()],
        pos=[
            ("num", g.maybe(0.8, "0", "1", "2", "5", "11", "50", "-1", "None")),
            ("endpoint", g.maybe(0.3, "True", "False")),
            ("dtype", g.maybe(0.4, g.dtype(FLOATS), g.dtype(), "None")),
        ],
        stream="positional",
    )


def draw_eye(g: Gen) -> str:
    n = lambda: g.of("0", "1", "3", "5", "-1")
    dtype = ("dtype", g.maybe(0.4, g.dtype(), "None"))
    if g.entry.name == "identity":
        return g.call([n()], pos=[dtype])
    return g.call(
        [n()],
        pos=[
            ("m", g.maybe(0.6, n(), "None")),
            ("k", g.maybe(0.5, "0", "1", "-1", "9", "-9")),
            dtype,
        ],
    )


def draw_window(g: Gen) -> str:
    return g.call([g.of("0", "1", "2", "3", "5", "8", "12", "33", "-1", "100")])


def one(case: Case) -> float:
    """The size of a window's terms, which cancel at its ends."""
    return 1.0


ENTRIES = [
    e("tril", draw_tri),
    e("triu", draw_tri),
    e("meshgrid", draw_meshgrid),
    e("zeros", draw_zeros, 0.6),
    e("ones", draw_zeros, 0.6),
    e("zeros_like", draw_zeros_like, 0.6),
    e("ones_like", draw_zeros_like, 0.6),
    e("full", draw_full),
    e("full_like", draw_full_like),
    e("arange", draw_arange, ulps=4, scale="largest"),
    e("linspace", draw_linspace, ulps=8, scale="largest"),
    e("eye", draw_eye),
    e("identity", draw_eye, 0.5),
    e("tri", draw_eye, 0.6),
    *(
        e(n, draw_window, 0.2, ulps=64, scale=one)
        for n in ("bartlett", "blackman", "hamming", "hanning")
    ),
    e("empty", lambda g: f"(lambda a: (a.shape, a.dtype))({draw_zeros(g)})", 0.3),
    e("empty_like", lambda g: f"(lambda a: (a.shape, a.dtype))({draw_zeros_like(g)})", 0.3),
]
