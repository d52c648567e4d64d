"""Lion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ultramarine as mx
from ultramarine.optimizers.base import Optimizer, check_fraction

__all__ = ["Lion"]


class Lion(Optimizer):
    r"""Lion, whose updates are the signs of a momentum.

    .. math::

        c &= \beta_1 m + (1 - \beta_1) g \\
        m &\leftarrow \beta_2 m + (1 - \beta_2) g \\
        w &\leftarrow w - \eta (\text{sign}(c) + \lambda w)

    All elements of an update have the same size, so that the norm is larger than Adam's. Suitable learning rates
    are 3 to 10 times smaller than those of AdamW, and weight decays larger by the same factor.

    Source: Chen et al., "Symbolic Discovery of Optimization Algorithms", arXiv:2302.06675.

    Args:
        learning_rate (float or Callable): Learning rate :math:`\eta`, or its schedule.
        betas (list[float]): Coefficients :math:`\beta_1, \beta_2` of the direction and the momentum.
            Default: [0.9, 0.99].
        weight_decay (float): Weight decay :math:`\lambda`. Default: 0.

    Raises:
        ValueError: If a coefficient of `betas` is not in [0, 1).

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optimizer = optim.Lion(learning_rate=0.5)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([1.0])})
        {'w': array([0.5], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: float | Callable[[mx.array], mx.array],
        betas: list[float] = [0.9, 0.99],  # noqa: B006
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__()
        check_fraction("Lion", "beta1", betas[0])
        check_fraction("Lion", "beta2", betas[1])
        self._maybe_schedule("learning_rate", learning_rate)
        self.betas = betas
        self.weight_decay = weight_decay

    def init_single(self, parameter: mx.array, state: dict[str, Any]) -> None:
        """Makes the state of one parameter: `m`, the momentum, zeros of its shape and dtype."""
        state["m"] = mx.zeros_like(parameter)

    def apply_single(
        self, gradient: mx.array, parameter: mx.array, state: dict[str, Any]
    ) -> mx.array:
        """Returns the updated value of one parameter, and updates `m` of its state."""
        b1, b2 = self.betas
        rate = self.learning_rate.astype(gradient.dtype)
        m = state["m"]
        if self.weight_decay > 0:
            parameter = self._once(self._decay, gradient.dtype) * parameter
        direction = mx.sign(b1 * m + (1 - b1) * gradient)
        state["m"] = b2 * m + (1 - b2) * gradient
        return parameter - rate * direction

    def _decay(self, dtype: mx.Dtype) -> mx.array:
        return 1 - self.learning_rate.astype(dtype) * self.weight_decay
