"""Linear algebra."""

from __future__ import annotations

from support.harness import by_dtype

from ..draw import Entry, Gen, e
from .matmul import P, product_size

MATRICES = ["float32", "float32", "float32", "float64", "complex64", "float16", "int32"]


def square(g: Gen) -> str:
    """A matrix, or several, that is not close to singular."""
    n = g.of(1, 2, 3, 4, 6)
    shape = (*g.of((), (), (2,), (2, 2)), n, n)
    if g.chance(0.06):
        shape = g.of((3,), (), (2, 3), (0, 0), (0, 2, 2))
    x = g.arr(MATRICES, shape, "unit", 0)
    if len(shape) > 1 and shape[-1] == shape[-2] and g.dtype_of(x).startswith(("f", "c")):
        return f"({x} + {2 * n} * mx.eye({n}, dtype={x}.dtype))"
    return x


def positive(g: Gen) -> str:
    """Symmetric and positive definite."""
    n = g.of(1, 2, 3, 5)
    shape = (*g.of((), (), (2,)), n, n)
    x = g.arr(["float32", "float32", "float64", "float16", "int32"], shape, "unit", 0)
    return f"(mx.matmul({x}, mx.swapaxes({x}, -1, -2)) + {n + 1} * mx.eye({n}, dtype={x}.dtype))"


def any_matrix(g: Gen) -> str:
    shape = g.of((3, 3), (2, 4), (5, 2), (2, 3, 3), (2, 2, 3), (1, 1), (4, 4))
    if g.chance(0.06):
        shape = g.of((3,), (), (0, 3), (3, 0))
    return g.arr(MATRICES, shape, "unit", 0)


def lin(make, *pos):
    return lambda g: g.call([make(g)], pos=[(n, g.maybe(0.4, *c)) for n, *c in pos])


def rebuilt(text: str):
    """Factors are unique up to signs and order: what they multiply to is compared."""

    def draw(g: Gen) -> str:
        x = any_matrix(g) if "sym" not in text else positive(g)
        call = g.call([x])
        return f"(lambda {text.removeprefix('sym ')})({call})"

    return draw


def draw_solve(g: Gen) -> str:
    a = square(g)
    n = next(iter(g.inputs.values())).shape
    rows = n[-1] if n else 1
    b = g.arr(
        ["float32", "float64"], (*n[:-2], rows, g.of(1, 2)) if g.chance(0.7) else (rows,), "unit", 0
    )
    if g.entry.name.endswith("triangular"):
        up = g.flag()
        return g.call(
            [f"mx.tri{'u' if up == 'True' else 'l'}({a})", b],
            kw=[("upper", up if up == "True" else g.of(up, None))],
        )
    return g.call([a, b])


def draw_triangle(g: Gen) -> str:
    a = square(g)
    up = g.flag()
    return g.call([f"mx.tri{'u' if up == 'True' else 'l'}({a})"], pos=[("upper", up)])


def draw_cholesky(g: Gen) -> str:
    return g.call([positive(g)], pos=[("upper", g.maybe(0.5, "True", "False"))])


def draw_cholesky_inv(g: Gen) -> str:
    a = positive(g)
    up = g.flag()
    return g.call([f"mx.linalg.cholesky({a}, {up})"], pos=[("upper", up)])


def draw_norm(g: Gen) -> str:
    x = g.arr(specials=0, shape=g.of((), (3,), (0,), (2, 3), (3, 3), (2, 3, 4), (2, 2, 3, 2)))
    order = g.maybe(
        0.7, "1", "2", "-1", "-2", "0", "3", "2.5", "inf", "-inf", "'fro'", "'nuc'", "'up'", "None"
    )
    axis = g.axes(x) if g.chance(0.5) else None
    return g.call(
        [x], pos=[("ord", order), ("axis", axis), ("keepdims", g.maybe(0.4, "True", "False"))]
    )


def draw_cross(g: Gen) -> str:
    shape = g.of((3,), (2, 3), (3, 2), (2, 2), (2,), (4, 3), (3, 3), (4,))
    a = g.arr(shape=shape, domain="few", specials=0)
    b = g.arr(shape=g.of(shape, g.partner(shape), (3,), (2,)), domain="few", specials=0)
    return g.call([a, b], pos=[("axis", g.maybe(0.4, g.axis(a)))])


L = {"ulps": 2048, "scale": product_size}
# With a matrix of float32 mlx solves for float64 in float32.
SOLVED = by_dtype(2048, float64=2048 * 2.0**29)


ENTRIES: list[Entry] = [
    e("linalg.cholesky", draw_cholesky, 0.6, **L),
    e("linalg.cholesky_inv", draw_cholesky_inv, 0.4, **L),
    e("linalg.cross", draw_cross, 0.8, **P),
    e("linalg.det", lin(square), 0.6, ulps=2048, scale="largest"),
    e("linalg.slogdet", lin(square), 0.6, **L),
    e("linalg.inv", lin(square), 0.6, **L),
    e("linalg.tri_inv", draw_triangle, 0.5, **L),
    e("linalg.pinv", lin(any_matrix), 0.5, ulps=2**16, scale=product_size),
    e("linalg.solve", draw_solve, 0.6, **L),
    e("linalg.solve_triangular", draw_solve, 0.6, ulps=SOLVED, scale=product_size),
    e("linalg.lu", lin(square), 0.5, **L),
    e("linalg.lu_factor", lin(square), 0.5, **L),
    e("linalg.qr", rebuilt("r: (r[0] @ r[1], mx.abs(r[1]))"), 0.5, **L),
    e(
        "linalg.svd",
        rebuilt(
            "r: (r[1], (r[0][..., :, :r[1].shape[-1]] * r[1][..., None, :]) @ r[2][..., :r[1].shape[-1], :])"
        ),
        0.6,
        **L,
    ),
    e(
        "linalg.eigh",
        rebuilt("sym r: (r[0], (r[1] * r[0][..., None, :]) @ mx.swapaxes(r[1], -1, -2))"),
        0.5,
        **L,
    ),
    e(
        "linalg.eigvalsh",
        lambda g: g.call([positive(g)], pos=[("UPLO", g.maybe(0.5, "'L'", "'U'", "'l'"))]),
        0.5,
        **L,
    ),
    e("linalg.eig", rebuilt("sym r: (mx.sort(mx.real(r[0]), -1), [q.shape for q in r])"), 0.4, **L),
    e("linalg.eigvals", lambda g: f"mx.sort(mx.real({g.call([positive(g)])}), -1)", 0.4, **L),
    e("linalg.norm", draw_norm, 1.2, ulps=256, scale=product_size),
    e("matrix_norm", draw_norm, 0.3, ulps=256, scale=product_size),
]
