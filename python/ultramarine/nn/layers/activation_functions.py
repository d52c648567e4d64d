"""Activation functions. Those of three operations and more are compiled, which makes one graph node of them."""

from __future__ import annotations

import math
from functools import partial

import ultramarine as mx

__all__ = [
    "celu",
    "elu",
    "gelu",
    "gelu_approx",
    "gelu_fast_approx",
    "glu",
    "hard_shrink",
    "hard_tanh",
    "hardswish",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "prelu",
    "relu",
    "relu2",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "step",
    "tanh",
]

# The functions below call compiled functions instead of being them, so that they can be copied and pickled.
_compiled = partial(mx.compile, shapeless=True)


def sigmoid(x: mx.array) -> mx.array:
    """Applies the logistic function, `1 / (1 + exp(-x))`.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.sigmoid(mx.array([0.0, 2.0]))
        array([0.5, 0.880797], dtype=float32)
    """
    return mx.sigmoid(x)


def tanh(x: mx.array) -> mx.array:
    """Applies the hyperbolic tangent.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.tanh(mx.array([0.0, 1.0]))
        array([0, 0.761594], dtype=float32)
    """
    return mx.tanh(x)


def relu(x: mx.array) -> mx.array:
    """Applies the rectifier, `max(x, 0)`.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.relu(mx.array([-1.0, 2.0]))
        array([0, 2], dtype=float32)
    """
    return mx.maximum(x, 0)


def relu2(x: mx.array) -> mx.array:
    """Applies the square of the rectifier, `max(x, 0) ** 2`.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.relu2(mx.array([-1.0, 3.0]))
        array([0, 9], dtype=float32)
    """
    return mx.square(mx.maximum(x, 0))


def relu6(x: mx.array) -> mx.array:
    """Applies the rectifier that ends at 6, `min(max(x, 0), 6)`.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.relu6(mx.array([-1.0, 3.0, 9.0]))
        array([0, 3, 6], dtype=float32)
    """
    return mx.minimum(mx.maximum(x, 0), 6.0)


def leaky_relu(x: mx.array, negative_slope: float = 0.01) -> mx.array:
    """Applies the rectifier that leaks, `max(negative_slope * x, x)`.

    Args:
        x (array): Input.
        negative_slope (float): Slope below 0.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.leaky_relu(mx.array([-1.0, 2.0]), 0.25)
        array([-0.25, 2], dtype=float32)
    """
    return mx.maximum(negative_slope * x, x)


def prelu(x: mx.array, alpha: mx.array) -> mx.array:
    """Applies the parametric rectifier, `max(0, x) + alpha * min(0, x)`.

    Args:
        x (array): Input.
        alpha (array): Slopes below 0, which are broadcast against the last axes.

    Returns:
        array: Result.

    Example:
        >>> nn.prelu(mx.array([-1.0, 2.0]), mx.array(0.5))
        array([-0.5, 2], dtype=float32)
    """
    return _prelu(x, alpha)


@_compiled
def _prelu(x: mx.array, alpha: mx.array) -> mx.array:
    return mx.maximum(0, x) + alpha * mx.minimum(0, x)


def elu(x: mx.array, alpha: float = 1.0) -> mx.array:
    """Applies the exponential linear unit, `alpha * (exp(x) - 1)` for negative numbers, else `x`.

    Args:
        x (array): Input.
        alpha (float): Negative of the limit at minus infinity.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.elu(mx.array([-1.0, 2.0]))
        array([-0.632121, 2], dtype=float32)
    """
    return _elu(x, alpha)


def _elu_of(x: mx.array, alpha: float) -> mx.array:
    # Keep positive numbers out of the exponential: infinity times 0 would make the gradient NaN.
    positive = mx.greater(x, 0)
    return mx.where(positive, x, alpha * mx.expm1(mx.where(positive, 0, x)))


_elu = _compiled(_elu_of)


def celu(x: mx.array, alpha: float = 1.0) -> mx.array:
    """Applies the exponential linear unit whose slope at 0 is 1.

    That is `max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))`.

    Args:
        x (array): Input.
        alpha (float): Negative of the limit at minus infinity.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.celu(mx.array([-1.0, 2.0]))
        array([-0.632121, 2], dtype=float32)
    """
    return _celu(x, alpha)


@_compiled
def _celu(x: mx.array, alpha: float) -> mx.array:
    positive = mx.greater(x, 0)
    return mx.where(positive, x, alpha * mx.expm1(mx.where(positive, 0, x) / alpha))


