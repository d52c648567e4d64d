"""Linear algebra against mlx: values, or what they make again where signs and phases are free; types of errors."""

from typing import Any

import numpy as np
import pytest
from support.harness import (
    ALL,
    LAYOUTS,
    Input,
    Tally,
    Units,
    by_dtype,
    exactly,
    given,
    in_single,
    rng,
    um,
)

SOLVED = ["float32", "float64"]
INF = float("inf")

# mlx dies of a division by zero on empty matrices in these.
FRAIL = {"cholesky_inv", "tri_inv", "inv", "lu", "lu_factor", "solve", "solve_triangular"}


def T(mx: Any, x: Any) -> Any:
    return mx.swapaxes(x, -1, -2)


def positive(dtype: str, *shape: int) -> Input:
    """Symmetric positive definite matrices."""
    x = rng("positive", shape).standard_normal(shape)
    n = shape[-1]
    return exactly(x @ np.swapaxes(x, -1, -2) + n * np.eye(n), dtype)


def regular(dtype: str, *shape: int) -> Input:
    """Matrices with well separated singular values and, if square, real eigenvalues."""
    x = 0.2 * rng("regular", shape).standard_normal(shape)
    return exactly(x + np.eye(*shape[-2:]) * (1.0 + np.arange(shape[-1])), dtype)


def made_again(mx: Any, x: Any, name: str) -> Any:
    """A decomposition's matrix, and what of its parts is determined."""
    f = getattr(mx.linalg, name)
    if name == "qr":
        q, r = f(x)
        return [q @ r, mx.abs(r), mx.abs(q), T(mx, q) @ q]
    if name == "svd":
        u, s, vt = f(x)
        k = s.shape[-1]
        u1, v1 = u[..., :, :k], vt[..., :k, :]
        return [
            s,
            (u1 * s[..., None, :]) @ v1,
            mx.abs(u1),
            mx.abs(v1),
            u @ T(mx, u),
            vt @ T(mx, vt),
        ]
    if name == "eigh":
        w, v = f(x)
        small = [mx.abs(v)] if v.shape[-1] < 9 else []
        return [w, (v * w[..., None, :]) @ T(mx, v), T(mx, v) @ v, *small]
    raise AssertionError(name)


SQUARES = [(1, 1), (2, 2), (3, 3), (7, 7), (33, 33), (2, 3, 3), (2, 2, 4, 4)]
OTHERS = [(3, 2), (2, 3), (7, 4), (4, 9), (2, 5, 3), (2, 3, 5), (1, 4), (4, 1)]


@pytest.mark.parametrize("dtype", SOLVED)
def test_values(tally: Tally, dtype: str) -> None:
    def same(name: str, case: Any, *inputs: Input) -> None:
        # Determinants of float64 are float32's in mlx. Vectors turn by errors over the gaps between their values.
        ulps: Units = in_single(256) if name.startswith("det") else 256
        if name.startswith(("svd", "eigh")):
            ulps = by_dtype(256, float64=8192)
        tally.same(name, case, *inputs, ulps=ulps, scale="largest")

    for shape in SQUARES:
        spd, reg = positive(dtype, *shape), regular(dtype, *shape)
        for upper in False, True:
            same(f"cholesky {upper} {shape}", lambda mx, x, u=upper: mx.linalg.cholesky(x, u), spd)
            same(
                f"cholesky_inv {upper} {shape}",
                lambda mx, x, u=upper: mx.linalg.cholesky_inv(mx.linalg.cholesky(x, u), u),
                spd,
            )
            triangle = lambda mx, x, u: mx.triu(x) if u else mx.tril(x)
            same(
                f"tri_inv {upper} {shape}",
                lambda mx, x, u=upper, t=triangle: mx.linalg.tri_inv(t(mx, x, u), upper=u),
                reg,
            )
            same(
                f"solve_triangular {upper} {shape}",
                lambda mx, x, u=upper, t=triangle: mx.linalg.solve_triangular(
                    t(mx, x, u), x, upper=u
                ),
                reg,
            )
        for name in "inv", "det", "slogdet", "lu", "lu_factor", "pinv", "eigvalsh":
            same(f"{name} {shape}", lambda mx, x, f=name: getattr(mx.linalg, f)(x), spd)
        for name in "inv", "det", "slogdet", "lu", "lu_factor":
            flipped = Input(reg.data[..., ::-1, :].copy(), dtype, LAYOUTS[0], shape)
            same(f"{name} turned {shape}", lambda mx, x, f=name: getattr(mx.linalg, f)(x), flipped)
        same(f"solve {shape}", lambda mx, x: mx.linalg.solve(x, x[..., :1] * 2), reg)
        same(f"eigh {shape}", lambda mx, x: made_again(mx, x, "eigh"), positive(dtype, *shape))
        same(f"eigvals {shape}", lambda mx, x: mx.sort(mx.real(mx.linalg.eigvals(x))), spd)
    for shape in SQUARES + OTHERS:
        reg = regular(dtype, *shape)
        for name in "qr", "svd":
            same(f"{name} {shape}", lambda mx, x, f=name: made_again(mx, x, f), reg)
        same(f"svdvals {shape}", lambda mx, x: mx.linalg.svd(x, compute_uv=False), reg)
        same(f"lu {shape}", lambda mx, x: mx.linalg.lu(x), reg)
        same(f"pinv {shape}", lambda mx, x: mx.linalg.pinv(x), reg)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: x.name)
