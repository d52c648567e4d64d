"""Functions of each element, and operators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from support.harness import ALL, BOOL, FLOATS, INTS

from ..draw import Case, Entry, Gen


def top(c: Case) -> float:
    """The largest magnitude of the operands, which cancelling terms of a result had."""
    sizes = [float(np.abs(d[np.isfinite(d)]).max(initial=1)) for d in datas(c)]
    return max(sizes, default=1.0)


def datas(c: Case) -> list[np.ndarray]:
    return [np.asarray(i.data) for i in c.inputs.values()]


# --- one operand ---

# name: domain, units in the last place
UNARY: dict[str, tuple[str | tuple[str, ...], float]] = {
    "abs": ("any", 2),
    "negative": ("any", 0),
    "positive": ("any", 0),
    "sign": ("any", 4),
    "floor": ("any", 0),
    "ceil": ("any", 0),
    "trunc": ("any", 0),
    "square": ("any", 4),
    "sqrt": (("positive", "any"), 64),
    "rsqrt": (("positive", "any"), 64),
    "reciprocal": (("nonzero", "any"), 64),
    "exp": ("any", 64),
    "expm1": ("any", 64),
    "log": (("positive", "any"), 64),
    "log2": (("positive", "any"), 64),
    "log10": (("positive", "any"), 64),
    "log1p": (("positive", "any"), 64),
    "sin": ("any", 64),
    "cos": ("any", 64),
    "tan": ("any", 64),
    "arcsin": (("unit", "any"), 64),
    "arccos": (("unit", "any"), 64),
    "arctan": ("any", 64),
    "sinh": ("any", 64),
    "cosh": ("any", 64),
    "tanh": ("any", 64),
    "arcsinh": ("any", 64),
    "arccosh": (("above one", "any"), 64),
    "arctanh": (("unit", "any"), 64),
    "erf": ("any", 64),
    "erfinv": (("unit", "any"), 512),
    "sigmoid": ("any", 64),
    "degrees": ("any", 64),
    "radians": ("any", 64),
    "isnan": ("any", 0),
    "isinf": ("any", 0),
    "isfinite": ("any", 0),
    "isposinf": ("any", 0),
    "isneginf": ("any", 0),
    "logical_not": ("few", 0),
    "bitwise_invert": ("any", 0),
    "real": ("any", 0),
    "imag": ("any", 0),
    "conj": ("any", 0),
    "conjugate": ("any", 0),
    "stop_gradient": ("any", 0),
}

# Also of Python numbers.
TAKES_NUMBERS = {
    "degrees",
    "radians",
    "logical_not",
    "bitwise_invert",
    "isnan",
    "isinf",
    "isfinite",
}
STREAM_ANYWHERE = {"isnan", "isinf", "isfinite", "isposinf", "isneginf", "bitwise_invert"}

UNARY_ALIASES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atanh": "arctanh",
}

UNARY_METHODS = [
    "abs",
    "square",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "exp",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "conj",
]


def unary(name: str, of: str, weight: float = 1.0) -> Entry:
    domain, ulps = UNARY[of]

    def draw(g: Gen) -> str:
        if of in TAKES_NUMBERS and g.chance(0.1) and "." not in name:
            x = g.scalar()
        else:
            x = g.arr(domain=domain)
        stream = "positional" if of in STREAM_ANYWHERE else "keyword"
        return g.call([x], stream=stream)

    scale: str | Callable[[Case], float] = "each"
    return Entry(name, draw, ulps, scale, by_numpy=True, weight=weight)


# --- two operands ---

# name: domain, dtypes, units, whether stream may stand third
BINARY: dict[str, tuple[str | tuple[str, ...], list[str], float, bool]] = {
    "add": ("any", ALL, 0, True),
    "subtract": ("any", ALL, 0, True),
    "multiply": ("any", ALL, 4, True),
    "divide": (("any", "nonzero"), ALL, 16, True),
    "floor_divide": (("nonzero", "any"), ALL, 0, True),
    "remainder": (("nonzero", "any"), ALL, 4, True),
    "divmod": (("nonzero", "any"), ALL, 4, True),
    "power": (("few", "positive", "any"), ALL, 64, False),
    "maximum": ("any", ALL, 0, False),
    "minimum": ("any", ALL, 0, False),
    "logaddexp": ("any", ALL, 64, False),
    "arctan2": ("any", ALL, 64, False),
    "equal": ("few", ALL, 0, True),
    "not_equal": ("few", ALL, 0, True),
    "less": ("few", ALL, 0, True),
    "less_equal": ("few", ALL, 0, True),
    "greater": ("few", ALL, 0, True),
    "greater_equal": ("few", ALL, 0, True),
    "logical_and": ("few", ALL, 0, False),
    "logical_or": ("few", ALL, 0, False),
    "logical_xor": ("few", ALL, 0, False),
    "bitwise_and": ("any", [*BOOL, *INTS, *INTS, *FLOATS], 0, True),
    "bitwise_or": ("any", [*BOOL, *INTS, *INTS, *FLOATS], 0, True),
    "bitwise_xor": ("any", [*BOOL, *INTS, *INTS, *FLOATS], 0, True),
    "left_shift": ("few", [*BOOL, *INTS, *INTS, *FLOATS], 0, True),
    "right_shift": ("few", [*BOOL, *INTS, *INTS, *FLOATS], 0, True),
}

BINARY_ALIASES = {
    "atan2": "arctan2",
    "pow": "power",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}

OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
REFLECTED = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
IN_PLACE = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
]


def operands(g: Gen, of: str, array_first: bool = False) -> tuple[str, str]:
    """Two operands that mostly broadcast: arrays of any dtypes, or one number."""
    domain, dtypes, _, _ = BINARY[of]
    shape = g.shape()
    specials = 0.0 if "shift" in of else 0.15
    how = g.r.random()
    shift = of.endswith("shift")

    def array(shape: tuple[int, ...], dtype: str | None = None) -> str:
        d = "positive" if shift and g.inputs else domain
        return g.arr([dtype] if dtype else dtypes, shape, d, specials)

    number = lambda: g.of("0", "1", "2", "3", "True") if shift else g.scalar()
    x = array(shape)
    if how < 0.2:
        pair = (x, number())
        return pair if array_first or g.chance(0.6) else pair[::-1]
    if how < 0.23:
        return (x, g.of("np.float32(1.5)", "np.int64(3)", "np.float64(2)", "np.ones(3, np.int16)"))
    same = g.dtype_of(x) if g.chance(0.5) else None
    return x, array(g.partner(shape), same)


def binary(name: str, of: str, weight: float = 1.3) -> Entry:
    _, _, ulps, anywhere = BINARY[of]

    def draw(g: Gen) -> str:
        if g.chance(0.03):
            return g.call([g.scalar(), g.scalar()])
        return g.call(operands(g, of), stream="positional" if anywhere else "keyword")

    return Entry(name, draw, ulps, by_numpy=True, weight=weight)


def operator_of(name: str, of: str) -> Entry:
    def draw(g: Gen) -> str:
        x, y = operands(g, of, array_first=True)
        if g.chance(0.03):
            y = g.of("'a'", "None", "[1, 2]", "object()")
        symbol = {"pow": "pow"}.get(name, name)
        return f"operator.__{symbol}__({x}, {y})"

    return Entry(f"array.__{name}__", draw, BINARY[of][2], by_numpy=False, weight=0.6)


def reflected(name: str) -> Entry:
    of = OPERATORS[name]

    def draw(g: Gen) -> str:
        x = g.arr(BINARY[of][1], domain=BINARY[of][0])
        y = g.scalar() if g.chance(0.95) else g.of("'a'", "None", "[1, 2]")
        if g.chance(0.1):
            return f"{x}.__r{name}__({y})"
        return f"operator.__{name}__({y}, {x})"

    return Entry(f"array.__r{name}__", draw, BINARY[of][2], weight=0.4)


def in_place(name: str) -> Entry:
    of = OPERATORS[name]

    def draw(g: Gen) -> str:
        x, y = operands(g, of, array_first=True)
        if g.chance(0.02):
            y = g.of("'a'", "None", "[1, 2]")
        return f"updated({x}, operator.__i{name}__, {y})"

    return Entry(f"array.__i{name}__", draw, BINARY[of][2], weight=0.4)


# --- others ---


def draw_clip(g: Gen) -> str:
    x = g.arr()
    limit = lambda: g.of("None", "-1", "0", "2", "1.5", "-0.5", "nan", "inf")

    def bound() -> str:
        return g.arr(shape=g.partner(g.size(x)), domain="few") if g.chance(0.2) else limit()

    return g.call([x], pos=[("a_min", bound()), ("a_max", bound())])


def draw_round(g: Gen) -> str:
    x = g.arr(specials=0.1)
    return g.call(
        [x], pos=[("decimals", g.maybe(0.6, "0", "1", "2", "3", "-1", "-2"))], stream="any"
    )


def draw_nan_to_num(g: Gen) -> str:
    x = g.arr(specials=0.7) if g.chance(0.95) else g.scalar(0)
    value = lambda: g.maybe(0.4, "0", "1", "-2.5", "1e4", "None")
    return g.call([x], pos=[("nan", value()), ("posinf", value()), ("neginf", value())])


def draw_where(g: Gen) -> str:
    shape = g.shape()
    condition = g.arr(["bool_", "bool_", "int32", "float32", "uint8"], shape, "few")
    x = g.arr(shape=g.partner(shape)) if g.chance(0.8) else g.scalar()
    y = g.arr(shape=g.partner(shape)) if g.chance(0.8) else g.scalar()
    return g.call([condition if g.chance(0.97) else g.flag(), x, y])


def draw_close(g: Gen) -> str:
    shape = g.shape()
    x = g.arr(shape=shape, domain="few", specials=0.4)
    y = g.arr([g.dtype_of(x)] if g.chance(0.6) else ALL, g.partner(shape), "few", specials=0.4)
    if g.chance(0.3):
        y = f"{x} + {g.of('0', '1e-6', '1e-9', '0.01')}"
    return g.call(
        [x, y],
        pos=[("rtol", g.maybe(0.3, "0", "1e-3", "0.5")), ("atol", g.maybe(0.3, "0", "1e-3", "1"))],
        kw=[("equal_nan", g.maybe(0.4, "True", "False"))],
    )


def draw_array_equal(g: Gen) -> str:
    shape = g.shape()
    x = g.arr(shape=shape, domain="few", specials=0.3)
    y = x if g.chance(0.3) else g.arr(shape=g.of(shape, g.partner(shape)), domain="few")
    if g.chance(0.2):
        y = f"{x}.astype({g.dtype()})"
    return g.call([x, y], pos=[("equal_nan", g.maybe(0.4, "True", "False"))], stream="positional")


def draw_astype(g: Gen) -> str:
    domain = g.of("few", "positive", "any")
    x = g.arr(domain=domain, specials=0.1)
    name = g.entry.name
    return g.call([x, g.dtype()], stream="keyword" if name == "astype" else "positional")


def draw_view(g: Gen) -> str:
    x = g.arr(specials=0)
    if g.entry.name == "view":
        return g.call([x, g.dtype()], stream="positional")
    return g.call([x, g.dtype()])


def draw_divmod_builtin(g: Gen) -> str:
    x, y = operands(g, "divmod", array_first=True)
    return f"divmod({x}, {y})"


ENTRIES = [
    *(unary(n, n) for n in UNARY),
    *(unary(a, n, 0.3) for a, n in UNARY_ALIASES.items()),
    *(unary(f"array.{n}", n, 0.4) for n in UNARY_METHODS),
    *(binary(n, n) for n in BINARY),
    *(binary(a, n, 0.4) for a, n in BINARY_ALIASES.items()),
    *(operator_of(n, of) for n, of in OPERATORS.items()),
    *(reflected(n) for n in REFLECTED),
    *(in_place(n) for n in IN_PLACE),
    Entry("clip", draw_clip),
    Entry("round", draw_round, 4, by_numpy=True),
    Entry("array.round", draw_round, 4, by_numpy=True, weight=0.5),
    Entry("nan_to_num", draw_nan_to_num),
    Entry("where", draw_where, weight=1.3),
    Entry("isclose", draw_close),
    Entry("allclose", draw_close),
    Entry("array_equal", draw_array_equal),
    Entry("astype", draw_astype, weight=1.3),
    Entry("array.astype", draw_astype, weight=1.3),
    Entry("view", draw_view),
    Entry("array.view", draw_view, weight=0.6),
    *(
        Entry(f"array.__{n}__", lambda g, n=n: f"operator.__{n}__({g.arr()})", 2, weight=0.4)
        for n in ("neg", "pos", "abs", "invert")
    ),
]
