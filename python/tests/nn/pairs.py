"""Layers of both libraries with the same parameters, and cases that must come to the same in both."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import mlx.core as mlx
import mlx.nn as mlx_nn
import mlx.optimizers as mlx_optimizers
import mlx.utils as mlx_utils
from support.compare import assert_close
from support.harness import array, name_of, rng, to_numpy

import ultramarine as um
from ultramarine import nn, optimizers, utils

OURS: Any = SimpleNamespace(mx=um, nn=nn, utils=utils, optimizers=optimizers)
THEIRS: Any = SimpleNamespace(mx=mlx, nn=mlx_nn, utils=mlx_utils, optimizers=mlx_optimizers)

Case = Callable[[Any], Any]


def shown(x: Any) -> Any:
    """A value of either library without what is the library's own: arrays, dtypes and modules as text and lists."""
    if isinstance(x, (um.array, mlx.array)):
        return name_of(x.dtype), x.shape, to_numpy(x).tolist()
    if isinstance(x, (um.Dtype, mlx.Dtype)):
        return name_of(x)
    if isinstance(x, (OURS.nn.Module, THEIRS.nn.Module)):
        return repr(x)
    if isinstance(x, dict):
        return type(x).__name__, [(k, shown(v)) for k, v in x.items()]
    if isinstance(x, (list, tuple)):
        return type(x).__name__, [shown(v) for v in x]
    return x.__name__ if isinstance(x, type) else x


def ordinary(module: Any, *ignored: str) -> dict[str, Any]:
    """The attributes of a module that are no items of it, without the set of its frozen parameters."""
    return {
        k: v for k, v in vars(module).items() if k not in (*ignored, "_no_grad") and k not in module
    }


def outcome(case: Case, library: Any) -> Any:
    """The result of a case in a library: the value as `shown`, or the type of the error."""
    try:
        return shown(case(library))
    except Exception as error:
        return type(error)


def same(case: Case) -> Any:
    """The outcome of a case, which is the same in both libraries."""
    ours, theirs = outcome(case, OURS), outcome(case, THEIRS)
    assert ours == theirs, f"{ours}\nmlx: {theirs}"
    return ours


def converted(x: Any, mx: Any) -> Any:
    """A tree of arrays as one of a library's arrays."""
    if isinstance(x, (um.array, mlx.array)):
        return array(mx, to_numpy(x), name_of(x.dtype))
    if isinstance(x, dict):
        return {k: converted(v, mx) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(converted(v, mx) for v in x)
    return x


def pair(make: Case, dtype: str = "float32") -> tuple[Any, Any]:
    """A module of ours and one of mlx's, with mlx's parameters."""
    mlx.random.seed(7)
    theirs, ours = make(THEIRS), make(OURS)
    theirs.set_dtype(getattr(mlx, dtype))
    ours.set_dtype(getattr(um, dtype))
    ours.update(converted(theirs.parameters(), um))
    return ours, theirs


def normal(shape: tuple[int, ...], *key: object, dtype: str = "float32") -> tuple[Any, Any]:
    """The same normal variates as an array of ours and one of mlx's."""
    data = rng(shape, *key).standard_normal(shape).astype("float32")
    theirs = mlx.array(data).astype(getattr(mlx, dtype))
    return converted(theirs, um), theirs


def assert_same_layer(
    modules: tuple[Any, Any],
    *inputs: tuple[Any, Any],
    rtol: float = 2e-5,
    atol: float = 2e-5,
    call: Callable[..., Any] = lambda module, *inputs: module(*inputs),
) -> None:
    """Asserts that outputs, and gradients by trainable parameters and by floating-point inputs, are the same.

    The gradients are those of the sum of the squares of the output.
    """
    results = []
    for side, library in enumerate((OURS, THEIRS)):
        mx, module = library.mx, modules[side]
        arrays = [x[side] for x in inputs]
        floats = [i for i, x in enumerate(arrays) if mx.issubdtype(x.dtype, mx.floating)]

        def loss(*arrays: Any, module: Any = module) -> Any:
            return call(module, *arrays).square().sum()

        output = call(module, *arrays)
        by_inputs = mx.value_and_grad(loss, argnums=floats)(*arrays)[1] if floats else ()
        by_parameters = {}
        if library.utils.tree_flatten(module.trainable_parameters()):
            _, by_parameters = library.nn.value_and_grad(module, loss)(*arrays)
        results.append([output, list(by_inputs), by_parameters])
    assert_close(*results, rtol=rtol, atol=atol)
