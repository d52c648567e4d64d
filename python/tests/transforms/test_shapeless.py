"""Functions compiled shapeless, against mlx: which can be, how often they are traced, and what they give for other sizes."""

from collections.abc import Callable
from typing import Any

import mlx.core as mlx
import numpy as np
import pytest
from support.compare import assert_close
from support.harness import rng

import ultramarine as um

SIZES = [(4, 4), (8, 8), (2, 6), (6, 2), (1, 4), (5, 3)]

Function = Callable[[Any, Any], Any]

# Right for every size in both.
FOLLOW: dict[str, Function] = {
    "numbers": lambda mx, x: x * 2 + 1,
    "exp": lambda mx, x: mx.exp(x) + x,
    "astype": lambda mx, x: x.astype(mx.float16),
    "sum": lambda mx, x: x.sum(),
    "sum over an axis": lambda mx, x: x.sum(axis=1),
    "mean": lambda mx, x: x.mean(),
    "mean over an axis": lambda mx, x: x.mean(axis=1),
    "var": lambda mx, x: x.var(axis=1),
    "std": lambda mx, x: mx.std(x),
    "less its mean": lambda mx, x: x - x.mean(axis=1, keepdims=True),
    "max": lambda mx, x: x.max(axis=1),
    "argmax": lambda mx, x: mx.argmax(x, axis=1),
    "all": lambda mx, x: (x > 0).all(),
    "softmax": lambda mx, x: mx.softmax(x, axis=-1),
    "logsumexp": lambda mx, x: mx.logsumexp(x, axis=-1),
    "matmul": lambda mx, x: x @ x.T,
    "addmm": lambda mx, x: mx.addmm(x, x, x.T @ x),
    "tensordot": lambda mx, x: mx.tensordot(x, x.T, 1),
    "einsum": lambda mx, x: mx.einsum("ij,kj->ik", x, x),
    "inner": lambda mx, x: mx.inner(x, x),
    "transpose": lambda mx, x: x.T,
    "moveaxis": lambda mx, x: mx.moveaxis(x, 0, 1),
    "expand_dims": lambda mx, x: mx.expand_dims(x, 1),
    "squeeze": lambda mx, x: mx.squeeze(mx.expand_dims(x, 0), 0),
    "new axis": lambda mx, x: x[None],
    "flatten": lambda mx, x: mx.flatten(x),
    "reshape(-1)": lambda mx, x: x.reshape(-1),
    "concatenate": lambda mx, x: mx.concatenate([x, x], axis=0),
    "stack": lambda mx, x: mx.stack([x, x]),
    "take_along_axis": lambda mx, x: mx.take_along_axis(x, mx.argsort(x, axis=1), axis=1),
    "sort": lambda mx, x: mx.sort(x, axis=1),
    "argsort": lambda mx, x: mx.argsort(x),
    "cumsum": lambda mx, x: mx.cumsum(x, axis=0),
    "logcumsumexp": lambda mx, x: mx.logcumsumexp(x, axis=0),
    "zeros_like": lambda mx, x: x + mx.zeros_like(x),
    "full": lambda mx, x: mx.full((2,), x.sum()),
    "where": lambda mx, x: mx.where(x > 0, x, 0),
    "clip": lambda mx, x: mx.clip(x, 0, 1),
    "isclose": lambda mx, x: mx.isclose(x, x + 1),
    "array_equal": lambda mx, x: mx.array_equal(x, x),
    "stop_gradient": lambda mx, x: mx.stop_gradient(x) * x,
    "contiguous": lambda mx, x: mx.contiguous(x.T),
    "divmod": lambda mx, x: mx.divmod(x, 2)[0],
    "norm": lambda mx, x: mx.linalg.norm(x),
    "grad of squares": lambda mx, x: mx.grad(lambda y: (y * y).sum())(x),
    "grad of a mean": lambda mx, x: mx.grad(lambda y: (y * y).mean())(x),
    "grad of softmax": lambda mx, x: mx.grad(lambda y: (mx.softmax(y, axis=-1) * y).sum())(x),
    "a size that is read": lambda mx, x: x * x.shape[0],
}

