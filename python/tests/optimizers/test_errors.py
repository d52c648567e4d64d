"""Arguments and states that are wrong, and the signatures of all names."""

from __future__ import annotations

import inspect
from typing import Any

import mlx.optimizers
import pytest

import ultramarine as um
from ultramarine import optimizers as optim

from .trees import BOTH

NAMES = [
    *("AdaDelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "MultiOptimizer"),
    *("Muon", "Optimizer", "RMSprop", "SGD", "clip_grad_norm"),
]
SCHEDULES = [
    *("cosine_decay", "exponential_decay", "join_schedules", "linear_schedule", "step_decay"),
]

ARGUMENTS: dict[str, Any] = {
    "alpha": lambda o: o.RMSprop(0.1, alpha=-1),
    "rmsprop eps": lambda o: o.RMSprop(0.1, eps=0.0),
    "adagrad eps": lambda o: o.Adagrad(0.1, eps=0.0),
    "rho": lambda o: o.AdaDelta(0.1, rho=-0.5),
    "adadelta eps": lambda o: o.AdaDelta(0.1, eps=-1),
    "beta1": lambda o: o.Adam(0.1, betas=[1.0, 0.9]),
    "beta2": lambda o: o.Adam(0.1, betas=[0.9, -0.1]),
    "adam eps": lambda o: o.Adam(0.1, eps=-1e-8),
    "adamw": lambda o: o.AdamW(0.1, betas=[2, 0.9]),
    "adamax": lambda o: o.Adamax(0.1, eps=-1),
    "lion beta1": lambda o: o.Lion(0.1, betas=[1, 0.9]),
    "lion beta2": lambda o: o.Lion(0.1, betas=[0.9, 1]),
    "nesterov": lambda o: o.SGD(0.1, nesterov=True),
    "nesterov dampening": lambda o: o.SGD(0.1, 0.9, dampening=0.1, nesterov=True),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments(case: str) -> None:
    for _, o in BOTH:
        with pytest.raises(ValueError) as error:
            ARGUMENTS[case](o)
    with pytest.raises(ValueError) as error:
        ARGUMENTS[case](optim)
    assert str(error.value).startswith("[") and "Pass" in str(error.value)


def test_arguments_at_the_limit() -> None:
    for _, o in BOTH:
        o.RMSprop(0.1, alpha=0)
        o.AdaDelta(0.1, rho=2)
        o.Adam(0.1, betas=[0, 0], eps=0)
        o.SGD(-0.1, dampening=0.5)
        o.Muon(-1, ns_steps=0)


@pytest.mark.parametrize("rate", [None, "x"])
def test_learning_rates_that_are_none(rate: Any) -> None:
    for _, o in BOTH:
        with pytest.raises((TypeError, ValueError)):
            o.SGD(rate)


def test_missing_entries() -> None:
    for mx, o in BOTH:
        grads = {"w": mx.ones(2)}
        with pytest.raises(KeyError, match="learning_rate"):
            _ = o.Adafactor().learning_rate
        with pytest.raises(KeyError, match="learning_rate"):
            o.Adafactor(relative_step=False).apply_gradients(grads, grads)
        optimizer = o.SGD(0.1)
        optimizer.state = {}
        with pytest.raises(KeyError, match="step"):
            optimizer.apply_gradients(grads, grads)
        with pytest.raises(KeyError, match="w"):
            o.SGD(0.1).apply_gradients(grads, {"b": mx.ones(2)})
        with pytest.raises(AttributeError):
            optimizer.step = 3


def test_base_class() -> None:
    calls: list[Any] = [
        lambda optimizer, w: optimizer.init({"w": w}),
        lambda optimizer, w: optimizer.init_single(w, {}),
        lambda optimizer, w: optimizer.apply_single(w, w, {}),
    ]
    for mx, o in BOTH:
        for call in calls:
            with pytest.raises(NotImplementedError):
                call(o.Optimizer(), mx.ones(2))


STATES: dict[str, Any] = {
    "array for a dictionary": ({"w": um.ones(2)}, {"w": um.ones(2)}),
    "array for a tree": ({"w": um.ones(2)}, {"w": {"deep": um.ones(2)}}),
    "dictionary for a list": ({"w": {"m": um.ones(2)}}, {"w": [um.ones(2)]}),
    "list for a dictionary": ({"w": [{"m": um.ones(2)}]}, {"w": {"deep": um.ones(2)}}),
}


@pytest.mark.parametrize("case", STATES)
def test_states_of_another_structure(case: str) -> None:
    state, parameters = STATES[case]
    optimizer = optim.Adam(0.1)
    optimizer.state = optimizer.state | state
    with pytest.raises(ValueError, match=r"\[Adam.init\] the state has a .* where the parameters"):
        optimizer.init(parameters)


def test_parameters_without_names() -> None:
    """mlx raises a KeyError of an index."""
    with pytest.raises(ValueError, match="as a dictionary"):
        optim.Adam(0.1).init([um.ones(2)])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES + SCHEDULES)
def test_signatures(name: str) -> None:
    ours, theirs = getattr(optim, name), getattr(mlx.optimizers, name)
    assert parameters(ours) == parameters(theirs)
    if inspect.isclass(ours):
        for method in [m for m in vars(theirs) if not m.startswith("_")]:
            want = getattr(theirs, method)
            if isinstance(want, property):
                assert (getattr(ours, method).fset is None) == (want.fset is None), method
            else:
                assert parameters(getattr(ours, method)) == parameters(want), method


def parameters(function: Any) -> list[Any]:
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in found]


def test_modules() -> None:
    """Programs import from the modules as they do in mlx."""
    from ultramarine.optimizers import optimizers, schedulers

    assert all(getattr(optimizers, name) is getattr(optim, name) for name in NAMES)
    assert all(getattr(schedulers, name) is getattr(optim, name) for name in SCHEDULES)
    assert issubclass(optim.AdamW, optim.Adam) and issubclass(optim.Adamax, optim.Adam)
    public = {n for n in vars(mlx.optimizers) if n in NAMES + SCHEDULES}
    assert public == set(NAMES + SCHEDULES)
