"""Schedules are mlx's, step by step."""

from __future__ import annotations

from typing import Any

import pytest
from support.compare import assert_close
from support.harness import name_of

import ultramarine as mx
from ultramarine import optimizers as optim

from .trees import BOTH, OURS, THEIRS

SCHEDULES: dict[str, Any] = {
    "exponential": lambda o: o.exponential_decay(0.1, 0.9),
    "exponential of integers": lambda o: o.exponential_decay(2, 1),
    "step": lambda o: o.step_decay(0.1, 0.7, 5),
    "cosine": lambda o: o.cosine_decay(0.1, 20),
    "cosine to end": lambda o: o.cosine_decay(0.1, 13, 0.02),
    "linear": lambda o: o.linear_schedule(0.0, 0.1, 10),
    "linear down": lambda o: o.linear_schedule(0.1, 1e-5, 17),
    "linear of integers": lambda o: o.linear_schedule(0, 1, 7),
    "warmup": lambda o: o.join_schedules(
        [o.linear_schedule(0, 0.1, 6), o.cosine_decay(0.1, 20)], [6]
    ),
    "three": lambda o: o.join_schedules(
        [o.exponential_decay(0.1, 0.9), lambda step: 0.5, o.linear_schedule(1, 2, 3)], [4, 9]
    ),
    "one": lambda o: o.join_schedules([o.exponential_decay(0.1, 0.9)], []),
}


# The last values of a cosine are differences: their errors are those of numbers as large as the first.
@pytest.mark.parametrize("case", SCHEDULES)
def test_arrays(case: str) -> None:
    for dtype in ["uint64", "int32", "float32"]:
        got, want = [
            [SCHEDULES[case](o)(mx.array(i, getattr(mx, dtype))) for i in range(30)]
            for mx, o in BOTH
        ]
        assert_close(got, want, rtol=1e-6, atol=1e-8, where=dtype)


@pytest.mark.parametrize("case", SCHEDULES)
def test_python_integers(case: str) -> None:
    got, want = [[SCHEDULES[case](o)(i) for i in range(30)] for _, o in BOTH]
    assert [type(x).__name__ for x in got] == [type(x).__name__ for x in want]
    assert_close(got, want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("case", SCHEDULES)
def test_in_an_optimizer(case: str) -> None:
    """The rate of an update is that of the steps before it."""
    rates: list[list[Any]] = []
    for library, o in (OURS, THEIRS):
        optimizer = o.SGD(SCHEDULES[case](o))
        rates.append([library.array(optimizer.learning_rate)])
        for _ in range(25):
            optimizer.update(Ignored(), {})
            rates[-1].append(library.array(optimizer.learning_rate))
    assert_close(*rates, rtol=1e-6, atol=1e-8)


class Ignored(dict[str, Any]):
    """A model without parameters."""

    def update(self, parameters: Any) -> None:  # type: ignore[override]
        assert parameters == {}


def test_rate_of_each_update() -> None:
    """Each update uses the rate of the step before, not that of the next one."""
    optimizer = optim.SGD(lambda step: step.astype(mx.float32))
    parameters = {"w": mx.array(0.0)}
    seen = []
    for _ in range(4):
        parameters = optimizer.apply_gradients({"w": mx.array(1.0)}, parameters)
        seen.append(parameters["w"].item())
    assert seen == [0.0, -1.0, -3.0, -6.0]


def test_values() -> None:
    """The formulas, in Python."""
    cosine = optim.cosine_decay(0.3, 4, 0.1)
    assert_close(
        [cosine(i) for i in (0, 2, 4, 9)], [mx.array(x) for x in (0.3, 0.2, 0.1, 0.1)], rtol=1e-6
    )
    joined = optim.join_schedules([lambda s: s * 10, lambda s: s + 1, lambda s: s * 0], [3, 5])
    assert [joined(mx.array(i)).item() for i in range(7)] == [0, 10, 20, 1, 2, 0, 0]
    assert optim.step_decay(8, 0.5, 3)(7) == 2.0


def test_constant_schedule_is_kept_as_it_is() -> None:
    optimizer = optim.SGD(lambda step: 0.5)  # type: ignore[arg-type, return-value]
    assert optimizer.learning_rate == 0.5
    assert name_of(optimizer.step.dtype) == "uint64"


ERRORS = {
    "steps": lambda o: o.linear_schedule(0, 1, 0),
    "steps negative": lambda o: o.linear_schedule(0, 1, -2),
    "decay_steps": lambda o: o.cosine_decay(0.1, 0),
    "step_size": lambda o: o.step_decay(0.1, 0.5, 0),
    "no schedules": lambda o: o.join_schedules([], []),
    "boundaries": lambda o: o.join_schedules([lambda s: s], [3]),
    "no boundaries": lambda o: o.join_schedules([lambda s: s, lambda s: s], []),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    for _, o in BOTH:
        with pytest.raises(ValueError) as error:
            ERRORS[case](o)
        assert o is not optim or ("[" in str(error.value) and "Pass" in str(error.value))
