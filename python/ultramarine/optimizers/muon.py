"""Muon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ultramarine as mx
from ultramarine.optimizers.base import Optimizer

__all__ = ["Muon"]

# Coefficients of the odd polynomial a x + b x^3 + c x^5, which each iteration applies to the singular values. The slope
# at zero is the steepest that still converges into about [0.7, 1.2].
_A, _B, _C = 3.4445, -4.7750, 2.0315


class Muon(Optimizer):
    r"""Muon, whose updates of matrices are momenta made orthogonal by a Newton-Schulz iteration.

    With the gradient :math:`g`, to which weight decay adds :math:`\gamma w`:

    .. math::

        v &\leftarrow \mu v + (1 - \mu) g \\
        w &\leftarrow w - \lambda \sqrt{\max(1, \text{rows} / \text{columns})} \, \text{orthogonal}(u)

    where :math:`u` is :math:`v`, or with Nesterov's momentum :math:`\mu v + (1 - \mu) g`. Parameters of more than
    two dimensions are matrices of as many rows as their first dimension has elements; those of less are updated
    with :math:`u` itself. Embeddings, the last layer, and vectors are better served by another optimizer; see
    `MultiOptimizer`.

    Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks",
    https://kellerjordan.github.io/posts/muon/.

    Args:
        learning_rate (float or Callable): Learning rate :math:`\lambda`, or its schedule.
        momentum (float): Momentum :math:`\mu`. Default: 0.95.
        weight_decay (float): Weight decay :math:`\gamma`, an L2 penalty. Default: 0.01.
        nesterov (bool): Uses Nesterov's momentum. Default: True.
        ns_steps (int): Number of Newton-Schulz steps. Default: 5.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optimizer = optim.Muon(learning_rate=0.5)
        >>> optimizer.apply_gradients({"w": mx.ones((2, 2))}, {"w": mx.zeros((2, 2))})["w"].shape
        (2, 2)
    """

    def __init__(
        self,
        learning_rate: float | Callable[[mx.array], mx.array],
        momentum: float = 0.95,
        weight_decay: float = 0.01,
        nesterov: bool = True,
        ns_steps: int = 5,
    ) -> None:
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.ns_steps = ns_steps

    def init_single(self, parameter: mx.array, state: dict[str, Any]) -> None:
        """Makes the state of one parameter: `v`, the momentum, zeros of its shape and dtype."""
        state["v"] = mx.zeros_like(parameter)

    def apply_single(
        self, gradient: mx.array, parameter: mx.array, state: dict[str, Any]
    ) -> mx.array:
        """Returns the updated value of one parameter, and updates `v` of its state."""
        if self.weight_decay != 0:
            gradient = gradient + self.weight_decay * parameter
        new = (1 - self.momentum) * gradient
        update: mx.array = self.momentum * state["v"] + new
        state["v"] = update
        if self.nesterov:
            update = new + self.momentum * update
        rate = self.learning_rate.astype(gradient.dtype)
        if update.ndim >= 2:
            shape = update.shape
            rate = rate * max(1.0, shape[-2] / shape[-1]) ** 0.5
            matrix = update if len(shape) == 2 else update.reshape(shape[0], -1)
            update = _orthogonal(matrix, self.ns_steps).reshape(shape)
        return parameter - rate * update


def _orthogonal(x: mx.array, steps: int) -> mx.array:
    """Moves the singular values of a matrix towards 1.

    Each step is a polynomial of the matrix, :math:`a X + (b A + c A^2) X` with :math:`A = X X^T`, so that it
    needs products only, which are cheapest where `A` is small: a tall matrix is transposed.
    """
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.T
    x = x / (mx.linalg.norm(x, keepdims=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.T
        x = mx.addmm(_A * x, mx.addmm(_B * a, a, a, alpha=_C), x)
    return x.T if tall else x
