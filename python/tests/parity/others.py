"""Random numbers, types, constants, files, devices, streams, memory, printing, transforms."""

from __future__ import annotations

from support.harness import ALL, FLOATS, INTS

from . import shapes
from .draw import Entry, Gen
from .fixed import FIXED
from .shapes import e

# --- random ---


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


# --- types and constants ---

NAMES = ["e", "euler_gamma", "inf", "nan", "newaxis", "pi"]
DTYPES = [*ALL]
CATEGORIES = [
    "complexfloating",
    "floating",
    "generic",
    "inexact",
    "integer",
    "number",
    "signedinteger",
    "unsignedinteger",
]


def draw_dtype(g: Gen) -> str:
    d = f"mx.{g.of(*DTYPES)}"
    other = f"mx.{g.of(*DTYPES)}"
    return g.of(
        f"{d}.size",
        f"str({d})",
        f"repr({d})",
        f"{d} == {other}",
        f"{d} != {other}",
        f"hash({d}) == hash({other})",
        f"isinstance({d}, mx.Dtype)",
        f"type({d}).__name__",
        f"{d} is {other}",
        f"pickle.loads(pickle.dumps({d})) == {d}",
        f"copy.deepcopy({d}) == {d}",
        f"{d}({g.of('1', '2.5', '[1, 2]', 'True')})",
        f"{d} == {g.of('1', repr('float32'), 'np.float32', 'object()')}",
    )


def one_dtype(name: str):
    def draw(g: Gen) -> str:
        return f"mx.{name}"

    return draw


def draw_issubdtype(g: Gen) -> str:
    one = lambda: g.dtype() if g.chance(0.6) else f"mx.{g.of(*CATEGORIES)}"
    return g.call([one(), one()], stream="")


def draw_isdtype(g: Gen) -> str:
    kinds = "'bool' 'signed integer' 'unsigned integer' 'integral' 'real floating' 'complex floating' 'numeric' 'other'"
    kind = g.of(*[k + "'" for k in kinds.split("' ")][:-1], "'other'").replace("''", "'")
    other = g.of(kind, g.dtype(), f"({kind}, {g.dtype()})", "()")
    return g.call([g.dtype(), other], stream="")


def draw_can_cast(g: Gen) -> str:
    one = g.arr(small=True) if g.chance(0.2) else g.dtype()
    return g.call([one, g.dtype()], stream="")


def draw_result_type(g: Gen) -> str:
    one = lambda: g.arr(small=True) if g.chance(0.3) else g.dtype()
    return g.call([one() for _ in range(g.of(1, 2, 2, 3, 0))], stream="")


def draw_finfo(g: Gen) -> str:
    which = g.entry.name
    names = ["dtype", "min", "max"] + (
        ["eps", "smallest_normal", "bits"] if which == "finfo" else ["bits"]
    )
    d = (
        g.dtype(FLOATS + ["complex64"] if which == "finfo" else INTS)
        if g.chance(0.9)
        else g.dtype()
    )
    return g.of(
        f"mx.{which}({d}).{g.of(*names)}",
        f"mx.{which}({d}).{g.of(*names)}",
        f"repr(mx.{which}({d}))",
    )


# --- files ---


def draw_save(g: Gen) -> str:
    x = g.arr([d for d in ALL if d not in ("bfloat16",)], small=True)
    ending = g.of(".npy", ".npy", "")
    return g.of(
        f"stored(lambda p: mx.save(p, {x}), lambda p: mx.load(p), {ending!r})",
        f"streamed(lambda f: mx.save(f, {x}), lambda f: mx.load(f, format='npy'))",
        f"stored(lambda p: mx.save(p, {g.of(repr('a'), 'None', '1', '[1]')}), lambda p: mx.load(p), '.npy')",
        f"stored(lambda p: mx.save(p, {x}), lambda p: np.load(p), '.npy')",
    )


def draw_savez(g: Gen) -> str:
    x = g.arr([d for d in ALL if d != "bfloat16"], small=True)
    y = g.arr([d for d in ALL if d != "bfloat16"], small=True)
    args = g.of(f"{x}, {y}", f"a={x}, b={y}", f"{x}, b={y}", "", f"a={x}", f"[{x}]", "'a'")
    name = g.entry.name
    return f"stored(lambda p: mx.{name}(p{', ' if args else ''}{args}), lambda p: mx.load(p), {g.of('.npz', '.npz', '')!r})"


