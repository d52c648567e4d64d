"""Unary and binary operations, over dtypes, shapes and layouts."""

from typing import NamedTuple

import pytest
from support.harness import (
    ALL,
    FLOATS,
    INEXACT,
    INTS,
    LAYOUTS,
    REALS,
    ROUNDED,
    SHAPES,
    Tally,
    Units,
    by_dtype,
    given,
    sample,
)

import ultramarine as um


class Op(NamedTuple):
    """A row: the domain its values are drawn from, and how far apart results may be."""

    domain: str = "any"
    ulps: Units = 0
    specials: bool = True
    dtypes: list[str] = ALL
    # What the errors of real values are measured by; "each": each value.
    scale: str | float = "each"


# Of mlx's float32 sin, cos and erf (which serve float64 too) the error does not shrink with
# the result: it is up to 5e-7 at zeros. Between -1 and 1 it is the absolute error that counts.
WAVE = Op(ulps=ROUNDED, scale=0.25)

UNARY = {
    "abs": Op(ulps=4),
    "negative": Op(),
    "sign": Op(ulps=4),
    "square": Op(ulps=4, specials=False),
    "sqrt": Op("positive", 4),
    "rsqrt": Op("positive", 8),
    "reciprocal": Op("nonzero", 4),
    "exp": Op(ulps=ROUNDED),
    "expm1": Op(ulps=ROUNDED),
    "log": Op("positive", ROUNDED),
    "log2": Op("positive", ROUNDED),
    "log10": Op("positive", ROUNDED),
    "log1p": Op("positive", ROUNDED),
    "sin": WAVE,
    "cos": WAVE,
    "tan": Op("unit", ROUNDED),
    "arcsin": Op("unit", ROUNDED),
    "arccos": Op("unit", ROUNDED),
    "arctan": Op(ulps=ROUNDED),
    "sinh": Op(ulps=ROUNDED),
    "cosh": Op(ulps=ROUNDED),
    "tanh": Op(ulps=ROUNDED),
    "arcsinh": Op(ulps=ROUNDED),
    "arccosh": Op("above one", ROUNDED),
    "arctanh": Op("unit", ROUNDED),
    "erf": WAVE,
    "erfinv": Op("unit", ROUNDED),
    # mlx's exp of -x overflows in float16: small results are 0.
    "sigmoid": WAVE,
    "floor": Op(),
    "ceil": Op(),
    "round": Op(),
    "degrees": Op(ulps=4, specials=False),
    "radians": Op(ulps=4, specials=False),
    "isnan": Op(),
    "isinf": Op(),
    "isfinite": Op(),
    "isposinf": Op(),
    "isneginf": Op(),
    "logical_not": Op(),
    "bitwise_invert": Op(),
    "real": Op(),
    "imag": Op(),
    "conjugate": Op(),
    "nan_to_num": Op(),
    "stop_gradient": Op(),
}

BINARY = {
    "add": Op(ulps=2),
    "subtract": Op(ulps=2),
    "multiply": Op(ulps=2),
    "divide": Op("nonzero", 4, specials=False),
    "floor_divide": Op("nonzero", 0, specials=False),
    "remainder": Op("nonzero", 4, specials=False),
    "power": Op("positive", ROUNDED, specials=False),
    "maximum": Op(),
    "minimum": Op(),
    # The result crosses zero between operands near -1. mlx rounds the parts to the dtype: of results up to 8 that is
    # two units, which are eight of 1.
    "logaddexp": Op(ulps=by_dtype(ROUNDED, float16=16, bfloat16=16), scale=1.0),
    "arctan2": Op(ulps=ROUNDED, specials=False),
    "equal": Op("few"),
    "not_equal": Op("few"),
    "less": Op("few"),
    "less_equal": Op("few"),
    "greater": Op("few"),
    "greater_equal": Op("few"),
    "logical_and": Op("few"),
    "logical_or": Op("few"),
    "bitwise_and": Op(),
    "bitwise_or": Op(),
    "bitwise_xor": Op(),
    "left_shift": Op("few", specials=False, dtypes=INTS),
    "right_shift": Op("few", specials=False, dtypes=INTS),
}

# Shapes of two operands, broadcast against each other.
PAIRS = [
    ((), ()),
    ((0,), (1,)),
    ((7,), (7,)),
    ((4, 5), (5,)),
    ((4, 1), (1, 5)),
    ((), (37, 67)),
    ((37, 67), (37, 67)),
    ((2, 1, 3), (4, 1)),
    ((3, 0, 2), (1, 2)),
    ((2, 3), (4, 3)),
]


def layouts_for(shape: tuple[int, ...]) -> list:
    return LAYOUTS if shape else LAYOUTS[:1]


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("op", UNARY)
def test_unary(tally: Tally, op: str, dtype: str) -> None:
    row = UNARY[op]
    cases = [(s, lay) for s in SHAPES for lay in layouts_for(s)]
    for shape, layout in sample(cases, 12, op, dtype):
        x = given(dtype, shape, layout, row.domain, row.specials and dtype in REALS)
        scale = "each" if dtype == "complex64" else row.scale
        run = lambda mx, x: getattr(mx, op)(x)
        tally.same(f"{shape} {layout.name}", run, x, ulps=row.ulps, scale=scale)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("op", BINARY)
