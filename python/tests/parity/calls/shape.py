"""Functions that move, join and split elements."""

from __future__ import annotations

import math

from support.harness import ALL

from ..draw import Gen, e

METHOD = "array."


def factored(g: Gen, size: int) -> list[int]:
    """Sizes whose product is `size`."""
    out = []
    while size > 1 and len(out) < 3:
        divisors = [d for d in range(1, size + 1) if size % d == 0] if size < 3000 else [size]
        d = g.of(*divisors)
        out.append(d)
        size //= d
    if size != 1:
        out.append(size)
    if g.chance(0.3):
        out.insert(g.r.randrange(len(out) + 1), 1)
    return out


def new_shape(g: Gen, size: int) -> str:
    shape = factored(g, size)
    if shape and g.chance(0.4):
        shape[g.r.randrange(len(shape))] = -1
    if g.chance(0.05):
        shape.append(g.of(-1, -2, 0, 3))
    return repr(shape) if g.chance(0.4) else repr(tuple(shape))


def draw_reshape(g: Gen) -> str:
    x = g.arr()
    shape = new_shape(g, math.prod(g.size(x)))
    if g.entry.name.startswith(METHOD) and g.chance(0.5):
        return g.call([x, *(s.strip() for s in shape[1:-1].split(",") if s.strip())])
    return g.call([x], pos=[("shape", shape)]) if "." not in g.entry.name else g.call([x, shape])


def draw_flatten(g: Gen) -> str:
    x = g.arr()
    return g.call(
        [x], pos=[("start_axis", g.maybe(0.5, g.axis(x))), ("end_axis", g.maybe(0.5, g.axis(x)))]
    )


def draw_unflatten(g: Gen) -> str:
    x = g.arr(low=1)
    n = g.rank(x)
    axis = g.r.randrange(-n, n)
    shape = new_shape(g, g.size(x)[axis])
    return g.call([x], pos=[("axis", str(axis) if g.chance(0.95) else "5"), ("shape", shape)])


def draw_squeeze(g: Gen) -> str:
    x = g.arr()
    ones = [i for i, n in enumerate(g.size(x)) if n == 1]
    axis = (
        repr(g.of(g.of(*ones), tuple(ones), [ones[0] - g.rank(x)]))
        if ones and g.chance(0.6)
        else g.axes(x)
    )
    return g.call([x], pos=[("axis", g.maybe(0.7, axis))])


def draw_expand_dims(g: Gen) -> str:
    x = g.arr()
    n = g.rank(x)
    if g.chance(0.6):
        axis = str(g.r.randrange(-n - 2, n + 2))
    else:
        picked = g.r.sample(range(-n - 2, n + 2), g.of(1, 2))
        axis = repr(g.of(tuple(picked), picked))
    return g.call([x], pos=[("axis", axis)])


def draw_transpose(g: Gen) -> str:
    x = g.arr()
    n = g.rank(x)
    order = g.r.sample(range(n), n)
    if g.chance(0.3):
        order = [a - n for a in order]
    if g.chance(0.06):
        order = order[:-1] + [g.of(0, n, -n - 1)]
    if g.entry.name.startswith(METHOD):
        if g.chance(0.5):
            return g.call([x, *map(str, order)])
        return g.call([x, *g.of([], [repr(order)], [repr(tuple(order))])])
    return g.call([x], pos=[("axes", g.maybe(0.7, repr(order), repr(tuple(order)), "None"))])


def two_axes(*names: str):
    def draw(g: Gen) -> str:
        x = g.arr()
        return g.call([x], pos=[(n, g.axis(x)) for n in names])

    return draw


def draw_one(g: Gen) -> str:
    return g.call([g.arr()])


def draw_flip(g: Gen) -> str:
    x = g.arr()
    return g.call([x], pos=[("axis", g.maybe(0.8, g.axes(x)))])


def draw_roll(g: Gen) -> str:
    x = g.arr()
    axes = g.axes(x)
    count = axes.count(",") + (not axes.rstrip(")]").endswith(",")) if axes[0] in "([" else 1
    shift = lambda: g.of(0, 1, -1, 2, 5, -7, 100)
    if g.chance(0.6) or "[" in axes:
        shifts = str(shift())
    else:
        shifts = repr(tuple(shift() for _ in range(max(1, count))))
    return g.call([x, shifts, *g.of([], [axes], [axes])])


def draw_broadcast_to(g: Gen) -> str:
    x = g.arr()
    shape = [
        *g.of([], [2], [1], [3, 2]),
        *(3 if n == 1 and g.chance(0.5) else n for n in g.size(x)),
    ]
    if g.chance(0.08):
        shape.append(g.of(1, 2, -1))
    return g.call([x], pos=[("shape", repr(g.of(shape, tuple(shape))))])


