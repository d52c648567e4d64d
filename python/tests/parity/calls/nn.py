"""Parts of neural networks: softmax, norms, rotary positions."""

from __future__ import annotations

import numpy as np
from support.harness import FLOATS, by_dtype

from ..draw import Case, Entry, Gen


def draw_softmax(g: Gen) -> str:
    x = g.arr(specials=0.1)
    return g.call(
        [x],
        pos=[("axis", g.maybe(0.8, g.axes(x)))],
        kw=[("precise", g.maybe(0.3, "True", "False"))],
    )


def one(_: Case) -> float:
    """Rows that were normalized have elements of about this size."""
    return 1.0


def largest(data: np.ndarray) -> float:
    """The largest magnitude, but 1 at least."""
    sizes = np.abs(data.astype(np.float64))
    return max(1.0, float(sizes.max())) if sizes.size else 1.0


def layer_size(c: Case) -> float:
    """The largest element, which turns with others."""
    return largest(next(iter(c.inputs.values())).data)


def draw_norm(g: Gen) -> str:
    """A norm of the last axis, with parameters of its size, mostly."""
    x = g.arr([*FLOATS, *FLOATS, "int32", "complex64"], specials=0.1)
    last = g.size(x)[-1:] or (3,)
    floats = FLOATS if g.chance(0.3) else [g.dtype_of(x)]

    def parameter() -> str:
        if g.chance(0.3):
            return "None"
        return g.arr(floats, last if g.chance(0.9) else g.of((), (2,), (1, *last)), specials=0)

    parameters = [parameter()] if "rms" in g.entry.name else [parameter(), parameter()]
    return g.call([x, *parameters, g.of("1e-5", "1e-3", "0.25", "1")])


def draw_rope(g: Gen) -> str:
    last = g.of(2, 3, 4, 5, 6, 8)
    shape = (*g.of((2, 3), (1, 5), (3, 2, 4), (2, 1, 3, 2), (2, 0), (2, 7, 1)), last)
    x = g.arr(FLOATS, shape if g.chance(0.95) else (3, 4), specials=0)
    dims = g.of(2, last // 2 * 2) if g.chance(0.9) else g.of(0, -2, 3, last + 2)
    offset = g.of("0", "3", "-2", "mx.array(5)", "mx.array([1])", "7", "100")
    if g.chance(0.05):
        offset = g.of("1.5", "True", "mx.array([[1]])")
    if g.chance(0.3):
        offset = f"mx.arange({shape[0] if g.chance(0.9) else shape[0] + 1})"
    base = "None" if g.chance(0.3) else g.of("10.0", "100", "10000.0")
    freqs = None
    if (base == "None") == g.chance(0.9):
        freqs = f"mx.arange(1, {max(dims, 0) // 2 + (1 if g.chance(0.9) else 2)})"
    named = [
        ("traditional", g.flag()),
        ("base", base),
        ("scale", g.of("1.0", "0.5", "2")),
        ("offset", offset),
        ("freqs", freqs),
    ]
    return g.call([x, str(dims)], kw=named)


ENTRIES = [
    Entry("softmax", draw_softmax, 64, "largest", by_numpy=True),
    Entry("fast.rms_norm", draw_norm, 64, one, by_numpy=True),
    # The units are of 1, and results go to 16: of these it is two.
    Entry("fast.layer_norm", draw_norm, by_dtype(64, float16=16, bfloat16=16), one, by_numpy=True),
    Entry("fast.rope", draw_rope, 128, layer_size, by_numpy=True),
]
