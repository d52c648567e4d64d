"""Products of gathered matrices, masked blocks and segments, the Hadamard transform, and 8-bit floats."""

from __future__ import annotations

from support.harness import by_dtype

from ..draw import Entry, Gen
from .matmul import product_size

# mlx has the masked and gathered products in float32 alone.
SINGLE = ["float32"]
# It reads float64 as something else.
FLOATS = ["float32", "float16", "bfloat16"]
P = {"ulps": 64, "scale": product_size}


def whole(g: Gen, shape: tuple[int, ...], last: int, dtype: str) -> str:
    """An array of numbers from 0 to `last`, as text."""

    def nested(sizes: tuple[int, ...]) -> str:
        if not sizes:
            return str(g.r.randint(0, last))
        return f"[{', '.join(nested(sizes[1:]) for _ in range(sizes[0]))}]"

    return f"mx.array({nested(shape)}, dtype=mx.{dtype})"


def kinds(g: Gen) -> list[str]:
    return SINGLE if g.chance(0.93) else [*FLOATS, "int32", "bool_", "complex64"]


def draw_gather_mm(g: Gen) -> str:
    m, k, n = (g.of(1, 2, 3, 7) for _ in range(3))
    batches = [g.of((2,), (3,), (2, 2), (1,)) for _ in range(2)]
    a = g.arr(kinds(g), (*batches[0], m, k), "few", 0)
    b = g.arr(kinds(g), (*batches[1], k if g.chance(0.95) else k + 1, n), "few", 0)
    shape = g.of((), (3,), (2, 1), (0,))
    indices = []
    for batch in batches:
        count = 1
        for size in batch:
            count *= size
        dtype = g.of("uint32", "int32", "int64", "uint8")
        picked = whole(g, shape, count - 1, dtype)
        indices.append(g.of(picked, picked, picked, "None", "mx.array([0.0])"))
    return g.call([a, b, *indices])


def draw_block_masked_mm(g: Gen) -> str:
    m, k, n = (g.of(3, 32, 40, 64, 70) for _ in range(3))
    size = g.of(32, 64, 64, 16)
    tiles = [-(-length // max(size, 32)) for length in (m, k, n)]
    batch = g.of((), (), (2,))
    a, b = g.arr(kinds(g), (*batch, m, k), "few", 0), g.arr(kinds(g), (k, n), "few", 0)
    masks = []
    for rows, columns in [(0, 2), (0, 1), (1, 2)]:
        shape = (tiles[rows], tiles[columns] + (1 if g.chance(0.03) else 0))
        values = g.arr(["float32"], shape, specials=0)
        masks.append(g.of("None", f"{values} > 0", f"{values} > 0", values))
    return g.call([a, b, str(size), *masks])


def draw_segmented_mm(g: Gen) -> str:
    m, k, n = (g.of(1, 2, 5) for _ in range(3))
    a, b = g.arr(kinds(g), (m, k), "few", 0), g.arr(kinds(g), (k, n), "few", 0)
    count = g.of(1, 2, 4)
    # mlx ends the process where a segment ends behind the operands.
    segments = whole(g, (count, 2), k, g.of("uint32", "int32", "int64"))
    segments = g.of(*[segments] * 6, "mx.array([0, 1, 2])", "mx.array([[0.0, 1.0]])")
    return g.call([a, b, segments])


def draw_hadamard(g: Gen) -> str:
    size = g.of(1, 2, 4, 12, 20, 28, 24, 40, 64, 128, 3, 5)
    shape = (*g.of((), (3,), (2, 2)), size)
    dtypes = [*FLOATS, *FLOATS, "int32", "bool_", "complex64"]
    return g.call([g.arr(dtypes, shape, "few", 0)], pos=[("scale", g.of(None, "1.0", "0.5"))])


def draw_to_fp8(g: Gen) -> str:
    return g.call([g.arr([*FLOATS, *FLOATS, "int32", "complex64"])])


def draw_from_fp8(g: Gen) -> str:
    dtype = g.of(None, "mx.float32", "mx.float16", "mx.bfloat16", "mx.int32")
    kinds = ["uint8"] * 9 + ["int8"]
    return g.call([g.arr(kinds)], pos=[("dtype", dtype)])


ENTRIES = [
    Entry("gather_mm", draw_gather_mm, **P),
    Entry("block_masked_mm", draw_block_masked_mm, **P),
    Entry("segmented_mm", draw_segmented_mm, **P),
    Entry("hadamard_transform", draw_hadamard, by_dtype(32, float16=16, bfloat16=16), product_size),
    Entry("to_fp8", draw_to_fp8),
    Entry("from_fp8", draw_from_fp8),
]
