"""Derivatives of linear algebra: complex matrices, and where the usual table (rules/linalg.py) does not go."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.harness import rng

import ultramarine as um

L = um.linalg


def H(x: Any) -> Any:
    return um.conj(um.swapaxes(x, -1, -2))


def positive(x: Any) -> Any:
    return x @ H(x) + 2 * um.eye(x.shape[-1], dtype=x.dtype)


def apart(x: Any) -> Any:
    m, n = x.shape[-2:]
    return 0.3 * x + (2 * um.arange(1.0, n + 1) * um.eye(m, n)).astype(x.dtype)


def sizes(x: Any) -> Any:
    return um.real(x * um.conj(x))


def svd(x: Any) -> list[Any]:
    u, s, vt = L.svd(apart(x))
    k = s.shape[-1]
    first = u[..., :1] @ vt[..., :1, :]
    rest = u[..., k:] @ H(u[..., k:])
    return [s, sizes(u[..., :k]), sizes(vt[..., :k, :]), first, rest]


def eigh(x: Any) -> list[Any]:
    w, v = L.eigh(apart(x + H(x)))
    return [w, sizes(v), v[..., :1] @ H(v[..., :1])]


def eig(x: Any) -> list[Any]:
    w, v = L.eig(apart(x))
    order = um.argsort(um.real(w))
    return [w[order], sizes(v[:, order])]


def qr(x: Any) -> list[Any]:
    q, r = L.qr(apart(x))
    return [q @ r, sizes(r), sizes(q), q[:, :1] @ H(q[:, :1])]


# Functions of complex matrices that do not depend on what is free.
COMPLEX: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "cholesky": (lambda x: L.cholesky(positive(x)), (3, 3)),
    "cholesky upper": (lambda x: L.cholesky(positive(x), upper=True), (3, 3)),
    "solve_triangular": (lambda x: L.solve_triangular(um.tril(apart(x)), x), (3, 3)),
    "solve_triangular upper": (lambda x: L.solve_triangular(um.triu(apart(x)), x, upper=True), (2, 3, 3)),
    "solve": (lambda x: L.solve(apart(x)[::-1], x[:, :1]), (3, 3)),
    "inv": (lambda x: L.inv(apart(x)), (2, 3, 3)),
    "det": (lambda x: L.det(apart(x)), (3, 3)),
    "slogdet": (lambda x: L.slogdet(apart(x)), (3, 3)),
    "pinv": (lambda x: L.pinv(apart(x)), (3, 2)),
    "lu": (lambda x: L.lu(apart(x))[1:], (3, 3)),
    "lu tall": (lambda x: L.lu(apart(x))[1:], (4, 2)),
    "lu wide": (lambda x: L.lu(apart(x))[1:], (2, 4)),
    "qr": (qr, (3, 3)),
    "qr tall": (qr, (4, 2)),
    "qr wide": (qr, (2, 4)),
    "svd": (svd, (3, 3)),
    "svd tall": (svd, (4, 2)),
    "svd wide": (svd, (2, 4)),
    "svdvals": (lambda x: L.svd(apart(x), compute_uv=False), (2, 3)),
    "eigh": (eigh, (3, 3)),
    "eigvalsh": (lambda x: L.eigvalsh(apart(x + H(x))), (3, 3)),
    "eig": (eig, (3, 3)),
    "eigvals": (lambda x: um.sort(um.real(L.eigvals(apart(x)))), (3, 3)),
    "norm": (lambda x: L.norm(x), (2, 3)),
    "norm 2": (lambda x: L.norm(x, 2), (2, 3)),
    "norm nuc": (lambda x: L.norm(x, "nuc"), (2, 3)),
}  # fmt: skip


def drawn(r: np.random.Generator, like: Any) -> Any:
    made = r.uniform(-1, 1, like.shape)
    if like.dtype == um.complex64:
        made = made + 1j * r.uniform(-1, 1, like.shape)
    return um.array(made).astype(like.dtype)


def inner(x: Any, y: Any) -> float:
    """The real inner product."""
    return float(np.sum(np.real(np.conj(np.asarray(x)) * np.asarray(y)), dtype=np.float64))


@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name: str) -> None:
    """Forward derivatives are central differences; reverse ones are their adjoints."""
    f, shape = COMPLEX[name]
    r = rng("complex", name)
    x = um.array((r.uniform(-1, 1, shape) + 1j * r.uniform(-1, 1, shape)).astype(np.complex64))

    def listed(x: Any) -> list[Any]:
        out = f(x)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    for direction in drawn(r, x), 1j * drawn(r, x):
        values, tangents = um.jvp(listed, [x], [direction])
        step = 1e-2
        up, down = listed(x + step * direction), listed(x - step * direction)
        for i, (t, a, b) in enumerate(zip(tangents, up, down)):
            want = (np.asarray(a) - np.asarray(b)) / (2 * step)
            scale = max(1.0, float(np.abs(want).max()))
            np.testing.assert_allclose(
                np.asarray(t), want, atol=4e-3 * scale, err_msg=f"output {i}"
            )
        weights = [drawn(r, v) for v in values]
        _, (gradient,) = um.vjp(listed, [x], weights)
        assert (gradient.shape, gradient.dtype) == (x.shape, x.dtype)
        forward = sum(inner(w, t) for w, t in zip(weights, tangents))
        reverse = inner(gradient, direction)
        assert reverse == pytest.approx(forward, rel=2e-3, abs=2e-3)


def array(x: Any) -> Any:
    return um.array(np.asarray(x, np.float64), um.float64)


def test_symmetric_stays_symmetric() -> None:
    x = array([[4.0, 1.0], [1.0, 3.0]])
    for f in (
        lambda x: um.sum(L.cholesky(x)),
        lambda x: um.sum(L.eigh(x)[1][:, 0] ** 3),
        lambda x: L.eigvalsh(x)[0],
    ):
        g = np.asarray(um.grad(f)(x))
        np.testing.assert_allclose(g, g.T, atol=1e-14)


def test_what_is_equal_does_not_turn() -> None:
    """Equal values have no derivatives of their vectors, but sums over them do, and none is NaN."""
    for f in lambda x: um.sum(L.eigvalsh(x)), lambda x: um.sum(L.svd(x, compute_uv=False)):
        np.testing.assert_allclose(np.asarray(um.grad(f)(um.eye(3))), np.eye(3), atol=1e-6)
    g = um.grad(lambda x: um.sum(um.square(L.svd(x)[0])))(um.eye(3))
    assert np.isfinite(np.asarray(g)).all()
    g = um.grad(lambda x: um.sum(um.square(L.svd(x)[0])))(um.zeros((3, 2)))
    assert np.isfinite(np.asarray(g)).all()


def test_norms_at_zero() -> None:
    """Subgradients: zero."""
    for ord, shape in (None, (3,)), (2, (3,)), (1, (3,)), ("fro", (2, 2)):
        g = um.grad(lambda x, o=ord: L.norm(x, o))(um.zeros(shape))
        np.testing.assert_array_equal(np.asarray(g), np.zeros(shape))


def test_closed_forms() -> None:
    """Gradients that have a formula."""
    x = rng("closed").standard_normal((4, 4)) + 4 * np.eye(4)
    inverse = np.linalg.inv(x)
    a = array(x)
    np.testing.assert_allclose(
        np.asarray(um.grad(lambda a: L.slogdet(a)[1])(a)), inverse.T, rtol=1e-10
    )
    np.testing.assert_allclose(
        np.asarray(um.grad(L.det)(a)), np.linalg.det(x) * inverse.T, rtol=1e-10
    )
    np.testing.assert_allclose(
        np.asarray(um.grad(lambda a: um.trace(L.inv(a)))(a)),
        -(inverse @ inverse).T,
        rtol=1e-9,
        atol=1e-12,
    )


def test_hessian_of_logdet() -> None:
    """The second derivative of log det along symmetric directions is -tr(x^-1 d x^-1 e)."""
    r = rng("hessian")
    x, d, e = (r.standard_normal((3, 3)) for _ in range(3))
    x = x @ x.T + np.eye(3)
    slope = lambda a: um.sum(um.grad(lambda a: L.slogdet(a)[1])(a) * array(d))
    got = um.sum(um.grad(slope)(array(x)) * array(e)).item()
    i = np.linalg.inv(x)
    assert got == pytest.approx(-np.trace(i @ d @ i @ e), rel=1e-9)


def test_pinv_of_equal_singular_values() -> None:
    """Its derivative does not need them apart, unlike that of their vectors; nor full rank."""
    d = rng("pinv").standard_normal((3, 2))
    step = 1e-6
    for x, moves in (
        (np.eye(3, 2), d),
        (np.ones((3, 2)), np.ones((3, 2)) * [[1, 2]] + np.ones((3, 1))),
    ):
        _, (got,) = um.jvp(L.pinv, [array(x)], [array(moves)])
        want = (np.linalg.pinv(x + step * moves) - np.linalg.pinv(x - step * moves)) / (2 * step)
        np.testing.assert_allclose(np.asarray(got), want, atol=1e-7)
        weight = array(rng("weight").standard_normal((2, 3)))
        _, (g,) = um.vjp(L.pinv, [array(x)], [weight])
        assert inner(g, moves) == pytest.approx(inner(weight, got), rel=1e-9)
