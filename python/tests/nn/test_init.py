"""Initialisers: the numbers that mlx draws from the same seed, distributions, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.compare import assert_close
from support.harness import name_of, to_numpy

import ultramarine as mx
from ultramarine import nn

from .pairs import OURS, THEIRS, Case, same

DTYPES = ["float32", "float16", "bfloat16"]

# Initialisers of a dtype, and calls of them with an array.
DRAWN: dict[str, Callable[..., Any]] = {
    "normal": lambda lib, d: lib.nn.init.normal(dtype=d),
    "normal around 2": lambda lib, d: lib.nn.init.normal(2.0, 0.5, d),
    "uniform": lambda lib, d: lib.nn.init.uniform(dtype=d),
    "uniform in -1 to 3": lambda lib, d: lib.nn.init.uniform(-1.0, high=3.0, dtype=d),
    "glorot_normal": lambda lib, d: lib.nn.init.glorot_normal(d),
    "glorot_uniform": lambda lib, d: lib.nn.init.glorot_uniform(d),
    "he_normal": lambda lib, d: lib.nn.init.he_normal(d),
    "he_uniform": lambda lib, d: lib.nn.init.he_uniform(d),
    "sparse": lambda lib, d: lib.nn.init.sparse(0.4, dtype=d),
    "sparse around 1": lambda lib, d: lib.nn.init.sparse(0.5, 1.0, std=2.0, dtype=d),
    "dense": lambda lib, d: lib.nn.init.sparse(0.0, dtype=d),
    "orthogonal": lambda lib, d: lib.nn.init.orthogonal(dtype=d),
    "orthogonal times 2": lambda lib, d: lib.nn.init.orthogonal(2.0, d),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DRAWN)
def test_numbers_of_a_seed(name: str, dtype: str) -> None:
    """The array's own dtype and values do not count."""
    found = []
    for lib in (OURS, THEIRS):
        lib.mx.random.seed(11)
        initializer = DRAWN[name](lib, getattr(lib.mx, dtype))
        found.append([initializer(lib.mx.zeros((6, 8), dtype=lib.mx.int32)) for _ in range(2)])
    # The decomposition sums in another order.
    bound = 1e-5 if "orthogonal" in name else 1e-6
    assert_close(*found, rtol=bound, atol=bound, ulps=1)


@pytest.mark.parametrize("name", ["he_normal", "he_uniform", "glorot_normal", "glorot_uniform"])
@pytest.mark.parametrize("shape", [(5, 7), (4, 3, 6), (2, 3, 4, 5), (1, 1)])
def test_scaled_by_fans(name: str, shape: tuple[int, ...]) -> None:
    calls: list[dict[str, object]] = [{}, {"gain": 2.5}]
    if name.startswith("he"):
        calls += [{"mode": "fan_out"}, {"mode": "fan_in", "gain": 0.5}]
    for call in calls:
        found = []
        for lib in (OURS, THEIRS):
            lib.mx.random.seed(2)
            found.append(getattr(lib.nn.init, name)()(lib.mx.zeros(shape), **call))
        assert_close(*found, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "std"),
    [
        ("he_normal", (200 * 3) ** -0.5),
        ("he_uniform", (200 * 3) ** -0.5),
        ("glorot_normal", (2 / (200 * 3 + 100 * 3)) ** 0.5),
        ("glorot_uniform", (2 / (200 * 3 + 100 * 3)) ** 0.5),
    ],
)
def test_distributions(name: str, std: float) -> None:
    mx.random.seed(0)
    x = to_numpy(getattr(nn.init, name)()(mx.zeros((100, 3, 200))))
    assert abs(x.mean()) < 4 * std / x.size**0.5
    assert abs(x.std() / std - 1) < 0.02
    if "uniform" in name:
        assert np.abs(x).max() <= std * 3**0.5


@pytest.mark.parametrize("shape", [(16, 16), (24, 10), (10, 24), (1, 5)])
@pytest.mark.parametrize("gain", [1.0, 3.0])
def test_orthogonal_matrices(shape: tuple[int, int], gain: float) -> None:
    mx.random.seed(4)
    x = to_numpy(nn.init.orthogonal(gain)(mx.zeros(shape))).astype(np.float64)
    product = x @ x.T if shape[0] <= shape[1] else x.T @ x
    np.testing.assert_allclose(product, gain**2 * np.eye(min(shape)), atol=2e-5)


@pytest.mark.parametrize(
    ("sparsity", "zeros"), [(0.0, 0), (0.11, 2), (0.5, 5), (0.55, 6), (1.0, 10)]
)
def test_zeros_of_each_row(sparsity: float, zeros: int) -> None:
    mx.random.seed(1)
    x = to_numpy(nn.init.sparse(sparsity)(mx.zeros((50, 10))))
    assert ((x == 0).sum(axis=1) == zeros).all()
    if 0 < zeros < 10:
        assert len({tuple(row) for row in x == 0}) > 1


@pytest.mark.parametrize("dtype", [*DTYPES, "int32"])
def test_constants_and_identities(dtype: str) -> None:
    same(lambda lib: lib.nn.init.constant(3, getattr(lib.mx, dtype))(lib.mx.ones((2, 3))))
    same(lambda lib: lib.nn.init.constant(0.5)(lib.mx.ones(())))
    same(lambda lib: lib.nn.init.constant(lib.mx.array([1.0, 2.0]))(lib.mx.ones((3, 2))))
    same(lambda lib: lib.nn.init.identity(getattr(lib.mx, dtype))(lib.mx.ones((3, 3))))


@pytest.mark.parametrize(
    "case",
    [
        lambda lib: lib.nn.init.identity()(lib.mx.ones((3, 4))),
        lambda lib: lib.nn.init.identity()(lib.mx.ones((3,))),
        lambda lib: lib.nn.init.identity()(lib.mx.ones((3, 3, 3))),
        lambda lib: lib.nn.init.he_normal()(lib.mx.ones((3,))),
        lambda lib: lib.nn.init.he_uniform()(lib.mx.ones((3, 4)), "fan"),
        lambda lib: lib.nn.init.he_normal()(lib.mx.ones((3, 4)), mode="other"),
        lambda lib: lib.nn.init.glorot_uniform()(lib.mx.ones(())),
        lambda lib: lib.nn.init.glorot_normal()(lib.mx.ones((3,))),
        lambda lib: lib.nn.init.sparse(0.5)(lib.mx.ones((3,))),
        lambda lib: lib.nn.init.sparse(0.5)(lib.mx.ones((3, 3, 3))),
        lambda lib: lib.nn.init.orthogonal()(lib.mx.ones((3,))),
        lambda lib: lib.nn.init.orthogonal()(lib.mx.ones((3, 3, 3))),
    ],
)
def test_arrays_that_do_not_fit(case: Case) -> None:
    same(case)


def test_a_module_is_initialised_by_apply() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    model.apply(nn.init.constant(0.5, mx.float16))
    for layer in model.layers:
        assert name_of(layer.weight.dtype) == "float16" and (to_numpy(layer.weight) == 0.5).all()
