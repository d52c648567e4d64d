"""Normalisation layers.

They compute 16-bit inputs in float32, and round their results once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ultramarine as mx
from ultramarine.nn.layers.base import Module

__all__ = ["BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "RMSNorm"]

_HALF = (mx.float16, mx.bfloat16)


def _widened(x: mx.array) -> mx.array:
    """Casts 16-bit floats to float32."""
    return x.astype(mx.float32) if x.dtype in _HALF else x


def _rounded(y: mx.array, *operands: mx.array | None) -> mx.array:
    """Casts a result to the dtype that operands promote to."""
    present = [a for a in operands if a is not None]
    if any(a.dtype in _HALF for a in present):
        return y.astype(mx.result_type(*present))
    return y


def _normalised(
    x: mx.array,
    axes: tuple[int, ...],
    eps: float,
    weight: mx.array | None,
    bias: mx.array | None,
    pool: Callable[[mx.array], mx.array] | None = None,
) -> mx.array:
    """Normalises channels to mean 0 and variance 1 over axes, then applies weight and bias.

    Statistics are those of single channels, which are read in the order that they lie in; `pool` makes those
    of groups of them.

    Args:
        x (array): Input, (N, ..., C).
        axes (tuple[int, ...]): Axes to average over, none of them the last.
        eps (float): Number that is added to the variance.
        weight (array | None): Factor of each channel.
        bias (array | None): Summand of each channel.
        pool (Callable | None): Function that averages (N, 1, ..., C) over groups of channels, in the same shape.

    Returns:
        array: Result, of the shape of `x`.
    """
    wide = _widened(x)
    mean = mx.mean(wide, axis=axes, keepdims=True)
    if pool is not None:
        mean = pool(mean)
    centred = wide - mean
    variance = mx.mean(mx.square(centred), axis=axes, keepdims=True)
    if pool is not None:
        variance = pool(variance)
    y = centred * mx.rsqrt(variance + eps)
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return _rounded(y, x, weight, bias)


class LayerNorm(Module):
    """Layer that normalises vectors along the last axis to mean 0 and variance 1.

    `(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, by `fast.layer_norm`.

    Args:
        dims (int): Size of the last axis.
        eps (float): Number that is added to the variance.
        affine (bool): Adds `weight` (ones at first) to the parameters.
        bias (bool): Adds `bias` (zeros at first), too, if `affine`.

    References:
        Ba, Kiros, Hinton: Layer normalization, https://arxiv.org/abs/1607.06450.

    Example:
        >>> nn.LayerNorm(2)(mx.array([[1.0, 3.0], [2.0, 6.0]]))
        array([[-0.999995, 0.999995],
               [-0.999999, 0.999999]], dtype=float32)
    """

    def __init__(
        self, dims: int, eps: float = 1e-5, affine: bool = True, bias: bool = True
    ) -> None:
        super().__init__()
        if affine:
            self.weight = mx.ones((dims,))
            if bias:
                self.bias = mx.zeros((dims,))
        self.eps = eps
        self.dims = dims

    def _extra_repr(self) -> str:
        return f"{self.dims}, eps={self.eps}, affine={'weight' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        return mx.fast.layer_norm(x, self.get("weight"), self.get("bias"), self.eps)


class RMSNorm(Module):
    """Layer that divides vectors along the last axis by the root of the mean of their squares.

    `x / sqrt(mean(x ** 2) + eps) * weight`, by `fast.rms_norm`, which computes in float32.

    Args:
        dims (int): Size of the last axis, and of the parameter `weight` (ones at first).
        eps (float): Number that is added to the mean of squares.

    References:
        Zhang, Sennrich: Root mean square layer normalization, https://arxiv.org/abs/1910.07467.

    Example:
        >>> nn.RMSNorm(2, eps=0.0)(mx.array([3.0, 4.0]))
        array([0.848528, 1.13137], dtype=float32)
    """

    def __init__(self, dims: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = mx.ones((dims,))
        self.eps = eps

    def _extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"

    def __call__(self, x: mx.array) -> mx.array:
        return mx.fast.rms_norm(x, self["weight"], self.eps)


class InstanceNorm(Module):
    """Layer that normalises each channel of each sample to mean 0 and variance 1.

    `(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, where mean and variance are over the axes between
    the first and the last.

    Args:
        dims (int): Number of channels, the size of the last axis.
        eps (float): Number that is added to the variance.
        affine (bool): Adds `weight` (ones at first) and `bias` (zeros at first) to the parameters.

    References:
        Ulyanov, Vedaldi, Lempitsky: Instance normalization, https://arxiv.org/abs/1607.08022.

    Example:
        >>> nn.InstanceNorm(3)(mx.ones((2, 4, 4, 3))).shape
        (2, 4, 4, 3)
    """

    def __init__(self, dims: int, eps: float = 1e-5, affine: bool = False) -> None:
        super().__init__()
        if affine:
            self.weight = mx.ones((dims,))
            self.bias = mx.zeros((dims,))
        self.dims = dims
        self.eps = eps

    def _extra_repr(self) -> str:
        return f"{self.dims}, eps={self.eps}, affine={'weight' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        ndim = x.ndim
        if ndim < 3:
            raise ValueError(
                "InstanceNorm expects inputs with at least 3 dimensions (N, ..., C) "
                f"but the input has {ndim} dimensions. Reshape it."
            )
        axes = tuple(range(1, ndim - 1))
        return _normalised(x, axes, self.eps, self.get("weight"), self.get("bias"))


class GroupNorm(Module):
    """Layer that normalises groups of channels of each sample to mean 0 and variance 1.

    `(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, where mean and variance are over a group of channels
    and the axes between the first and the last. Of g groups, channel i is in group `i % g`; with
    `pytorch_compatible` groups are of neighbours, as in PyTorch.

    Args:
        num_groups (int): Number of groups.
        dims (int): Number of channels, the size of the last axis.
        eps (float): Number that is added to the variance.
        affine (bool): Adds `weight` (ones at first) and `bias` (zeros at first) to the parameters.
        pytorch_compatible (bool): Makes groups of neighbours.

    Raises:
        ValueError: If the channels cannot be divided into such groups.

    References:
        Wu, He: Group normalization, https://arxiv.org/abs/1803.08494.

    Example:
        >>> nn.GroupNorm(num_groups=2, dims=4)(mx.ones((2, 8, 8, 4))).shape
        (2, 8, 8, 4)
    """

    def __init__(
        self,
        num_groups: int,
        dims: int,
        eps: float = 1e-5,
        affine: bool = True,
        pytorch_compatible: bool = False,
    ) -> None:
        super().__init__()
        if dims % num_groups != 0:
            raise ValueError(
                f"The number of features ({dims}) must be evenly divisible by "
                f"the number of groups ({num_groups}). Pass a divisor."
            )
        if affine:
            self.bias = mx.zeros((dims,))
            self.weight = mx.ones((dims,))
        self.num_groups = num_groups
        self.dims = dims
        self.eps = eps
        self.pytorch_compatible = pytorch_compatible

    def _extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.dims}, eps={self.eps}, "
            f"affine={'weight' in self}, pytorch_compatible={self.pytorch_compatible}"
        )

    def _pool(self, statistics: mx.array) -> mx.array:
        """Averages statistics of channels, (N, 1, ..., C), over the groups."""
        shape = statistics.shape
        if self.pytorch_compatible:
            groups, axis = (shape[0], self.num_groups, -1), 2
        else:
            groups, axis = (shape[0], -1, self.num_groups), 1
        grouped = mx.reshape(statistics, groups)
        means = mx.mean(grouped, axis=axis, keepdims=True)
        return mx.reshape(mx.broadcast_to(means, grouped.shape), shape)

    def __call__(self, x: mx.array) -> mx.array:
        ndim = x.ndim
        if ndim < 2:
            raise ValueError(
                "GroupNorm expects inputs with at least 2 dimensions (N, ..., C) "
                f"but the input has {ndim} dimensions. Reshape it."
            )
        axes = tuple(range(1, ndim - 1))
        return _normalised(x, axes, self.eps, self.get("weight"), self.get("bias"), self._pool)


class _Frozen(set[str]):
    """Names of frozen parameters that keep those of the running statistics.

    They are changed by a module's `unfreeze`, also that of a module around it.
    """

    def clear(self) -> None:
        super().clear()
        self.update(BatchNorm.STATISTICS)

    def difference_update(self, *others: Any) -> None:
        super().difference_update(*others)
        self.update(BatchNorm.STATISTICS)


class BatchNorm(Module):
    """Layer that normalises channels to mean 0 and variance 1 over a batch.

    `(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, where mean and variance are over all axes but the last.
    In training they are those of the input, and move the running ones: `running = (1 - momentum) * running +
    momentum * new`, with the unbiased variance. In evaluation (`eval`) the running ones are used.

    `running_mean` and `running_var` are parameters that are never trained.

    Args:
        num_features (int): Number of channels, the size of the last axis.
        eps (float): Number that is added to the variance.
        momentum (float): Part of a new mean or variance in the running ones.
        affine (bool): Adds `weight` (ones at first) and `bias` (zeros at first) to the parameters.
        track_running_stats (bool): Keeps running statistics. Without them evaluation uses those of the input.

    References:
        Ioffe, Szegedy: Batch normalization, https://arxiv.org/abs/1502.03167.

    Example:
        >>> norm = nn.BatchNorm(2)
        >>> norm(mx.array([[1.0, 5.0], [3.0, 5.0]]))
        array([[-0.999995, 0],
               [0.999995, 0]], dtype=float32)
        >>> norm.running_mean
        array([0.2, 0.5], dtype=float32)
    """

    STATISTICS = ("running_mean", "running_var")

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = mx.ones((num_features,))
            self.bias = mx.zeros((num_features,))
        if track_running_stats:
            self.running_mean = mx.zeros((num_features,))
            self.running_var = mx.ones((num_features,))
            self._no_grad = _Frozen(self.STATISTICS)

    def _extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={'weight' in self}, track_running_stats={self.track_running_stats}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        """Normalises a batch.

        Args:
            x (array): Input of two to four dimensions, (N, ..., C).

        Returns:
            array: Result, of the shape of `x`.

        Raises:
            ValueError: If there are fewer or more dimensions, or, in training, there is one value per channel.
        """
        shape = x.shape
        if len(shape) < 2 or len(shape) > 4:
            raise ValueError(
                f"Expected input tensor to have 2, 3 or 4 dimensions, but got {len(shape)}. Reshape it."
            )
        weight, bias = self.get("weight"), self.get("bias")
        axes = tuple(range(len(shape) - 1))
        training = self._training
        if not training and self.track_running_stats:
            mean, variance = self["running_mean"], self["running_var"]
            y = (_widened(x) - mean) * mx.rsqrt(_widened(variance) + self.eps)
            operands = [x, mean, variance, weight, bias]
        else:
            count = 1
            for size in shape[:-1]:
                count *= size
            if training and count == 1:
                raise ValueError(
                    "BatchNorm training requires more than one value per channel. Pass a larger batch, or call eval()."
                )
            wide = _widened(x)
            mean = mx.mean(wide, axis=axes)
            centred = wide - mean
            variance = mx.mean(mx.square(centred), axis=axes)
            if training and self.track_running_stats:
                self._track("running_mean", mean, x)
                self._track("running_var", variance * (count / max(count - 1, 1)), x)
            y = centred * mx.rsqrt(variance + self.eps)
            operands = [x, weight, bias]
        if weight is not None:
            y = y * weight + bias
        return _rounded(y, *operands)

    def _track(self, name: str, new: mx.array, x: mx.array) -> None:
        """Moves a running statistic towards a new one of the input `x`."""
        old = self[name]
        moved = (1 - self.momentum) * _widened(old) + self.momentum * new
        self[name] = _rounded(moved, old, x)
