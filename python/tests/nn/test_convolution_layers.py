"""Convolution layers: values, gradients, initial values and errors as in mlx."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.compare import assert_close
from support.harness import to_numpy

import ultramarine as mx
from ultramarine import nn

from .pairs import OURS, THEIRS, Case, assert_same_layer, normal, ordinary, pair, same

HALF = {"float16": 1e-2, "bfloat16": 8e-2}

LAYERS: dict[str, tuple[Case, tuple[int, ...]]] = {
    "1d": (lambda lib: lib.nn.Conv1d(3, 4, 3), (2, 8, 3)),
    "1d of all options": (lambda lib: lib.nn.Conv1d(4, 6, 3, 2, 1, 2, 2, False), (2, 9, 4)),
    "1d of names": (
        lambda lib: lib.nn.Conv1d(
            in_channels=4, out_channels=4, kernel_size=2, padding=1, groups=4, bias=True
        ),
        (1, 6, 4),
    ),
    "2d": (lambda lib: lib.nn.Conv2d(3, 4, 3), (2, 6, 5, 3)),
    "2d of all options": (
        lambda lib: lib.nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 2), 2, False),
        (2, 7, 6, 4),
    ),
    "2d of a list": (lambda lib: lib.nn.Conv2d(2, 3, [2, 3], padding=1), (1, 5, 5, 2)),
    "2d depthwise": (lambda lib: lib.nn.Conv2d(4, 4, 3, padding=1, groups=4), (1, 5, 5, 4)),
    "3d": (lambda lib: lib.nn.Conv3d(2, 3, 2), (1, 4, 3, 4, 2)),
    "3d of all options": (
        lambda lib: lib.nn.Conv3d(2, 3, (2, 1, 3), (1, 2, 1), (1, 0, 1), 1, False),
        (1, 3, 4, 4, 2),
    ),
    "transposed 1d": (lambda lib: lib.nn.ConvTranspose1d(3, 4, 3), (2, 5, 3)),
    "transposed 1d of all options": (
        lambda lib: lib.nn.ConvTranspose1d(3, 4, 3, 2, 1, 1, 1, False),
        (2, 5, 3),
    ),
    "transposed 2d": (lambda lib: lib.nn.ConvTranspose2d(3, 4, 3), (2, 4, 3, 3)),
    "transposed 2d of all options": (
        lambda lib: lib.nn.ConvTranspose2d(3, 4, (3, 2), (2, 1), (1, 0), 1, (1, 0), False),
        (2, 4, 3, 3),
    ),
    "transposed 2d, dilated": (
        lambda lib: lib.nn.ConvTranspose2d(2, 3, 2, dilation=2, stride=1),
        (1, 4, 3, 2),
    ),
    "transposed 3d": (lambda lib: lib.nn.ConvTranspose3d(2, 3, 2), (1, 3, 2, 3, 2)),
    "transposed 3d of all options": (
        lambda lib: lib.nn.ConvTranspose3d(
            2, 3, (2, 1, 3), (2, 1, 1), (1, 0, 1), 1, (1, 0, 0), False
        ),
        (1, 3, 2, 3, 2),
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", LAYERS)
def test_outputs_and_gradients(name: str, dtype: str) -> None:
    make, shape = LAYERS[name]
    modules = pair(make, dtype)
    x = normal(shape, name, dtype=dtype)
    if dtype == "float32":
        assert_same_layer(modules, x, rtol=2e-5, atol=5e-5)
    else:
        # mlx sums the gradients of 16-bit floats in 16 bits.
        bound = HALF[dtype]
        assert_close(modules[0](x[0]), modules[1](x[1]), rtol=bound, atol=bound)


@pytest.mark.parametrize("name", LAYERS)
def test_contents(name: str) -> None:
    make, _ = LAYERS[name]
    same(lambda lib: repr(make(lib)))
    same(lambda lib: ordinary(make(lib)))
    same(lambda lib: [(k, getattr(v, "shape", v)) for k, v in dict(make(lib)).items()])
    same(lambda lib: make(lib).stride)


@pytest.mark.parametrize("name", LAYERS)
def test_initial_values_are_those_of_the_same_seed(name: str) -> None:
    make, _ = LAYERS[name]
    found = []
    for lib in (OURS, THEIRS):
        lib.mx.random.seed(3)
        found.append(make(lib).parameters())
    assert_close(*found, rtol=1e-6, atol=1e-7)


def test_initial_distribution() -> None:
    layer = nn.Conv2d(64, 32, (3, 5), groups=2)
    bound = (32 * 15) ** -0.5
    weight = to_numpy(layer.weight)
    assert np.abs(weight).max() <= bound and abs(weight.std() / (bound / 3**0.5) - 1) < 0.02
    assert not to_numpy(layer.bias).any()


@pytest.mark.parametrize(
    "case",
    [
        lambda lib: lib.nn.Conv1d(4, 4, 3, groups=3),
        lambda lib: lib.nn.Conv2d(4, 4, 3, groups=3),
        lambda lib: lib.nn.Conv1d(4, 5, 3, groups=2)(lib.mx.ones((1, 5, 4))),
        lambda lib: lib.nn.Conv2d(4, 4, (3, 3, 3))(lib.mx.ones((1, 5, 5, 4))),
        lambda lib: lib.nn.Conv1d(4, 4, 3)(lib.mx.ones((1, 5, 3))),
        lambda lib: lib.nn.Conv1d(4, 4, 3)(lib.mx.ones((5, 4))),
        lambda lib: lib.nn.Conv1d(4, 4, 3)(lib.mx.ones((1, 2, 4))),
        lambda lib: lib.nn.Conv2d(4, 4, 3)(lib.mx.ones((1, 5, 5, 4), dtype=lib.mx.float16)).dtype,
        lambda lib: lib.nn.ConvTranspose2d(4, 4, 3)(lib.mx.ones((1, 5, 5, 3))),
        lambda lib: lib.nn.Conv3d(4, 4, 3)(lib.mx.ones((1, 5, 5, 4))),
    ],
)
def test_odd_calls(case: Case) -> None:
    same(case)


def test_a_bias_that_was_removed() -> None:
    layer: Any = nn.Conv1d(2, 3, 2)
    layer.bias = None
    assert layer(mx.ones((1, 4, 2))).shape == (1, 3, 3) and "bias=False" in repr(layer)
