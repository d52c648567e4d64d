"""Functions of float64 against NumPy and math: mlx computes most of them in float32."""

import math

import numpy as np
import pytest
from support.harness import rng

import ultramarine as mx

FUNCTIONS = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "arctan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "arcsinh": np.arcsinh, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "arcsin": lambda x: np.arcsin(x / 8), "arccos": lambda x: np.arccos(x / 8),
    "arctanh": lambda x: np.arctanh(x / 8),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    data = rng("functions of float64").uniform(0.01, 7.9, 4001)
    x = mx.array(data, dtype=mx.float64)
    if name in ("arcsin", "arccos", "arctanh"):
        x = x / 8
    got, want = np.array(getattr(mx, name)(x)), FUNCTIONS[name](data)
    assert got.dtype == np.float64
    # Two units of each: NumPy may be off as well.
    np.testing.assert_allclose(got, want, rtol=4 * 2.0**-52, atol=0)


def test_reductions_and_products() -> None:
    data = rng("reductions of float64").standard_normal((50, 60))
    x = mx.array(data, dtype=mx.float64)
    e = np.exp(data - data.max(axis=1, keepdims=True))
    for got, want in (
        (mx.sum(x, axis=0), data.sum(axis=0)),
        (mx.var(x, axis=1), data.var(axis=1)),
        (x @ x.T, data @ data.T),
        (mx.softmax(x, axis=1), e / e.sum(axis=1, keepdims=True)),
        (mx.logsumexp(x, axis=1), np.log(np.exp(data).sum(axis=1))),
        (mx.cumsum(x, axis=1), data.cumsum(axis=1)),
    ):
        assert got.dtype == mx.float64
        # Sums of 60 terms, which may cancel.
        np.testing.assert_allclose(np.array(got), want, rtol=1e-14, atol=1e-14)