def draw_broadcast_arrays(g: Gen) -> str:
    shape = g.shape(small=True)
    args = [g.arr(shape=shape if i == 0 else g.partner(shape)) for i in range(g.of(0, 1, 2, 3))]
    return g.call(args)


def draw_broadcast_shapes(g: Gen) -> str:
    shape = g.shape()
    shapes = [
        g.of(repr, lambda s: repr(list(s)))(g.partner(shape)) for _ in range(g.of(0, 1, 2, 3))
    ]
    return g.call(shapes, stream="")


def draw_atleast(g: Gen) -> str:
    return g.call([g.arr() for _ in range(g.of(1, 1, 2, 3, 0))])


def draw_diagonal(g: Gen) -> str:
    x = g.arr(low=g.of(0, 2, 2, 2))
    return g.call(
        [x],
        pos=[
            ("offset", g.maybe(0.5, "0", "1", "-1", "2", "-3", "9", "-9")),
            ("axis1", g.maybe(0.4, g.axis(x))),
            ("axis2", g.maybe(0.4, g.axis(x))),
        ],
        stream="positional",
    )


def draw_diag(g: Gen) -> str:
    x = g.arr(shape=g.of((), (3,), (0,), (3, 4), (5, 2), (2, 2, 2), (1, 1)))
    return g.call([x], pos=[("k", g.maybe(0.6, "0", "1", "-1", "2", "-2", "5"))])


def draw_trace(g: Gen) -> str:
    x = g.arr(low=g.of(0, 2, 2, 2), specials=0)
    return g.call(
        [x],
        pos=[
            ("offset", g.maybe(0.5, "0", "1", "-1", "2", "-3")),
            ("axis1", g.maybe(0.4, g.axis(x))),
            ("axis2", g.maybe(0.4, g.axis(x))),
            ("dtype", g.maybe(0.2, g.dtype())),
        ],
    )


def draw_pad(g: Gen) -> str:
    x = g.arr(shape=g.shape(small=True))
    n = g.rank(x)
    w = lambda: g.of(0, 1, 2, 3)
    width = g.of(
        repr(w()),
        repr((w(),)),
        repr((w(), w())),
        repr([(w(), w()) for _ in range(n)]),
        repr([(w(), w()) for _ in range(n)]),
        repr([(w(), w())]),
    )
    mode = g.maybe(0.5, "'constant'", "'edge'", "'edge'", "'reflect'", "'symmetric'", "'up'")
    value = g.maybe(0.3, "1", "0", "-2.5", "mx.array(3)", "True", "2j")
    return g.call([x], pos=[("pad_width", width), ("mode", mode), ("constant_values", value)])


def draw_contiguous(g: Gen) -> str:
    return g.call([g.arr()], pos=[("allow_col_major", g.maybe(0.4, "True", "False"))])


def draw_as_strided(g: Gen) -> str:
    x = g.few(shape=g.of((30,), (5, 6), (2, 3, 5)))
    shape, strides, offset = g.of(
        ((4, 5), (5, 1), 0),
        ((4, 3), (2, 3), 5),
        ((3, 4), (0, 1), 2),
        ((3,), (-1,), 9),
        ((2, 0), (1, 1), 0),
        ((), (), 3),
        ((2, 3, 2), (1, 2, 7), 1),
        ((30,), (1,), 0),
    )
    if g.chance(0.1):
        return g.call([x], pos=[("shape", repr(shape))]) if math.prod(shape) == 30 else g.call([x])
    return g.call(
        [x],
        pos=[("shape", repr(shape)), ("strides", repr(strides)), ("offset", str(offset))],
        bend=0,
    )


def draw_concatenate(g: Gen) -> str:
    shape = g.shape(g.of(0, 1, 1, 1), small=True)
    axis = g.r.randrange(-len(shape), len(shape)) if shape else 0
    dtypes = [g.of(*ALL)] if g.chance(0.6) else ALL
    arrays = []
    for _ in range(g.of(1, 2, 2, 3)):
        part = list(shape)
        if part and g.chance(0.5):
            part[axis] = g.of(0, 1, 2, 4)
        if part and g.chance(0.04):
            part[g.r.randrange(len(part))] += 1
        arrays.append(g.arr(dtypes, tuple(part)))
    joined = ", ".join(arrays)
    sequence = f"[{joined}]" if g.chance(0.8) else f"({joined},)"
    axis_text = g.maybe(0.8, str(axis), str(axis), str(axis), "None", "7")
    return g.call([sequence], pos=[("axis", axis_text)])


