"""Functions that take and put elements by indices."""

from __future__ import annotations

import math

from support.harness import UNSIGNED

from ..draw import Gen, e


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


ENTRIES = [
    e("take", draw_take),
    e("take_along_axis", draw_take_along),
    e("put_along_axis", draw_put_along),
    e("slice", draw_slice),
    e("slice_update", draw_slice),
]
