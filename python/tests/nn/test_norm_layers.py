"""Normalisation layers: values, gradients, running statistics and errors as in mlx, 16 bits as in float64."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from support.compare import assert_close
from support.harness import name_of, to_numpy

import ultramarine as mx
from ultramarine import nn

from .pairs import OURS, THEIRS, Case, assert_same_layer, converted, normal, ordinary, pair, same

LAYERS: dict[str, tuple[Case, list[tuple[int, ...]]]] = {
    "layer": (lambda lib: lib.nn.LayerNorm(8), [(8,), (3, 8), (2, 3, 8), (0, 8)]),
    "layer without bias": (lambda lib: lib.nn.LayerNorm(8, bias=False), [(3, 8)]),
    "plain layer": (lambda lib: lib.nn.LayerNorm(8, 1e-3, affine=False), [(3, 8)]),
    "rms": (lambda lib: lib.nn.RMSNorm(8), [(8,), (3, 8), (2, 3, 8)]),
    "rms 0.1": (lambda lib: lib.nn.RMSNorm(8, eps=0.1), [(3, 8)]),
    "instance": (lambda lib: lib.nn.InstanceNorm(8), [(2, 5, 8), (2, 3, 4, 8), (1, 2, 3, 2, 8)]),
    "affine instance": (lambda lib: lib.nn.InstanceNorm(8, 1e-3, affine=True), [(2, 5, 8), (2, 3, 4, 8)]),
    "group": (lambda lib: lib.nn.GroupNorm(2, 8), [(3, 8), (2, 5, 8), (2, 3, 4, 8), (1, 2, 3, 2, 8)]),
    "plain group": (lambda lib: lib.nn.GroupNorm(4, 8, 1e-3, affine=False), [(2, 3, 4, 8)]),
    "one group": (lambda lib: lib.nn.GroupNorm(1, 8), [(2, 5, 8)]),
    "groups of one": (lambda lib: lib.nn.GroupNorm(8, 8), [(2, 5, 8)]),
    "group as in PyTorch": (
        lambda lib: lib.nn.GroupNorm(2, 8, pytorch_compatible=True), [(3, 8), (2, 5, 8), (2, 3, 4, 8)]),
    "plain group as in PyTorch": (
        lambda lib: lib.nn.GroupNorm(4, 8, affine=False, pytorch_compatible=True), [(2, 3, 4, 8)]),
    "one group as in PyTorch": (lambda lib: lib.nn.GroupNorm(1, 8, pytorch_compatible=True), [(2, 5, 8)]),
    "batch": (lambda lib: lib.nn.BatchNorm(8), [(6, 8), (2, 5, 8), (2, 3, 4, 8)]),
    "batch 0.1": (lambda lib: lib.nn.BatchNorm(8, 0.1, momentum=0.5), [(6, 8)]),
    "plain batch": (lambda lib: lib.nn.BatchNorm(8, affine=False), [(6, 8)]),
    "batch without statistics": (lambda lib: lib.nn.BatchNorm(8, track_running_stats=False), [(6, 8)]),
}  # fmt: skip

CASES = [(name, shape) for name, (_, shapes) in LAYERS.items() for shape in shapes]


def varied(name: str, dtype: str = "float32") -> tuple[Any, Any]:
    """Layers of both libraries with the same parameters, which are not ones and zeros."""
    modules = pair(LAYERS[name][0], dtype)
    for key, value in list(modules[1].parameters().items()):
        ours, theirs = normal(value.shape, name, key, dtype=dtype)
        for module, new in zip(modules, (ours, theirs)):
            module[key] = new.abs() + 0.5 if key == "running_var" else new
    return modules


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_outputs_and_gradients(name: str, shape: tuple[int, ...]) -> None:
    assert_same_layer(varied(name), normal(shape, name), rtol=5e-5, atol=5e-5)


@pytest.mark.parametrize(("name", "shape"), [c for c in CASES if "batch" in c[0]])
def test_evaluation(name: str, shape: tuple[int, ...]) -> None:
    modules = varied(name)
    for module in modules:
        module.eval()
    before = to_numpy(mx.concatenate([v.reshape(-1) for v in modules[0].parameters().values()]))
    assert_same_layer(modules, normal(shape, name), rtol=5e-5, atol=5e-5)
    after = to_numpy(mx.concatenate([v.reshape(-1) for v in modules[0].parameters().values()]))
    assert (before == after).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("parameters", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("name", "shape"), CASES)
def test_16_bit_inputs(name: str, shape: tuple[int, ...], parameters: str, dtype: str) -> None:
    """The dtype is mlx's. Values are those of float32, rounded once; mlx rounds in between."""
    ours, theirs = varied(name, parameters)
    exact = LAYERS[name][0](OURS)
    exact.update({k: v.astype(mx.float32) for k, v in ours.parameters().items()})
    x, y = normal(shape, name, dtype=dtype)
    got = ours(x)
    assert name_of(got.dtype) == name_of(theirs(y).dtype)
    assert_close(got, exact(x.astype(mx.float32)).astype(got.dtype), ulps=1, scale=4.0)
    if "running_mean" in ours:
        for key in ("running_mean", "running_var"):
            assert name_of(ours[key].dtype) == name_of(theirs[key].dtype)
            assert_close(ours[key], exact[key].astype(ours[key].dtype), ulps=1, scale=2.0)
        assert name_of(ours.eval()(x).dtype) == name_of(theirs.eval()(y).dtype)


