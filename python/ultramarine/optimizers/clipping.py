"""Clipping of gradients."""

from __future__ import annotations

from typing import Any

import ultramarine as mx
from ultramarine.utils import tree_map, tree_reduce

__all__ = ["clip_grad_norm"]


def clip_grad_norm(grads: Any, max_norm: float) -> tuple[Any, mx.array]:
    """Scales gradients down so that the norm of all of them together is at most a limit.

    The factor is `min(1, max_norm / (norm + 1e-6))`. Squares of float16 are summed in float32, where they do not
    overflow. Gradients keep their floating-point dtypes.

    Args:
        grads (dict): Tree of gradients.
        max_norm (float): Largest norm of the result.

    Returns:
        tuple[dict, array]: The scaled gradients, and the norm of those that were passed.

    Raises:
        ValueError: If `max_norm` is negative.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> grads = {"weight": mx.array([3.0, 0.0]), "bias": mx.array([4.0])}
        >>> clipped, norm = optim.clip_grad_norm(grads, max_norm=2.5)
        >>> norm, clipped["bias"]
        (array(5, dtype=float32), array([2], dtype=float32))
    """
    if max_norm < 0:
        raise ValueError(
            f"[clip_grad_norm] max_norm is {max_norm}. Pass a number that is not negative."
        )
    norm = mx.sqrt(tree_reduce(lambda total, g: total + _sum_of_squares(g), grads, 0.0))
    factor = mx.minimum(max_norm / (norm + 1e-6), 1.0)

    def scale(gradient: mx.array) -> mx.array:
        scaled = gradient * factor
        if mx.issubdtype(gradient.dtype, mx.floating):
            return scaled.astype(gradient.dtype)
        return scaled

    return tree_map(scale, grads), norm


def _sum_of_squares(gradient: mx.array) -> mx.array:
    if gradient.dtype == mx.float16:
        gradient = gradient.astype(mx.float32)
    elif gradient.dtype == mx.complex64:
        gradient = mx.abs(gradient)
    return mx.square(gradient).sum()
