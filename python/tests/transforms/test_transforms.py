"""Transforms: against mlx, nested in any order, over trees and chosen arguments."""

from typing import Any

import numpy as np
import pytest
from support.harness import Tally, exactly, given

import ultramarine as um

pytestmark = pytest.mark.ops

# Differentiable functions of x (4, 5) and y (4, 5), both between 0.05 and 0.98.
FUNCTIONS: dict[str, Any] = {
    "add": lambda mx, x, y: x + y,
    "subtract": lambda mx, x, y: x - y,
    "multiply": lambda mx, x, y: x * y,
    "divide": lambda mx, x, y: x / y,
    "power": lambda mx, x, y: x**y,
    "remainder": lambda mx, x, y: x % (y + 0.1),
    "maximum": lambda mx, x, y: mx.maximum(x, y),
    "minimum": lambda mx, x, y: mx.minimum(x, y),
    "logaddexp": lambda mx, x, y: mx.logaddexp(x, y),
    "arctan2": lambda mx, x, y: mx.arctan2(x, y),
    "where": lambda mx, x, y: mx.where(x > y, x * 2, y * 3),
    "clip": lambda mx, x, y: mx.clip(x, 0.2, 0.6) * y,
    "matmul": lambda mx, x, y: x @ y.T,
    "addmm": lambda mx, x, y: mx.addmm(x @ x.T, x, y.T, 0.5, 2.0),
    "sum": lambda mx, x, y: x.sum(axis=1) * y.sum(axis=1),
    "mean": lambda mx, x, y: mx.mean(x * y, axis=0, keepdims=True),
    "var": lambda mx, x, y: mx.var(x * y, axis=0),
    "std": lambda mx, x, y: mx.std(x + y, axis=0),
    "prod": lambda mx, x, y: mx.prod(x, axis=1) + mx.prod(y),
    "max": lambda mx, x, y: mx.max(x * y, axis=1),
    "min": lambda mx, x, y: mx.min(x + y, axis=0),
    "logsumexp": lambda mx, x, y: mx.logsumexp(x * y, axis=1),
    "softmax": lambda mx, x, y: mx.softmax(x, axis=-1) * y,
    "cumsum": lambda mx, x, y: mx.cumsum(x, axis=0) * mx.cumsum(y, axis=1, reverse=True),
    "cumprod": lambda mx, x, y: mx.cumprod(x + y, axis=1),
    "cummax": lambda mx, x, y: mx.cummax(x * y, axis=1),
    "logcumsumexp": lambda mx, x, y: mx.logcumsumexp(x * y, axis=1),
    "sort": lambda mx, x, y: mx.sort(x, axis=0) * y,
    "reshape": lambda mx, x, y: x.reshape(5, 4) @ y.reshape(4, 5),
    "transpose": lambda mx, x, y: x.T * y.reshape(5, 4),
    "broadcast": lambda mx, x, y: mx.broadcast_to(x[0], (3, 4, 5)) * y,
    "squeeze": lambda mx, x, y: mx.squeeze(mx.expand_dims(x, 1), 1) * y,
    "slice": lambda mx, x, y: x[1:3, ::-2] * y[:2, :3],
    "index": lambda mx, x, y: x[mx.array([0, 0, 3])] * y[1],
    "take": lambda mx, x, y: mx.take(x, mx.array([1, 1, 2]), axis=1) * y[:, :3],
    "take_along": lambda mx, x, y: mx.take_along_axis(x, mx.array([[0], [4], [2], [2]]), 1) * y,
    "at add": lambda mx, x, y: x.at[mx.array([0, 0, 1])].add(y[:3]),
    "at multiply": lambda mx, x, y: x.at[mx.array([0, 2])].multiply(y[:2]),
    "at maximum": lambda mx, x, y: x.at[mx.array([0, 2])].maximum(y[:2]),
    "assign": lambda mx, x, y: assigned(mx, x * 1, y),
    "concatenate": lambda mx, x, y: mx.concatenate([x, y, x], axis=1) ** 2,
    "stack": lambda mx, x, y: mx.stack([x, y]) * x,
    "split": lambda mx, x, y: mx.split(x, 2)[0] * mx.split(y, [1, 3])[1],
    "diagonal": lambda mx, x, y: mx.diagonal(x @ y.T),
    "astype": lambda mx, x, y: (x.astype(mx.float16) * 1).astype(mx.float32) * y,
    "stop_gradient": lambda mx, x, y: mx.stop_gradient(x) * x * y,
    "tanh gelu": lambda mx, x, y: 0.5 * x * (1 + mx.tanh(0.79788456 * (x + 0.044715 * x**3))) * y,
} | {
    name: (lambda mx, x, y, name=name: getattr(mx, name)(x) * y)
    for name in (
        "abs", "negative", "sign", "square", "sqrt", "rsqrt", "reciprocal", "exp", "expm1", "log",
        "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh",
        "cosh", "tanh", "arcsinh", "arctanh", "erf", "erfinv", "sigmoid", "floor", "ceil", "round",
    )
}  # fmt: skip


