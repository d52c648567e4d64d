"""Functions that move, join, split, pick and make elements."""

from __future__ import annotations

import math

from support.harness import ALL, FLOATS, UNSIGNED

from .draw import Case, Entry, Gen

METHOD = "array."


# --- shapes ---


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


def draw_tri(g: Gen) -> str:
    x = g.arr(low=g.of(0, 2, 2, 2, 2))
    return g.call([x], pos=[("k", g.maybe(0.7, "0", "1", "-1", "3", "-9", "9"))])


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


# --- joining and splitting ---


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


def draw_meshgrid(g: Gen) -> str:
    args = [
        g.arr(shape=g.of((3,), (2,), (4,), (0,), ()) if g.chance(0.9) else (2, 2))
        for _ in range(g.of(0, 1, 2, 2, 3))
    ]
    return g.call(
        args,
        kw=[
            ("sparse", g.maybe(0.3, "True", "False")),
            ("indexing", g.maybe(0.5, "'xy'", "'ij'", "'ij'", "'no'")),
        ],
    )


# --- picking ---


def indices(g: Gen, size: int, shape: tuple[int, ...], dtypes: list[str] | None = None) -> str:
    """An array of indices that are in range, made from a drawn one."""
    dtype = g.of(*(dtypes or ["int32", "int32", "int64", "uint32", "uint8", "int8", "int16"]))
    x = g.arr([dtype], shape, "any", specials=0)
    bound = max(1, min(size, 100))
    if dtype in UNSIGNED or g.chance(0.5):
        return f"(mx.abs({x}) % {bound}).astype(mx.{dtype})"
    return (
        f"(({x} % {2 * bound}) - {bound}).astype(mx.{dtype})"
        if bound <= 60
        else f"mx.abs({x}) % {bound}"
    )


def draw_take(g: Gen) -> str:
    x = g.arr()
    n = g.rank(x)
    axis = g.r.randrange(-n, n) if n and g.chance(0.7) else None
    size = g.size(x)[axis] if axis is not None else math.prod(g.size(x))
    if g.chance(0.2):
        picked = str(g.r.randrange(-size, size) if size else 0)
    else:
        picked = indices(g, size, g.of((), (3,), (2, 2), (0,), (1,)))
    return g.call([x, picked], pos=[("axis", None if axis is None else str(axis))])


def draw_take_along(g: Gen) -> str:
    x = g.arr()
    n = g.rank(x)
    axis = g.r.randrange(-n, n) if n else 0
    shape = list(g.size(x))
    if n:
        size = shape[axis]
        shape[axis] = g.of(1, 2, 4)
        shape = [1 if i != axis % n and g.chance(0.1) else s for i, s in enumerate(shape)]
    else:
        size = 1
    if g.chance(0.12):
        flat = math.prod(g.size(x))
        return g.call([x, indices(g, flat, (3,))], pos=[("axis", "None")])
    picked = indices(g, size, tuple(shape))
    text = str(axis) if g.chance(0.97) else "7"
    return g.call([x, picked], pos=[("axis", text if axis != -1 else None)])


def draw_put_along(g: Gen) -> str:
    """Each place is written once: which of several writes stays is nobody's promise."""
    x = g.arr(low=1)
    n = g.rank(x)
    axis = g.r.randrange(-n, n)
    shape = list(g.size(x))
    size = shape[axis]
    count = g.r.randrange(0, min(size, 5) + 1)
    shape[axis] = count
    ones = [1] * n
    ones[axis] = count
    start = g.r.randrange(size) if size else 0
    picked = f"mx.broadcast_to(((mx.arange({count}) + {start}) % {max(size, 1)}).reshape({ones}), {tuple(shape)})"
    values = g.of("7", "mx.array(1.5)", g.arr(shape=tuple(shape)))
    if not values.startswith(("7", "mx")) and g.chance(0.2):
        values = f"{values}[..., :1]"
    if values == "7":
        values = "mx.array(7)"
    return g.call([x, picked, values], pos=[("axis", str(axis) if g.chance(0.95) else "9")])


def draw_slice(g: Gen) -> str:
    x = g.arr(shape=g.shape(1, 3, small=True))
    n = g.rank(x)
    axes = g.r.sample(range(n), g.r.randrange(1, n + 1))
    sizes = [g.r.randrange(1, s + 1) if s else 0 for s in g.size(x)]
    start = [g.r.randrange(0, g.size(x)[a] - sizes[a] + 1) for a in axes]
    dtype = g.of("int32", "int64", "uint32")
    full = [sizes[a] if a in axes else s for a, s in enumerate(g.size(x))]
    place = f"mx.array({start}, mx.{dtype})"
    if g.chance(0.05):
        place = str(start)
    if g.chance(0.2):
        axes = [a - n for a in axes]
    if g.entry.name == "slice":
        return g.call(
            [x, place], pos=[("axes", repr(tuple(axes))), ("slice_size", repr(tuple(full)))]
        )
    update = g.arr(shape=tuple(full))
    return g.call([x, update, place], pos=[("axes", repr(tuple(axes)))])


