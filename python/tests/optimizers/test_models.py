"""Training of models: `update`, frozen parameters, clipping, compiled steps with the state of model and optimizer."""

from __future__ import annotations

from functools import partial
from typing import Any

import mlx.nn
import mlx.utils
import pytest
from support.compare import assert_close

from ultramarine import nn, utils

from .trees import OURS, THEIRS, tree

LIBRARIES = ((*OURS, nn, utils), (*THEIRS, mlx.nn, mlx.utils))
SIZES = {"layers": [{"weight": (8, 4), "bias": (8,)}, {}, {"weight": (2, 8), "bias": (2,)}]}

OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda o: o.SGD(0.1, momentum=0.9),
    "adamw": lambda o: o.AdamW(o.cosine_decay(0.02, 30), bias_correction=True),
    "adafactor": lambda o: o.Adafactor(),
    "multi": lambda o: o.MultiOptimizer([o.Muon(0.02), o.Adam(0.02)], [lambda p, w: w.ndim == 2]),
}


def train(library: Any, make: Any, compiled: bool, frozen: bool = False) -> Any:
    """Losses of some steps, and parameters and state after them."""
    mx, o, layers, trees = library
    model = layers.Sequential(layers.Linear(4, 8), layers.Tanh(), layers.Linear(8, 2))
    model.update(tree(mx, "float32", "weights", shapes=SIZES))
    if frozen:
        model.layers[0].freeze(keys="weight")
    optimizer = make(o)
    x, y = (tree(mx, "float32", name, shapes=(16, n)) for name, n in (("x", 4), ("y", 2)))
    loss_of = layers.value_and_grad(model, lambda x, y: mx.mean(mx.square(model(x) - y)))
    # Before `init`, as programs do that compile their first step: the state appears in the first call.
    state = [model.state, optimizer.state, mx.random.state]

    def step(x: Any, y: Any) -> Any:
        loss, gradients = loss_of(x, y)
        gradients, norm = o.clip_grad_norm(gradients, 1.0)
        optimizer.update(model, gradients)
        return loss, norm

    run = partial(mx.compile, inputs=state, outputs=state)(step) if compiled else step
    losses = []
    for _ in range(10):
        losses.append(run(x, y))
        mx.eval(state)
    flat = dict(trees.tree_flatten(model.parameters()))
    assert flat["layers.0.bias"].dtype == mx.float32
    return losses, flat, dict(trees.tree_flatten(optimizer.state))


@pytest.mark.parametrize("case", OPTIMIZERS)
def test_training(case: str) -> None:
    ours, theirs = [train(library, OPTIMIZERS[case], False) for library in LIBRARIES]
    assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert ours[0][-1][0].item() < 0.8 * ours[0][0][0].item()


@pytest.mark.parametrize("case", OPTIMIZERS)
def test_compiled_training(case: str) -> None:
    # mlx's is not compiled: that takes seconds, and the numbers are the same.
    ours = train(LIBRARIES[0], OPTIMIZERS[case], True)
    assert_close(ours, train(LIBRARIES[1], OPTIMIZERS[case], False), rtol=1e-4, atol=1e-5)


def test_frozen_parameters() -> None:
    """They keep their values, and have no state."""
    ours, theirs = [
        train(library, OPTIMIZERS["adamw"], False, frozen=True) for library in LIBRARIES
    ]
    assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    _, weights, state = ours
    first: Any = tree(OURS[0], "float32", "weights", shapes=SIZES)["layers"][0]["weight"]
    assert_close(weights["layers.0.weight"], first)
    assert "layers.0.weight.m" not in state and "layers.0.bias.m" in state