def assigned(mx: Any, x: Any, y: Any) -> Any:
    x[1:3] = y[:2] * 2
    return x * x


def inputs() -> tuple:
    x = given("float32", (4, 5), domain="unit", key="tx")
    y = given("float32", (4, 5), domain="unit", key="ty")
    for i in (x, y):
        np.abs(i.data, out=i.data)
        np.maximum(i.data, 0.05, out=i.data)
    return x, y


def scalar(mx: Any, f: Any) -> Any:
    """The function with its result weighted unevenly and summed."""

    def g(x, y):
        out = f(mx, x, y)
        weights = mx.arange(1, out.size + 1, dtype=mx.float32).reshape(out.shape) / out.size
        return (out * weights).sum()

    return g


def both_grads(mx: Any, f: Any) -> Any:
    return mx.grad(scalar(mx, f), argnums=(0, 1))


NESTINGS: dict[str, Any] = {
    "value_and_grad": lambda mx, f, x, y: mx.value_and_grad(scalar(mx, f), argnums=(0, 1))(x, y),
    "vjp": lambda mx, f, x, y: mx.vjp(
        lambda x, y: f(mx, x, y), [x, y], [mx.ones_like(f(mx, x, y))]
    ),
    "jvp": lambda mx, f, x, y: mx.jvp(lambda x, y: f(mx, x, y), [x, y], [y, x]),
    "vmap": lambda mx, f, x, y: mx.vmap(lambda x, y: f(mx, x, y))(
        mx.stack([x, y]), mx.stack([y, y])
    ),
    "vmap of one": lambda mx, f, x, y: mx.vmap(
        lambda x: f(mx, x, y), in_axes=2, out_axes=1
    )(mx.stack([x, y], axis=2)),
    "vmap of grad": lambda mx, f, x, y: mx.vmap(both_grads(mx, f))(
        mx.stack([x, y]), mx.stack([y, x])
    ),
    "grad of vmap": lambda mx, f, x, y: mx.grad(
        lambda x: mx.vmap(lambda y: f(mx, x, y))(mx.stack([y, y * 0.9])).sum()
    )(x),
    "grad of grad": lambda mx, f, x, y: mx.grad(
        lambda x: (mx.grad(scalar(mx, f))(x, y) * y).sum()
    )(x),
    "jvp of grad": lambda mx, f, x, y: mx.jvp(
        lambda x: mx.grad(scalar(mx, f))(x, y), [x], [y]
    ),
    "grad of jvp": lambda mx, f, x, y: mx.grad(
        lambda x: mx.jvp(lambda x: f(mx, x, y), [x], [y])[1][0].sum()
    )(x),
}  # fmt: skip


