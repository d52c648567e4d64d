"""Numbers of few bits: words and scales to the bit, and products.

Left out is what mlx does not survive: a group size or bits of 0, products without elements, scales that do not fit the words, and
indices out of bounds. Its products of halves are summed in the dtype, so that most are of float32.
"""

from __future__ import annotations

from typing import Any

from support.quantization import BITS, FLOATING, GROUPS, SIZES

from ..draw import Entry, Gen
from .grouped import FLOATS, SINGLE, whole
from .matmul import product_size

MOSTLY_SINGLE = [*SINGLE * 12, "float16", "bfloat16"]
OTHERS = ["int32", "bool_", "complex64"]

Options = list[tuple[str, str | None]]


def format_of(
    g: Gen, modes: tuple[str, ...] = ("affine",) * 4 + tuple(FLOATING)
) -> tuple[str, int, int]:
    """Mode, group size and bits."""
    mode = g.of(*modes)
    if mode != "affine":
        return mode, *SIZES[mode]
    if g.chance(0.15):
        return mode, *SIZES[mode]
    return mode, g.of(*GROUPS), g.of(*BITS)


def options(g: Gen, mode: str, group: int, bits: int, default: str = "affine") -> Options:
    """The arguments that say so; what is the default is left out now and then."""
    own = SIZES[mode] == (group, bits)
    sizes = [None, None] if own and g.chance(0.5) else [str(group), str(bits)]
    named = None if mode == default and g.chance(0.6) else f"'{mode}'"
    return list(zip(("group_size", "bits", "mode"), [*sizes, named]))


def wrong(g: Gen, of: Options) -> Options:
    """The same, one of them wrong."""
    found = dict(of)
    name = g.of("group_size", "bits", "mode")
    found[name] = {
        "group_size": g.of("16", "48", "256", "-32"),
        "bits": g.of("7", "9", "-4", "16"),
        "mode": g.of("'foo'", "'MXFP4'", "''", "None", "'nvfp4'", "'mxfp8'"),
    }[name]
    return list(found.items())


def as_text(of: Options) -> str:
    return "".join(f", {name}={value}" for name, value in of if value is not None)


def quantized(g: Gen, w: str, mode: str, group: int, bits: int) -> str:
    """The parts of a matrix as arguments."""
    return f"*mx.quantize({w}, {group}, {bits}, '{mode}')"


def drawn(g: Gen, low: int, high: int, shape: tuple[int, ...], dtype: str) -> str:
    """An array of any integers of a range."""
    seed = g.r.randrange(1000)
    return f"mx.array(np.random.default_rng({seed}).integers({low}, {high}, {shape}, np.{dtype}))"


def shape_of(g: Gen, group: int) -> tuple[int, ...]:
    """A matrix whose rows are groups; mlx wants 32 elements in all."""
    rows = g.of(1, 2, 3, 5)
    columns = max(group, 32) * g.of(1, 1, 2, 3)
    return (*g.of((), (), (), (2,), (3, 2), (1,)), rows, columns)


def draw_quantize(g: Gen) -> str:
    mode, group, bits = format_of(g)
    shape = shape_of(g, group)
    # The sign of what is no number is any in 8 bits.
    specials = 0 if mode == "mxfp8" else 0.15
    w = g.arr(FLOATS, shape, ("any", "any", "unit", "positive", "few"), specials)
    of = options(g, mode, group, bits)
    own = None
    how = g.r.random()
    if how < 0.03:
        w = g.arr(
            ["float32"], g.of((), (64,), (3, 33), (2, 48), (1, 16), (2, 0), (0, 64)), specials=0
        )
    elif how < 0.06:
        w = g.arr(OTHERS, shape)
    elif how < 0.12:
        of = wrong(g, of)
    if (mode == "nvfp4" and g.chance(0.5)) or g.chance(0.03):
        own = g.of("mx.array(20.0)", "mx.array([3.5])", "mx.array(0.31)", "mx.array(2688.0)")
        own = g.of(*[own] * 8, "mx.array(2)", "mx.array([1.0, 2.0])")
    scale: float = g.of(1, 1, 1, 1e-3, 1e3, 1e-9)
    given = w if scale == 1 else f"{w} * {scale}"
    text = g.call([given], of, [("global_scale", own)])
    return text if g.chance(0.03) else f"tuple({text})"