def test_binary(tally: Tally, op: str, dtype: str) -> None:
    row = BINARY[op]
    if dtype not in row.dtypes:
        pytest.skip("undefined behaviour in mlx")
    cases = [(a, b, p, q) for a, b in PAIRS for p in layouts_for(a) for q in layouts_for(b)]
    for a, b, p, q in sample(cases, 24, op, dtype):
        x = given(dtype, a, p, row.domain, row.specials and dtype in FLOATS, "x")
        y = given(dtype, b, q, row.domain, row.specials and dtype in FLOATS, "y")
        if op.endswith("shift"):
            y = y.__class__(abs(y.data), y.dtype, y.layout, y.shape)
        name = f"{a} {p.name} with {b} {q.name}"
        # A complex power is exp(y log x): errors of the logarithm grow with y.
        ulps = 1024 if (op, dtype) == ("power", "complex64") else row.ulps
        scale = "each" if dtype == "complex64" else row.scale
        run = lambda mx, x, y: getattr(mx, op)(x, y)
        tally.same(name, run, x, y, ulps=ulps, scale=scale)


OPERATORS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "**": lambda x, y: x**y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "&": lambda x, y: x & y,
    "|": lambda x, y: x | y,
    "^": lambda x, y: x ^ y,
    "<<": lambda x, y: x << y,
    ">>": lambda x, y: x >> y,
}


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators_with_scalars(tally: Tally, symbol: str, dtype: str) -> None:
    """Array with scalar, scalar with array, and the in-place form (which rebinds)."""
    run = OPERATORS[symbol]
    ulps = 1024 if symbol == "**" else ROUNDED
    x = given(dtype, (5,), domain="above one")
    for scalar in (True, 2, 2.5, 1 + 2j):
        tally.same(f"x {symbol} {scalar}", lambda mx, x: run(x, scalar), x, ulps=ulps)
        reflected_only_here = symbol in "&|^<<>>"  # mlx has no reflected bitwise operators
        if not reflected_only_here:
            tally.same(f"{scalar} {symbol} x", lambda mx, x: run(scalar, x), x, ulps=ulps)

    def in_place(mx, x):
        kept = x
        scope = {"x": x, "y": mx.array(2).astype(x.dtype)}
        exec(f"x {symbol}= y", scope)
        return kept, scope["x"]

    if symbol not in ("<", ">", "<=", ">=", "==", "!="):
        tally.same(f"x {symbol}= y", in_place, x, ulps=ulps)


@pytest.mark.parametrize("dtype", REALS)
def test_integer_and_float_division_by_zero(tally: Tally, dtype: str) -> None:
    x = given(dtype, (6,), domain="few")
    for op in ("floor_divide", "remainder", "divide"):
        tally.same(op, lambda mx, x: getattr(mx, op)(x, mx.zeros_like(x)), x)


@pytest.mark.parametrize("dtype", INTS)
def test_integers_divided_by_zero(dtype: str) -> None:
    """The quotient is 0 and the remainder the dividend, whatever the kernel; mlx may end the process."""
    values = [0, 1, 7, 100] if dtype.startswith("u") else [0, 1, -7, 100]
    for repeat in (1, 67):
        x = um.array(values * repeat).astype(getattr(um, dtype))
        for zero in (um.zeros_like(x), um.zeros((1,), x.dtype), 0):
            assert (x // zero).tolist() == [0] * len(x)
            assert (x % zero).tolist() == values * repeat
            assert [a.tolist() for a in um.divmod(x, zero)] == [[0] * len(x), values * repeat]


@pytest.mark.parametrize("dtype", ALL)
def test_round_and_divmod(tally: Tally, dtype: str) -> None:
    x = given(dtype, (4, 5), specials=dtype in REALS)
    for decimals in (-1, 1, 2):
        tally.same(f"round {decimals}", lambda mx, x: mx.round(x, decimals), x, ulps=4)
    tally.same("divmod", lambda mx, x: mx.divmod(x, mx.ones_like(x) + mx.ones_like(x)), x)


@pytest.mark.parametrize("dtype", INEXACT)
def test_closeness(tally: Tally, dtype: str) -> None:
    x = given(dtype, (4, 5), specials=dtype in FLOATS)
    for nan in (False, True):
        for rtol, atol in ((1e-5, 1e-8), (0.0, 0.1), (0.1, 0.0)):
            for op in ("isclose", "allclose"):

                def case(mx, x, op=op, rtol=rtol, atol=atol, nan=nan):
                    return getattr(mx, op)(x, x * 1.05, rtol, atol, equal_nan=nan)

                tally.same(f"{op} {rtol} {atol} {nan}", case, x)
        tally.same(f"array_equal {nan}", lambda mx, x: mx.array_equal(x, x, equal_nan=nan), x)
    tally.same("array_equal of other shape", lambda mx, x: mx.array_equal(x, x[0]), x)
