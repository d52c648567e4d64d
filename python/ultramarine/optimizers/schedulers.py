"""Schedules: functions from the number of steps to the value of a hyperparameter, as a rule the learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ultramarine as mx

__all__ = [
    "cosine_decay",
    "exponential_decay",
    "join_schedules",
    "linear_schedule",
    "step_decay",
]

# A schedule is a function of the step, which may be an array or an integer. It returns an array or
# a number.
Schedule = Callable[[Any], Any]


def exponential_decay(init: float, decay_rate: float) -> Schedule:
    """Makes a schedule that multiplies its value by a constant in every step: `init * decay_rate ** step`.

    Args:
        init (float): First value.
        decay_rate (float): Factor between the values of two steps.

    Returns:
        Callable: Function of a step, an array or an integer.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optim.exponential_decay(1e-1, 0.9)(mx.array(2))
        array(0.081, dtype=float32)
    """

    def schedule(step: Any) -> Any:
        return init * decay_rate**step

    return schedule


def step_decay(init: float, decay_rate: float, step_size: int) -> Schedule:
    """Makes a schedule that decays at regular intervals: `init * decay_rate ** (step // step_size)`.

    Args:
        init (float): First value.
        decay_rate (float): Factor between the values of two intervals.
        step_size (int): Number of steps in an interval.

    Returns:
        Callable: Function of a step, an array or an integer.

    Raises:
        ValueError: If `step_size` is not positive.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optim.step_decay(1e-1, 0.9, 10)(mx.array(21))
        array(0.081, dtype=float32)
    """
    _check_positive("step_decay", "step_size", step_size)

    def schedule(step: Any) -> Any:
        return init * decay_rate ** (step // step_size)

    return schedule


def cosine_decay(init: float, decay_steps: int, end: float = 0.0) -> Schedule:
    """Makes a schedule that falls from `init` to `end` along half a period of the cosine.

    The value is `end + (init - end) * (1 + cos(pi * step / decay_steps)) / 2`, and `end` after `decay_steps`
    steps. This is one period of Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts",
    ICLR 2017.

    Args:
        init (float): First value.
        decay_steps (int): Number of steps from `init` to `end`.
        end (float): Last value. Default: 0.

    Returns:
        Callable: Function of a step, an array or an integer.

    Raises:
        ValueError: If `decay_steps` is not positive.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optim.cosine_decay(1e-1, 1000)(mx.array(500))
        array(0.05, dtype=float32)
    """
    _check_positive("cosine_decay", "decay_steps", decay_steps)
    frequency = math.pi / decay_steps
    height = init - end

    def schedule(step: Any) -> mx.array:
        phase = mx.minimum(step, decay_steps) * frequency
        return 0.5 * (1.0 + mx.cos(phase)) * height + end

    return schedule


def linear_schedule(init: float, end: float, steps: int) -> Schedule:
    """Makes a schedule that goes from `init` to `end` in a straight line, and keeps `end` after `steps` steps.

    Args:
        init (float): First value.
        end (float): Last value.
        steps (int): Number of steps from `init` to `end`.

    Returns:
        Callable: Function of a step, an array or an integer.

    Raises:
        ValueError: If `steps` is not positive.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optim.linear_schedule(0, 1e-1, 100)(mx.array(50))
        array(0.05, dtype=float32)
    """
    _check_positive("linear_schedule", "steps", steps)
    slope = (end - init) / steps

    def schedule(step: Any) -> mx.array:
        return mx.minimum(step, steps) * slope + init

    return schedule


def join_schedules(schedules: list[Schedule], boundaries: list[int]) -> Schedule:
    """Makes a schedule that follows one schedule after another.

    Every schedule counts its steps from the boundary where it begins. All of them are computed in every step,
    and `where` chooses, so that a step may be traced by `compile`.

    Args:
        schedules (list[Callable]): Schedules, in the order of their use.
        boundaries (list[int]): Steps at which the second and each later schedule begins, in ascending order.

    Returns:
        Callable: Function of a step, an array or an integer.

    Raises:
        ValueError: If there are no schedules, or not one boundary less than schedules.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> warmup = optim.linear_schedule(0, 1e-1, 10)
        >>> schedule = optim.join_schedules([warmup, optim.cosine_decay(1e-1, 200)], [10])
        >>> schedule(mx.array(5)), schedule(mx.array(110))
        (array(0.05, dtype=float32), array(0.05, dtype=float32))
    """
    if not schedules:
        raise ValueError("[join_schedules] there are no schedules. Pass at least one.")
    if len(boundaries) != len(schedules) - 1:
        raise ValueError(
            f"[join_schedules] {len(schedules)} schedules have {len(boundaries)} boundaries. "
            f"Pass {len(schedules) - 1}, one between two schedules."
        )

    def schedule(step: Any) -> Any:
        value = schedules[0](step)
        for boundary, following in zip(boundaries, schedules[1:]):
            value = mx.where(step < boundary, value, following(step - boundary))
        return value

    return schedule


def _check_positive(function: str, name: str, value: float) -> None:
    if value <= 0:
        raise ValueError(f"[{function}] {name} is {value}. Pass a positive number of steps.")