# mlx takes the sizes of the first call for all, where ours follow the argument.
BETTER: dict[str, Function] = {
    "less its first row": lambda mx, x: x + x[0],
    "x[0]": lambda mx, x: x[0],
    "x[-1]": lambda mx, x: x[-1],
    "take": lambda mx, x: mx.take(x, mx.array([0]), axis=0),
    "diagonal": lambda mx, x: mx.diagonal(x),
    "matvec": lambda mx, x: x @ x[0],
    "outer": lambda mx, x: mx.outer(x, x),
    "atleast_3d": lambda mx, x: mx.atleast_3d(x),
}

# Nobody can tell the shape.
REFUSED: dict[str, Function] = {
    "x[:2]": lambda mx, x: x[:2],
    "x[:, ::2]": lambda mx, x: x[:, ::2],
    "topk": lambda mx, x: mx.topk(x, 2),
    "split": lambda mx, x: mx.split(x, 2, axis=0)[0],
    "pad": lambda mx, x: mx.pad(x, 1),
    "roll": lambda mx, x: mx.roll(x, 1, axis=0),
    "fft": lambda mx, x: mx.fft.fft(x),
    "as_strided": lambda mx, x: mx.as_strided(x, (2, 2)),
    "random": lambda mx, x: x + mx.random.normal(x.shape, key=mx.random.key(0)),
}


def data(shape: tuple[int, ...]) -> np.ndarray:
    return rng("shapeless").standard_normal(shape).astype(np.float32)


def run(mx: Any, f: Function, sizes: list[tuple[int, ...]]) -> tuple[list[np.ndarray], int]:
    """Results for all sizes of one compiled function, and how often it was traced."""
    count = 0

    def counted(x: Any) -> Any:
        nonlocal count
        count += 1
        return f(mx, x)

    compiled = mx.compile(counted, shapeless=True)
    return [np.array(compiled(mx.array(data(s)))) for s in sizes], count


def check(f: Function, got: list[np.ndarray]) -> None:
    for shape, value in zip(SIZES, got, strict=True):
        assert_close(value, f(um, um.array(data(shape))), where=str(shape))


@pytest.mark.parametrize("name", FOLLOW)
def test_follows_as_in_mlx(name: str) -> None:
    f = FOLLOW[name]
    ours, traced = run(um, f, SIZES)
    theirs, _ = run(mlx, f, SIZES)
    assert traced == 1
    if name != "a size that is read":
        check(f, ours)
    for shape, a, b in zip(SIZES, ours, theirs, strict=True):
        assert a.shape == b.shape, shape
        np.testing.assert_allclose(
            a.astype(np.float64), b.astype(np.float64), rtol=2e-3, atol=1e-5, err_msg=str(shape)
        )


@pytest.mark.parametrize("name", BETTER)
def test_follows(name: str) -> None:
    ours, traced = run(um, BETTER[name], SIZES)
    assert traced == 1
    check(BETTER[name], ours)
    # The first size is right in mlx too.
    theirs, _ = run(mlx, BETTER[name], SIZES[:1])
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_in_mlx(name: str) -> None:
    for mx in (um, mlx):
        with pytest.raises(ValueError, match="cannot infer output shapes"):
            run(mx, REFUSED[name], SIZES)


def test_another_number_of_dimensions_or_dtype_is_traced() -> None:
    for mx in (um, mlx):
        count = []
        f = mx.compile(lambda x, c=count: c.append(x.ndim) or x * 2, shapeless=True)
        for shape in [(2,), (3,), (2, 2), (5,), (4, 1)]:
            f(mx.zeros(shape))
        f(mx.zeros((7,), mx.int32))
        assert count == [1, 2, 1]


