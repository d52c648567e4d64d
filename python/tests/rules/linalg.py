"""Linear algebra.

What is determined up to signs and phases is made definite: by squares, or by products that do not depend on them.
"""

from typing import Any

from .case import Case, case, real


def positive(um: Any, x: Any) -> Any:
    """A symmetric positive definite matrix."""
    return x @ um.swapaxes(x, -1, -2) + 2 * um.eye(x.shape[-1], dtype=x.dtype)


def regular(um: Any, x: Any) -> Any:
    """A matrix far from a singular one, which needs no exchange of rows."""
    return x + 3 * um.eye(x.shape[-2], x.shape[-1], dtype=x.dtype)


def apart(um: Any, x: Any) -> Any:
    """A matrix whose singular values and eigenvalues are real and apart."""
    m, n = x.shape[-2:]
    sizes = um.arange(1.0, n + 1).astype(x.dtype)
    return 0.3 * x + 2 * sizes * um.eye(m, n, dtype=x.dtype)


def squares(um: Any, results: Any) -> list[Any]:
    return [um.square(p) for p in results]


def svd(um: Any, x: Any) -> list[Any]:
    """Singular values, and products in which signs and the choice of other vectors cancel."""
    u, s, vt = um.linalg.svd(apart(um, x))
    k = s.shape[-1]
    rest = u[..., :, k:] @ um.swapaxes(u[..., :, k:], -1, -2)
    return [
        s,
        um.square(u[..., :, :k]),
        um.square(vt[..., :k, :]),
        u[..., :, :1] @ vt[..., :1, :],
        rest,
    ]


def eig(um: Any, x: Any) -> Any:
    """Eigenvalues in order, and the sizes of the vectors' elements."""
    w, v = um.linalg.eig(apart(um, x))
    return [um.sort(um.real(w)), um.sort(um.abs(v), axis=-1)]


def of_norm(name: str, *operands: Any, **options: Any) -> Case:
    return case(f"linalg.norm, {name}", lambda um, x: um.linalg.norm(x, **options), *operands)


CASES: list[Case] = [
    case("linalg.cholesky", lambda um, x: um.linalg.cholesky(positive(um, x)), real(3, 3)),
    case("linalg.cholesky, upper", lambda um, x: um.linalg.cholesky(positive(um, x), upper=True), real(2, 3, 3)),
    case("linalg.cholesky_inv", lambda um, x: um.linalg.cholesky_inv(regular(um, x)), real(3, 3)),
    case("linalg.cholesky_inv, upper", lambda um, x: um.linalg.cholesky_inv(regular(um, x), True), real(3, 3)),
    case("linalg.tri_inv", lambda um, x: um.linalg.tri_inv(regular(um, x)), real(3, 3)),
    case("linalg.tri_inv, upper", lambda um, x: um.linalg.tri_inv(regular(um, x), True), real(2, 3, 3)),
    case("linalg.solve_triangular", lambda um, x, y: um.linalg.solve_triangular(regular(um, x), y), real(3, 3), real(3, 2)),
    case("linalg.solve_triangular, upper", lambda um, x, y: um.linalg.solve_triangular(regular(um, x), y, upper=True), real(3, 3), real(2, 3, 1)),
    case("linalg.solve_triangular, a vector", lambda um, x, y: um.linalg.solve_triangular(regular(um, x), y), real(3, 3), real(3)),
    case("linalg.solve", lambda um, x, y: um.linalg.solve(regular(um, x), y), real(3, 3), real(3, 2)),
    case("linalg.solve, exchanged rows", lambda um, x, y: um.linalg.solve(regular(um, x)[..., ::-1, :], y), real(3, 3), real(3)),
    case("linalg.solve, in batches", lambda um, x, y: um.linalg.solve(regular(um, x), y), real(2, 2, 2), real(2, 1)),
    case("linalg.inv", lambda um, x: um.linalg.inv(regular(um, x)[..., ::-1, :]), real(3, 3)),
    case("linalg.inv, in batches", lambda um, x: um.linalg.inv(regular(um, x)), real(2, 2, 2)),
    case("linalg.det", lambda um, x: um.linalg.det(regular(um, x)[..., ::-1, :]), real(3, 3)),
    case("linalg.det, in batches", lambda um, x: um.linalg.det(regular(um, x)), real(2, 2, 2)),
    case("linalg.slogdet", lambda um, x: um.linalg.slogdet(regular(um, x)[..., ::-1, :]), real(3, 3)),
    case("linalg.pinv", lambda um, x: um.linalg.pinv(apart(um, x)), real(3, 2)),
    case("linalg.pinv, wide", lambda um, x: um.linalg.pinv(apart(um, x)), real(2, 3)),
    case("linalg.lu_factor", lambda um, x: um.linalg.lu_factor(regular(um, x)[..., ::-1, :])[0], real(3, 3)),
    case("linalg.lu", lambda um, x: um.linalg.lu(regular(um, x))[1:], real(3, 3)),
    case("linalg.lu, tall", lambda um, x: um.linalg.lu(regular(um, x))[1:], real(4, 2)),
    case("linalg.lu, wide", lambda um, x: um.linalg.lu(regular(um, x))[1:], real(2, 4)),
    case("linalg.qr", lambda um, x: um.linalg.qr(regular(um, x)), real(3, 3)),
    case("linalg.qr, tall", lambda um, x: um.linalg.qr(regular(um, x)), real(4, 2)),
    case("linalg.qr, wide", lambda um, x: um.linalg.qr(regular(um, x)), real(2, 4)),
    case("linalg.svd", svd, real(3, 3)),
    case("linalg.svd, tall", svd, real(4, 2)),
    case("linalg.svd, wide", svd, real(2, 4)),
    case("linalg.svd, values", lambda um, x: um.linalg.svd(apart(um, x), compute_uv=False), real(2, 3)),
    case("linalg.eigh", lambda um, x: squares(um, um.linalg.eigh(apart(um, um.swapaxes(x, -1, -2) + x))), real(3, 3)),
    case("linalg.eigvalsh", lambda um, x: um.linalg.eigvalsh(apart(um, um.swapaxes(x, -1, -2) + x), UPLO="U"), real(3, 3)),
    case("linalg.eig", eig, real(3, 3), single=True),
    case("linalg.eigvals", lambda um, x: um.sort(um.real(um.linalg.eigvals(apart(um, x)))), real(3, 3), single=True),
    case("linalg.cross", lambda um, x, y: um.linalg.cross(x, y), real(2, 3), real(3)),
    case("linalg.cross, of size 2", lambda um, x, y: um.linalg.cross(x, y), real(2, 2), real(3)),
    of_norm("of all", real(2, 2, 2)),
    of_norm("of vectors", real(2, 3), axis=1),
    of_norm("1", real(2, 3), ord=1, axis=0),
    of_norm("3", real(2, 3, low=0.5), ord=3, axis=-1, keepdims=True),
    of_norm("inf", real(2, 3), ord=float("inf"), axis=1),
    of_norm("of matrices, 1", real(2, 2, 3), ord=1, axis=(1, 2)),
    of_norm("of matrices, -inf", real(2, 3), ord=-float("inf")),
    of_norm("of matrices, 2", real(2, 3), ord=2),
    of_norm("of matrices, -2", real(2, 3), ord=-2, keepdims=True),
    of_norm("nuc", real(2, 3), ord="nuc"),
    of_norm("fro", real(2, 3, 2), ord="fro", axis=(0, 2)),
]  # fmt: skip

EXEMPT: dict[str, str] = {
    "einsum_path": "no function of arrays",
    "random.multivariate_normal": "random numbers: ops/test_linalg.py",
}
