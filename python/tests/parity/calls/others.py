"""Types, constants, files, devices, streams, memory, printing, transforms."""

from __future__ import annotations

from support.harness import ALL, FLOATS, INTS

from ..draw import Entry, Gen, e
from .fixed import FIXED

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


def draw_gguf(g: Gen) -> str:
    x, y = g.arr(small=True), g.arr(["float16", "float32", "int8", "int32"], small=True)
    arrays = g.of(f"{{'a': {x}}}", f"{{'a': {y}, 'b.c': {y}}}", f"{{'a': {y}}}", "{}", f"[{y}]")
    value = g.of("'v'", "['a', 'b']", "('a',)", "[]", y, "mx.array(3)", "mx.array([True, False])")
    value = g.of(value, value, value, x, "3", "None", "['a', 1]", "b'v'", "mx.ones((2, 2))")
    meta = g.of("", f", {{'k': {value}}}", f", metadata={{'k': {value}}}", ", None", ", 3")
    back = g.of("", ", return_metadata=True", ", 'gguf', True")
    ending = g.of(".gguf", ".gguf", "")
    return g.of(
        *[
            f"stored(lambda p: mx.save_gguf(p, {arrays}{meta}), lambda p: mx.load(p{back}), {ending!r})"
        ]
        * 4,
        f"stored(lambda p: mx.save_gguf(file=p, arrays={arrays}), lambda p: mx.load(p), {ending!r})",
        f"mx.save_gguf({g.of('None', '1', '[]')}, {arrays})",
        f"mx.save_gguf('/nonexistent/file.gguf', {{'a': {y}}})",
    )


def draw_load(g: Gen) -> str:
    return g.of(
        "mx.load('/nonexistent/file.npy')",
        "mx.load('/nonexistent/file.xyz')",
        "mx.load('/nonexistent/file.gguf')",
        "mx.load('noending')",
        "mx.load(1)",
        "mx.load(None)",
        "stored(lambda p: open(p, 'wb').write(b'not a file'), lambda p: mx.load(p), '.npy')",
        "stored(lambda p: open(p, 'wb').write(b'not a file'), lambda p: mx.load(p), '.npz')",
        "stored(lambda p: open(p, 'wb').write(b'not a file'), lambda p: mx.load(p), '.safetensors')",
        "stored(lambda p: open(p, 'wb').write(b'not a file'), lambda p: mx.load(p), '.gguf')",
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


ENTRIES: list[Entry] = [
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
    e("save_gguf", draw_gguf, 0.4),
    e("load", draw_load, 0.4),
    *(fixed(n) for n in FIXED),
]