def test_layouts(tally: Tally, layout: Any) -> None:
    for shape in (4, 4), (2, 5, 5):
        x = given("float32", shape, layout)
        y = given("float32", shape, layout, key="y")
        for name in "norm", "cross":
            if name == "norm":
                tally.same(f"norm {shape}", lambda mx, x: mx.linalg.norm(x), x, ulps=64)
        if layout.name == "broadcast":
            continue
        for name in "inv", "det", "qr", "svd", "solve":

            def case(mx: Any, x: Any, y: Any, f: str = name) -> Any:
                if f in ("qr", "svd"):
                    return made_again(mx, x, f)[:2]
                return mx.linalg.solve(x, y) if f == "solve" else getattr(mx.linalg, f)(x)

            tally.same(f"{name} {shape}", case, x, y, ulps=4096, scale="largest")


def test_eig() -> None:
    for shape in [(1, 1), (4, 4), (2, 3, 3)]:
        for x in rng("eig", shape).standard_normal(shape), regular("float64", *shape).data:
            w, v = um.linalg.eig(um.array(x.astype(np.float32)))
            assert (w.dtype, v.dtype) == (um.complex64, um.complex64)
            w, v = np.asarray(w), np.asarray(v)
            np.testing.assert_allclose(x @ v, v * w[..., None, :], atol=1e-4)
            np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, atol=1e-5)
            want = np.linalg.eigvals(x)
            got = np.asarray(um.linalg.eigvals(um.array(x.astype(np.float32))))
            for a, b in zip(got.reshape(-1, shape[-1]), want.reshape(-1, shape[-1])):
                np.testing.assert_allclose(
                    np.sort_complex(np.round(a, 3)), np.sort_complex(np.round(b, 3)), atol=5e-3
                )


@pytest.mark.parametrize(
    "name", ["inv", "solve", "cholesky", "lu", "qr", "svd", "eigh", "pinv", "det", "slogdet"]
)
def test_complex(name: str) -> None:
    """Beyond mlx: complex64, against NumPy."""
    r = rng("complex", name)
    x = (r.standard_normal((2, 4, 4)) + 1j * r.standard_normal((2, 4, 4))).astype(np.complex64)
    h = x @ x.conj().swapaxes(-1, -2) + 4 * np.eye(4)
    a = um.array((h if name in ("cholesky", "eigh") else x).astype(np.complex64))
    n = np.asarray(a)
    if name == "solve":
        got = np.asarray(um.linalg.solve(a, a[..., :1]))
        np.testing.assert_allclose(n @ got, n[..., :1], atol=1e-4)
        return
    got = getattr(um.linalg, name)(a)
    made = [np.asarray(g) for g in got] if isinstance(got, tuple) else np.asarray(got)
    if name in ("inv", "pinv"):
        np.testing.assert_allclose(n @ made, np.broadcast_to(np.eye(4), (2, 4, 4)), atol=1e-4)
    elif name == "cholesky":
        np.testing.assert_allclose(made @ made.conj().swapaxes(-1, -2), n, rtol=1e-4, atol=1e-4)
    elif name == "lu":
        p, low, u = made
        np.testing.assert_allclose(
            np.take_along_axis(low, p[..., None].astype(int), -2) @ u, n, atol=1e-4
        )
    elif name == "qr":
        np.testing.assert_allclose(made[0] @ made[1], n, atol=1e-4)
    elif name == "svd":
        np.testing.assert_allclose((made[0] * made[1][..., None, :]) @ made[2], n, atol=1e-4)
    elif name == "eigh":
        np.testing.assert_allclose(
            n @ made[1], made[1] * made[0][..., None, :], rtol=1e-4, atol=1e-3
        )
    elif name == "det":
        np.testing.assert_allclose(made, np.linalg.det(n), rtol=1e-4)
    else:
        sign, log = np.linalg.slogdet(n)
        np.testing.assert_allclose(made[0], sign, atol=1e-4)
        np.testing.assert_allclose(made[1], log, atol=1e-4)