@pytest.mark.parametrize("name", LAYERS)
def test_contents(name: str) -> None:
    make, _ = LAYERS[name]
    same(lambda lib: repr(make(lib)))
    same(lambda lib: ordinary(make(lib)))
    same(lambda lib: dict(make(lib)))
    same(lambda lib: sorted(make(lib)._no_grad))


@pytest.mark.parametrize("shape", [(6, 8), (2, 5, 8), (2, 3, 4, 8)])
def test_running_statistics(shape: tuple[int, ...]) -> None:
    modules = pair(lambda lib: lib.nn.BatchNorm(8, momentum=0.3))
    for step in range(3):
        for module, x in zip(modules, normal(shape, step)):
            module(2 * x + 1)
    found = [[m.running_mean, m.running_var] for m in modules]
    assert_close(*found, rtol=1e-5, atol=1e-6)


def test_running_statistics_move_in_a_function_of_gradients() -> None:
    modules = pair(lambda lib: lib.nn.BatchNorm(8))
    for module, lib, x in zip(modules, (OURS, THEIRS), normal((6, 8))):
        lib.nn.value_and_grad(module, lambda x, m=module: m(x).square().sum())(x)
    assert_close(modules[0].parameters(), modules[1].parameters(), rtol=1e-5, atol=1e-6)


def test_running_statistics_move_in_a_compiled_function() -> None:
    layer = nn.BatchNorm(8)
    plain = nn.BatchNorm(8)
    step = mx.compile(layer, inputs=layer.state, outputs=layer.state)
    for i in range(3):
        x, _ = normal((6, 8), i)
        assert_close(step(x), plain(x), rtol=1e-6, atol=1e-6)
    assert_close(layer.parameters(), plain.parameters(), rtol=1e-6, atol=1e-6)


def test_running_statistics_stay_frozen() -> None:
    """Also if a module around the layer is unfrozen, in which mlx trains them."""
    statistics = {"running_mean", "running_var"}
    for keys in (None, "weight", ["running_mean", "bias"], "running_var"):
        norm = nn.BatchNorm(4)
        assert norm._no_grad == statistics
        assert set(norm.freeze().unfreeze().trainable_parameters()) == {"weight", "bias"}
        assert norm.unfreeze(keys=keys) is norm and norm._no_grad == statistics
        model = nn.Sequential(nn.Linear(4, 4), norm)
        model.freeze().unfreeze(keys=keys)
        assert norm._no_grad >= statistics
        assert copy.deepcopy(norm).unfreeze()._no_grad == statistics
    assert nn.BatchNorm(4).freeze(keys="weight")._no_grad == statistics | {"weight"}
    assert not nn.BatchNorm(4, track_running_stats=False)._no_grad


