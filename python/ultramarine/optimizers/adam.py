"""Adam and its variants AdamW and Adamax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ultramarine as mx
from ultramarine.optimizers.base import Optimizer, check_fraction, check_not_negative

__all__ = ["Adam", "AdamW", "Adamax"]


class Adam(Optimizer):
    r"""Adam, which divides a running mean of gradients by the root of one of their squares.

    .. math::

        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        v &\leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        w &\leftarrow w - \lambda \frac{m}{\sqrt{v} + \epsilon}

    Bias correction divides :math:`m` by :math:`1 - \beta_1^t` and :math:`v` by :math:`1 - \beta_2^t` in the last
    line, where :math:`t` is the number of updates.

    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015.

    Args:
        learning_rate (float or Callable): Learning rate :math:`\lambda`, or its schedule.
        betas (list[float]): Coefficients :math:`\beta_1, \beta_2` of the running means. Default: [0.9, 0.999].
        eps (float): Term :math:`\epsilon` that keeps the denominator from zero. Default: 1e-8.
        bias_correction (bool): Applies the bias correction. Default: False.

    Raises:
        ValueError: If a coefficient of `betas` is not in [0, 1), or `eps` is negative.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optimizer = optim.Adam(learning_rate=0.5, bias_correction=True)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([1.0])})
        {'w': array([0.500003], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: float | Callable[[mx.array], mx.array],
        betas: list[float] = [0.9, 0.999],  # noqa: B006
        eps: float = 1e-8,
        bias_correction: bool = False,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        check_fraction(name, "beta1", betas[0])
        check_fraction(name, "beta2", betas[1])
        check_not_negative(name, "eps", eps)
        self._maybe_schedule("learning_rate", learning_rate)
        self.betas = betas
        self.eps = eps
        self.bias_correction = bias_correction

    def init_single(self, parameter: mx.array, state: dict[str, Any]) -> None:
        """Makes the state of one parameter: the running means `m` and `v`, zeros of its shape and dtype."""
        state["m"] = mx.zeros_like(parameter)
        state["v"] = mx.zeros_like(parameter)

    def apply_single(
        self, gradient: mx.array, parameter: mx.array, state: dict[str, Any]
    ) -> mx.array:
        """Returns the updated value of one parameter, and updates `m` and `v` of its state."""
        b1, b2 = self.betas
        m: mx.array = b1 * state["m"] + (1 - b1) * gradient
        v: mx.array = b2 * state["v"] + (1 - b2) * mx.square(gradient)
        state["m"], state["v"] = m, v
        if self.bias_correction:
            rate = self._once(self._corrected_rate, gradient.dtype)
            root = mx.sqrt(v) * self._once(self._root_correction, gradient.dtype)
        else:
            rate = self.learning_rate.astype(gradient.dtype)
            root = mx.sqrt(v)
        return parameter - rate * m / (root + self.eps)

    def _corrected_rate(self, dtype: mx.Dtype) -> mx.array:
        """The learning rate over `1 - beta1 ** step`, computed in float32."""
        return (self.learning_rate.astype(dtype) / (1 - self.betas[0] ** self.step)).astype(dtype)

    def _root_correction(self, dtype: mx.Dtype) -> mx.array:
        return mx.rsqrt(1 - self.betas[1] ** self.step).astype(dtype)


class AdamW(Adam):
    r"""Adam with decoupled weight decay.

    .. math::

        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        v &\leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        w &\leftarrow (1 - \alpha \lambda) w - \alpha \frac{m}{\sqrt{v} + \epsilon}

    Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019.

    Args:
        learning_rate (float or Callable): Learning rate :math:`\alpha`, or its schedule.
        betas (list[float]): Coefficients :math:`\beta_1, \beta_2` of the running means. Default: [0.9, 0.999].
        eps (float): Term :math:`\epsilon` that keeps the denominator from zero. Default: 1e-8.
        weight_decay (float): Weight decay :math:`\lambda`. Default: 0.01.
        bias_correction (bool): Applies Adam's bias correction. Default: False.

    Raises:
        ValueError: If a coefficient of `betas` is not in [0, 1), or `eps` is negative.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optimizer = optim.AdamW(learning_rate=0.5, weight_decay=0.1, bias_correction=True)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([1.0])})
        {'w': array([0.450003], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: float | Callable[[mx.array], mx.array],
        betas: list[float] = [0.9, 0.999],  # noqa: B006
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        bias_correction: bool = False,
    ) -> None:
        super().__init__(learning_rate, betas, eps, bias_correction)
        self.weight_decay = weight_decay

    def apply_single(
        self, gradient: mx.array, parameter: mx.array, state: dict[str, Any]
    ) -> mx.array:
        """Returns the updated value of one parameter, and updates `m` and `v` of its state."""
        decayed = parameter * self._once(self._decay, gradient.dtype)
        return super().apply_single(gradient, decayed, state)

    def _decay(self, dtype: mx.Dtype) -> mx.array:
        return 1 - self.learning_rate.astype(dtype) * self.weight_decay


class Adamax(Adam):
    r"""Adamax, the variant of Adam with the infinity norm, without bias correction.

    .. math::

        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        v &\leftarrow \max(\beta_2 v, |g|) \\
        w &\leftarrow w - \lambda \frac{m}{v + \epsilon}

    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, section 7.1.

    Args:
        learning_rate (float or Callable): Learning rate :math:`\lambda`, or its schedule.
        betas (list[float]): Coefficients :math:`\beta_1` of the running mean and :math:`\beta_2` of the norm.
            Default: [0.9, 0.999].
        eps (float): Term :math:`\epsilon` that keeps the denominator from zero. Default: 1e-8.

    Raises:
        ValueError: If a coefficient of `betas` is not in [0, 1), or `eps` is negative.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optimizer = optim.Adamax(learning_rate=0.5)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([1.0])})["w"].shape
        (1,)
    """

    def __init__(
        self,
        learning_rate: float | Callable[[mx.array], mx.array],
        betas: list[float] = [0.9, 0.999],  # noqa: B006
        eps: float = 1e-8,
    ) -> None:
        super().__init__(learning_rate, betas, eps)

    def apply_single(
        self, gradient: mx.array, parameter: mx.array, state: dict[str, Any]
    ) -> mx.array:
        """Returns the updated value of one parameter, and updates `m` and `v` of its state."""
        b1, b2 = self.betas
        rate = self.learning_rate.astype(gradient.dtype)
        m: mx.array = b1 * state["m"] + (1 - b1) * gradient
        v: mx.array = mx.maximum(b2 * state["v"], mx.abs(gradient))
        state["m"], state["v"] = m, v
        return parameter - rate * m / (v + self.eps)
