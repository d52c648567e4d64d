"""Updates are torch's where both have the same formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.harness import rng

import ultramarine as mx
from ultramarine import optimizers as optim

torch: Any = pytest.importorskip("torch")

STEPS = 30

# Ours, torch's, and the dtype of the comparison.
CASES: dict[str, tuple[Callable[[], optim.Optimizer], Callable[[Any], Any]]] = {
    "sgd": (lambda: optim.SGD(0.1), lambda p: torch.optim.SGD(p, 0.1)),
    # torch's first momentum is the gradient, without dampening.
    "sgd momentum": (
        lambda: optim.SGD(0.1, momentum=0.9, weight_decay=0.01),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    ),
    "sgd nesterov": (
        lambda: optim.SGD(0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    ),
    "rmsprop": (
        lambda: optim.RMSprop(0.01, alpha=0.9, eps=1e-3),
        lambda p: torch.optim.RMSprop(p, 0.01, alpha=0.9, eps=1e-3),
    ),
    "adagrad": (
        lambda: optim.Adagrad(0.1, eps=1e-4),
        lambda p: torch.optim.Adagrad(p, 0.1, eps=1e-4),
    ),
    "adadelta": (
        lambda: optim.AdaDelta(0.5, rho=0.8, eps=1e-4),
        lambda p: torch.optim.Adadelta(p, 0.5, rho=0.8, eps=1e-4),
    ),
    "adam": (
        lambda: optim.Adam(0.01, betas=[0.8, 0.95], eps=1e-6, bias_correction=True),
        lambda p: torch.optim.Adam(p, 0.01, betas=(0.8, 0.95), eps=1e-6),
    ),
    "adamw": (
        lambda: optim.AdamW(0.01, weight_decay=0.1, bias_correction=True),
        lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
    ),
}


def ours(make: Callable[[], optim.Optimizer]) -> np.ndarray:
    optimizer = make()
    parameters = {"w": mx.array(start())}
    for step in range(STEPS):
        parameters = optimizer.apply_gradients({"w": mx.array(gradient(step))}, parameters)
    return np.array(parameters["w"])


def theirs(make: Callable[[Any], Any]) -> np.ndarray:
    parameter = torch.nn.Parameter(torch.tensor(start(), dtype=torch.float64))
    optimizer = make([parameter])
    for step in range(STEPS):
        parameter.grad = torch.tensor(gradient(step), dtype=torch.float64)
        optimizer.step()
    return parameter.detach().numpy()  # type: ignore[no-any-return]


def start() -> np.ndarray:
    return rng("torch").standard_normal((3, 4)).astype("float32")


def gradient(step: int) -> np.ndarray:
    return rng("torch", step).standard_normal((3, 4)).astype("float32")


@pytest.mark.parametrize("case", CASES)
def test_same_as_torch_in_float64(case: str) -> None:
    make, reference = CASES[case]
    got, want = ours(make), theirs(reference)
    assert np.abs(want - start()).max() > 0.05
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)


def test_adamax_without_correction() -> None:
    """torch corrects the mean with the step: a schedule takes it out."""
    rate = lambda step: 0.01 / (1 - 0.9 ** (step + 1).astype(mx.float32))
    got = ours(lambda: optim.Adamax(rate, eps=1e-8))
    want = theirs(lambda p: torch.optim.Adamax(p, 0.01, eps=1e-8))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)
