"""Convolutions."""

from __future__ import annotations

from ..draw import Entry, Gen, e
from .matmul import COMPUTED, MOSTLY_FLOATS, P


def draw_convolve(g: Gen) -> str:
    kind = [g.of(*MOSTLY_FLOATS)] if g.chance(0.7) else MOSTLY_FLOATS
    a = g.arr(kind, g.of((5,), (1,), (9,), (2,), (0,), (2, 2)), "few", 0)
    v = g.arr(kind, g.of((3,), (1,), (5,), (8,)), "few", 0)
    return g.call([a, v], pos=[("mode", g.maybe(0.7, "'full'", "'same'", "'valid'", "'none'"))])


def conv(dims: int, transposed: bool):
    def draw(g: Gen) -> str:
        groups = g.of(1, 1, 1, 2)
        c_in, c_out = groups * g.of(1, 2, 3), groups * g.of(1, 2)
        spatial = tuple(g.of(1, 4, 5, 7) if dims < 3 else g.of(3, 4) for _ in range(dims))
        kernel = tuple(g.of(1, 2, 3) for _ in range(dims))
        weight = (c_out, *kernel, c_in // groups)
        if g.chance(0.04):
            weight = (*weight[:-1], weight[-1] + 1)
        kind = [g.of("float32", "float32", "float16", "bfloat16", "float64", "int32", "complex64")]
        x = g.arr(kind, (g.of(1, 2), *spatial, c_in), "few", 0)
        w = g.arr(kind if g.chance(0.9) else COMPUTED, weight, "few", 0)

        def number(*choices: int) -> str:
            if dims == 1 or g.chance(0.5):
                return str(g.of(*choices))
            return repr(tuple(g.of(*choices) for _ in range(dims if g.chance(0.95) else 4)))

        pos = [
            ("stride", g.maybe(0.5, number(1, 2, 3))),
            ("padding", g.maybe(0.6, number(0, 1, 2))),
            ("dilation", g.maybe(0.4, number(1, 2))),
        ]
        if transposed:
            pos.append(("output_padding", g.maybe(0.3, number(0, 1))))
        pos.append(("groups", str(groups) if groups > 1 else g.maybe(0.1, "1", "3", "0")))
        return g.call([x, w], pos=pos)

    return draw


def draw_conv_general(g: Gen) -> str:
    dims = g.of(1, 2, 2, 3)
    groups = g.of(1, 1, 1, 2)
    c_in, c_out = groups * g.of(1, 2), groups * g.of(1, 2)
    x = g.arr(
        ["float32", "float32", "float16", "float64"],
        (g.of(1, 2), *(g.of(4, 5) for _ in range(dims)), c_in),
        "few",
        0,
    )
    w = g.arr(
        [g.dtype_of(x)], (c_out, *(g.of(1, 2, 3) for _ in range(dims)), c_in // groups), "few", 0
    )
    each = lambda *c: g.of(str(g.of(*c)), repr([g.of(*c) for _ in range(dims)]))
    padding = g.of(
        each(0, 1, 2),
        repr(([g.of(0, 1, 2) for _ in range(dims)], [g.of(0, 1) for _ in range(dims)])),
    )
    return g.call(
        [x, w],
        pos=[
            ("stride", g.maybe(0.5, each(1, 2))),
            ("padding", g.maybe(0.6, padding)),
            ("kernel_dilation", g.maybe(0.4, each(1, 2))),
            ("input_dilation", g.maybe(0.4, each(1, 2))),
            ("groups", str(groups) if groups > 1 else None),
            ("flip", g.maybe(0.3, "True", "False")),
        ],
    )


ENTRIES: list[Entry] = [
    e("convolve", draw_convolve, 0.8, **P),
    *(e(f"conv{d}d", conv(d, False), 0.9, **P) for d in (1, 2, 3)),
    *(e(f"conv_transpose{d}d", conv(d, True), 0.9, **P) for d in (1, 2, 3)),
    e("conv_general", draw_conv_general, 1.0, **P),
]