ORDS = [None, 0, 1, -1, 2, -2, 3, 2.5, 0.5, -0.5, INF, -INF, "fro", "f", "nuc", "x", 1j, True]
AXES = [None, 0, -1, [0, 1], [1, 0], (0, 1), [0], [], [0, 1, 2], 5, [0, 5], [-1, 0]]
NORMED = [(), (3,), (2, 3), (2, 3, 4), (0,), (0, 3), (2, 0)]


@pytest.mark.parametrize("dtype", ALL)
def test_norm(tally: Tally, dtype: str) -> None:
    for shape in NORMED:
        if 0 in shape and dtype != "float32":
            continue
        x = given(dtype, shape, domain="nonzero")
        for ord in ORDS:
            for axis in AXES:
                for keep in False, True:
                    tally.same(
                        f"{ord} of {shape} {axis} {keep}",
                        lambda mx, x, o=ord, a=axis, k=keep: mx.linalg.norm(x, o, a, k),
                        x,
                        ulps=256,
                        scale="largest",
                    )


def test_norm_by_itself() -> None:
    """Where mlx is not followed."""
    for ord in 1, 2, "nuc", "fro":
        with pytest.raises(ValueError, match="Duplicate"):
            um.linalg.norm(um.ones((3,)), ord, [-1, 0])
    assert um.linalg.norm(um.array([100, -100, 50], um.int8)).item() == pytest.approx(150)
    pair = um.array([True, False]), um.array([True, True, False])
    assert um.linalg.cross(*pair).dtype == um.bool_
    x = um.eye(2, dtype=um.int32)
    assert um.linalg.solve(x, um.ones((2,))).dtype == um.float32


CROSSED = [
    ((3,), (3,), -1), ((2,), (2,), -1), ((2,), (3,), -1), ((3,), (2,), -1), ((4,), (4,), -1), ((5, 3), (3,), -1),
    ((3, 5), (3, 5), 0), ((3, 5), (3, 1), 0), ((3, 5), (3, 5), 5), ((), (3,), -1), ((3,), (), -1),
    ((1, 3), (4, 3), -1), ((2, 5), (3, 5), 0), ((1,), (1,), -1), ((0, 3), (0, 3), -1), ((3, 5), (5,), 0),
    ((5, 2), (5, 2), -1), ((5, 2), (5, 3), -1), ((2, 3), (3, 3), -1),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL)
def test_cross(tally: Tally, dtype: str) -> None:
    for a, b, axis in CROSSED:
        x, y = given(dtype, a, domain="few"), given(dtype, b, domain="few", key="y")
        tally.same(
            f"{a} {b} {axis}", lambda mx, x, y, i=axis: mx.linalg.cross(x, y, i), x, y, ulps=4
        )
    mixed = given("int8", (3,)), given("complex64", (3,))
    tally.same("promoted", lambda mx, x, y: mx.linalg.cross(x, y), *mixed, ulps=4)


UNARY = [
    "cholesky",
    "cholesky_inv",
    "tri_inv",
    "inv",
    "pinv",
    "lu",
    "lu_factor",
    "qr",
    "svd",
    "eig",
    "eigvals",
    "eigh",
    "eigvalsh",
    "det",
    "slogdet",
]


