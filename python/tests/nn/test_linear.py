"""Linear, bilinear, embedding, dropout and containers: outputs, gradients, initial values and errors as in mlx."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.compare import assert_close
from support.harness import to_numpy

import ultramarine as mx
from ultramarine import nn

from .pairs import OURS, THEIRS, Case, assert_same_layer, normal, ordinary, pair, same

# A tolerance of products in 16-bit floats, where the order of sums matters.
HALF = {"float16": 1e-2, "bfloat16": 5e-2}

LAYERS: dict[str, tuple[Case, list[tuple[int, ...]]]] = {
    "identity": (lambda lib: lib.nn.Identity(3, a=4), [(2, 3)]),
    "linear": (lambda lib: lib.nn.Linear(4, 3), [(2, 4)]),
    "linear without bias": (lambda lib: lib.nn.Linear(4, 3, bias=False), [(2, 4)]),
    "linear of a vector": (lambda lib: lib.nn.Linear(4, 3), [(4,)]),
    "linear of many axes": (lambda lib: lib.nn.Linear(4, 3), [(2, 3, 1, 4)]),
    "linear of no rows": (lambda lib: lib.nn.Linear(4, 3), [(0, 4)]),
    "bilinear": (lambda lib: lib.nn.Bilinear(4, 5, 3), [(2, 4), (2, 5)]),
    "bilinear without bias": (lambda lib: lib.nn.Bilinear(4, 5, 3, False), [(2, 4), (2, 5)]),
    "bilinear of vectors": (lambda lib: lib.nn.Bilinear(4, 5, 3), [(4,), (5,)]),
    "bilinear of many axes": (lambda lib: lib.nn.Bilinear(4, 5, 3), [(6, 2, 4), (6, 2, 5)]),
    "sequential": (
        lambda lib: lib.nn.Sequential(lib.nn.Linear(4, 6), lib.mx.tanh, lib.nn.Linear(6, 2)),
        [(2, 4)],
    ),
    "empty sequential": (lambda lib: lib.nn.Sequential(), [(2, 4)]),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("layer", LAYERS)
def test_outputs_and_gradients(layer: str, dtype: str) -> None:
    make, shapes = LAYERS[layer]
    inputs = [normal(shape, i, dtype=dtype) for i, shape in enumerate(shapes)]
    bound = HALF.get(dtype, 2e-5)
    assert_same_layer(pair(make, dtype), *inputs, rtol=bound, atol=bound)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_embedding(shape: tuple[int, ...]) -> None:
    indices = np.random.default_rng(0).integers(-5, 5, shape).astype(np.int32)
    both = (mx.array(indices), THEIRS.mx.array(indices))
    modules = pair(lambda lib: lib.nn.Embedding(5, 4))
    assert_same_layer(modules, both)
    assert_same_layer(modules, normal((*shape, 4)), call=lambda m, x: m.as_linear(x))


@pytest.mark.parametrize(
    "case",
    [
        lambda lib: lib.nn.Embedding(5, 4)(1).shape,
        lambda lib: lib.nn.Embedding(5, 4)([1, 2]).shape,
        lambda lib: lib.nn.Embedding(5, 4)(lib.mx.array([1.0])).shape,
        lambda lib: lib.nn.Linear(4, 3)(lib.mx.ones((2, 5))),
        lambda lib: lib.nn.Linear(4, 3)(lib.mx.ones((2, 4), dtype=lib.mx.int32)).dtype,
        lambda lib: lib.nn.Linear(4, 3)(lib.mx.ones((2, 4), dtype=lib.mx.float16)).dtype,
        lambda lib: lib.nn.Linear(0, 3),
        lambda lib: lib.nn.Linear(4, 0)(lib.mx.ones((2, 4))).shape,
        lambda lib: lib.nn.Bilinear(4, 5, 3)(lib.mx.ones((2, 5)), lib.mx.ones((2, 5))),
        lambda lib: lib.nn.Identity()("anything"),
        lambda lib: lib.nn.Sequential(lambda x: x + 1, lambda x: x * 2)(3),
        lambda lib: len(lib.nn.Sequential(lib.nn.ReLU(), abs).layers),
    ],
)
def test_odd_calls(case: Case) -> None:
    same(case)


REPRS: list[Case] = [
    lambda lib: lib.nn.Identity(3),
    lambda lib: lib.nn.Linear(4, 3),
    lambda lib: lib.nn.Linear(4, 3, False),
    lambda lib: lib.nn.Bilinear(4, 5, 3),
    lambda lib: lib.nn.Bilinear(4, 5, 3, False),
    lambda lib: lib.nn.Embedding(10, 4),
    lambda lib: lib.nn.Dropout(),
    lambda lib: lib.nn.Dropout(0.3),
    lambda lib: lib.nn.Dropout2d(0),
    lambda lib: lib.nn.Dropout3d(0.25),
    lambda lib: lib.nn.Sequential(lib.nn.Linear(1, 2), abs, lib.nn.Sequential(lib.nn.ReLU())),
]


@pytest.mark.parametrize("case", REPRS)
def test_repr_and_contents(case: Case) -> None:
    same(lambda lib: repr(case(lib)))

    def contents(lib: Any) -> Any:
        module = case(lib)
        attributes = ordinary(module)
        arrays = {k: v.shape for k, v in lib.utils.tree_flatten(module.parameters())}
        return attributes, arrays, sorted(module._no_grad)

    same(contents)


@pytest.mark.parametrize(
    "case",
    [
        lambda lib: lib.nn.Linear(4, 3),
        lambda lib: lib.nn.Linear(7, 5, bias=False),
        lambda lib: lib.nn.Bilinear(4, 2, 3),
        lambda lib: lib.nn.Embedding(3, 4),
    ],
)
def test_initial_values_are_those_of_the_same_seed(case: Case) -> None:
    """Programs with a seed start from the same parameters, and draw the same numbers afterwards."""
    found = []
    for lib in (OURS, THEIRS):
        lib.mx.random.seed(3)
        parameters = case(lib).parameters()
        found.append([parameters, lib.mx.random.uniform(shape=(3,))])
    assert_close(*found, rtol=1e-6, atol=1e-7)


def test_initial_distributions() -> None:
    weight = to_numpy(nn.Linear(100, 1000).weight)
    assert np.abs(weight).max() <= 0.1 and abs(weight.std() - 0.1 / 3**0.5) < 1e-3
    weight = to_numpy(nn.Embedding(1000, 100).weight)
    assert abs(weight.std() - 0.1) < 1e-3 and abs(weight.mean()) < 1e-3


DROPOUTS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("Dropout", [(), (7,), (2, 3)]),
    ("Dropout2d", [(3, 4, 5), (2, 3, 4, 5)]),
    ("Dropout3d", [(2, 3, 4, 5), (2, 2, 3, 4, 5)]),
]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "bool_"])
@pytest.mark.parametrize(
    ("name", "shape"), [(name, shape) for name, shapes in DROPOUTS for shape in shapes]
)
def test_dropout_with_the_same_seed(name: str, shape: tuple[int, ...], dtype: str) -> None:
    found = []
    for lib in (OURS, THEIRS):
        lib.mx.random.seed(5)
        layer = getattr(lib.nn, name)(0.25)
        x = lib.mx.arange(1, int(np.prod(shape)) + 1).reshape(shape)
        found.append(layer(x.astype(getattr(lib.mx, dtype))))
    assert_close(*found, ulps=1, scale=float(np.prod(shape)))


@pytest.mark.parametrize("name", [name for name, _ in DROPOUTS])
@pytest.mark.parametrize("p", [-0.1, 0, 0.5, 1, 1.5, True])
def test_dropout_probabilities(name: str, p: float) -> None:
    same(lambda lib: getattr(lib.nn, name)(p))


@pytest.mark.parametrize("name", [name for name, _ in DROPOUTS])
@pytest.mark.parametrize("ndim", range(1, 7))
def test_dropout_axes(name: str, ndim: int) -> None:
    same(lambda lib: getattr(lib.nn, name)(0.5)(lib.mx.ones((2,) * ndim)).shape)


def test_dropout_zeros_whole_channels() -> None:
    x = to_numpy(nn.Dropout2d(0.5)(mx.ones((8, 3, 4, 16))))
    assert (x == x[:, :1, :1]).all() and 0 < (x == 0).mean() < 1
    x = to_numpy(nn.Dropout3d(0.5)(mx.ones((8, 2, 3, 4, 16))))
    assert (x == x[:, :1, :1, :1]).all() and 0 < (x == 0).mean() < 1


def test_dropout_keeps_the_mean_and_zeros_what_is_infinite() -> None:
    mx.random.seed(0)
    x = to_numpy(nn.Dropout(0.3)(mx.ones((100_000,))))
    assert abs((x == 0).mean() - 0.3) < 0.01 and abs(x.mean() - 1) < 0.01
    x = to_numpy(nn.Dropout(0.5)(mx.full((100,), mx.inf)))
    assert set(x.tolist()) == {0.0, float("inf")}


@pytest.mark.parametrize("name", [name for name, _ in DROPOUTS])
def test_dropout_is_the_identity_in_evaluation(name: str) -> None:
    x = mx.ones((2, 2, 2, 2))
    layer = getattr(nn, name)(0.5)
    assert layer.eval()(x) is x and layer.train()(x) is not x
    assert getattr(nn, name)(0.0)(x) is x


def test_bilinear_broadcasts() -> None:
    """In mlx leading axes must be the same."""
    layer = nn.Bilinear(4, 5, 3)
    one, two = mx.random.normal((6, 1, 4)), mx.random.normal((2, 5))
    whole = layer(mx.broadcast_to(one, (6, 2, 4)), mx.broadcast_to(two, (6, 2, 5)))
    assert_close(layer(one, two), whole, rtol=1e-5, atol=1e-6)