def selu(x: mx.array) -> mx.array:
    """Applies the scaled exponential linear unit, `1.0507 * elu(x, 1.67326)`.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    References:
        Klambauer et al.: Self-normalizing neural networks, https://arxiv.org/abs/1706.02515.

    Example:
        >>> nn.selu(mx.array([-1.0, 2.0]))
        array([-1.11133, 2.1014], dtype=float32)
    """
    return _selu(x)


@_compiled
def _selu(x: mx.array) -> mx.array:
    return _elu_of(x, 1.67326) * 1.0507


def silu(x: mx.array) -> mx.array:
    """Applies the sigmoid linear unit (swish), `x * sigmoid(x)`.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.silu(mx.array([0.0, 1.0]))
        array([0, 0.731059], dtype=float32)
    """
    return x * mx.sigmoid(x)


def gelu(x: mx.array) -> mx.array:
    """Applies the Gaussian error linear unit, `x * (1 + erf(x / sqrt(2))) / 2`.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    References:
        Hendrycks, Gimpel: Gaussian error linear units, https://arxiv.org/abs/1606.08415.

    Example:
        >>> nn.gelu(mx.array([-1.0, 0.0, 1.0]))
        array([-0.158655, 0, 0.841345], dtype=float32)
    """
    return _gelu(x)


@_compiled
def _gelu(x: mx.array) -> mx.array:
    return x * (1 + mx.erf(x / math.sqrt(2))) / 2


def gelu_approx(x: mx.array) -> mx.array:
    """Approximates `gelu` by a hyperbolic tangent, to 0.0005.

    That is `x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))) / 2`.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    References:
        Hendrycks, Gimpel: Gaussian error linear units, https://arxiv.org/abs/1606.08415.

    Example:
        >>> nn.gelu_approx(mx.array([-1.0, 0.0, 1.0]))
        array([-0.158808, 0, 0.841192], dtype=float32)
    """
    return _gelu_approx(x)


@_compiled
def _gelu_approx(x: mx.array) -> mx.array:
    return 0.5 * x * (1 + mx.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))


def gelu_fast_approx(x: mx.array) -> mx.array:
    """Approximates `gelu` by the logistic function, `x * sigmoid(1.702 * x)`, to 0.015 in [-6, 6].

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    References:
        Hendrycks, Gimpel: Gaussian error linear units, https://arxiv.org/abs/1606.08415.

    Example:
        >>> nn.gelu_fast_approx(mx.array([-1.0, 0.0, 1.0]))
        array([-0.154204, 0, 0.845796], dtype=float32)
    """
    return x * mx.sigmoid(1.702 * x)


def glu(x: mx.array, axis: int = -1) -> mx.array:
    """Applies the gated linear unit: the first half, times the logistic function of the second.

    Args:
        x (array): Input, of an even size along `axis`.
        axis (int): Axis to halve.

    Returns:
        array: Result, half as large along `axis`.

    Example:
        >>> nn.glu(mx.array([1.0, 2.0, 0.0, 0.0]))
        array([0.5, 1], dtype=float32)
    """
    value, gate = mx.split(x, indices_or_sections=2, axis=axis)
    return value * mx.sigmoid(gate)


def softplus(x: mx.array) -> mx.array:
    """Applies the smooth rectifier, `log(1 + exp(x))`.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.softplus(mx.array([0.0, 100.0]))
        array([0.693147, 100], dtype=float32)
    """
    return mx.logaddexp(x, 0)


def mish(x: mx.array) -> mx.array:
    """Applies Mish, `x * tanh(softplus(x))`.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    References:
        Misra: Mish, a self regularized non-monotonic activation function, https://arxiv.org/abs/1908.08681.

    Example:
        >>> nn.mish(mx.array([0.0, 1.0]))
        array([0, 0.865098], dtype=float32)
    """
    return _mish(x)


@_compiled
def _mish(x: mx.array) -> mx.array:
    return x * mx.tanh(mx.logaddexp(x, 0))


def log_sigmoid(x: mx.array) -> mx.array:
    """Applies the logarithm of the logistic function, `-log(1 + exp(-x))`.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.log_sigmoid(mx.array([0.0, 2.0]))
        array([-0.693147, -0.126928], dtype=float32)
    """
    return -mx.logaddexp(-x, 0)