@pytest.mark.parametrize("name", UNARY)
def test_types_and_errors(tally: Tally, name: str) -> None:
    """Shapes and dtypes of results, and errors, over what functions are given; values stand elsewhere."""

    def kinds(mx: Any, x: Any) -> Any:
        out = getattr(mx.linalg, name)(x)
        mx.eval(out)
        out = out if isinstance(out, tuple) else (out,)
        return [(tuple(o.shape), str(o.dtype).split(".")[-1]) for o in out]

    for dtype in ALL:
        tally.same(f"dtype {dtype}", kinds, exactly(np.eye(3), dtype))
    empty = [] if name in FRAIL else [(0, 0), (2, 0, 0), (0, 3, 3), (0, 3), (3, 0)]
    for shape in [(), (3,), (2, 3), (3, 2), (2, 3, 3), (1, 1), *empty]:
        data = np.broadcast_to(np.eye(*shape[-2:]), shape) if len(shape) > 1 else np.ones(shape)
        tally.same(f"shape {shape}", kinds, exactly(data, "float32"))
    tally.same("a list", lambda mx: getattr(mx.linalg, name)([[1.0]]))
    tally.same("a number", lambda mx: getattr(mx.linalg, name)(1.0))
    tally.same(
        "a stream",
        lambda mx, x: kinds(mx, x) and getattr(mx.linalg, name)(x, stream=mx.cpu) is None,
        exactly(np.eye(2), "float32"),
    )


@pytest.mark.parametrize("name", sorted(FRAIL))
def test_empty(name: str) -> None:
    for shape in [(0, 0), (2, 0, 0), (0, 3, 3)]:
        x = um.zeros(shape)
        f = getattr(um.linalg, name)
        out = f(x, um.zeros((*shape[:-1], 2))) if name.startswith("solve") else f(x)
        um.eval(out)
        first = out[-1] if name == "lu" else out[0] if isinstance(out, tuple) else out
        assert first.shape[:-1] == shape[:-1]
    assert um.linalg.det(um.zeros((0, 0))).item() == 1


SYSTEMS = [
    ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (2, 3)), ((3, 3), (2, 3)), ((2, 3), (2,)), ((3,), (3,)),
    ((3, 3), ()), ((3, 3), (4,)), ((3, 3), (4, 2)), ((2, 3, 3), (5, 3, 2)), ((2, 3, 3), (2, 3, 1)),
]  # fmt: skip
BROADCAST = [((2, 3, 3), (3,)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 1)), ((2, 1, 3, 3), (4, 3, 2))]


def system(a: tuple[int, ...], b: tuple[int, ...], dtype: str = "float32") -> tuple[Input, Input]:
    first = regular(dtype, *a) if len(a) > 1 else given(dtype, a)
    return first, given(dtype, b, key="b")


def test_systems(tally: Tally) -> None:
    for a, b in SYSTEMS:
        tally.same(
            f"solve {a} {b}",
            lambda mx, x, y: mx.linalg.solve(x, y),
            *system(a, b),
            ulps=256,
            scale="largest",
        )
    for a, b in SYSTEMS + BROADCAST:
        for upper in False, True:
            tally.same(
                f"solve_triangular {a} {b} {upper}",
                lambda mx, x, y, u=upper: mx.linalg.solve_triangular(
                    mx.triu(x) if u else mx.tril(x), y, upper=u
                ),
                *system(a, b),
                ulps=256,
                scale="largest",
            )
    for one in ALL:
        for other in ALL:
            x, y = exactly(np.eye(2), one), exactly(np.ones(2), other)
            tally.same(f"solve {one} with {other}", lambda mx, x, y: mx.linalg.solve(x, y), x, y)
            tally.same(
                f"solve_triangular {one} with {other}",
                lambda mx, x, y: mx.linalg.solve_triangular(x, y),
                x,
                y,
            )


def test_systems_broadcast() -> None:
    """Beyond mlx's solve."""
    for a, b in BROADCAST:
        x, y = system(a, b)
        got = um.linalg.solve(um.array(x.data), um.array(y.data))
        column = y.data[:, None] if len(b) == 1 else y.data
        want = np.linalg.solve(*np.broadcast_arrays(x.data.astype(float), 0)[:1], column)
        np.testing.assert_allclose(
            np.asarray(got), want[..., 0] if len(b) == 1 else want, rtol=1e-4, atol=1e-5
        )


