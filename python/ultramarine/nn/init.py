"""Initialisers: functions that make an array of the shape of another, filled by some distribution.

Each function here returns an initialiser, which is called with an array and reads its shape only.
Random ones draw from `ultramarine.random`, so `random.seed` makes them repeatable.

Example:
    >>> weight = nn.init.he_uniform()(mx.zeros((16, 8)))
    >>> weight.shape
    (16, 8)
"""

import math
from typing import Any, Literal, Protocol

import ultramarine as mx

__all__ = [
    "constant",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "normal",
    "orthogonal",
    "sparse",
    "uniform",
]

Fan = Literal["fan_in", "fan_out"]


class Initializer(Protocol):
    """Function of an array that returns a filled one of its shape."""

    def __call__(self, a: mx.array) -> mx.array: ...


class GainInitializer(Protocol):
    """Initialiser whose values can be scaled."""

    def __call__(self, a: mx.array, gain: float = 1.0) -> mx.array: ...


class FanInitializer(Protocol):
    """Initialiser that is scaled by the number of inputs or of outputs of a layer."""

    def __call__(self, a: mx.array, mode: Fan = "fan_in", gain: float = 1.0) -> mx.array: ...


def constant(value: Any, dtype: mx.Dtype = mx.float32) -> Initializer:
    """Makes an initialiser that fills with one value.

    Args:
        value (float | array): Value; an array is broadcast.
        dtype (Dtype): Dtype of the results.

    Returns:
        Initializer: The initialiser.

    Example:
        >>> nn.init.constant(0.5)(mx.zeros(3))
        array([0.5, 0.5, 0.5], dtype=float32)
    """

    def initializer(a: mx.array) -> mx.array:
        return mx.full(a.shape, value, dtype=dtype)

    return initializer


def normal(mean: float = 0.0, std: float = 1.0, dtype: mx.Dtype = mx.float32) -> Initializer:
    """Makes an initialiser that draws from a normal distribution.

    Args:
        mean (float): Mean.
        std (float): Standard deviation.
        dtype (Dtype): Dtype of the results.

    Returns:
        Initializer: The initialiser.

    Example:
        >>> nn.init.normal(mean=0.0, std=0.02)(mx.zeros((2, 3))).shape
        (2, 3)
    """

    def initializer(a: mx.array) -> mx.array:
        return mx.random.normal(shape=a.shape, dtype=dtype, loc=mean, scale=std)

    return initializer


def uniform(low: float = 0.0, high: float = 1.0, dtype: mx.Dtype = mx.float32) -> Initializer:
    """Makes an initialiser that draws from a uniform distribution.

    Args:
        low (float): Lower bound.
        high (float): Upper bound, which is not drawn.
        dtype (Dtype): Dtype of the results.

    Returns:
        Initializer: The initialiser.

    Example:
        >>> w = nn.init.uniform(-0.5, 0.5)(mx.zeros((2, 3)))
        >>> mx.all(mx.abs(w) <= 0.5)
        array(True, dtype=bool)
    """

    def initializer(a: mx.array) -> mx.array:
        return mx.random.uniform(low=low, high=high, shape=a.shape, dtype=dtype)

    return initializer


def identity(dtype: mx.Dtype = mx.float32) -> Initializer:
    """Makes an initialiser of identity matrices.

    Args:
        dtype (Dtype): Dtype of the results.

    Returns:
        Initializer: The initialiser. It raises a ValueError for shapes other than (n, n).

    Example:
        >>> nn.init.identity()(mx.zeros((2, 2)))
        array([[1, 0],
               [0, 1]], dtype=float32)
    """

    def initializer(a: mx.array) -> mx.array:
        if a.ndim != 2 or a.shape[0] != a.shape[1]:
            raise ValueError(
                f"The input array must be a square matrix but got shape {a.shape}. Pass as many rows as columns."
            )
        return mx.eye(a.shape[0], dtype=dtype)

    return initializer


def _calculate_fan_in_fan_out(x: mx.array) -> tuple[int, int]:
    """Returns the number of inputs of one output of a layer, and of outputs of one input.

    Args:
        x (array): Weight, (outputs, ..., inputs); between them the sizes of the kernel, if any.

    Returns:
        tuple[int, int]: Fan in and fan out.

    Raises:
        ValueError: If `x` has fewer than two dimensions.
    """
    if x.ndim < 2:
        raise ValueError(
            "Glorot / He initialization requires at least 2 dimensional input "
            f"but input with {x.ndim} dimensions. Pass at least 2."
        )
    outputs, *kernel, inputs = x.shape
    positions = math.prod(kernel)
    return inputs * positions, outputs * positions


def _fan(x: mx.array, mode: str) -> int:
    """Returns the fan that `mode` names."""
    fan_in, fan_out = _calculate_fan_in_fan_out(x)
    if mode == "fan_in":
        return fan_in
    if mode == "fan_out":
        return fan_out
    raise ValueError(f"Invalid mode: {mode}. Use 'fan_in' or 'fan_out'.")


def glorot_normal(dtype: mx.Dtype = mx.float32) -> GainInitializer:
    """Makes an initialiser that draws from a normal distribution of the width of Glorot and Bengio.

    The standard deviation is `gain * sqrt(2 / (fan_in + fan_out))`.

    Args:
        dtype (Dtype): Dtype of the results.

    Returns:
        GainInitializer: The initialiser. It raises a ValueError for arrays of fewer than two dimensions.

    References:
        Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks,
        AISTATS 2010.

    Example:
        >>> nn.init.glorot_normal()(mx.zeros((2, 3)), gain=2.0).shape
        (2, 3)
    """

    def initializer(a: mx.array, gain: float = 1.0) -> mx.array:
        std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_fan_out(a)))
        return mx.random.normal(shape=a.shape, dtype=dtype, scale=std)

    return initializer