def softsign(x: mx.array) -> mx.array:
    """Applies `x / (1 + abs(x))`.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.softsign(mx.array([-1.0, 3.0]))
        array([-0.5, 0.75], dtype=float32)
    """
    return _softsign(x)


@_compiled
def _softsign(x: mx.array) -> mx.array:
    return mx.divide(x, 1 + mx.abs(x))


def hardswish(x: mx.array) -> mx.array:
    """Approximates `silu` by pieces, `x * min(max(x + 3, 0), 6) / 6`.

    Args:
        x (array): Input.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.hardswish(mx.array([0.0, 1.0, 4.0]))
        array([0, 0.666667, 4], dtype=float32)
    """
    return _hardswish(x)


@_compiled
def _hardswish(x: mx.array) -> mx.array:
    return x * mx.minimum(mx.maximum(x + 3, 0), 6) / 6


def hard_tanh(x: mx.array, min_val: float = -1.0, max_val: float = 1.0) -> mx.array:
    """Limits numbers, `min(max(x, min_val), max_val)`.

    Args:
        x (array): Input.
        min_val (float): Lower limit.
        max_val (float): Upper limit.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.hard_tanh(mx.array([-3.0, 0.5, 2.0]))
        array([-1, 0.5, 1], dtype=float32)
    """
    return mx.minimum(mx.maximum(x, min_val), max_val)


def hard_shrink(x: mx.array, lambd: float = 0.5) -> mx.array:
    """Sets numbers in [-lambd, lambd] to 0.

    Args:
        x (array): Input.
        lambd (float): Largest number that is set to 0.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.hard_shrink(mx.array([-1.0, 0.25, 2.0]))
        array([-1, 0, 2], dtype=float32)
    """
    return mx.where(mx.greater(mx.abs(x), lambd), x, 0)


def softshrink(x: mx.array, lambd: float = 0.5) -> mx.array:
    """Moves numbers towards 0 by `lambd`, and those in [-lambd, lambd] to 0.

    Args:
        x (array): Input.
        lambd (float): Distance.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.softshrink(mx.array([-1.0, 0.25, 2.0]))
        array([-0.5, 0, 1.5], dtype=float32)
    """
    return _softshrink(x, lambd)


@_compiled
def _softshrink(x: mx.array, lambd: float) -> mx.array:
    return mx.where(mx.greater(mx.abs(x), lambd), x - mx.sign(x) * lambd, 0)


def step(x: mx.array, threshold: float = 0.0) -> mx.array:
    """Returns 1 where `x` reaches a threshold, else 0.

    Args:
        x (array): Input.
        threshold (float): Threshold.

    Returns:
        array: Result in int32, of the shape of `x`.

    Example:
        >>> nn.step(mx.array([-1.0, 2.0]))
        array([0, 1], dtype=int32)
    """
    return mx.where(mx.greater_equal(x, threshold), 1, 0)


def softmax(x: mx.array, axis: int = -1) -> mx.array:
    """Applies softmax, `exp(x) / sum(exp(x))`.

    Args:
        x (array): Input.
        axis (int): Axis to sum along.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.softmax(mx.array([1.0, 1.0]))
        array([0.5, 0.5], dtype=float32)
    """
    return mx.softmax(x, axis=axis)


def softmin(x: mx.array, axis: int = -1) -> mx.array:
    """Applies softmax to negated numbers, `exp(-x) / sum(exp(-x))`.

    Args:
        x (array): Input.
        axis (int): Axis to sum along.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.softmin(mx.array([1.0, 1.0]))
        array([0.5, 0.5], dtype=float32)
    """
    return mx.softmax(-x, axis=axis)


def log_softmax(x: mx.array, axis: int = -1) -> mx.array:
    """Applies the logarithm of softmax, `x - log(sum(exp(x)))`.

    Args:
        x (array): Input.
        axis (int): Axis to sum along.

    Returns:
        array: Result, of the shape of `x`.

    Example:
        >>> nn.log_softmax(mx.array([1.0, 1.0]))
        array([-0.693147, -0.693147], dtype=float32)
    """
    return _log_softmax(x, axis)


@_compiled
def _log_softmax(x: mx.array, axis: int) -> mx.array:
    # In 16 bits, differences to the maximum are exact enough, while logsumexp(x) itself may be too large.
    x = x - mx.stop_gradient(mx.max(x, axis=axis, keepdims=True))
    return x - mx.logsumexp(x, axis=axis, keepdims=True)
