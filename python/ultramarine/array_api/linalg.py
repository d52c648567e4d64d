"""The standard's extension for linear algebra, over `ultramarine.linalg`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal, NamedTuple

import ultramarine as mx
from ultramarine import Dtype, array

from ._dtypes import (
    FLOATING,
    NUMERIC,
    Number,
    axes_of,
    check,
    check_array,
    kind_of,
    pair,
)
from ._products import matmul, matrix_transpose, tensordot, vecdot
from ._statistics import _sum_dtype

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EigResult(NamedTuple):
    """Result of `eig`."""

    eigenvalues: array
    eigenvectors: array


class EighResult(NamedTuple):
    """Result of `eigh`."""

    eigenvalues: array
    eigenvectors: array


class QRResult(NamedTuple):
    """Result of `qr`."""

    Q: array
    R: array


class SlogdetResult(NamedTuple):
    """Result of `slogdet`."""

    sign: array
    logabsdet: array


class SVDResult(NamedTuple):
    """Result of `svd`."""

    U: array
    S: array
    Vh: array


def _core() -> Any:
    """The module that computes; asked for when it is needed."""
    return import_module("ultramarine.linalg")


def _matrices(name: str, x: array, square: bool = False) -> array:
    """The array, if it is a stack of floating matrices."""
    check(name, x, FLOATING)
    if x.ndim < 2:
        raise ValueError(
            f"[{name}] Expected at least two dimensions, got {x.ndim}. Reshape the array."
        )
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"[{name}] Expected square matrices, got shape {x.shape}. Pass as many rows as columns."
        )
    return x


def cholesky(x: array, /, *, upper: bool = False) -> array:
    """The lower (or upper) triangular L (U) of positive definite matrices L L^H (U^H U)."""
    lower: array = _core().cholesky(_matrices("cholesky", x, True))
    if not upper:
        return lower
    out = matrix_transpose(lower)
    return mx.conj(out) if kind_of(x.dtype) == "complex floating" else out


def cross(x1: array, x2: array, /, *, axis: int = -1) -> array:
    """The cross product of vectors of three elements along an axis, which counts from the end."""
    a, b = pair("cross", x1, x2, NUMERIC)
    if not -min(a.ndim, b.ndim) <= axis < 0:
        raise IndexError(
            f"[cross] Axis {axis} is not the same in both arrays. Count it from the end, by a negative number."
        )
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(
            f"[cross] Shapes {x1.shape} and {x2.shape} do not have 3 along {axis}. Name another axis."
        )
    a, b = mx.broadcast_arrays(a, b)
    (axis,) = axes_of("cross", axis, a.ndim)
    a0, a1, a2 = mx.unstack(a, axis=axis)
    b0, b1, b2 = mx.unstack(b, axis=axis)
    return mx.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis)


def det(x: array, /) -> array:
    """The determinants of square matrices."""
    out: array = _core().det(_matrices("det", x, True))
    return out


def diagonal(x: array, /, *, offset: int = 0) -> array:
    """A diagonal of each matrix: above the main one for `offset` above 0."""
    check_array("diagonal", x)
    if x.ndim < 2:
        raise ValueError("[diagonal] Expected at least two dimensions. Reshape the array.")
    return mx.diagonal(x, offset, -2, -1)


def eig(x: array, /) -> EigResult:
    """Eigenvalues and right eigenvectors (in columns) of square matrices, both complex."""
    return EigResult(*_core().eig(_matrices("eig", x, True)))


def eigvals(x: array, /) -> array:
    """The eigenvalues of square matrices, complex."""
    out: array = _core().eigvals(_matrices("eigvals", x, True))
    return out


def eigh(x: array, /) -> EighResult:
    """Eigenvalues, real and ascending, and eigenvectors (in columns) of Hermitian matrices."""
    return EighResult(*_core().eigh(_matrices("eigh", x, True)))


def eigvalsh(x: array, /) -> array:
    """The eigenvalues of Hermitian matrices, real and ascending."""
    out: array = _core().eigvalsh(_matrices("eigvalsh", x, True))
    return out


def inv(x: array, /) -> array:
    """The inverses of square matrices."""
    out: array = _core().inv(_matrices("inv", x, True))
    return out


def matrix_norm(
    x: array,
    /,
    *,
    keepdims: bool = False,
    ord: int | float | Literal["fro", "nuc"] | None = "fro",
) -> array:
    """A norm of each matrix: Frobenius or nuclear, or by the sums of columns (1, -1), of rows
    (infinities), or the largest or least singular value (2, -2)."""
    _matrices("matrix_norm", x)
    size = mx.abs(x)
    if ord in ("fro", None):
        out = mx.sqrt(mx.sum(size * size, (-2, -1)))
    elif ord in (1, -1, mx.inf, -mx.inf):
        sums = mx.sum(size, -2 if ord in (1, -1) else -1)
        out = mx.max(sums, -1) if ord in (1, mx.inf) else mx.min(sums, -1)
    elif ord in ("nuc", 2, -2):
        values = svdvals(x)
        core = mx.sum if ord == "nuc" else mx.max if ord == 2 else mx.min
        out = core(values, -1)
    else:
        raise ValueError(
            f"[matrix_norm] There is no norm {ord!r}. Use 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc'."
        )
    return mx.expand_dims(out, (-2, -1)) if keepdims else out


def matrix_power(x: array, n: int, /) -> array:
    """Square matrices to an integer power; of their inverses, if it is negative."""
    _matrices("matrix_power", x, True)
    if n < 0:
        x, n = inv(x), -n
    out = mx.broadcast_to(mx.eye(x.shape[-1], dtype=x.dtype), x.shape)
    while n:
        if n & 1:
            out = mx.matmul(out, x)
        n >>= 1
        x = mx.matmul(x, x) if n else x
    return out


def _tolerance(x: array, values: array, rtol: float | array | None) -> array:
    """Threshold of singular values, beside `values`."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * mx.finfo(x.dtype).eps
    if isinstance(rtol, array):
        rtol = mx.expand_dims(rtol.astype(values.dtype), -1)
    return mx.max(values, -1, keepdims=True) * rtol


