"""`ultramarine.array_api.linalg` and `.fft` against NumPy."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from support.array_api_data import OF, data, ours, same
from support.compare import assert_close

import ultramarine as um
import ultramarine.array_api as xp

FLOATING = ["float32", "float64", "complex64"]
BATCHES: list[tuple[int, ...]] = [(), (2,), (2, 1)]


def matrices(dtype: str, shape: tuple[int, ...], kind: str = "any", key: Any = 0) -> np.ndarray:
    """Seeded matrices far from singular; Hermitian and positive definite ones."""
    a = data(dtype, shape, "unit", (kind, key))
    if kind == "any":
        return a
    m = shape[-1]
    adjoint = np.conj(np.swapaxes(a, -1, -2))
    if kind == "well":
        return np.asarray(a + 3 * np.eye(m), dtype)
    if kind == "hermitian":
        return np.asarray(a + adjoint, dtype)
    return np.asarray(a @ adjoint + np.eye(m), dtype)


# name: the matrices that it wants
SQUARE = {
    "cholesky": "positive", "det": "well", "eigvalsh": "hermitian", "inv": "well",
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("name", SQUARE)
def test_of_square_matrices(name: str, dtype: str) -> None:
    for batch, m in product(BATCHES, (1, 3, 6)):
        x = matrices(dtype, (*batch, m, m), SQUARE[name])
        same(getattr(xp.linalg, name)(ours(x)), getattr(np.linalg, name)(x), 200)
    with pytest.raises(TypeError, match=name):
        getattr(xp.linalg, name)(xp.ones((2, 2), dtype=xp.int32))
    with pytest.raises(ValueError, match="square"):
        getattr(xp.linalg, name)(xp.ones((2, 3)))


close = partial(assert_close, rtol=2e-4, atol=2e-5, dtype=False)


@pytest.mark.parametrize("dtype", FLOATING)
def test_decompositions(dtype: str) -> None:
    for batch, (m, n) in product(BATCHES, [(3, 3), (5, 3), (3, 5)]):
        x = matrices(dtype, (*batch, m, n))
        a, k = ours(x), min(m, n)
        for full in (False, True):
            u, s, vh = found = xp.linalg.svd(a, full_matrices=full)
            assert found._fields == ("U", "S", "Vh")
            assert u.shape == (*batch, m, m if full else k)
            assert vh.shape == (*batch, n if full else k, n)
            assert s.dtype == (xp.float64 if dtype == "float64" else xp.float32)
            close(xp.matmul(u[..., :k] * s[..., None, :].astype(a.dtype), vh[..., :k, :]), x)
        close(xp.linalg.svdvals(a), np.linalg.svdvals(x))
        for mode in ("reduced", "complete"):
            q, r = found = xp.linalg.qr(a, mode=mode)
            assert found._fields == ("Q", "R")
            size = k if mode == "reduced" else m
            assert (q.shape, r.shape) == ((*batch, m, size), (*batch, size, n))
            close(xp.matmul(q, r), x)
            close(
                xp.matmul(xp.conj(xp.matrix_transpose(q)), q),
                np.broadcast_to(np.eye(size), (*batch, size, size)),
            )
        close(xp.linalg.pinv(a), np.linalg.pinv(x))
        same(xp.linalg.matrix_rank(a), np.linalg.matrix_rank(x), indices=True)
        for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
            for keep in (False, True):
                want = np.linalg.matrix_norm(x, ord=order, keepdims=keep)
                close(xp.linalg.matrix_norm(a, ord=order, keepdims=keep), want)
    h = matrices(dtype, (2, 4, 4), "hermitian")
    found = xp.linalg.eigh(ours(h))
    assert found._fields == ("eigenvalues", "eigenvectors")
    close(found.eigenvalues, np.linalg.eigvalsh(h))
    close(
        xp.matmul(ours(h), found.eigenvectors),
        np.asarray(found.eigenvectors) * np.asarray(found.eigenvalues)[:, None, :],
    )
    low = xp.linalg.cholesky(ours(matrices(dtype, (3, 3), "positive")))
    up = xp.linalg.cholesky(ours(matrices(dtype, (3, 3), "positive")), upper=True)
    close(up, np.conj(np.asarray(low)).T)


def test_eig() -> None:
    for dtype in ("float32", "complex64"):
        x = matrices(dtype, (2, 4, 4))
        found = xp.linalg.eig(ours(x))
        assert found.eigenvalues.dtype == xp.complex64
        vectors = np.asarray(found.eigenvectors)
        close(x @ vectors, vectors * np.asarray(found.eigenvalues)[:, None, :])
        order = lambda v: np.sort_complex(np.round(np.asarray(v), 3))
        close(order(xp.linalg.eigvals(ours(x))[0]), order(np.linalg.eigvals(x[0])))


@pytest.mark.parametrize("dtype", FLOATING)
def test_solving(dtype: str) -> None:
    for one, other in [
        ((3, 3), (3,)),
        ((3, 3), (3, 2)),
        ((2, 3, 3), (3,)),
        ((2, 3, 3), (3, 2)),
        ((3, 3), (2, 3, 2)),
    ]:
        a, b = matrices(dtype, one, "well"), data(dtype, other, "unit")
        close(xp.linalg.solve(ours(a), ours(b)), np.linalg.solve(a, b))
    a = matrices(dtype, (2, 3, 3), "well")
    found, want = xp.linalg.slogdet(ours(a)), np.linalg.slogdet(a)
    close(found.sign, want.sign)
    close(found.logabsdet, want.logabsdet)
    for n in (0, 1, 2, 5, -1, -3):
        close(xp.linalg.matrix_power(ours(a), n), np.linalg.matrix_power(a, n))


@pytest.mark.parametrize("dtype", OF["numeric"])
def test_of_numbers(dtype: str) -> None:
    a, b = data(dtype, (2, 4, 3), "small", 1), data(dtype, (4, 3), "small", 2)
    same(
        xp.linalg.cross(ours(a), ours(b)),
        np.linalg.cross(np.broadcast_to(a, (2, 4, 3)), np.broadcast_to(b, (2, 4, 3))),
        8,
    )
    same(xp.linalg.outer(ours(a[0, 0]), ours(b[:, 0])), np.linalg.outer(a[0, 0], b[:, 0]), 4)
    for offset in (-1, 0, 2):
        same(xp.linalg.diagonal(ours(a), offset=offset), np.linalg.diagonal(a, offset=offset))
        want = np.linalg.trace(a, offset=offset)
        if dtype in OF["integral"]:
            want = want.astype(np.result_type(dtype, "int32" if dtype[0] == "i" else "uint32"))
        same(xp.linalg.trace(ours(a), offset=offset), want, 8)
    if dtype in FLOATING:
        for order, axis, keep in product(
            [0, 1, 2, 3, 2.5, math.inf, -math.inf], [None, 0, (0, -1)], [False, True]
        ):
            want = np.linalg.vector_norm(a, ord=order, axis=axis, keepdims=keep)
            close(xp.linalg.vector_norm(ours(a), ord=order, axis=axis, keepdims=keep), want)


LINES = {
    "fft": ["float32", "complex64"], "ifft": ["float32", "complex64"], "rfft": ["float32"],
    "irfft": ["complex64"], "hfft": ["complex64"], "ihfft": ["float32"],
}  # fmt: skip
BLOCKS = {
    "fftn": ["float32", "complex64"], "ifftn": ["float32", "complex64"], "rfftn": ["float32"],
    "irfftn": ["complex64"],
}  # fmt: skip
NORMS = ["backward", "ortho", "forward"]


def near(got: Any, want: np.ndarray) -> None:
    assert str(got.dtype).endswith(
        str(want.dtype).replace("128", "64").replace("float64", "float32")
    )
    scale = float(np.abs(want).max()) if want.size else 1
    assert_close(got, want, rtol=1e-5, atol=1e-5 * scale, dtype=False)


@pytest.mark.parametrize("name", LINES)
def test_lines(name: str) -> None:
    for dtype in LINES[name]:
        x = data(dtype, (3, 6, 4))
        for n, axis, norm in product([None, 5, 8], [-1, 0, 1], NORMS):
            want = getattr(np.fft, name)(x, n=n, axis=axis, norm=norm)
            near(getattr(xp.fft, name)(ours(x), n=n, axis=axis, norm=norm), want)
    for dtype in ("int32", "bool"):
        with pytest.raises(TypeError, match="fft"):
            getattr(xp.fft, name)(xp.ones((4,), dtype=getattr(xp, dtype)))
    with pytest.raises(ValueError, match="norm"):
        getattr(xp.fft, name)(xp.ones((4,)), norm="none")


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name: str) -> None:
    for dtype in BLOCKS[name]:
        x = data(dtype, (3, 6, 4))
        for (s, axes), norm in product([(None, None), (None, (0, 1)), ((4, 5), (1, 2))], NORMS):
            want = getattr(np.fft, name)(x, s=s, axes=axes, norm=norm)
            near(getattr(xp.fft, name)(ours(x), s=s, axes=axes, norm=norm), want)


def test_frequencies_and_shifts() -> None:
    for n, d in product([1, 4, 5], [1.0, 0.25]):
        same(xp.fft.fftfreq(n, d=d), np.fft.fftfreq(n, d).astype("float32"), 2)
        same(xp.fft.rfftfreq(n, d=d, dtype=xp.float64), np.fft.rfftfreq(n, d), 2**30)
    x = data("float32", (4, 5, 3))
    for name, axes in product(["fftshift", "ifftshift"], [None, 1, (0, 2)]):
        same(getattr(xp.fft, name)(ours(x), axes=axes), getattr(np.fft, name)(x, axes))
    with pytest.raises(TypeError):
        xp.fft.fftfreq(4, dtype=xp.int32)


def test_gradients_flow() -> None:
    x = ours(matrices("float32", (3, 3), "well"))
    for name in ("det", "inv", "svdvals", "matrix_norm"):
        got = um.grad(lambda x: xp.sum(getattr(xp.linalg, name)(x)))(x)
        assert np.isfinite(np.asarray(got)).all(), name
