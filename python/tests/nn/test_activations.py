"""Activations: values, dtypes, gradients and layers as in mlx, and where mlx's are wrong as in float64."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.compare import assert_close
from support.harness import to_numpy

import ultramarine as mx
from ultramarine import nn

from .pairs import OURS, THEIRS, Case, assert_same_layer, converted, normal, ordinary, pair, same

# Functions of one array.
NAMES = [
    "celu", "elu", "gelu", "gelu_approx", "gelu_fast_approx", "glu", "hard_shrink", "hard_tanh",
    "hardswish", "leaky_relu", "log_sigmoid", "log_softmax", "mish", "relu", "relu2", "relu6", "selu",
    "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "step", "tanh",
]  # fmt: skip


def by_name(name: str) -> Callable[..., Any]:
    return lambda lib, x: getattr(lib.nn, name)(x)


CALLS: dict[str, Callable[..., Any]] = {name: by_name(name) for name in NAMES} | {
    "celu 2": lambda lib, x: lib.nn.celu(x, alpha=2.0),
    "elu 0.3": lambda lib, x: lib.nn.elu(x, 0.3),
    "glu of axis 0": lambda lib, x: lib.nn.glu(x, axis=0),
    "hard_shrink 1": lambda lib, x: lib.nn.hard_shrink(x, 1.0),
    "hard_tanh of other limits": lambda lib, x: lib.nn.hard_tanh(x, -0.25, max_val=2.0),
    "leaky_relu 0.2": lambda lib, x: lib.nn.leaky_relu(x, negative_slope=0.2),
    "log_softmax of axis 0": lambda lib, x: lib.nn.log_softmax(x, axis=0),
    "log_softmax of both axes": lambda lib, x: lib.nn.log_softmax(x, axis=(0, 1)),
    "softmax of axis 0": lambda lib, x: lib.nn.softmax(x, axis=0),
    "softmin of axis 0": lambda lib, x: lib.nn.softmin(x, axis=0),
    "softshrink 1": lambda lib, x: lib.nn.softshrink(x, 1.0),
    "step 0.5": lambda lib, x: lib.nn.step(x, 0.5),
    "prelu": lambda lib, x: lib.nn.prelu(x, lib.mx.array([0.25, 0.5, 0.0, -1.0])),
}  # fmt: skip

LAYERS: dict[str, Case] = {
    "ReLU": lambda lib: lib.nn.ReLU(),
    "ReLU2": lambda lib: lib.nn.ReLU2(),
    "ReLU6": lambda lib: lib.nn.ReLU6(),
    "LeakyReLU": lambda lib: lib.nn.LeakyReLU(),
    "LeakyReLU 0.3": lambda lib: lib.nn.LeakyReLU(negative_slope=0.3),
    "PReLU": lambda lib: lib.nn.PReLU(),
    "PReLU of 4": lambda lib: lib.nn.PReLU(4, init=0.1),
    "ELU": lambda lib: lib.nn.ELU(),
    "ELU 2": lambda lib: lib.nn.ELU(2.0),
    "CELU": lambda lib: lib.nn.CELU(),
    "CELU 2": lambda lib: lib.nn.CELU(alpha=2.0),
    "SELU": lambda lib: lib.nn.SELU(),
    "SiLU": lambda lib: lib.nn.SiLU(),
    "GELU": lambda lib: lib.nn.GELU(),
    "GELU precise": lambda lib: lib.nn.GELU("precise"),
    "GELU tanh": lambda lib: lib.nn.GELU("tanh"),
    "GELU fast": lambda lib: lib.nn.GELU(approx="fast"),
    "GLU": lambda lib: lib.nn.GLU(),
    "GLU of axis 0": lambda lib: lib.nn.GLU(axis=0),
    "Sigmoid": lambda lib: lib.nn.Sigmoid(),
    "LogSigmoid": lambda lib: lib.nn.LogSigmoid(),
    "Softmax": lambda lib: lib.nn.Softmax(),
    "Softmin": lambda lib: lib.nn.Softmin(),
    "LogSoftmax": lambda lib: lib.nn.LogSoftmax(),
    "Softplus": lambda lib: lib.nn.Softplus(),
    "Softsign": lambda lib: lib.nn.Softsign(),
    "Softshrink": lambda lib: lib.nn.Softshrink(),
    "Softshrink 1": lambda lib: lib.nn.Softshrink(lambd=1.0),
    "HardShrink": lambda lib: lib.nn.HardShrink(),
    "HardShrink 1": lambda lib: lib.nn.HardShrink(1.0),
    "HardTanh": lambda lib: lib.nn.HardTanh(),
    "Hardswish": lambda lib: lib.nn.Hardswish(),
    "Mish": lambda lib: lib.nn.Mish(),
    "Tanh": lambda lib: lib.nn.Tanh(),
}

# Rounded in each operation by mlx, at the end by ours.
BOUNDS = {"float32": 2e-6, "float16": 4e-3, "bfloat16": 4e-2, "float64": 2e-6}


@pytest.mark.parametrize("dtype", [*BOUNDS, "int32", "bool_"])
@pytest.mark.parametrize("name", CALLS)
def test_values_and_dtypes(name: str, dtype: str) -> None:
    if name in ("softmax of axis 0", "softmin of axis 0") and dtype not in BOUNDS:
        pytest.skip("mlx returns integers")
    ours, theirs = normal((6, 4), name)
    results = []
    for lib, x in ((OURS, ours), (THEIRS, theirs)):
        try:
            results.append(CALLS[name](lib, (3 * x).astype(getattr(lib.mx, dtype))))
        except Exception as error:
            results.append(type(error))
    if isinstance(results[1], type):
        assert results[0] is results[1]
        return
    bound = BOUNDS.get(dtype, 2e-6)
    assert_close(*results, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", [n for n in CALLS if not n.startswith("step")])
def test_gradients(name: str) -> None:
    x, y = normal((6, 4), name), normal((6, 4), name, "cotangent")
    found = []
    for side, lib in enumerate((OURS, THEIRS)):

        def loss(x: Any, lib: Any = lib, side: int = side) -> Any:
            out = CALLS[name](lib, 3 * x)
            return (out * y[side][: out.shape[0], : out.shape[1]]).sum()

        found.append(lib.mx.grad(loss)(x[side]))
    assert_close(*found, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    assert_same_layer(pair(LAYERS[name]), normal((6, 4), name))
    same(lambda lib: repr(LAYERS[name](lib)))
    same(lambda lib: ordinary(LAYERS[name](lib)))
    same(lambda lib: LAYERS[name](lib).parameters())


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_step(threshold: float) -> None:
    x = normal((7,))
    same(lambda lib: lib.nn.Step(threshold)(x[lib is THEIRS]))
    same(lambda lib: lib.nn.step(lib.mx.array([threshold, threshold - 1]), threshold))


@pytest.mark.parametrize(
    "case",
    [
        lambda lib: lib.nn.GELU("other"),
        lambda lib: lib.nn.GELU(None),
        lambda lib: lib.nn.glu(lib.mx.ones((3,))),
        lambda lib: lib.nn.softmax(lib.mx.ones((3,)), axis=1),
        lambda lib: lib.nn.ReLU()(lib.mx.ones((3,)), 3),
        lambda lib: lib.nn.relu("x"),
        lambda lib: lib.nn.relu(2.5),
        lambda lib: lib.nn.relu(-3),
        lambda lib: lib.nn.elu(2),
        lambda lib: lib.nn.prelu(lib.mx.ones((2, 3)), 0.5),
    ],
)
def test_odd_calls(case: Case) -> None:
    same(case)


def test_softmax_of_integers() -> None:
    """It is in float32 along any axis."""
    x = mx.array([[1, 2], [3, 4]])
    for axis in (0, 1):
        assert_close(nn.softmax(x, axis=axis), nn.softmax(x.astype(mx.float32), axis=axis))


def test_slopes_that_do_not_fit() -> None:
    """In mlx the compiled function does not check."""
    with pytest.raises(ValueError, match=r"\(3,\)"):
        nn.PReLU(3)(mx.ones((2, 4)))


EXTREMES = [0.0, -0.0, 1e-6, -1e-6, 30.0, -30.0, 1e3, -1e3, mx.inf, -mx.inf, mx.nan]


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("glu", "celu", "elu", "selu")])
def test_extreme_values(name: str) -> None:
    same_shape = [EXTREMES] if "soft" in name else [[v] for v in EXTREMES]
    found = [getattr(lib.nn, name)(lib.mx.array(same_shape)) for lib in (OURS, THEIRS)]
    assert_close(*found, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "alpha"), [("elu", 1.0), ("elu", 0.5), ("celu", 1.0), ("celu", 2.0), ("selu", None)]
)
def test_exponential_units_are_exact_and_have_gradients(name: str, alpha: float | None) -> None:
    """In mlx gradients of large numbers are NaN, and exp(x) - 1 loses the digits of small ones."""
    values = np.array([-100.0, -3.0, -1.0, -1e-5, -1e-8, 0.0, 1e-8, 1.0, 88.0, 100.0, 1e30])
    factor, a = (1.0507, 1.67326) if alpha is None else (1.0, alpha)
    width = alpha if name == "celu" and alpha is not None else 1.0
    low = np.minimum(values, 0) / width
    want = factor * np.where(values > 0, values, a * np.expm1(low))
    slope = factor * np.where(values > 0, 1.0, a / width * np.exp(low))
    args = () if alpha is None else (alpha,)
    function = getattr(nn, name)
    x = mx.array(values.astype(np.float32))
    np.testing.assert_allclose(to_numpy(function(x, *args)), want, rtol=1e-6)
    gradient = mx.grad(lambda x: function(x, *args).sum())(x)
    np.testing.assert_allclose(to_numpy(gradient), slope, rtol=1e-6, atol=1e-7)


def test_log_softmax_of_large_16_bit_numbers() -> None:
    """Differences to the maximum come before the logarithm, which would be rounded to units of 4 here."""
    x = mx.array([1000.0, 1004.0, 1008.0], mx.bfloat16)
    want = np.array([-8.0, -4.0, 0.0]) - np.log(1 + np.exp(-4.0) + np.exp(-8.0))
    np.testing.assert_allclose(to_numpy(nn.log_softmax(x)), want, atol=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_functions_can_be_copied_and_pickled(name: str) -> None:
    """Models that hold one can be, which is not so in mlx."""
    function = getattr(nn, name)
    assert copy.deepcopy(function) is function
    assert pickle.loads(pickle.dumps(function)) is function
    assert function.__name__ == name and function.__doc__


@pytest.mark.parametrize("name", ["gelu", "gelu_approx", "elu", "hardswish", "softshrink", "mish"])
def test_compiled_functions_under_transformations(name: str) -> None:
    function = getattr(nn, name)
    x = mx.random.normal((3, 4), key=mx.random.key(1))
    rows = mx.stack([function(row) for row in x])
    assert_close(mx.vmap(function)(x), rows, rtol=1e-6, atol=1e-7)
    assert_close(mx.compile(function)(x), function(x), rtol=1e-6, atol=1e-7)
    slope = mx.grad(lambda x: function(x).sum())
    _, tangents = mx.jvp(function, [x], [mx.ones_like(x)])
    assert_close(tangents[0], slope(x), rtol=1e-5, atol=1e-6)
    curvature = mx.grad(lambda x: slope(x).sum())(x)
    theirs = getattr(THEIRS.nn, name)
    first = THEIRS.mx.grad(lambda x: theirs(x).sum())
    want = THEIRS.mx.grad(lambda x: first(x).sum())(converted(x, THEIRS.mx))
    assert_close(curvature, want, rtol=1e-4, atol=1e-5)
