"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ultramarine as mx
from ultramarine.optimizers.base import Optimizer

__all__ = ["SGD"]


class SGD(Optimizer):
    r"""Stochastic gradient descent, with momentum.

    With the gradient :math:`g`, to which weight decay adds :math:`\gamma w`:

    .. math::

        v &\leftarrow \mu v + (1 - \tau) g \\
        w &\leftarrow w - \lambda v

    Nesterov's momentum takes :math:`g + \mu v` instead of :math:`v` in the second line. Source: Sutskever,
    Martens, Dahl and Hinton, "On the importance of initialization and momentum in deep learning", ICML 2013.

    Args:
        learning_rate (float or Callable): Learning rate :math:`\lambda`, or its schedule.
        momentum (float): Momentum :math:`\mu`. Default: 0, without momentum.
        weight_decay (float): Weight decay :math:`\gamma`, an L2 penalty. Default: 0.
        dampening (float): Dampening :math:`\tau` of the momentum. Default: 0.
        nesterov (bool): Uses Nesterov's momentum. Default: False.

    Raises:
        ValueError: If `nesterov` comes without momentum, or with dampening.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optimizer = optim.SGD(learning_rate=0.5)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([1.0])})
        {'w': array([0], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: float | Callable[[mx.array], mx.array],
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"[SGD] nesterov has momentum {momentum} and dampening {dampening}. Pass a positive momentum and "
                "no dampening."
            )
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.dampening = dampening
        self.nesterov = nesterov

    def init_single(self, parameter: mx.array, state: dict[str, Any]) -> None:
        """Makes the state of one parameter: `v`, the momentum, zeros of its shape and dtype."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(
        self, gradient: mx.array, parameter: mx.array, state: dict[str, Any]
    ) -> mx.array:
        """Returns the updated value of one parameter, and updates `v` of its state."""
        if self.weight_decay != 0:
            gradient = gradient + self.weight_decay * parameter
        if self.momentum <= 0:
            return parameter - self.learning_rate.astype(gradient.dtype) * gradient
        new = gradient if self.dampening <= 0 else (1 - self.dampening) * gradient
        velocity: mx.array = self.momentum * state["v"] + new
        state["v"] = velocity
        if self.nesterov:
            velocity = gradient + self.momentum * velocity
        return parameter - self.learning_rate.astype(gradient.dtype) * velocity
