"""Adafactor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ultramarine as mx
from ultramarine.optimizers.base import Optimizer

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    r"""Adafactor, whose second moments of a matrix take as much memory as a row and a column.

    For parameters of two and more dimensions, `R` and `C` are the running means of :math:`g^2 + \epsilon_1` over
    the last and the second last dimension, and :math:`R C / \text{mean}(R)` stands for the full second moment
    :math:`V`. The coefficient of the running means is :math:`1 - t^c` in step :math:`t`.

    .. math::

        U &= g / \sqrt{V} \\
        w &\leftarrow w - \alpha \, U / \max(1, \text{RMS}(U) / d)

    The step size :math:`\alpha` is the learning rate or, with `relative_step`, the smaller one of
    :math:`1/\sqrt{t}` and 0.01 (:math:`10^{-6} t` with `warmup_init`). `scale_parameter` multiplies it by
    :math:`\max(\epsilon_2, \text{RMS}(w))`.

    Source: Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", ICML 2018.

    Args:
        learning_rate (float or Callable, optional): Learning rate, or its schedule, which needs
            `relative_step=False`. Default: None.
        eps (tuple[float, float]): Terms :math:`\epsilon_1` and :math:`\epsilon_2`. Default: (1e-30, 1e-3).
        clip_threshold (float): Root mean square :math:`d` at which updates are clipped. Default: 1.
        decay_rate (float): Exponent :math:`c` of the running means' coefficient. Default: -0.8.
        beta_1 (float, optional): Coefficient of a running mean of updates, which takes as much memory as the
            parameters. Default: None, without it.
        weight_decay (float): Weight decay. Default: 0.
        scale_parameter (bool): Scales the step size with the parameter. Default: True.
        relative_step (bool): Computes the step size from the step, and ignores the learning rate. Default: True.
        warmup_init (bool): Starts with small relative steps. Default: False.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optimizer = optim.Adafactor(learning_rate=0.5, relative_step=False)
        >>> optimizer.apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([1.0])})["w"].shape
        (1,)
    """

    def __init__(
        self,
        learning_rate: float | Callable[[mx.array], mx.array] | None = None,
        eps: tuple[float, float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = -0.8,
        beta_1: float | None = None,
        weight_decay: float = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
    ) -> None:
        super().__init__()
        if learning_rate is not None:
            self._maybe_schedule("learning_rate", learning_rate)
        self.eps = eps
        self.clip_threshold = clip_threshold
        self.decay_rate = decay_rate
        self.beta_1 = beta_1
        self.weight_decay = weight_decay
        self.scale_parameter = scale_parameter
        self.relative_step = relative_step
        self.warmup_init = warmup_init

    def init_single(self, parameter: mx.array, state: dict[str, Any]) -> None:
        """Makes the state of one parameter, of its dtype.

        It is `exp_avg_sq_row` and `exp_avg_sq_col` from two dimensions on, else `exp_avg_sq`, and with `beta_1`
        also `exp_avg`.
        """
        shape, dtype = parameter.shape, parameter.dtype
        if len(shape) >= 2:
            state["exp_avg_sq_row"] = mx.zeros(shape[:-1], dtype)
            state["exp_avg_sq_col"] = mx.zeros(shape[:-2] + shape[-1:], dtype)
        else:
            state["exp_avg_sq"] = mx.zeros_like(parameter)
        if self.beta_1 is not None:
            state["exp_avg"] = mx.zeros_like(parameter)

    def apply_single(
        self, gradient: mx.array, parameter: mx.array, state: dict[str, Any]
    ) -> mx.array:
        """Returns the updated value of one parameter, and updates its state."""
        dtype = parameter.dtype
        size = self._once(self._relative_size, dtype)
        if self.scale_parameter:
            size = mx.maximum(self.eps[1], _rms(parameter)) * size
        old = self._once(self._coefficient, dtype)
        new = 1 - old
        square = mx.square(gradient) + self.eps[0]
        if gradient.ndim >= 2:
            row = old * state["exp_avg_sq_row"] + new * mx.mean(square, axis=-1)
            col = old * state["exp_avg_sq_col"] + new * mx.mean(square, axis=-2)
            state["exp_avg_sq_row"], state["exp_avg_sq_col"] = row, col
            row = mx.rsqrt(row / mx.mean(row, axis=-1, keepdims=True))
            factor = mx.expand_dims(row, -1) * mx.expand_dims(mx.rsqrt(col), -2)
        else:
            state["exp_avg_sq"] = moment = old * state["exp_avg_sq"] + new * square
            factor = mx.rsqrt(moment)
        update = factor * gradient
        update = size * (update / mx.maximum(1.0, _rms(update) / self.clip_threshold))
        if self.beta_1 is not None:
            update = self.beta_1 * state["exp_avg"] + (1 - self.beta_1) * update
            state["exp_avg"] = update
        if self.weight_decay != 0:
            parameter = parameter + parameter * (-self.weight_decay * size)
        return parameter - update

    def _relative_size(self, dtype: mx.Dtype) -> mx.array:
        """The step size before it is scaled with the parameter."""
        if not self.relative_step:
            return self.learning_rate.astype(dtype)
        limit = 1e-6 * self.step if self.warmup_init else 1e-2
        return mx.minimum(limit, mx.rsqrt(self.step)).astype(dtype)

    def _coefficient(self, dtype: mx.Dtype) -> mx.array:
        return 1 - (self.step**self.decay_rate).astype(dtype)


def _rms(x: mx.array) -> mx.array:
    """Root of the mean square."""
    return mx.sqrt(mx.mean(mx.square(x)))
