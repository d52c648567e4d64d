"""Upsampling: values, gradients, sizes and errors as in mlx."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.compare import assert_close
from support.harness import name_of, to_numpy

import ultramarine as mx
from ultramarine import nn
from ultramarine.nn.layers import upsample as module

from .pairs import OURS, THEIRS, Case, assert_same_layer, converted, normal, same

MODES = ["nearest", "linear", "cubic"]
# Multiples, of few and of many phases; other factors up and down.
SCALES = [1, 2, 3, 9, 1.5, 2.6, 5 / 3, 0.5, 0.4, 0.7, 0.25, 1 / 3]


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("mode", MODES)
def test_lines(mode: str, scale: float, align_corners: bool) -> None:
    modules = [lib.nn.Upsample(scale, mode, align_corners) for lib in (OURS, THEIRS)]
    for n in (5, 8):
        x = normal((2, n, 3), mode, n)
        assert_same_layer((modules[0], modules[1]), x, rtol=1e-4, atol=5e-5)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialiasing(mode: str, scale: float) -> None:
    modules = [lib.nn.Upsample(scale, mode, antialias=True) for lib in (OURS, THEIRS)]
    for n in (5, 12):
        x = normal((2, n, 3), mode, n)
        assert_same_layer((modules[0], modules[1]), x, rtol=1e-4, atol=5e-5)


@pytest.mark.parametrize("scales", [2, (2, 3), (1, 2), (1.5, 2.0), (0.5, 1.3), [2, 1]])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_images(mode: str, align_corners: bool, scales: Any) -> None:
    modules = [lib.nn.Upsample(scales, mode, align_corners) for lib in (OURS, THEIRS)]
    assert_same_layer((modules[0], modules[1]), normal((2, 4, 5, 3), mode), rtol=1e-4, atol=5e-5)
    same(lambda lib: repr(lib.nn.Upsample(scales, mode, align_corners)))
    same(lambda lib: lib.nn.Upsample(scales, mode, align_corners).scale_factor)


@pytest.mark.parametrize("mode", MODES)
def test_volumes(mode: str) -> None:
    modules = [lib.nn.Upsample((2, 1, 1.5), mode) for lib in (OURS, THEIRS)]
    assert_same_layer((modules[0], modules[1]), normal((1, 2, 3, 4, 2)), rtol=1e-4, atol=5e-5)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_axes_of_one_element(mode: str, align_corners: bool) -> None:
    for scale in (2, 1.5, 3):
        modules = [lib.nn.Upsample(scale, mode, align_corners) for lib in (OURS, THEIRS)]
        assert_same_layer((modules[0], modules[1]), normal((1, 1, 2)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool_", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scale", [2, 1.5, 0.5])
def test_dtypes(mode: str, dtype: str, scale: float) -> None:
    """Interpolated 16-bit floats are in float32, as in mlx."""
    found = []
    for lib in (OURS, THEIRS):
        x = lib.mx.arange(8).reshape(1, 8, 1).astype(getattr(lib.mx, dtype))
        found.append(lib.nn.Upsample(scale, mode)(x))
    assert_close(*found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_long_axes(mode: str, align_corners: bool) -> None:
    """They are gathered rather than multiplied by a matrix."""
    n = module._LONGEST_MATRIX + 10
    x = normal((1, n, 2))
    for scale in (1.3, 0.6):
        modules = [lib.nn.Upsample(scale, mode, align_corners) for lib in (OURS, THEIRS)]
        # mlx's positions have the same digits; weights are their fractions.
        assert_same_layer((modules[0], modules[1]), x, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_multiples_are_as_any_factor(mode: str) -> None:
    """Phases come to what positions come to."""
    taps = {"linear": module._linear_taps, "cubic": module._cubic_taps}[mode]
    x = normal((2, 6, 3))[0]
    for multiple in (2, 3, 5):
        positions = module._positions(6, 6 * multiple, float(multiple), False, mx.float32)
        want = module._by_taps(x, 1, positions, taps)
        assert_close(module._by_phases(x, 1, multiple, taps), want, rtol=1e-5, atol=1e-5)


def test_float64_is_exact() -> None:
    x = mx.array(np.linspace(0, 1, 7), mx.float64).reshape(1, 7, 1)
    got = nn.Upsample(1.7, "linear", align_corners=True)(x)
    assert name_of(got.dtype) == "float64"
    np.testing.assert_allclose(to_numpy(got)[0, :, 0], np.linspace(0, 1, 11), atol=1e-15)


@pytest.mark.parametrize(
    "case",
    [
        lambda lib: lib.nn.Upsample(2, "other"),
        lambda lib: lib.nn.Upsample(2, "nearest", antialias=True),
        lambda lib: lib.nn.Upsample(2, "linear", align_corners=True, antialias=True),
        lambda lib: lib.nn.Upsample("x"),
        lambda lib: lib.nn.Upsample(2)(lib.mx.ones((4, 4))),
        lambda lib: lib.nn.Upsample(2)(lib.mx.ones((4,))),
        lambda lib: lib.nn.Upsample((2, 2))(lib.mx.ones((1, 4, 4))),
        lambda lib: lib.nn.Upsample((2,))(lib.mx.ones((1, 4, 4, 1))),
        lambda lib: lib.nn.Upsample(0.1, "linear")(lib.mx.ones((1, 4, 1))).shape,
        lambda lib: lib.nn.layers.upsample.upsample_linear(lib.mx.ones((1, 4, 1)), (2, 2)),
        lambda lib: lib.nn.layers.upsample.upsample_nearest(lib.mx.ones((1, 4, 1)), 2),
        lambda lib: lib.nn.layers.upsample.upsample_nearest(lib.mx.ones((1, 2, 1)), (2,)),
        lambda lib: lib.nn.layers.upsample.upsample_cubic(lib.mx.ones((1, 4, 1)), (2,), True, True),
    ],
)
def test_odd_calls(case: Case) -> None:
    same(case)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scale", [0, -1.0, (2, 0)])
def test_factors_that_are_not_positive(mode: Any, scale: Any) -> None:
    with pytest.raises(ValueError, match="positive"):
        nn.Upsample(scale, mode)(mx.ones((1, 4, 4, 1)))


def test_compiled() -> None:
    layer = nn.Sequential(nn.Upsample(2, "cubic"), nn.Upsample(1.5, "linear"))
    x, _ = normal((1, 4, 5, 2))
    assert_close(mx.compile(layer)(x), layer(x), rtol=1e-6, atol=1e-6)
    assert converted(x, THEIRS.mx).shape == (1, 4, 5, 2)