def glorot_uniform(dtype: mx.Dtype = mx.float32) -> GainInitializer:
    """Makes an initialiser that draws from a uniform distribution of the width of Glorot and Bengio.

    The bounds are `± gain * sqrt(6 / (fan_in + fan_out))`.

    Args:
        dtype (Dtype): Dtype of the results.

    Returns:
        GainInitializer: The initialiser. It raises a ValueError for arrays of fewer than two dimensions.

    References:
        Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks,
        AISTATS 2010.

    Example:
        >>> nn.init.glorot_uniform()(mx.zeros((2, 3))).shape
        (2, 3)
    """

    def initializer(a: mx.array, gain: float = 1.0) -> mx.array:
        limit = gain * math.sqrt(6.0 / sum(_calculate_fan_in_fan_out(a)))
        return mx.random.uniform(-limit, limit, a.shape, dtype=dtype)

    return initializer


def he_normal(dtype: mx.Dtype = mx.float32) -> FanInitializer:
    """Makes an initialiser that draws from a normal distribution of the width of He et al.

    The standard deviation is `gain / sqrt(fan)`, where the fan is that of the inputs or of the outputs.

    Args:
        dtype (Dtype): Dtype of the results.

    Returns:
        FanInitializer: The initialiser. It raises a ValueError for arrays of fewer than two dimensions,
        and for modes other than "fan_in" and "fan_out".

    References:
        He et al.: Delving deep into rectifiers, https://arxiv.org/abs/1502.01852.

    Example:
        >>> nn.init.he_normal()(mx.zeros((2, 3)), mode="fan_out").shape
        (2, 3)
    """

    def initializer(a: mx.array, mode: Fan = "fan_in", gain: float = 1.0) -> mx.array:
        std = gain / math.sqrt(_fan(a, mode))
        return mx.random.normal(shape=a.shape, dtype=dtype, scale=std)

    return initializer


def he_uniform(dtype: mx.Dtype = mx.float32) -> FanInitializer:
    """Makes an initialiser that draws from a uniform distribution of the width of He et al.

    The bounds are `± gain * sqrt(3 / fan)`, where the fan is that of the inputs or of the outputs.

    Args:
        dtype (Dtype): Dtype of the results.

    Returns:
        FanInitializer: The initialiser. It raises a ValueError for arrays of fewer than two dimensions,
        and for modes other than "fan_in" and "fan_out".

    References:
        He et al.: Delving deep into rectifiers, https://arxiv.org/abs/1502.01852.

    Example:
        >>> nn.init.he_uniform()(mx.zeros((2, 3))).shape
        (2, 3)
    """

    def initializer(a: mx.array, mode: Fan = "fan_in", gain: float = 1.0) -> mx.array:
        limit = gain * math.sqrt(3.0 / _fan(a, mode))
        return mx.random.uniform(-limit, limit, a.shape, dtype=dtype)

    return initializer


def sparse(
    sparsity: float, mean: float = 0.0, std: float = 1.0, dtype: mx.Dtype = mx.float32
) -> Initializer:
    """Makes an initialiser that draws from a normal distribution and sets part of each row to zero.

    Args:
        sparsity (float): Part of each row that is zero, from 0 to 1; the number of zeros is rounded up.
        mean (float): Mean of the others.
        std (float): Standard deviation of the others.
        dtype (Dtype): Dtype of the results.

    Returns:
        Initializer: The initialiser. It raises a ValueError for arrays of other than two dimensions.

    References:
        Martens: Deep learning via Hessian-free optimization, ICML 2010.

    Example:
        >>> w = nn.init.sparse(sparsity=0.5)(mx.zeros((4, 4)))
        >>> mx.sum(w == 0)
        array(8, dtype=int32)
    """

    def initializer(a: mx.array) -> mx.array:
        if a.ndim != 2:
            raise ValueError(
                f"Only tensors with 2 dimensions are supported, but got {a.ndim}. Reshape it."
            )
        zeros = math.ceil(sparsity * a.shape[1])
        order = mx.argsort(mx.random.uniform(shape=a.shape), axis=1)
        values = mx.random.normal(shape=a.shape, dtype=dtype, loc=mean, scale=std)
        return mx.put_along_axis(values, order[:, :zeros], mx.array(0, dtype), axis=1)

    return initializer


def orthogonal(gain: float = 1.0, dtype: mx.Dtype = mx.float32) -> Initializer:
    """Makes an initialiser of matrices with orthonormal columns, or rows where there are fewer of them.

    The matrix is a block of Q of a normal matrix's QR decomposition. Signs that make R's diagonal
    positive make it uniformly distributed (Haar).

    Args:
        gain (float): Factor of the matrix.
        dtype (Dtype): Dtype of the results. They are computed in float32.

    Returns:
        Initializer: The initialiser. It raises a ValueError for arrays of other than two dimensions.

    References:
        Mezzadri: How to generate random matrices from the classical compact groups,
        https://arxiv.org/abs/math-ph/0609050.

    Example:
        >>> w = nn.init.orthogonal()(mx.zeros((3, 3)))
        >>> mx.allclose(w @ w.T, mx.eye(3), atol=1e-5)
        array(True, dtype=bool)
    """

    def initializer(a: mx.array) -> mx.array:
        if a.ndim != 2:
            raise ValueError(
                f"Orthogonal initialization requires a 2D array but got a {a.ndim}D array. Reshape it."
            )
        rows, columns = a.shape
        n = max(rows, columns)
        q, r = mx.linalg.qr(mx.random.normal(shape=(n, n)))
        q = q * mx.sign(mx.diag(r))
        return (gain * q[:rows, :columns]).astype(dtype)

    return initializer