@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_against_mlx(tally: Tally, function: str, nesting: str) -> None:
    f = FUNCTIONS[function]
    x, y = inputs()
    case = lambda mx, x, y: NESTINGS[nesting](mx, f, x, y)
    tally.same(f"{function} {nesting}", case, x, y, ulps=2048, scale="largest")


OF_INTEGERS: dict[str, Any] = {
    "max": lambda mx, x: mx.max(x),
    "min over rows": lambda mx, x: mx.min(x, axis=0),
    "prod": lambda mx, x: mx.prod(x, axis=1),
    "cumprod": lambda mx, x: mx.cumprod(x, axis=0),
    "cummax": lambda mx, x: mx.cummax(x, axis=0),
    "floor": lambda mx, x: mx.floor(x),
    "ceil": lambda mx, x: mx.ceil(x),
    "round": lambda mx, x: mx.round(x),
    "round to decimals": lambda mx, x: mx.round(x, 1),
    "remainder": lambda mx, x: x % 3,
}


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
@pytest.mark.parametrize("function", OF_INTEGERS)
def test_derivatives_of_integers(tally: Tally, function: str, dtype: str) -> None:
    f = OF_INTEGERS[function]
    x = exactly([[1, 2, 3], [3, 1, 2], [2, 3, 5]], dtype)
    t = exactly([[4, 0, 3], [7, 1, 2], [2, 9, 6]], dtype)
    ones = lambda mx, x: mx.ones_like(f(mx, x))
    pulled = lambda mx, x: mx.vjp(lambda x: [f(mx, x)], [x], [ones(mx, x)])
    tally.same("vjp", pulled, x, ulps=4)
    # Of running products mlx has no forward derivatives.
    tally.same("jvp", lambda mx, x, t: mx.jvp(lambda x: [f(mx, x)], [x], [t]), x, t, ulps=4)