def test_sizes_that_do_not_fit_are_an_error() -> None:
    f = um.compile(lambda x, y: x @ y, shapeless=True)
    assert f(um.zeros((2, 3)), um.zeros((3, 4))).shape == (2, 4)
    with pytest.raises(ValueError):
        f(um.zeros((2, 3)), um.zeros((4, 4)))
    assert f(um.zeros((5, 1)), um.zeros((1, 2))).shape == (5, 2)


def test_transforms_outside_and_inside() -> None:
    f = um.compile(lambda x: um.softmax(x, axis=-1) * x, shapeless=True)
    whole = lambda x: um.softmax(x, axis=-1) * x
    for shape in SIZES:
        x = um.array(data(shape))
        got = um.grad(lambda x: f(x).sum())(x)
        want = um.grad(lambda x: whole(x).sum())(x)
        assert um.array_equal(got, want), shape
        assert um.allclose(um.vmap(f)(x), um.vmap(whole)(x)), shape


# Functions of two operands, `in_axes`, and operands' shapes with batches of n.
MAPPED: dict[str, tuple[Callable[[Any], Any], tuple[Any, Any], Callable[[int], Any]]] = {
    "matrices by a matrix": (lambda mx: mx.matmul, (0, None), lambda n: [(n, 3, 4), (4, 5)]),
    "matrices by matrices": (lambda mx: mx.matmul, (0, None), lambda n: [(n, 3, 4), (7, 4, 5)]),
    "vectors by matrices": (lambda mx: mx.matmul, (0, None), lambda n: [(n, 4), (7, 4, 5)]),
    "matrices by a vector": (lambda mx: mx.matmul, (0, None), lambda n: [(n, 3, 4), (4,)]),
    "a matrix by matrices": (lambda mx: mx.matmul, (None, 0), lambda n: [(3, 4), (n, 4, 5)]),
    "shared matrices": (lambda mx: mx.matmul, (None, 1), lambda n: [(7, 3, 4), (4, n, 5)]),
    "both": (lambda mx: mx.matmul, (2, 0), lambda n: [(3, 4, n), (n, 4, 5)]),
    "take_along_axis of one": (
        lambda mx: lambda x, y: mx.take_along_axis(x, y.astype(mx.int32) % 3, axis=0),
        (None, 0),
        lambda n: [(3, 4), (n, 2, 4)],
    ),
    "take_along_axis by one": (
        lambda mx: lambda x, y: mx.take_along_axis(x, y.astype(mx.int32) % 3, axis=0),
        (0, None),
        lambda n: [(n, 3, 4), (2, 4)],
    ),
    "put_along_axis": (
        lambda mx: lambda x, y: mx.put_along_axis(x, mx.argsort(y, axis=0), y, axis=0),
        (None, 0),
        lambda n: [(3, 4), (n, 3, 4)],
    ),
}


@pytest.mark.parametrize("name", MAPPED)
def test_mapped_over_batches_of_other_sizes(name: str) -> None:
    function, in_axes, shapes = MAPPED[name]
    traced = []

    def counted(x: Any, y: Any) -> Any:
        traced.append(1)
        return function(um)(x, y)

    f = um.compile(um.vmap(counted, in_axes=in_axes), shapeless=True)
    plain = um.vmap(function(um), in_axes=in_axes)
    for n in (2, 6, 1, 3, 0):
        operands = [um.array(data(s)) for s in shapes(n)]
        got, want = f(*operands), plain(*operands)
        assert got.shape == want.shape and um.allclose(got, want, rtol=1e-5, atol=1e-6), n
        # Without vmap, too.
        each = [
            function(um)(
                *(x if a is None else um.take(x, i, axis=a) for x, a in zip(operands, in_axes))
            )
            for i in range(n)
        ]
        assert n == 0 or um.allclose(got, um.stack(each), rtol=1e-5, atol=1e-6), n
    assert len(traced) == 1