def matrix_rank(x: array, /, *, rtol: float | array | None = None) -> array:
    """Number of singular values of each matrix that exceed `rtol` times the largest."""
    _matrices("matrix_rank", x)
    if 0 in x.shape[-2:]:
        return mx.zeros(x.shape[:-2], mx.int32)
    values = svdvals(x)
    return mx.sum((values > _tolerance(x, values, rtol)).astype(mx.int32), -1)


def outer(x1: array, x2: array, /) -> array:
    """The products of each element of a vector with each of another."""
    a, b = pair("outer", x1, x2, NUMERIC)
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(
            f"[outer] Expected vectors, got shapes {x1.shape} and {x2.shape}. Flatten them."
        )
    return a.reshape(-1, 1) * b.reshape(1, -1)


def pinv(x: array, /, *, rtol: float | array | None = None) -> array:
    """The pseudo-inverse of each matrix; singular values up to `rtol` times the largest count as
    zero."""
    _matrices("pinv", x)
    if x.size == 0:
        return mx.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    u, s, vh = svd(x, full_matrices=False)
    kept = s > _tolerance(x, s, rtol)
    inverse = mx.where(kept, 1.0 / mx.where(kept, s, mx.ones_like(s)), mx.zeros_like(s))
    v, uh = matrix_transpose(vh), matrix_transpose(u)
    if kind_of(x.dtype) == "complex floating":
        v, uh = mx.conj(v), mx.conj(uh)
    return mx.matmul(v * mx.expand_dims(inverse, -2).astype(x.dtype), uh)


def qr(x: array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Q with orthonormal columns and upper triangular R, whose product is the matrix."""
    _matrices("qr", x)
    if mode not in ("reduced", "complete"):
        raise ValueError(f"[qr] mode must be 'reduced' or 'complete', got {mode!r}.")
    q, r = _core().qr(x)
    rows, columns = x.shape[-2:]
    if mode == "complete" and rows > columns:
        # Take the remaining columns from an orthonormal basis that also spans the first ones.
        u = svd(q, full_matrices=True).U[..., columns:]
        q = mx.concatenate([q, u], -1)
        r = mx.concatenate([r, mx.zeros((*x.shape[:-2], rows - columns, columns), r.dtype)], -2)
    return QRResult(q, r)


def slogdet(x: array, /) -> SlogdetResult:
    """The determinant of square matrices, as its sign and the logarithm of its magnitude."""
    return SlogdetResult(*_core().slogdet(_matrices("slogdet", x, True)))


def solve(x1: array, x2: array, /) -> array:
    """The solutions of x1 @ y = x2, for a vector or for the columns of matrices `x2`."""
    a, b = pair("solve", x1, x2, FLOATING)
    _matrices("solve", a, True)
    vector = b.ndim == 1
    if vector:
        b = b.reshape(-1, 1)
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ValueError(
            f"[solve] Shapes {x1.shape} and {x2.shape} do not match. Pass as many rows in both."
        )
    batch = mx.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = mx.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = mx.broadcast_to(b, (*batch, *b.shape[-2:]))
    out: array = _core().solve(a, b)
    return mx.squeeze(out, -1) if vector else out


def svd(x: array, /, *, full_matrices: bool = True) -> SVDResult:
    """U, descending singular values S and V^H, whose product is the matrix."""
    u, s, vh = _core().svd(_matrices("svd", x))
    k = min(x.shape[-2:])
    return SVDResult(u, s, vh) if full_matrices else SVDResult(u[..., :k], s, vh[..., :k, :])


def svdvals(x: array, /) -> array:
    """The singular values of each matrix, descending."""
    out: array = _core().svd(_matrices("svdvals", x), compute_uv=False)
    return out


def trace(x: array, /, *, offset: int = 0, dtype: Dtype | None = None) -> array:
    """The sum of a diagonal of each matrix, in `dtype`, as `sum` has it."""
    check("trace", x, NUMERIC)
    return mx.sum(diagonal(x, offset=offset).astype(dtype or _sum_dtype(x.dtype)), -1)


def vector_norm(
    x: array,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: int | float = 2,
) -> array:
    """The norm of vectors along axes: the sum of magnitudes to the power of `ord`, to the power of
    1 / ord; the largest (least) magnitude for infinity (-infinity), how many are not 0 for 0."""
    check("vector_norm", x, FLOATING)
    axes = axes_of("vector_norm", axis, x.ndim)
    size = mx.abs(x)
    if x.ndim == 0:
        size, axes = size.reshape(1), (0,)
    if ord in (mx.inf, -mx.inf):
        out = (mx.max if ord == mx.inf else mx.min)(size, axes, keepdims)
    elif ord == 0:
        out = mx.sum((size != 0).astype(size.dtype), axes, keepdims)
    elif ord == 1:
        out = mx.sum(size, axes, keepdims)
    elif ord == 2:
        out = mx.sqrt(mx.sum(size * size, axes, keepdims))
    else:
        power: Number = 1.0 / ord
        out = mx.power(mx.sum(mx.power(size, ord), axes, keepdims), power)
    return out.reshape(()) if x.ndim == 0 else out