def draw_dequantize(g: Gen) -> str:
    mode, group, bits = format_of(g)
    shape = shape_of(g, group)
    of = options(g, mode, group, bits)
    kinds = [None, None, "mx.float32", "mx.float16", "mx.bfloat16"]
    own = None
    if g.chance(0.5):
        w = g.arr(FLOATS, shape, "any", 0)
        args = [quantized(g, w, mode, group, bits)]
        if mode == "nvfp4" and g.chance(0.4):
            own = g.of("mx.array(20.0)", "mx.array([3.5])", "mx.array(0.31)")
            kinds = [None, "mx.float32"]
    else:
        # Any words.
        words = (*shape[:-1], shape[-1] * bits // 32)
        rows = (*shape[:-1], shape[-1] // group)
        args = [drawn(g, 0, 2**32, words, "uint32")]
        if mode == "affine":
            first, second = g.of(*FLOATS), g.of(*FLOATS)
            if g.chance(0.6):
                second = first
            args += [g.arr([first], rows, "any", 0.1), g.arr([second], rows, "any", 0.1)]
        else:
            # Scales with which products are in the range of every dtype.
            low, high = (0, 112) if mode == "nvfp4" else (119, 135)
            args.append(drawn(g, low, high, rows, "uint8"))
    how = g.r.random()
    if how < 0.05:
        of = wrong(g, of)
    elif how < 0.09:
        args[0] = g.of(g.arr(["float32", "int32"], shape), "mx.array([1, 2], dtype=mx.uint32)")
        args = [args[0], *g.of(["mx.ones((2, 1))"], ["mx.ones((2, 1))"] * 2)]
    elif how < 0.12:
        kinds = ["mx.int32", "mx.complex64", "mx.bool_"]
    if g.chance(0.02):
        own = g.of("mx.array(20.0)", "mx.array(2)", "mx.array([1.0, 2.0])")
    return g.call(args, kw=[*of, ("global_scale", own), ("dtype", g.of(*kinds))])


def factors(
    g: Gen, default: str = "affine", batched: bool = False
) -> tuple[str, str, Options, tuple[int, ...], tuple[int, ...], bool]:
    """x, the parts of w, options, both batches, and whether w is transposed."""
    mode, group, bits = format_of(g)
    transpose = g.chance(0.6)
    m, few = g.of(1, 1, 2, 3, 5), g.of(1, 2, 3, 7)
    many = max(group, 32) * g.of(1, 1, 2)
    n, k = (few, many) if transpose else (many, few)
    if mode in ("nvfp4", "mxfp4") and n * k % 32:
        few = 1
    batch, own = (), ()
    if batched:
        batch, own = g.of((2,), (3,), (2, 2), (1,), ()), g.of((2,), (3,), (3, 2), (1,), ())
    elif g.chance(0.3):
        # x of one or two axes and many matrices mlx multiplies by the first.
        own = g.of((2,), (1,), (3, 2))
        batch = (*own[:-1], g.of(1, own[-1]))
    elif g.chance(0.5):
        batch = g.of((2,), (3, 1))
    dtypes = MOSTLY_SINGLE if g.chance(0.95) else OTHERS
    kind = g.of(*dtypes)
    w_kind = kind if kind in FLOATS and g.chance(0.85) else g.of(*MOSTLY_SINGLE)
    x = g.arr([kind], (*batch, m, k + (g.chance(0.02))), g.of("few", "any"), 0)
    if not batched and not batch and not own and g.chance(0.1):
        x = f"{x}[0]"
    w = g.arr([w_kind], (*own, *((n, k) if transpose else (k, n))), g.of("few", "any", "unit"), 0)
    of = options(g, mode, group, bits, default)
    return x, quantized(g, w, mode, group, bits), of, batch, own, transpose


def draw_quantized_matmul(g: Gen) -> str:
    x, parts, of, _, _, transpose = factors(g)
    how = g.r.random()
    if how < 0.04:
        of = wrong(g, of)
    elif how < 0.08:
        parts = g.of(
            "*mx.quantize(mx.ones((2, 64)))[:2]",
            "mx.ones((2, 64)), mx.ones((2, 1)), mx.ones((2, 1))",
            "mx.ones(3)",
        )
    flag = None if transpose and g.chance(0.5) else str(transpose)
    return g.call([x, parts], kw=[("transpose", flag), *of])


def indices_of(g: Gen, batches: tuple[tuple[int, ...], ...]) -> list[str | None]:
    """Indices of the matrices of both factors, most of which can be broadcast."""
    shape = g.of((), (3,), (2, 1), (4,), (0,))
    found: list[str | None] = []
    for batch in batches:
        count = 1
        for size in batch:
            count *= size
        other = shape if g.chance(0.8) else g.of((3,), (1,), (2, 3))
        picked = whole(g, other, count - 1, g.of("uint32", "int32", "int64", "uint8"))
        found.append(g.of(*[picked] * 5, None, "mx.array([0.0])" if g.chance(0.2) else picked))
    return found


def draw_gather_qmm(g: Gen) -> str:
    x, parts, of, batch, own, transpose = factors(g, batched=True)
    if g.chance(0.04):
        of = wrong(g, of)
    if g.chance(0.02) and not batch:
        x = f"{x}[..., 0]"
    lhs, rhs = indices_of(g, (batch, own))
    flag = None if transpose and g.chance(0.5) else str(transpose)
    scale = "mx.array(2.0)" if g.chance(0.03) else None
    named: Options = [("lhs_indices", lhs), ("rhs_indices", rhs), ("transpose", flag), *of]
    named += [("global_scale", scale), ("sorted_indices", g.maybe(0.1, "False"))]
    return g.call([x, parts], kw=named)


def rounded_factors(g: Gen, experts: bool) -> tuple[str, str, Options, tuple[tuple[int, ...], ...]]:
    mode, group, bits = format_of(g, tuple(FLOATING))
    n, k = g.of(2, 3, 8), max(group, 32) * g.of(1, 2, 4)
    batch, own = (g.of((), (2,), (3,)), g.of((), (2,), (3,))) if experts else ((), ())
    # mlx's CPU multiplies one row by words.
    rows = g.of((), (1,), (1,), (1, 1)) if not experts else (*batch, g.of(1, 2))
    if not experts and g.chance(0.06):
        rows = (3,)
    x = g.arr(MOSTLY_SINGLE if g.chance(0.95) else [*OTHERS, "float64"], (*rows, k), "any", 0)
    w = g.arr(MOSTLY_SINGLE, (*own, n, k), "any", 0)
    parts = quantized(g, w, mode, group, bits)
    how = g.r.random()
    if how < 0.06:
        parts = w
    elif how < 0.09 and not experts:
        parts = f"mx.quantize({w}, {group}, {bits}, '{mode}')[0]"
    elif how < 0.11 and not experts:
        parts = "mx.ones((2, 3, 64))"
    of = options(g, mode, group, bits, "nvfp4")
    return x, parts, wrong(g, of) if g.chance(0.04) else of, (batch, own)


def draw_qqmm(g: Gen) -> str:
    x, parts, of, _ = rounded_factors(g, False)
    scales: Options = []
    if g.chance(0.06):
        # One alone, or of a wrong kind; mlx's CPU ignores right ones.
        scales = [(g.of("global_scale_x", "global_scale_w"), "mx.array(2.0)")]
        if g.chance(0.5):
            scales = [
                (n, g.of("mx.array([1.0, 2.0])", "mx.array(2)"))
                for n in ("global_scale_x", "global_scale_w")
            ]
    return g.call([x, parts], kw=[*of, *scales])


def draw_gather_qqmm(g: Gen) -> str:
    x, parts, of, batches = rounded_factors(g, True)
    if g.chance(0.1):
        x = f"{x}.flatten()[:32]"
    lhs, rhs = indices_of(g, batches)
    return g.call([x, parts], kw=[("lhs_indices", lhs), ("rhs_indices", rhs), *of])


P: dict[str, Any] = {"ulps": 64, "scale": product_size}

ENTRIES = [
    Entry("quantize", draw_quantize, weight=6),
    Entry("dequantize", draw_dequantize, 4, "largest", weight=6),
    Entry("quantized_matmul", draw_quantized_matmul, **P, weight=6),
    Entry("gather_qmm", draw_gather_qmm, **P, weight=6),
    Entry("qqmm", draw_qqmm, **P, weight=6),
    Entry("gather_qqmm", draw_gather_qqmm, **P, weight=6),
]
