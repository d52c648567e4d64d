"""The array class: making, indexing, assigning, converting, printing."""

from __future__ import annotations

import math

from support.harness import ALL, FLOATS, INTS

from ..draw import Entry, Gen, e
from .index import indices

# --- indexing ---


def slice_text(g: Gen, size: int) -> str:
    end = lambda: g.of("", "", str(g.r.randrange(-size - 1, size + 2)))
    step = g.of("", "", "1", "2", "-1", "-2", "3")
    return f"slice({end() or None}, {end() or None}, {step or None})"


def part(g: Gen, size: int, masks: bool) -> str:
    how = g.r.random()
    if how < 0.3:
        return str(g.r.randrange(-size, size)) if size else "0"
    if how < 0.7:
        return slice_text(g, size)
    if how < 0.72:
        return g.of("True", "False", "'a'", "1.5")
    return indices(g, size, g.of((3,), (1,), (2, 1), (), (0,)))


def index(g: Gen, x: str, masks: bool = True) -> str:
    """An index of `x`: of one axis or several, with None and Ellipsis in it."""
    shape = g.size(x)
    if masks and g.chance(0.1):
        rank = g.r.randrange(1, len(shape) + 1) if shape else 0
        return g.arr(["bool_"], shape[:rank], "few", 0)
    count = g.r.randrange(0, len(shape) + 1)
    if g.chance(0.03):
        count = len(shape) + 1
    parts = [part(g, shape[i] if i < len(shape) else 3, masks) for i in range(count)]
    if g.chance(0.25) and count <= len(shape):
        at = g.r.randrange(count + 1)
        parts = (
            parts[:at]
            + ["..."]
            + [part(g, shape[len(shape) - (count - i)], masks) for i in range(at, count)]
        )
    for _ in range(g.of(0, 0, 0, 1, 2)):
        parts.insert(g.r.randrange(len(parts) + 1), "None")
    if len(parts) == 1 and g.chance(0.8):
        return parts[0]
    return f"({', '.join(parts)},)" if parts else g.of("()", "...", "None", "slice(None)")


def draw_getitem(g: Gen) -> str:
    x = g.arr(specials=0.05, shape=g.shape(small=True))
    return f"operator.getitem({x}, {index(g, x, masks=False)})"


def value_for(g: Gen) -> str:
    how = g.r.random()
    if how < 0.45:
        return g.of("7", "-1", "1.5", "True", "0", "300", "2j")
    if how < 0.55:
        return f"mx.array({g.of('7', '1.5', '[3]', '[[2]]')})"
    return g.few(shape=g.of((), (1,), (3,), (2,), (4, 1), (5,), (3, 3)))


def draw_setitem(g: Gen) -> str:
    """Values that mostly fit: the selection's own elements turned into something else."""
    x = g.arr(specials=0, shape=g.shape(small=True), domain="few")
    i = index(g, x)
    value = value_for(g) if g.chance(0.6) else f"operator.getitem({x}, {i}) * 2 + 1"
    if value.endswith("+ 1") and g.inputs.get("y") and g.dtype_of("y") == "bool_":
        value = "7"
    return f"assigned({x}, {i}, {value})"


AT = ["add", "subtract", "multiply", "divide", "maximum", "minimum"]


def draw_at(g: Gen) -> str:
    x = g.arr(
        [*FLOATS, *INTS, "bool_", "complex64"], specials=0, shape=g.shape(small=True), domain="few"
    )
    i = index(g, x, masks=False)
    value = value_for(g)
    if g.entry.name.endswith("divide"):
        value = g.of("2", "mx.array(4)", "0.5")
    return f"{x}.at[{i}].{g.entry.name.rsplit('.', 1)[1]}({value})"


# --- making ---


def nested(g: Gen, depth: int, width: int) -> str:
    if depth == 0:
        return g.scalar(0.04)
    items = ", ".join(nested(g, depth - 1, width) for _ in range(width))
    return f"[{items}]" if g.chance(0.7) else f"({items}{',' if width else ''})"


