"""Optimizers that divide by a mean or sum of squared gradients: Adagrad, RMSprop and AdaDelta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ultramarine as mx
from ultramarine.optimizers.base import Optimizer, check_not_negative, check_positive

__all__ = ["AdaDelta", "Adagrad", "RMSprop"]


class RMSprop(Optimizer):
    r"""RMSprop, which divides by the root of a running mean of squared gradients.

    .. math::

        v &\leftarrow \alpha v + (1 - \alpha) g^2 \\
        w &\leftarrow w - \lambda \frac{g}{\sqrt{v} + \epsilon}

    Source: Tieleman and Hinton, "Lecture 6.5: RMSprop", Neural Networks for Machine Learning, Coursera 2012.

    Args:
        learning_rate (float or Callable): Learning rate :math:`\lambda`, or its schedule.
        alpha (float): Coefficient :math:`\alpha` of the running mean. Default: 0.99.
        eps (float): Term :math:`\epsilon` that keeps the denominator from zero. Default: 1e-8.

    Raises:
        ValueError: If `alpha` is negative, or `eps` is not positive.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optimizer = optim.RMSprop(learning_rate=0.5, alpha=0.75)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([1.0])})
        {'w': array([0], dtype=float32)}
    """

    def __init__(
        self,
        learning_rate: float | Callable[[mx.array], mx.array],
        alpha: float = 0.99,
        eps: float = 1e-8,
    ) -> None:
        super().__init__()
        check_not_negative("RMSprop", "alpha", alpha)
        check_positive("RMSprop", "eps", eps)
        self._maybe_schedule("learning_rate", learning_rate)
        self.alpha = alpha
        self.eps = eps

    def init_single(self, parameter: mx.array, state: dict[str, Any]) -> None:
        """Makes the state of one parameter: `v`, the mean square, zeros of its shape and dtype."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(
        self, gradient: mx.array, parameter: mx.array, state: dict[str, Any]
    ) -> mx.array:
        """Returns the updated value of one parameter, and updates `v` of its state."""
        rate = self.learning_rate.astype(gradient.dtype)
        state["v"] = v = self.alpha * state["v"] + (1 - self.alpha) * mx.square(gradient)
        return parameter - rate * gradient / (mx.sqrt(v) + self.eps)


class Adagrad(Optimizer):
    r"""Adagrad, which divides by the root of the sum of all squared gradients.

    .. math::

        v &\leftarrow v + g^2 \\
        w &\leftarrow w - \lambda \frac{g}{\sqrt{v} + \epsilon}

    Source: Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic
    Optimization", JMLR 2011.

    Args:
        learning_rate (float or Callable): Learning rate :math:`\lambda`, or its schedule.
        eps (float): Term :math:`\epsilon` that keeps the denominator from zero. Default: 1e-8.

    Raises:
        ValueError: If `eps` is not positive.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optimizer = optim.Adagrad(learning_rate=0.5)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([1.0])})
        {'w': array([0.5], dtype=float32)}
    """

    def __init__(
        self, learning_rate: float | Callable[[mx.array], mx.array], eps: float = 1e-8
    ) -> None:
        super().__init__()
        check_positive("Adagrad", "eps", eps)
        self._maybe_schedule("learning_rate", learning_rate)
        self.eps = eps

    def init_single(self, parameter: mx.array, state: dict[str, Any]) -> None:
        """Makes the state of one parameter: `v`, the sum of squares, zeros of its shape and dtype."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(
        self, gradient: mx.array, parameter: mx.array, state: dict[str, Any]
    ) -> mx.array:
        """Returns the updated value of one parameter, and updates `v` of its state."""
        rate = self.learning_rate.astype(gradient.dtype)
        state["v"] = v = state["v"] + mx.square(gradient)
        return parameter - rate * gradient / (mx.sqrt(v) + self.eps)


class AdaDelta(Optimizer):
    r"""AdaDelta, which scales a gradient by running means of squared updates and of squared gradients.

    .. math::

        v &\leftarrow \rho v + (1 - \rho) g^2 \\
        \Delta &= \frac{\sqrt{u + \epsilon}}{\sqrt{v + \epsilon}} g \\
        u &\leftarrow \rho u + (1 - \rho) \Delta^2 \\
        w &\leftarrow w - \lambda \Delta

    Source: Zeiler, "ADADELTA: An Adaptive Learning Rate Method", arXiv:1212.5701, where :math:`\lambda` is 1.

    Args:
        learning_rate (float or Callable): Learning rate :math:`\lambda`, or its schedule.
        rho (float): Coefficient :math:`\rho` of both running means. Default: 0.9.
        eps (float): Term :math:`\epsilon` below both roots. Default: 1e-6.

    Raises:
        ValueError: If `rho` is negative, or `eps` is not positive.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optimizer = optim.AdaDelta(learning_rate=1.0)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([1.0])})["w"].shape
        (1,)
    """

    def __init__(
        self,
        learning_rate: float | Callable[[mx.array], mx.array],
        rho: float = 0.9,
        eps: float = 1e-6,
    ) -> None:
        super().__init__()
        check_not_negative("AdaDelta", "rho", rho)
        check_positive("AdaDelta", "eps", eps)
        self._maybe_schedule("learning_rate", learning_rate)
        self.rho = rho
        self.eps = eps

    def init_single(self, parameter: mx.array, state: dict[str, Any]) -> None:
        """Makes the state of one parameter: the mean squares `v` of gradients and `u` of updates."""
        state["v"] = mx.zeros_like(parameter)
        state["u"] = mx.zeros_like(parameter)

    def apply_single(
        self, gradient: mx.array, parameter: mx.array, state: dict[str, Any]
    ) -> mx.array:
        """Returns the updated value of one parameter, and updates `v` and `u` of its state."""
        rate = self.learning_rate.astype(gradient.dtype)
        rho, eps, u = self.rho, self.eps, state["u"]
        state["v"] = v = rho * state["v"] + (1 - rho) * mx.square(gradient)
        change = mx.sqrt(u + eps) / mx.sqrt(v + eps) * gradient
        state["u"] = rho * u + (1 - rho) * mx.square(change)
        return parameter - rate * change
