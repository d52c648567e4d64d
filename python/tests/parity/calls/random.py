"""Random numbers."""

from __future__ import annotations

from support.harness import FLOATS, INTS, in_single

from ..draw import Entry, Gen, e
from . import create


def key(g: Gen) -> tuple[str, str]:
    return ("key", f"mx.random.key({g.of(0, 1, 7, 42, 2**32 + 5, 2**64 - 1)})")


def shape(g: Gen) -> str:
    return (
        g.of("()", "(3,)", "[2, 3]", "(0,)", "(5, 1, 2)", "(100,)", "(-1,)")
        if g.chance(0.95)
        else "3"
    )


def bound(g: Gen, low: bool) -> str:
    plain = g.of("0", "-3", "-0.5", "1") if low else g.of("1", "5", "2.5", "7")
    return plain if g.chance(0.8) else f"mx.array([{plain}, {plain}, {plain}])"


def draw_uniform(g: Gen) -> str:
    return g.call(
        [],
        pos=[
            ("low", g.maybe(0.5, bound(g, True))),
            ("high", g.maybe(0.5, bound(g, False))),
            ("shape", g.maybe(0.8, shape(g))),
            ("dtype", g.maybe(0.5, g.dtype(FLOATS), g.dtype(FLOATS), g.dtype(), "None")),
            key(g),
        ],
        stream="positional",
    )


def draw_normal(g: Gen) -> str:
    number = lambda: g.maybe(0.4, "0", "2.0", "-1", "mx.array([1.0, 2.0, 3.0])", "None")
    return g.call(
        [],
        pos=[
            ("shape", g.maybe(0.9, shape(g))),
            ("dtype", g.maybe(0.5, g.dtype(FLOATS), g.dtype(FLOATS), g.dtype(), "None")),
            ("loc", number()),
            ("scale", number()),
            key(g),
        ],
        stream="positional",
    )


def draw_laplace(g: Gen) -> str:
    number = lambda: g.maybe(0.4, "0.0", "2.0", "0.5")
    return g.call(
        [],
        pos=[
            ("shape", g.maybe(0.9, shape(g))),
            ("dtype", g.maybe(0.5, g.dtype(FLOATS), g.dtype())),
            ("loc", number()),
            ("scale", number()),
            key(g),
        ],
        stream="positional",
    )


def draw_gumbel(g: Gen) -> str:
    dtype = g.maybe(0.5, g.dtype(FLOATS), g.dtype())
    return g.call(
        [], pos=[("shape", g.maybe(0.9, shape(g))), ("dtype", dtype), key(g)], stream="positional"
    )


def draw_randint(g: Gen) -> str:
    low, high = bound(g, True), bound(g, False)
    dtype = g.maybe(0.5, g.dtype(INTS), g.dtype(INTS), g.dtype(), "None")
    return g.call(
        [low, high],
        pos=[("shape", g.maybe(0.8, shape(g))), ("dtype", dtype), key(g)],
        stream="positional",
    )


def draw_bernoulli(g: Gen) -> str:
    p = g.maybe(
        0.8, "0.3", "0", "1", "True", "mx.array([0.1, 0.5, 0.9])", g.arr(FLOATS, (3,), "unit", 0)
    )
    return g.call(
        [], pos=[("p", p), ("shape", g.maybe(0.5, shape(g), "None")), key(g)], stream="positional"
    )


def draw_truncated(g: Gen) -> str:
    dtype = g.maybe(0.4, g.dtype(FLOATS), g.dtype())
    low, high = g.of("-1", "-2.0", "0"), g.of("1", "2.5")
    return g.call(
        [low, high],
        pos=[("shape", g.maybe(0.8, shape(g), "None")), ("dtype", dtype), key(g)],
        stream="positional",
    )


def draw_categorical(g: Gen) -> str:
    x = g.arr([*FLOATS, "int32"], g.of((6, 10), (5,), (2, 3, 4), ()), specials=0)
    return g.call(
        [x],
        pos=[
            ("axis", g.maybe(0.5, g.axis(x))),
            ("shape", g.maybe(0.2, "(4, 6)", "(3,)", "(2, 3)")),
            ("num_samples", g.maybe(0.3, "1", "5", "0")),
            key(g),
        ],
        stream="positional",
    )


def draw_permutation(g: Gen) -> str:
    x = g.of("10", "0", "1", "-1") if g.chance(0.4) else g.arr(small=True)
    axis = g.maybe(0.5, g.axis(x)) if x in g.inputs else None
    return g.call([x], pos=[("axis", axis), key(g)], stream="positional")


def draw_split_key(g: Gen) -> str:
    k = key(g)[1] if g.chance(0.95) else g.of("mx.array([1])", "mx.array([1.0, 2.0])", "3")
    return g.call(
        [k], pos=[("num", g.maybe(0.7, "1", "2", "3", "10", "0", "-1"))], stream="positional"
    )


def draw_multivariate(g: Gen) -> str:
    return g.call(
        ["mx.array([1.0, 2.0])", "mx.array([[2.0, 0.5], [0.5, 1.0]])"],
        pos=[
            ("shape", g.maybe(0.6, "(3,)", "(2, 3)", "()")),
            ("dtype", g.maybe(0.3, "mx.float32", g.dtype())),
            key(g),
        ],
        stream="positional",
    )


def draw_seed(g: Gen) -> str:
    seed = g.of("0", "1", "42", "2**64 - 1", "-1", "'a'", "1.5", "2**64", "True", "None")
    return f"mx.random.seed({seed})\n(mx.random.uniform(shape=(3,)), mx.random.randint(0, 9, (4,)), mx.random.bernoulli(0.5, (3,)))"


# Numbers of float64 are computed in float32.
R = {"ulps": in_single(64), "scale": "largest"}


ENTRIES: list[Entry] = [
    e(
        "random.key",
        lambda g: g.call(
            [g.of("0", "1", "42", "2**32 + 5", "2**64 - 1", "-1", "2**64", "1.5", "True")],
            stream="",
        ),
        0.3,
    ),
    e("random.seed", draw_seed, 0.3),
    e("random.split", draw_split_key, 0.4),
    e("random.uniform", draw_uniform),
    e("random.randint", draw_randint),
    e("random.bernoulli", draw_bernoulli, 0.8),
    e("random.normal", draw_normal, ulps=in_single(64), scale=create.one),
    e("random.laplace", draw_laplace, 0.8, **R),
    e("random.gumbel", draw_gumbel, 0.8, **R),
    e("random.truncated_normal", draw_truncated, 0.8, ulps=512, scale="largest"),
    e("random.multivariate_normal", draw_multivariate, 0.4, ulps=4096, scale="largest"),
    e("random.categorical", draw_categorical, 0.8),
    e("random.permutation", draw_permutation, 0.8),
    e("random.state", lambda g: "[q.shape for q in mx.random.state]", 0.05),
]