# --- making ---


def shape_text(g: Gen) -> str:
    return g.of("3", "()", "(2, 3)", "[4]", "0", "(2, 0)", "(1, 2, 3)", "-1", "[]", "(2, -3)", "7")


def draw_zeros(g: Gen) -> str:
    return g.call([], pos=[("shape", shape_text(g)), ("dtype", g.maybe(0.6, g.dtype(), "None"))])


def draw_zeros_like(g: Gen) -> str:
    return g.call([g.arr()], pos=[("dtype", g.maybe(0.4, g.dtype(), "None"))])


def draw_full(g: Gen) -> str:
    value = g.of(g.scalar(), g.scalar(), g.few(shape=g.of((), (3,), (1,), (2, 3))))
    return g.call(
        [],
        pos=[("shape", shape_text(g)), ("vals", value), ("dtype", g.maybe(0.5, g.dtype(), "None"))],
    )


def draw_full_like(g: Gen) -> str:
    value = g.of(g.scalar(), g.scalar(0), g.few(shape=g.of((), (1,))))
    return g.call([g.arr()], pos=[("vals", value), ("dtype", g.maybe(0.4, g.dtype(), "None"))])


def draw_arange(g: Gen) -> str:
    whole = g.chance(0.6)
    n = lambda: (
        g.of("0", "1", "5", "-3", "10", "2") if whole else g.of("0.5", "3.0", "-1.5", "7.25")
    )
    step = g.of("1", "2", "-1", "3", "0") if whole else g.of("0.5", "1.0", "-0.25", "2")
    dtype = ("dtype", g.maybe(0.3, g.dtype(), "None"))
    if g.chance(0.4):
        return g.call([n()], kw=[("step", g.maybe(0.2, step)), dtype])
    args = [n(), n(), *([step] if g.chance(0.5) else [])]
    if g.chance(0.15):
        names = ("start", "stop", "step")
        return g.call([], kw=[*zip(names, args), dtype])
    return g.call(args, kw=[dtype])


def draw_linspace(g: Gen) -> str:
    n = lambda: g.of("0", "1", "-3", "2.5", "10", "1e3", "True", "0.1")
    return g.call(
        [n(), n()],
        pos=[
            ("num", g.maybe(0.8, "0", "1", "2", "5", "11", "50", "-1", "None")),
            ("endpoint", g.maybe(0.3, "True", "False")),
            ("dtype", g.maybe(0.4, g.dtype(FLOATS), g.dtype(), "None")),
        ],
        stream="positional",
    )


def draw_eye(g: Gen) -> str:
    n = lambda: g.of("0", "1", "3", "5", "-1")
    dtype = ("dtype", g.maybe(0.4, g.dtype(), "None"))
    if g.entry.name == "identity":
        return g.call([n()], pos=[dtype])
    return g.call(
        [n()],
        pos=[
            ("m", g.maybe(0.6, n(), "None")),
            ("k", g.maybe(0.5, "0", "1", "-1", "9", "-9")),
            dtype,
        ],
    )


def draw_window(g: Gen) -> str:
    return g.call([g.of("0", "1", "2", "3", "5", "8", "12", "33", "-1", "100")])


def one(case: Case) -> float:
    """The size of a window's terms, which cancel at its ends."""
    return 1.0


def draw_depends(g: Gen) -> str:
    x, y = g.arr(), g.arr()
    return g.call([g.of(x, f"[{x}]", f"[{x}, {y}]"), g.of(y, f"[{y}]", "[]")], stream="")


def draw_diff(g: Gen) -> str:
    x = g.arr(low=g.of(0, 1, 1), specials=0)
    return g.call(
        [x],
        pos=[("n", g.maybe(0.5, "0", "1", "2", "3", "9", "-1")), ("axis", g.maybe(0.5, g.axis(x)))],
    )


def e(name: str, draw, weight: float = 1.0, **how) -> Entry:
    return Entry(name, draw, weight=weight, **how)


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
    e("tril", draw_tri),
    e("triu", draw_tri),
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
    e("meshgrid", draw_meshgrid),
    e("take", draw_take),
    e("take_along_axis", draw_take_along),
    e("put_along_axis", draw_put_along),
    e("slice", draw_slice),
    e("slice_update", draw_slice),
    e("zeros", draw_zeros, 0.6),
    e("ones", draw_zeros, 0.6),
    e("zeros_like", draw_zeros_like, 0.6),
    e("ones_like", draw_zeros_like, 0.6),
    e("full", draw_full),
    e("full_like", draw_full_like),
    e("arange", draw_arange, ulps=4, scale="largest"),
    e("linspace", draw_linspace, ulps=8, scale="largest"),
    e("eye", draw_eye),
    e("identity", draw_eye, 0.5),
    e("tri", draw_eye, 0.6),
    *(
        e(n, draw_window, 0.2, ulps=64, scale=one)
        for n in ("bartlett", "blackman", "hamming", "hanning")
    ),
    e("depends", draw_depends, 0.3),
    e("diff", draw_diff, ulps=16, scale="largest"),
]