def draw_stack(g: Gen) -> str:
    shape = g.shape(small=True)
    dtypes = [g.of(*ALL)] if g.chance(0.6) else ALL
    arrays = [
        g.arr(dtypes, shape if g.chance(0.96) else g.shape(small=True))
        for _ in range(g.of(0, 1, 2, 3))
    ]
    axis = g.maybe(0.7, str(g.r.randrange(-len(shape) - 2, len(shape) + 2)), "None")
    return g.call([f"[{', '.join(arrays)}]"], pos=[("axis", axis)])


def draw_split(g: Gen) -> str:
    x = g.arr(low=g.of(0, 1, 1, 1))
    n = g.rank(x)
    axis = g.r.randrange(-n, n) if n else 0
    size = g.size(x)[axis] if n else 1
    if g.chance(0.5):
        parts = str(g.of(*(d for d in range(1, max(size, 1) + 1) if size % d == 0), 2, 0))
    else:
        cuts = [g.of(0, 1, 2, 3, 9, -1, size) for _ in range(g.of(0, 1, 2, 3))]
        parts = repr(sorted(cuts) if g.chance(0.8) else cuts)
        if g.chance(0.4):
            parts = f"tuple({parts})"
    text = str(axis) if g.chance(0.96) else "8"
    return g.call([x], pos=[("indices_or_sections", parts), ("axis", g.of(text, text, None))])


def draw_unstack(g: Gen) -> str:
    x = g.arr(shape=g.shape(g.of(0, 1, 1, 1), small=True))
    return g.call([x], kw=[("axis", g.maybe(0.7, g.axis(x)))])


def draw_tile(g: Gen) -> str:
    x = g.arr(shape=g.shape(small=True))
    reps = g.of("2", "0", "1", "(2,)", "(2, 3)", "[1, 2]", "(1, 2, 1)", "()", "(2, 0)", "-1")
    return g.call([x, reps])


def draw_repeat(g: Gen) -> str:
    x = g.arr(shape=g.shape(small=True))
    repeats = g.of("0", "1", "2", "3", "-1")
    return g.call([x], pos=[("repeats", repeats), ("axis", g.maybe(0.6, g.axis(x), "None"))])


def draw_depends(g: Gen) -> str:
    x, y = g.arr(), g.arr()
    return g.call([g.of(x, f"[{x}]", f"[{x}, {y}]"), g.of(y, f"[{y}]", "[]")], stream="")


ENTRIES = [
    e("reshape", draw_reshape),
    e("array.reshape", draw_reshape, 0.8),
    e("flatten", draw_flatten),
    e("array.flatten", draw_flatten, 0.5),
    e("unflatten", draw_unflatten),
    e("squeeze", draw_squeeze),
    e("array.squeeze", draw_squeeze, 0.5),
    e("expand_dims", draw_expand_dims),
    e("transpose", draw_transpose),
    e("permute_dims", draw_transpose, 0.5),
    e("array.transpose", draw_transpose, 0.5),
    e("matrix_transpose", draw_one, 0.5),
    e("swapaxes", two_axes("axis1", "axis2")),
    e("array.swapaxes", two_axes("axis1", "axis2"), 0.5),
    e("moveaxis", two_axes("source", "destination")),
    e("array.moveaxis", two_axes("source", "destination"), 0.5),
    e("flip", draw_flip),
    e("roll", draw_roll),
    e("broadcast_to", draw_broadcast_to),
    e("broadcast_arrays", draw_broadcast_arrays),
    e("broadcast_shapes", draw_broadcast_shapes, 0.5),
    *(e(f"atleast_{n}d", draw_atleast, 0.5) for n in (1, 2, 3)),
    e("diagonal", draw_diagonal),
    e("array.diagonal", draw_diagonal, 0.5),
    e("diag", draw_diag),
    e("array.diag", draw_diag, 0.5),
    e("trace", draw_trace, ulps=16, scale="largest"),
    e("pad", draw_pad, 1.3),
    e("contiguous", draw_contiguous, 0.6),
    e("as_strided", draw_as_strided, 0.6),
    e("concatenate", draw_concatenate),
    e("concat", draw_concatenate, 0.4),
    e("stack", draw_stack),
    e("split", draw_split),
    e("array.split", draw_split, 0.5),
    e("unstack", draw_unstack, 0.6),
    e("tile", draw_tile),
    e("repeat", draw_repeat),
    e("depends", draw_depends, 0.3),
]
