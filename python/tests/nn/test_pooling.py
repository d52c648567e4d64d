"""Pooling layers: values, gradients, sizes and errors as in mlx."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from support.compare import assert_close
from support.harness import rng, to_numpy

import ultramarine as mx
from ultramarine import nn
from ultramarine.utils import tree_flatten

from .pairs import OURS, THEIRS, Case, assert_same_layer, normal, same

KINDS = ["MaxPool1d", "AvgPool1d", "MaxPool2d", "AvgPool2d", "MaxPool3d", "AvgPool3d"]
SHAPES = {1: (2, 13, 3), 2: (2, 9, 10, 3), 3: (1, 6, 7, 5, 2)}

# Kernel size, stride and padding for all axes: windows that overlap, meet, and leave gaps; sizes that are combined
# directly, by powers of two, and reduced.
SIZES: list[tuple[Any, ...]] = [
    (1,), (2,), (3,), (2, 1), (3, 2), (3, 2, 1), (2, 3), (3, 3, 2), (1, 2), (1, 1, 1), (4, 4), (5, 5, 2), (4, 2, 3),
    (4, 1, 4),
]  # fmt: skip
# Longer windows of one axis.
LONG = [
    (9, 1),
    (9, 2, 1),
    (10, 3, 4),
    (11, 1, 5),
    (12, 12),
    (13, 1),
    (13, 4, 6),
    (15, 1, 1),
    (9, 9, 8),
]


def ndim(kind: str) -> int:
    return int(kind[-2])


CASES = [(kind, size) for kind in KINDS for size in SIZES] + [
    (kind, size) for kind in ("MaxPool1d", "AvgPool1d") for size in LONG
]


def layers(kind: str, size: tuple[Any, ...]) -> tuple[Any, Any]:
    return getattr(nn, kind)(*size), getattr(THEIRS.nn, kind)(*size)


@pytest.mark.parametrize(("kind", "size"), CASES)
def test_outputs_and_gradients(kind: str, size: tuple[Any, ...]) -> None:
    """Windows of padding only are minus infinity, and have squares without gradients; none are here."""
    x = normal(SHAPES[ndim(kind)], kind)
    if len(size) < 3 or size[2] < size[0]:
        assert_same_layer(layers(kind, size), x, rtol=1e-5, atol=1e-5)
    else:
        ours, theirs = layers(kind, size)
        assert_close(ours(x[0]), theirs(x[1]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["MaxPool2d", "AvgPool2d"])
@pytest.mark.parametrize(
    "size",
    [((2, 3),), ((3, 1), (1, 2)), ((2, 5), (1, 5), (1, 0)), ([2, 3], [1, 2], [0, 1]), ((9, 10),), ((1, 10), 1)],
)  # fmt: skip
def test_sizes_of_each_axis(kind: str, size: tuple[Any, ...]) -> None:
    assert_same_layer(layers(kind, size), normal(SHAPES[2], kind), rtol=1e-5, atol=1e-5)
    same(lambda lib: repr(getattr(lib.nn, kind)(*size)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "uint8", "bool_"])
@pytest.mark.parametrize("kind", ["MaxPool1d", "AvgPool1d", "MaxPool2d", "AvgPool2d"])
@pytest.mark.parametrize("size", [(2,), (3, 2), (3, 1, 1), (5, 5), (4, 1)])
def test_dtypes(kind: str, dtype: str, size: tuple[int, ...]) -> None:
    x = 4 * rng(SHAPES[ndim(kind)], kind).standard_normal(SHAPES[ndim(kind)])
    if dtype == "uint8":
        x = np.abs(x)
    found = []
    for lib in (OURS, THEIRS):
        array = lib.mx.array(x.astype(np.float32)).astype(getattr(lib.mx, dtype))
        found.append(getattr(lib.nn, kind)(*size)(array))
    # mlx sums 16-bit floats in 16 bits.
    half = dtype.endswith("float16")
    assert_close(*found, ulps=4 if half else 0, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_that_leave_nothing(kind: str) -> None:
    shape = SHAPES[ndim(kind)]
    same(lambda lib: getattr(lib.nn, kind)(20)(lib.mx.ones(shape)).shape)
    same(lambda lib: getattr(lib.nn, kind)(20, 1)(lib.mx.ones(shape)))
    same(lambda lib: getattr(lib.nn, kind)(2)(lib.mx.ones((0, *shape[1:]))).shape)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "arguments",
    [
        {"kernel_size": 2.5}, {"kernel_size": 0}, {"kernel_size": -1}, {"kernel_size": (1, 2, 3, 4)},
        {"kernel_size": ()}, {"kernel_size": None}, {"kernel_size": "2"},
        {"kernel_size": 2, "stride": 0}, {"kernel_size": 2, "stride": -1}, {"kernel_size": 2, "stride": 1.5},
        {"kernel_size": 2, "stride": (1, 1, 1, 1)}, {"kernel_size": 2, "padding": -1},
        {"kernel_size": 2, "padding": None}, {"kernel_size": 2, "padding": (1, 1, 1, 1)}, {"kernel_size": True},
        {},
    ],
)  # fmt: skip
def test_invalid_sizes(kind: str, arguments: dict[str, Any]) -> None:
    same(lambda lib: repr(getattr(lib.nn, kind)(**arguments)))


def pooled_shape(kind: str, shape: tuple[int, ...], lib: Any) -> Any:
    return getattr(lib.nn, kind)(2)(lib.mx.ones(shape)).shape


@pytest.mark.parametrize("kind", KINDS)
def test_dimensions(kind: str) -> None:
    for shape in [(), (4,), (4, 4), (4, 4, 4), (4, 4, 4, 4), (2, 4, 4, 4, 4), (1, 2, 4, 4, 4, 4)]:
        same(partial(pooled_shape, kind, shape))


@pytest.mark.parametrize(
    "case",
    [
        lambda lib: lib.nn.MaxPool1d(2)(lib.mx.full((1, 4, 1), lib.mx.nan)),
        lambda lib: lib.nn.MaxPool1d(9, 1, 4)(lib.mx.array([[[1.0], [lib.mx.nan], [2.0]]])),
        lambda lib: lib.nn.MaxPool1d(2)(lib.mx.array([[[1.0], [lib.mx.nan], [lib.mx.nan], [2.0]]])),
        lambda lib: lib.nn.MaxPool1d(2)(lib.mx.full((1, 4, 1), -lib.mx.inf)),
        lambda lib: lib.nn.AvgPool1d(2)(lib.mx.array([[[lib.mx.inf], [-lib.mx.inf]]])),
        lambda lib: lib.nn.MaxPool2d(1, 1, 1)(lib.mx.ones((1, 1, 1, 1))),
    ],
)
def test_values_that_are_not_finite(case: Case) -> None:
    assert_close(case(OURS), case(THEIRS))


def test_a_layer_has_no_parameters() -> None:
    model = nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d(2))
    assert not tree_flatten(model.parameters())
    assert nn.MaxPool2d(2).children() == {}


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_padding_is_less_than_any_integer(dtype: str) -> None:
    """In mlx minus infinity is 0 as int8."""
    x = mx.full((1, 3, 1), -3).astype(getattr(mx, dtype))
    assert_close(nn.MaxPool1d(2, 1, 1)(x), mx.full((1, 4, 1), -3).astype(x.dtype))


def test_16_bit_means_are_exact() -> None:
    """Sums are in float32: 36 numbers of 3000 are beyond float16."""
    x = mx.full((1, 6, 6, 1), 3000.0, mx.float16)
    assert (to_numpy(nn.AvgPool2d(3, 1)(x)) == 3000).all()
    assert (to_numpy(nn.AvgPool2d(6)(x)) == 3000).all()


@pytest.mark.parametrize("size", [(2,), (3, 2), (3, 1, 1), (9, 1, 4), (5, 5)])
def test_equal_elements_share_one_gradient(size: tuple[int, ...]) -> None:
    layer = nn.MaxPool1d(*size)
    x = mx.zeros((1, 12, 2))
    total = mx.grad(lambda x: layer(x).sum())(x).sum()
    assert total.item() == pytest.approx(layer(x).size)