def draw_safetensors(g: Gen) -> str:
    x, y = g.arr(small=True), g.arr(small=True)
    arrays = g.of(f"{{'a': {x}}}", f"{{'a': {x}, 'b.c': {y}}}", "{}", f"[{x}]", f"{{1: {x}}}")
    meta = g.of("", ", {'k': 'v'}", ", metadata={'k': 'v'}", ", {'k': 1}", ", None")
    back = g.of("", "", ", return_metadata=True")
    return g.of(
        f"stored(lambda p: mx.save_safetensors(p, {arrays}{meta}), lambda p: mx.load(p{back}), {g.of('.safetensors', '.safetensors', '')!r})",
        f"streamed(lambda f: mx.save_safetensors(f, {arrays}{meta}), lambda f: mx.load(f, format='safetensors'{back}))",
    )


def draw_load(g: Gen) -> str:
    return g.of(
        "mx.load('/nonexistent/file.npy')",
        "mx.load('/nonexistent/file.xyz')",
        "mx.load('noending')",
        "mx.load(1)",
        "mx.load(None)",
        "stored(lambda p: open(p, 'wb').write(b'not a file'), lambda p: mx.load(p), '.npy')",
        "stored(lambda p: open(p, 'wb').write(b'not a file'), lambda p: mx.load(p), '.npz')",
        "stored(lambda p: open(p, 'wb').write(b'not a file'), lambda p: mx.load(p), '.safetensors')",
        "stored(lambda p: open(p, 'wb').write(b''), lambda p: mx.load(p), '.npy')",
        f"stored(lambda p: np.save(p, np.arange(6, dtype=np.{g.of('int16', 'float32', 'float64', 'uint64', 'bool')})), lambda p: mx.load(p), '.npy')",
        "stored(lambda p: np.save(p, np.asfortranarray(np.arange(6.0, dtype=np.float32).reshape(2, 3))), lambda p: mx.load(p), '.npy')",
        "stored(lambda p: np.savez(p, a=np.arange(3), b=np.ones(2, np.float32)), lambda p: mx.load(p), '.npz')",
        "stored(lambda p: mx.save(p, mx.arange(3)), lambda p: mx.load(p, format='npz'), '.npy')",
        "stored(lambda p: mx.save(p, mx.arange(3)), lambda p: mx.load(p, 'npy'), '.npy')",
        "stored(lambda p: mx.save(p, mx.arange(3)), lambda p: mx.load(p, return_metadata=True), '.npy')",
        "stored(lambda p: mx.save(p, mx.arange(3)), lambda p: mx.load(p, stream=mx.cpu), '.npy')",
        "stored(lambda p: mx.save(p, mx.arange(3)), lambda p: mx.load(__import__('pathlib').Path(p)), '.npy')",
    )


def fixed(name: str) -> Entry:
    lines = FIXED[name]
    # In order, so that a short run has them all.
    return e(name, lambda g: lines[g.index % len(lines)], 0.12 + 0.02 * len(lines), ulps=64)


R = {"ulps": 64, "scale": "largest"}

ENTRIES: list[Entry] = [
    e("empty", lambda g: f"(lambda a: (a.shape, a.dtype))({shapes.draw_zeros(g)})", 0.3),
    e("empty_like", lambda g: f"(lambda a: (a.shape, a.dtype))({shapes.draw_zeros_like(g)})", 0.3),
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
    e("random.normal", draw_normal, ulps=64, scale=shapes.one),
    e("random.laplace", draw_laplace, 0.8, **R),
    e("random.gumbel", draw_gumbel, 0.8, **R),
    e("random.truncated_normal", draw_truncated, 0.8, ulps=512, scale="largest"),
    e("random.multivariate_normal", draw_multivariate, 0.4, ulps=4096, scale="largest"),
    e("random.categorical", draw_categorical, 0.8),
    e("random.permutation", draw_permutation, 0.8),
    e("random.state", lambda g: "[q.shape for q in mx.random.state]", 0.05),
    e("Dtype", draw_dtype, 0.6),
    *(e(n, one_dtype(n), 0.03) for n in [*DTYPES, *CATEGORIES, *NAMES]),
    e(
        "DtypeCategory",
        lambda g: g.of(
            f"str(mx.{g.of(*CATEGORIES)})",
            f"mx.{g.of(*CATEGORIES)} == mx.{g.of(*CATEGORIES)}",
            "[str(c) for c in mx.DtypeCategory]",
            f"mx.{g.of(*CATEGORIES)}.name",
        ),
        0.2,
    ),
    e("issubdtype", draw_issubdtype, 0.5),
    e("isdtype", draw_isdtype, 0.5),
    e("can_cast", draw_can_cast, 0.5),
    e("result_type", draw_result_type, 0.5),
    e("finfo", draw_finfo, 0.3),
    e("iinfo", draw_finfo, 0.3),
    e("save", draw_save, 0.4),
    e("savez", draw_savez, 0.3),
    e("savez_compressed", draw_savez, 0.3),
    e("save_safetensors", draw_safetensors, 0.4),
    e("load", draw_load, 0.4),
    *(fixed(n) for n in FIXED),
]
