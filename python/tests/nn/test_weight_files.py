"""Weights: files go both ways between the libraries, and the same lists of weights are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.compare import assert_close, assert_identical

import ultramarine as um
from ultramarine import nn

from .pairs import OURS, THEIRS, Case, converted, normal, outcome, same

FORMATS = ["npz", "safetensors"]


def model(lib: Any) -> Any:
    """A model with several dtypes, and with few bits, in lists and submodules."""
    nn, mx = lib.nn, lib.mx
    module = nn.Sequential(nn.Embedding(10, 64), nn.Sequential(nn.Linear(64, 64), nn.ReLU()))
    nn.quantize(module, class_predicate=lambda path, _: path == "layers.0")
    module.half = [mx.zeros(3, dtype=mx.float16), {"brain": mx.ones(2, dtype=mx.bfloat16)}]
    module.counts = mx.array([[1, 2]], dtype=mx.int64)
    module._private = mx.array([3])
    return module


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_files_go_both_ways(tmp_path: Path, format: str, writer: str) -> None:
    source, target = (OURS, THEIRS) if writer == "ours" else (THEIRS, OURS)
    written, read = model(source), model(target)
    if format == "npz":
        # NumPy's format, which has no bfloat16.
        del written.half[1]["brain"], read.half[1]["brain"]
    file = str(tmp_path / f"weights.{format}")
    assert written.save_weights(file) is None
    assert read.load_weights(file) is read
    assert_identical(read.parameters(), written.parameters())
    x = [lib.mx.array([[1, 2, 9]]) for lib in (source, target)]
    assert_close(read(x[1]), written(x[0]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("format", FORMATS)
def test_paths_may_be_objects(tmp_path: Path, format: str) -> None:
    """mlx takes strings alone."""
    layer, other = nn.Linear(2, 3), nn.Linear(2, 3)
    file: Any = tmp_path / f"weights.{format}"
    layer.save_weights(file)
    assert_identical(other.load_weights(file).parameters(), layer.parameters())


W, B = ("weight", (3, 2)), ("bias", (3,))

WEIGHTS: dict[str, list[Any]] = {
    "all": [W, B],
    "other order": [B, W],
    "none": [],
    "missing": [W],
    "more": [W, B, ("foo", (3,)), ("bar.x", (3,))],
    "missing and more": [W, ("foo", (3,))],
    "shape": [W, ("bias", (3, 2))],
    "number": [W, ("bias", 3)],
    "list": [W, ("bias", [1, 2, 3])],
    "twice": [W, B, ("bias", (3,))],
}


@pytest.mark.parametrize("arguments", [{}, {"strict": True}, {"strict": False}], ids=str)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_lists(weights: str, arguments: dict[str, Any]) -> None:
    def case(lib: Any) -> Any:
        layer = lib.nn.Linear(2, 3)
        layer.update({"weight": lib.mx.zeros((3, 2)), "bias": lib.mx.zeros(3)})
        given = [(k, lib.mx.ones(v) if isinstance(v, tuple) else v) for k, v in WEIGHTS[weights]]
        assert layer.load_weights(given, **arguments) is layer
        return dict(layer), vars(layer)["_training"]

    if weights == "twice" and arguments.get("strict") is False:
        # In mlx this recursion has no end.
        assert outcome(case, OURS) is ValueError
    elif weights == "twice":
        assert outcome(case, OURS) in (ValueError, outcome(case, THEIRS))
    else:
        same(case)


@pytest.mark.parametrize(
    "case",
    [
        lambda lib: lib.nn.Linear(2, 3).save_weights("weights.txt"),
        lambda lib: lib.nn.Linear(2, 3).load_weights("missing.txt"),
        lambda lib: lib.nn.Linear(2, 3).load_weights({"weight": lib.mx.ones((3, 2))}),
        lambda lib: lib.nn.Linear(2, 3).load_weights(
            [("weight", np.ones((3, 2))), ("bias", np.ones(3))]
        ),
        lambda lib: (
            lib.nn.Linear(2, 3)
            .load_weights(
                [("weight", lib.mx.ones((3, 2), dtype=lib.mx.float16)), ("bias", lib.mx.ones(3))]
            )
            .weight.dtype
        ),
        lambda lib: (
            lib.nn.Sequential(lib.nn.ReLU(), lib.nn.Linear(2, 3))
            .load_weights([("layers.1.bias", lib.mx.ones(3))], strict=False)
            .layers[1]
            .bias
        ),
    ],
)
def test_odd_calls(case: Case) -> None:
    same(case)


def test_loading_keeps_what_is_frozen() -> None:
    layer = nn.Linear(2, 3).freeze(keys="bias")
    layer.load_weights([("weight", um.ones((3, 2))), ("bias", um.ones(3))])
    assert list(layer.trainable_parameters()) == ["weight"]


def test_weights_of_the_other_library_convert() -> None:
    """A reminder of the helper that other tests rely on."""
    ours, theirs = normal((3, 2), dtype="bfloat16")
    assert_identical(converted(theirs, um), ours)