CUTS: dict[str, Any] = {
    "split": lambda mx, x: mx.split(x, 3, axis=1),
    "split at": lambda mx, x: mx.split(x, [1, 4], axis=1),
    "unstack": lambda mx, x: mx.unstack(x, axis=1),
    "steps": lambda mx, x: [x[:, i] for i in range(x.shape[1])],
    "steps backwards": lambda mx, x: [x[:, i] for i in reversed(range(x.shape[1]))],
    "some steps": lambda mx, x: [x[:, 4], x[:, 1], x[:, 4], x[1:2]],
    "windows": lambda mx, x: [x[:, i : i + 3] for i in range(4)],
    "every other": lambda mx, x: [x[:, ::2], x[:, 1::2], x[::-1]],
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
@pytest.mark.parametrize("cut", CUTS)
def test_slices(tally: Tally, cut: str, dtype: str) -> None:
    """Gradients of arrays that are cut, in every transform."""

    def loss(mx: Any, x: Any) -> Any:
        parts = CUTS[cut](mx, x)
        return sum(mx.real(p * p).sum() * (i + 1) for i, p in enumerate(parts))

    x = given(dtype, (2, 6, 3), domain="few")
    grad = lambda mx, x: mx.vjp(lambda x: [loss(mx, x)], [x], [loss(mx, x) * 0 + 1])[1][0]
    tally.same("vjp", grad, x)
    tally.same("vjp of vjp", lambda mx, x: mx.vjp(lambda x: [grad(mx, x)], [x], [x])[1], x)
    tally.same("vmap", lambda mx, x: mx.vmap(lambda x: grad(mx, x))(mx.stack([x, x + x])), x)
    tally.same("compiled", lambda mx, x: mx.compile(lambda x: grad(mx, x))(x), x)
    tally.same("checkpoint", lambda mx, x: mx.checkpoint(lambda x: grad(mx, x))(x), x)


def test_vmap_over_everything(tally: Tally) -> None:
    """Functions of a batch equal a loop over the batch, for in_axes and out_axes of every kind."""
    x = given("float32", (3, 4, 5))
    for in_axes in (0, 1, 2, -1):
        for out_axes in (0, 1, -1):
            for name, f in {
                "sum": lambda mx, r: r.sum(axis=0),
                "sort": lambda mx, r: mx.sort(r, axis=0),
                "argmax": lambda mx, r: mx.argmax(r, axis=-1),
                "matmul": lambda mx, r: r @ r.T,
                "index": lambda mx, r: r[mx.array([0, 1, 1])],
                "pair": lambda mx, r: r.sum(axis=1),
            }.items():

                def case(mx, x, f=f, i=in_axes, o=out_axes):
                    return mx.vmap(lambda r: f(mx, r), in_axes=i, out_axes=o)(x)

                tally.same(f"{name} {in_axes} {out_axes}", case, x, ulps=64, scale="largest")


def test_trees(tally: Tally) -> None:
    x = given("float32", (3,))

    def case(mx, x):
        tree = {"a": x, "b": [x * 2, (x * 3, {"c": x + 1})], "n": 3}

        def f(tree, scale=1.0):
            deep = tree["b"][1][1]["c"]
            return (tree["a"] * tree["b"][0] * deep).sum() * scale, {"aux": deep}

        (value, aux), grads = mx.value_and_grad(f)({k: v for k, v in tree.items() if k != "n"})
        del grads["b"][1]  # mlx gives zeros for what was not used; compared below
        return value, aux, grads

    tally.same("value_and_grad", case, x, ulps=8)

    def unused(mx, x):
        return mx.grad(lambda t: t["a"].sum())({"a": x, "b": (x, [x])})

    tally.same("unused parts get zeros", unused, x)

    def named(mx, x):
        f = lambda x, *, w, b=None: (x * w).sum() + (0 if b is None else b.sum())
        return (
            mx.grad(f, argnames="w")(x, w=x * 2),
            mx.grad(f, argnames=["w", "b"])(x, w=x * 2, b=x),
            mx.grad(f, argnums=0, argnames=["w"])(x, w=x * 2),
            mx.grad(f, argnums=(0,), argnames=["b"])(x, w=x, b=x),
        )

    tally.same("argnames", named, x)

    def axes(mx, x):
        f = lambda t, y: {"s": t["p"] + y, "d": t["q"] - y}
        return mx.vmap(f, in_axes=({"p": 0, "q": 1}, None), out_axes={"s": 0, "d": 1})(
            {"p": mx.stack([x, x + 1]), "q": mx.stack([x, x * 2], axis=1)}, x
        )

    tally.same("vmap over trees", axes, x)


def test_auxiliary_values(tally: Tally) -> None:
    x = given("float32", (3,))
    f = lambda x: (x.sum(), x * 2, {"more": x})
    tally.same("value_and_grad", lambda mx, x: mx.value_and_grad(f)(x), x)
    tally.same("grad", lambda mx, x: mx.grad(lambda x: (x * x).sum())(x), x)


def test_higher_derivatives() -> None:
    """x**6 five times, against its closed form."""
    f = lambda x: x**6
    factor = 1.0
    for n in range(5):
        assert f(um.array(1.5)).item() == pytest.approx(factor * 1.5 ** (6 - n), rel=1e-4)
        f, factor = um.grad(f), factor * (6 - n)


def test_grad_sees_no_later_change() -> None:
    """A kept function of arrays differentiates at the values it is given."""
    step = um.value_and_grad(lambda w, x: ((w * x) ** 2).sum())
    w, x = um.array([1.0, 2.0]), um.array([3.0, 4.0])
    for _ in range(3):
        value, grad = step(w, x)
        assert np.allclose(np.array(grad), 2 * np.array(w) * np.array(x) ** 2, rtol=1e-5)
        assert value.item() == pytest.approx(float(((np.array(w) * np.array(x)) ** 2).sum()))
        w = w - 0.01 * grad
