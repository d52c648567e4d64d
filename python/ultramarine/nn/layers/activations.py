"""Activations: the functions, and layers that call them."""

from __future__ import annotations

from typing import Literal

import ultramarine as mx
from ultramarine.nn.layers.activation_functions import (
    celu,
    elu,
    gelu,
    gelu_approx,
    gelu_fast_approx,
    glu,
    hard_shrink,
    hard_tanh,
    hardswish,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    mish,
    prelu,
    relu,
    relu2,
    relu6,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    step,
    tanh,
)
from ultramarine.nn.layers.base import Module

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "HardShrink",
    "HardTanh",
    "Hardswish",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU2",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Step",
    "Tanh",
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


class Sigmoid(Module):
    """Layer that applies `sigmoid`: `1 / (1 + exp(-x))`.

    Example:
        >>> nn.Sigmoid()(mx.array([0.0, 2.0]))
        array([0.5, 0.880797], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return sigmoid(x)


class Tanh(Module):
    """Layer that applies `tanh`.

    Example:
        >>> nn.Tanh()(mx.array([0.0, 1.0]))
        array([0, 0.761594], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return tanh(x)


class ReLU(Module):
    """Layer that applies `relu`: `max(x, 0)`.

    Example:
        >>> nn.ReLU()(mx.array([-1.0, 2.0]))
        array([0, 2], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return relu(x)


class ReLU2(Module):
    """Layer that applies `relu2`: `max(x, 0) ** 2`.

    Example:
        >>> nn.ReLU2()(mx.array([-1.0, 3.0]))
        array([0, 9], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return relu2(x)


class ReLU6(Module):
    """Layer that applies `relu6`: `min(max(x, 0), 6)`.

    Example:
        >>> nn.ReLU6()(mx.array([-1.0, 3.0, 9.0]))
        array([0, 3, 6], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return relu6(x)


class LeakyReLU(Module):
    """Layer that applies `leaky_relu`: `max(negative_slope * x, x)`.

    Args:
        negative_slope (float): Slope below 0.

    Example:
        >>> nn.LeakyReLU(0.25)(mx.array([-1.0, 2.0]))
        array([-0.25, 2], dtype=float32)
    """

    def __init__(self, negative_slope: float = 1e-2) -> None:
        super().__init__()
        self._negative_slope = negative_slope

    def __call__(self, x: mx.array) -> mx.array:
        return leaky_relu(x, self._negative_slope)


class PReLU(Module):
    """Layer that applies `prelu` with slopes that are learned: `max(0, x) + weight * min(0, x)`.

    Args:
        num_parameters (int): Number of slopes: 1, or one for each element of the last axis.
        init (float): The slopes at first.

    Example:
        >>> nn.PReLU(init=0.5)(mx.array([-1.0, 2.0]))
        array([-0.5, 2], dtype=float32)
    """

    weight: mx.array

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        self.weight = mx.full((num_parameters,), init)

    def __call__(self, x: mx.array) -> mx.array:
        return prelu(x, self["weight"])


class ELU(Module):
    """Layer that applies `elu`: `alpha * (exp(x) - 1)` for negative numbers, else `x`.

    Args:
        alpha (float): Negative of the limit at minus infinity.

    Example:
        >>> nn.ELU()(mx.array([-1.0, 2.0]))
        array([-0.632121, 2], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: mx.array) -> mx.array:
        return elu(x, self._alpha)


class CELU(Module):
    """Layer that applies `celu`: `max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))`.

    Args:
        alpha (float): Negative of the limit at minus infinity.

    Example:
        >>> nn.CELU()(mx.array([-1.0, 2.0]))
        array([-0.632121, 2], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self._alpha = alpha

    def __call__(self, x: mx.array) -> mx.array:
        return celu(x, self._alpha)


class SELU(Module):
    """Layer that applies `selu`: `1.0507 * elu(x, 1.67326)`.

    Example:
        >>> nn.SELU()(mx.array([-1.0, 2.0]))
        array([-1.11133, 2.1014], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return selu(x)


class SiLU(Module):
    """Layer that applies `silu`: `x * sigmoid(x)`.

    Example:
        >>> nn.SiLU()(mx.array([0.0, 1.0]))
        array([0, 0.731059], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return silu(x)


_GELUS = {
    "none": gelu,
    "precise": gelu_approx,
    "tanh": gelu_approx,
    "fast": gelu_fast_approx,
}


class GELU(Module):
    """Layer that applies `gelu` or one of its approximations.

    Args:
        approx (str): "none" for `gelu`, "precise" or "tanh" for `gelu_approx`, "fast" for `gelu_fast_approx`.

    Raises:
        ValueError: If `approx` is none of these.

    Example:
        >>> nn.GELU()(mx.array([-1.0, 0.0, 1.0]))
        array([-0.158655, 0, 0.841345], dtype=float32)
    """

    def __init__(self, approx: Literal["none", "precise", "tanh", "fast"] = "none") -> None:
        super().__init__()
        if approx not in _GELUS:
            raise ValueError(
                f"The approximation should be in {list(_GELUS)} but {approx!r} was given"
            )
        self._approx = approx

    def __call__(self, x: mx.array) -> mx.array:
        return _GELUS[self._approx](x)


class GLU(Module):
    """Layer that applies `glu`: the first half, times the logistic function of the second.

    Args:
        axis (int): Axis to halve.

    Example:
        >>> nn.GLU()(mx.array([1.0, 2.0, 0.0, 0.0]))
        array([0.5, 1], dtype=float32)
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def __call__(self, x: mx.array) -> mx.array:
        return glu(x, axis=self.axis)


class Softplus(Module):
    """Layer that applies `softplus`: `log(1 + exp(x))`.

    Example:
        >>> nn.Softplus()(mx.array([0.0, 100.0]))
        array([0.693147, 100], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return softplus(x)


class Mish(Module):
    """Layer that applies `mish`: `x * tanh(softplus(x))`.

    Example:
        >>> nn.Mish()(mx.array([0.0, 1.0]))
        array([0, 0.865098], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return mish(x)


class LogSigmoid(Module):
    """Layer that applies `log_sigmoid`: `-log(1 + exp(-x))`.

    Example:
        >>> nn.LogSigmoid()(mx.array([0.0, 2.0]))
        array([-0.693147, -0.126928], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return log_sigmoid(x)


class Softsign(Module):
    """Layer that applies `softsign`: `x / (1 + abs(x))`.

    Example:
        >>> nn.Softsign()(mx.array([-1.0, 3.0]))
        array([-0.5, 0.75], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return softsign(x)


class Hardswish(Module):
    """Layer that applies `hardswish`: `x * min(max(x + 3, 0), 6) / 6`.

    Example:
        >>> nn.Hardswish()(mx.array([0.0, 1.0, 4.0]))
        array([0, 0.666667, 4], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return hardswish(x)


class HardTanh(Module):
    """Layer that applies `hard_tanh`: `min(max(x, -1), 1)`.

    Example:
        >>> nn.HardTanh()(mx.array([-3.0, 0.5, 2.0]))
        array([-1, 0.5, 1], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return hard_tanh(x)


class HardShrink(Module):
    """Layer that applies `hard_shrink`, which sets numbers in [-lambd, lambd] to 0.

    Args:
        lambd (float): Largest number that is set to 0.

    Example:
        >>> nn.HardShrink()(mx.array([-1.0, 0.25, 2.0]))
        array([-1, 0, 2], dtype=float32)
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: mx.array) -> mx.array:
        return hard_shrink(x, self.lambd)


class Softshrink(Module):
    """Layer that applies `softshrink`, which moves numbers towards 0.

    Args:
        lambd (float): Distance.

    Example:
        >>> nn.Softshrink()(mx.array([-1.0, 0.25, 2.0]))
        array([-0.5, 0, 1.5], dtype=float32)
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def __call__(self, x: mx.array) -> mx.array:
        return softshrink(x, self.lambd)


class Step(Module):
    """Layer that applies `step`: 1 where the input reaches a threshold, else 0.

    Args:
        threshold (float): Threshold.

    Example:
        >>> nn.Step(threshold=0.5)(mx.array([0.25, 2.0]))
        array([0, 1], dtype=int32)
    """

    def __init__(self, threshold: float = 0.0) -> None:
        super().__init__()
        self.threshold = threshold

    def __call__(self, x: mx.array) -> mx.array:
        return step(x, self.threshold)


class Softmax(Module):
    """Layer that applies `softmax` along the last axis: `exp(x) / sum(exp(x))`.

    Example:
        >>> nn.Softmax()(mx.array([1.0, 1.0]))
        array([0.5, 0.5], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return softmax(x)


class Softmin(Module):
    """Layer that applies `softmin` along the last axis: `exp(-x) / sum(exp(-x))`.

    Example:
        >>> nn.Softmin()(mx.array([1.0, 1.0]))
        array([0.5, 0.5], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return softmin(x)


class LogSoftmax(Module):
    """Layer that applies `log_softmax` along the last axis: `x - log(sum(exp(x)))`.

    Example:
        >>> nn.LogSoftmax()(mx.array([1.0, 1.0]))
        array([-0.693147, -0.693147], dtype=float32)
    """

    def __call__(self, x: mx.array) -> mx.array:
        return log_softmax(x)
