"""Transforms of the operation against those of the composed expression."""

import pytest
from helpers import ALPHA, BETA, composed, near, same, values
from ultramarine_axpby import axpby

import ultramarine as um

X, Y = values((3, 4), "float32", 2), values((3, 4), "float32", 3)
T, U = values((3, 4), "float32", 4), values((3, 4), "float32", 5)


def custom(x, y):
    return axpby(x, y, ALPHA, BETA)


def all_same(got, want):
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        same(g, w)


@pytest.mark.parametrize("argnums", [0, 1, (0, 1)], ids=str)
def test_grad(device, argnums):
    def loss(function):
        return lambda x, y: um.sum(um.square(function(x, y)))

    got = um.grad(loss(custom), argnums=argnums)(X, Y)
    want = um.grad(loss(composed), argnums=argnums)(X, Y)
    all_same([got] if argnums in (0, 1) else got, [want] if argnums in (0, 1) else want)


@pytest.mark.parametrize("shapes", [((3, 1), (4,)), ((), (2, 3)), ((3, 4), ())], ids=str)
def test_vjp_of_what_was_broadcast(device, shapes):
    x, y = values(shapes[0], "float32"), values(shapes[1], "float32", 1)
    cotangent = um.ones(um.broadcast_shapes(*shapes))
    got, want = (um.vjp(f, [x, y], [cotangent])[1] for f in (custom, composed))
    # Of the composed one the factors come in behind the sums.
    for g, w in zip(got, want, strict=True):
        near(g, w)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64"])
def test_vjp_of_dtypes(dtype):
    with um.stream(um.cpu):
        x, y, c = (values((3, 4), dtype, i) for i in range(3))
        all_same(*(um.vjp(f, [x, y], [c])[1] for f in (custom, composed)))


def test_jvp_of_both_arguments(device):
    all_same(*(um.jvp(f, [X, Y], [T, U])[1] for f in (custom, composed)))


def test_jvp_of_each_argument(device):
    all_same(*(um.jvp(lambda x, f=f: f(x, Y), [X], [T])[1] for f in (custom, composed)))
    all_same(*(um.jvp(lambda y, f=f: f(X, y), [Y], [U])[1] for f in (custom, composed)))


def test_second_derivatives(device):
    def hessian_vector(function):
        gradient = um.grad(lambda x: um.sum(um.exp(function(x, Y) * 0.01)))
        return um.jvp(gradient, [X], [T])[1]

    all_same(hessian_vector(custom), hessian_vector(composed))


@pytest.mark.parametrize(
    ("in_axes", "shapes"),
    [
        ((0, 0), ((5, 3), (5, 3))),
        ((0, None), ((5, 3), (3,))),
        ((None, 0), ((3,), (5, 3))),
        ((1, 0), ((3, 5), (5, 3))),
        ((-1, 1), ((3, 4, 5), (3, 5, 4))),
        ((0, 1), ((5, 3), (2, 5, 3))),
        ((None, 2), ((3, 1), (3, 4, 5))),
        ((0, 0), ((5,), (5, 2, 3))),
    ],
    ids=str,
)
@pytest.mark.parametrize("out_axes", [0, 1, -1])
def test_vmap(device, in_axes, shapes, out_axes):
    x, y = values(shapes[0], "float32"), values(shapes[1], "float32", 1)
    same(*(um.vmap(f, in_axes=in_axes, out_axes=out_axes)(x, y) for f in (custom, composed)))


def test_vmap_of_vmap_and_of_grad(device):
    x, y = values((4, 5, 3), "float32"), values((5, 3), "float32", 1)

    def both(function):
        inner = um.vmap(function, in_axes=(0, 0))
        gradient = um.grad(lambda x, y: um.sum(function(x, y) * x))
        return um.vmap(inner, in_axes=(0, None))(x, y), um.vmap(gradient)(x[0], y)

    all_same(both(custom), both(composed))


def test_compile(device):
    def model(function):
        return lambda x, y: um.sum(um.square(function(x, y)) + function(x, y))

    got = um.compile(model(custom))(X, Y)
    same(got, model(custom)(X, Y))
    got = um.compile(um.grad(model(custom), argnums=(0, 1)))(X, Y)
    all_same(got, um.grad(model(custom), argnums=(0, 1))(X, Y))
    got = um.grad(um.compile(model(custom)))(X, Y)
    same(got, um.grad(model(custom))(X, Y))


def test_checkpoint(device):
    got = um.grad(um.checkpoint(lambda x: um.sum(um.square(custom(x, Y)))))(X)
    same(got, um.grad(lambda x: um.sum(um.square(composed(x, Y))))(X))