NUMPY = [
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def draw_array(g: Gen) -> str:
    how = g.r.random()
    if how < 0.2:
        value = g.scalar(0.3)
    elif how < 0.55:
        value = nested(g, g.of(1, 1, 2, 3), g.of(0, 1, 2, 3))
    elif how < 0.8:
        shape = g.of((), (3,), (2, 3), (0,), (1, 2, 2))
        value = f"np.arange({math.prod(shape)}).reshape({shape}).astype(np.{g.of(*NUMPY)})"
        value += g.of("", "", "", ".T", "[..., None]") if shape else ""
    elif how < 0.9:
        value = f"[{', '.join(g.arr(shape=g.of((), (2,)) if g.chance(0.2) else (2,)) for _ in range(2))}]"
    else:
        value = g.arr()
    if g.chance(0.03):
        value = g.of("'a'", "None", "[1, 'a']", "[[1, 2], [3]]", "object()", "{}", "b'ab'")
    dtype = g.maybe(0.4, g.dtype(), g.dtype(), "None")
    if g.entry.name == "asarray":
        return g.call(
            [value], pos=[("dtype", dtype)], kw=[("copy", g.maybe(0.15, "True", "None"))], stream=""
        )
    return g.call([value], pos=[("dtype", dtype)], stream="", target="mx.array")


def draw_from_dlpack(g: Gen) -> str:
    x = g.arr(small=True)
    value = g.of(x, f"np.arange(6, dtype=np.{g.of('int32', 'float32', 'uint8', 'float64')})")
    return g.call([value], kw=[("copy", g.maybe(0.3, "True", "None"))], stream="")


# --- converting ---


def on_array(template: str, **how):
    """A draw that puts an array into a text."""

    def draw(g: Gen) -> str:
        x = g.arr(**how)
        return template.replace("$", x)

    return draw


def single(template: str):
    """As on_array, mostly with one element."""

    def draw(g: Gen) -> str:
        shape = g.of((), (), (1,), (1, 1)) if g.chance(0.9) else g.shape(small=True)
        return template.replace("$", g.arr(shape=shape, domain=g.of("few", "any")))

    return draw


def draw_format(g: Gen) -> str:
    x = g.arr(shape=g.of((), (), (), (1,), (3,)), specials=0.2)
    spec = g.of("", "", ".2f", "5", "d", ">10", "x", "e", "s")
    return f"format({x}, {spec!r})"


def draw_repr(g: Gen) -> str:
    big = g.chance(0.15)
    shape = g.of((1200,), (7, 300), (40, 40), (2, 2, 300)) if big else g.shape(small=True)
    x = g.arr(shape=shape, specials=0.3, domain=g.of("any", "few", "unit"))
    if g.chance(0.2):
        x = f"({x} * {g.of('1e6', '1e-6', '1e3', '123456', '1e20')})"
    form = "str" if g.entry.name.endswith("str__") else "repr"
    if g.chance(0.25):
        precision = g.of(0, 1, 2, 3, 4, 6, 8, 12)
        return f"(lambda c: (c.__enter__(), {form}({x}), c.__exit__(None, None, None))[1])(mx.printoptions({precision}))"
    return f"{form}({x})"


def draw_array_protocol(g: Gen) -> str:
    x = g.arr([d for d in ALL if d != "bfloat16"], small=True, domain="few", specials=0)
    return g.of(
        f"np.array({x})",
        f"np.asarray({x})",
        f"np.asarray({x}, dtype=np.{g.of('float32', 'float64', 'int32', 'complex64')})",
        f"np.array({x}, copy=True)",
        f"{x}.__array__()",
        f"{x}.__array__(np.dtype('float32'))",
    )


def draw_buffer(g: Gen) -> str:
    x = g.arr([d for d in ALL if d != "bfloat16"], small=True, domain="few", specials=0)
    return f"(lambda m: (m.format, m.shape, m.itemsize, m.ndim, m.tolist()))(memoryview({x}))"


FACTS = ["size", "ndim", "itemsize", "nbytes", "shape", "dtype"]

ENTRIES: list[Entry] = [
    e("array", draw_array, 1.5),
    e("asarray", draw_array, 0.8),
    e("from_dlpack", draw_from_dlpack, 0.3),
    e("array.__getitem__", draw_getitem, 2.5),
    e("array.__setitem__", draw_setitem, 2.5),
    e("array.at", lambda g: f"type({g.arr()}.at[0]).__name__", 0.05),
    e("ArrayAt", lambda g: f"isinstance({g.arr()}.at[0], mx.ArrayAt)", 0.05),
    e("ArrayIterator", lambda g: f"isinstance(iter({g.arr(low=1)}), mx.ArrayIterator)", 0.05),
    e("PrintOptions", lambda g: "isinstance(mx.get_printoptions(), mx.PrintOptions)", 0.05),
    *(e(f"array.at.{n}", draw_at, 0.6, ulps=4) for n in AT),
    *(e(f"array.{n}", on_array(f"$.{n}"), 0.3) for n in FACTS),
    *(e(f"array.{n}", on_array(f"$.{n}"), 0.4) for n in ("T", "mT", "real", "imag")),
    e("array.item", single("$.item()"), 0.5),
    e("array.tolist", on_array("$.tolist()", small=True), 0.6),
    e("array.__len__", on_array("len($)"), 0.2),
    e("array.__iter__", on_array("list($)", small=True), 0.5),
    e("array.__bool__", single("bool($)"), 0.4),
    e("array.__int__", single("int($)"), 0.4),
    e("array.__float__", single("float($)"), 0.4),
    e("array.__complex__", single("complex($)"), 0.3),
    e("array.__index__", single("operator.index($)"), 0.3),
    e("array.__format__", draw_format, 0.5),
    e("array.__repr__", draw_repr, 1.5),
    e("array.__str__", draw_repr, 0.5),
    e("array.__hash__", on_array("hash($) == hash($)"), 0.1),
    e("array.__copy__", on_array("copy.copy($)"), 0.2),
    e("array.__deepcopy__", on_array("copy.deepcopy($)"), 0.2),
    e("array.__getstate__", on_array("pickle.loads(pickle.dumps($))"), 0.2),
    e("array.__array__", draw_array_protocol, 0.5),
    e("array.__buffer__", draw_buffer, 0.4),
    e(
        "array.__dlpack__",
        on_array("np.from_dlpack($)", dtypes=[d for d in ALL if d != "bfloat16"], small=True),
        0.3,
    ),
    e("array.__dlpack_device__", on_array("tuple(map(int, $.__dlpack_device__()))"), 0.1),
]