@pytest.mark.parametrize(
    "case",
    [
        lambda lib: lib.nn.BatchNorm(8)(lib.mx.ones((8,))),
        lambda lib: lib.nn.BatchNorm(8)(lib.mx.ones((2, 2, 2, 2, 8))),
        lambda lib: lib.nn.BatchNorm(8)(lib.mx.ones((1, 8))),
        lambda lib: lib.nn.BatchNorm(8)(lib.mx.ones((1, 1, 1, 8))),
        lambda lib: lib.nn.BatchNorm(8, track_running_stats=False)(lib.mx.ones((1, 8))),
        lambda lib: lib.nn.BatchNorm(8).eval()(lib.mx.ones((1, 8))).shape,
        lambda lib: lib.nn.BatchNorm(8, track_running_stats=False).eval()(lib.mx.ones((1, 8))),
        lambda lib: lib.nn.BatchNorm(8)(lib.mx.ones((0, 8))).shape,
        lambda lib: lib.nn.BatchNorm(8)(lib.mx.ones((2, 4))),
        lambda lib: lib.nn.BatchNorm(2)(lib.mx.array([[1, 2], [3, 4]])).dtype,
        lambda lib: lib.nn.BatchNorm(2, affine=False)(lib.mx.array([[1, 2], [3, 4]])).dtype,
        lambda lib: lib.nn.InstanceNorm(8)(lib.mx.ones((8,))),
        lambda lib: lib.nn.InstanceNorm(8)(lib.mx.ones((2, 8))),
        lambda lib: lib.nn.InstanceNorm(8, affine=True)(lib.mx.ones((2, 3, 4))),
        lambda lib: lib.nn.GroupNorm(3, 8),
        lambda lib: lib.nn.GroupNorm(2, 8)(lib.mx.ones((8,))),
        lambda lib: lib.nn.GroupNorm(2, 8)(lib.mx.ones((2, 3, 16))),
        lambda lib: lib.nn.GroupNorm(2, 4, affine=False)(lib.mx.array([[1, 2, 3, 4]])).dtype,
        lambda lib: lib.nn.LayerNorm(7)(lib.mx.ones((2, 8))),
        lambda lib: lib.nn.LayerNorm(7, affine=False)(lib.mx.ones((2, 8))),
        lambda lib: lib.nn.RMSNorm(7)(lib.mx.ones((2, 8))),
        lambda lib: lib.nn.LayerNorm(8)(lib.mx.array(1.0)),
    ],
)
def test_odd_calls(case: Case) -> None:
    same(case)


@pytest.mark.parametrize("name", ["instance", "group", "group as in PyTorch", "batch"])
def test_far_from_zero(name: str) -> None:
    """The mean is subtracted before squares are taken."""
    x = normal((2, 16, 8), name)[0] + 1000.0
    got = to_numpy(LAYERS[name][0](OURS)(x)).astype(np.float64)
    exact = to_numpy(x).astype(np.float64)
    shape, axes = {
        "batch": ((2, 16, 8), (0, 1)),
        "instance": ((2, 16, 8), (1,)),
        "group": ((2, 16, 4, 2), (1, 2)),
        "group as in PyTorch": ((2, 16, 2, 4), (1, 3)),
    }[name]
    grouped = exact.reshape(shape)
    centred = grouped - grouped.mean(axes, keepdims=True)
    want = centred / np.sqrt(grouped.var(axes, keepdims=True) + 1e-5)
    np.testing.assert_allclose(got, want.reshape(2, 16, 8), atol=5e-4)


def test_weights_of_mlx_can_be_loaded() -> None:
    """The names are the same, so files are, too."""
    make: Case = lambda lib: lib.nn.Sequential(lib.nn.BatchNorm(4), lib.nn.GroupNorm(2, 4))
    theirs = make(THEIRS)
    theirs(normal((6, 4))[1])
    ours = make(OURS)
    weights = THEIRS.utils.tree_flatten(theirs.parameters())
    ours.load_weights([(k, converted(v, mx)) for k, v in weights])
    assert_close(ours.parameters(), theirs.parameters())
