"""Attention, the gated delta rule, and cross entropy."""

from __future__ import annotations

from support.harness import FLOATS, by_dtype

from ..draw import Case, Entry, Gen
from .index import indices
from .nn import largest, layer_size


def draw_attention(g: Gen) -> str:
    """Operands that fit, mostly: grouped heads, values of another size, all kinds of masks."""
    batch, heads, group = g.of(1, 1, 2), g.of(1, 1, 2, 3), g.of(1, 1, 2, 3)
    queries, keys = g.of(1, 2, 3, 5, 17), g.of(1, 2, 3, 5, 17, 40)
    size, value = g.of(1, 2, 4, 8), g.of(1, 2, 4, 8)
    dtype = g.of(*FLOATS)

    def floats() -> list[str]:
        return [dtype] if g.chance(0.9) else [*FLOATS, "int32", "complex64"]

    def bent(shape: tuple[int, ...]) -> tuple[int, ...]:
        if g.chance(0.97):
            return shape
        return g.of(shape[1:], (1, *shape), tuple(n + 1 for n in shape))

    q = g.arr(floats(), bent((batch, heads * group, queries, size)), specials=0)
    k = g.arr(floats(), bent((batch, heads, keys, size)), specials=0)
    v = g.arr(floats(), bent((batch, heads, keys, value)), specials=0)
    mask = g.of(None, None, "'causal'", "bool", "number")
    if mask in ("bool", "number"):
        scores = (batch, heads * group, queries, keys)
        shape = tuple(n if g.chance(0.7) else 1 for n in scores)[g.of(0, 0, 1, 2, 3) :]
        if mask == "bool":
            # Made by a comparison, so that it is of bools in the reference, too, whose operands are float64.
            mask = f"{g.arr(['float32'], bent(shape), specials=0)} > 0"
        else:
            mask = g.arr([dtype, dtype, "int8", "float32"], bent(shape), specials=0)
    elif g.chance(0.03):
        mask = g.of("'full'", "3", "[True]")
    sinks = g.arr([dtype], bent((heads * group,)), specials=0) if g.chance(0.25) else None
    scale = g.of("1.0", "0.5", "0.125", "-1", "2")
    named = [("scale", scale), ("mask", mask), ("sinks", sinks), ("force_fused", None)]
    return g.call([q, k, v], kw=named)


def value_size(c: Case) -> float:
    """The largest value, of which a result is a mean."""
    return largest(c.inputs["z"].data)


def draw_cross_entropy(g: Gen) -> str:
    shape = g.of((), (3,), (2, 3), (1, 4), (2, 1, 3))
    classes = g.of(1, 2, 7, 40)
    x = g.arr(FLOATS if g.chance(0.95) else ["int32", "complex64"], (*shape, classes), specials=0)
    targets = indices(g, classes, shape)
    if g.chance(0.05):
        targets = g.of("mx.array([0])", "mx.array([[[[0]]]])", "mx.array(0.0)", "0", "[0]", "x")
    return g.call([x, targets])


def draw_gated_delta(g: Gen) -> str:
    """Operands that fit, mostly. Exact factors make keys and rates so small that the state stays."""
    batch, steps, heads, group = g.of(1, 2), g.of(1, 2, 3, 5), g.of(1, 2), g.of(1, 2, 3)
    size, value = g.of(1, 2, 4, 8), g.of(1, 2, 3, 4)
    dtype = g.of(*FLOATS)

    def bent(shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape if g.chance(0.97) else g.of(shape[1:], tuple(n + 1 for n in shape))

    def arr(*shape: int) -> str:
        dtypes = [dtype] if g.chance(0.9) else [*FLOATS, "int32"]
        return g.arr(dtypes, bent(shape), specials=0)

    keys, values = (batch, steps, heads, size), (batch, steps, heads * group)
    q, k, v = arr(*keys), f"{arr(*keys)} * 0.125", arr(*values, value)
    gamma, beta = (f"{arr(*values)} * 0.125" for _ in range(2))
    state = arr(batch, heads * group, value, size) if g.chance(0.4) else None
    mask = None
    if g.chance(0.3):
        mask = f"{g.arr(['float32'], bent((batch, steps)), specials=0)} > 0"
    return g.call([q, k, v, gamma, beta], kw=[("initial_state", state), ("mask", mask)])


def sum_of_inputs(c: Case) -> float:
    """The sum of the largest elements, which a result of steps is of the order of."""
    return 1.0 + sum(largest(a.data) for a in c.inputs.values())


ENTRIES = [
    Entry(
        "fast.scaled_dot_product_attention",
        draw_attention,
        by_dtype(64, float16=16, bfloat16=16),
        value_size,
        by_numpy=True,
    ),
    Entry("fast.cross_entropy", draw_cross_entropy, 64, layer_size, by_numpy=True),
    Entry("fast.gated_delta_update", draw_gated_delta, by_dtype(64), sum_of_inputs, by_numpy=True),
]