def test_singular(tally: Tally) -> None:
    s = exactly([[1, 2], [2, 4]], "float32")
    zero = exactly(np.zeros((2, 2)), "float32")
    nan = exactly(np.full((2, 2), np.nan), "float32")
    tally.same("det", lambda mx, x: mx.linalg.det(x), s)
    tally.same("slogdet", lambda mx, x: mx.linalg.slogdet(x), s)
    tally.same("slogdet of zero", lambda mx, x: mx.linalg.slogdet(x), zero)
    tally.same("lu", lambda mx, x: mx.linalg.lu(x), s)
    tally.same("pinv", lambda mx, x: mx.linalg.pinv(x), s, ulps=64, scale="largest")
    tally.same("pinv of zero", lambda mx, x: mx.linalg.pinv(x), zero)
    tally.same("inv", lambda mx, x: mx.linalg.inv(x), s)
    tally.same("solve", lambda mx, x: mx.linalg.solve(x, x[0]), s)
    tally.same("tri_inv", lambda mx, x: mx.linalg.tri_inv(x), zero)
    tally.same("solve_triangular", lambda mx, x: mx.linalg.solve_triangular(x, x), zero)
    tally.same("cholesky_inv", lambda mx, x: mx.linalg.cholesky_inv(x), zero)
    tally.same("det of nan", lambda mx, x: mx.linalg.det(x), nan)
    tally.same("svd of nan", lambda mx, x: mx.linalg.svd(x), nan)


def test_uplo() -> None:
    """mlx hands any text to LAPACK."""
    x = um.array([[2.0, 1.0], [0.0, 3.0]])
    lower, upper = um.linalg.eigvalsh(x, "l"), um.linalg.eigvalsh(x, UPLO="U")
    np.testing.assert_allclose(np.asarray(lower), [2, 3], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(upper), np.linalg.eigvalsh([[2, 1], [1, 3]]), rtol=1e-6)
    for f in um.linalg.eigh, um.linalg.eigvalsh:
        with pytest.raises(ValueError, match="UPLO"):
            f(x, "X")


def test_multivariate_normal(tally: Tally) -> None:
    def drawn(mx: Any, mean: Any, cov: Any, *args: Any, **options: Any) -> Any:
        return mx.random.multivariate_normal(mean, cov, *args, key=mx.random.key(3), **options)

    def case(name: str, mean: Input, cov: Input, *args: Any) -> None:
        tally.same(
            name,
            lambda mx, m, c: drawn(mx, m, c, *args),
            mean,
            cov,
            ulps=in_single(64),
            scale="largest",
        )

    eye, spd = exactly(np.eye(2), "float32"), positive("float32", 2, 2)
    m = lambda *s, dtype="float32": given(dtype, s)
    for name, cov in ("eye", eye), ("spd", spd), ("batch", positive("float32", 4, 2, 2)):
        case(f"{name}", m(2), cov)
        case(f"{name} (4,)", m(2), cov, [4])
        case(f"{name} (5, 1)", m(2), cov, [5, 1])
        case(f"{name} means", m(4, 2), cov)
        case(f"{name} means (3,)", m(4, 2), cov, [3])
        case(f"{name} no means", m(0, 2), eye)
        case(f"{name} none", m(2), cov, [0])
    case("of size 3", m(3), eye)
    case("mean of no dimension", m(), eye)
    case("cov of one dimension", m(2), m(2))
    case("cov not square", m(2), m(2, 3))
    case("of size 1", m(1), eye)
    case("nothing", m(0), m(0, 0))
    for dtype in ALL:
        tally.same(
            f"as {dtype}",
            lambda mx, m, c, d=dtype: drawn(mx, m, c, [2], getattr(mx, d)),
            m(2),
            eye,
            ulps=64,
        )
        case(f"mean {dtype}", m(2, dtype=dtype), eye)
        case(f"cov {dtype}", m(2), exactly(np.eye(2), dtype))
    tally.same("no dtype", lambda mx, m, c: drawn(mx, m, c, dtype=None), m(2), eye, ulps=64)
    cov = np.array([[2.0, 1.2], [1.2, 1.0]])
    sample = um.random.multivariate_normal(
        um.array([1.0, -1.0]), um.array(cov), [40000], key=um.random.key(1)
    )
    np.testing.assert_allclose(np.cov(np.asarray(sample).T), cov, atol=0.05)
