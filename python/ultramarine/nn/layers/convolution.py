"""Convolution layers. Channels are the last axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import ultramarine as mx
from ultramarine.nn.layers.base import Module

__all__ = ["Conv1d", "Conv2d", "Conv3d"]


def _per_axis(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    """Repeats a number for each axis; a sequence has one for each already."""
    return (value,) * count if isinstance(value, int) else tuple(value)


def _new_weight(out_channels: int, kernel: Sequence[int], in_channels: int) -> mx.array:
    """Draws a weight, (out_channels, *kernel, in_channels), within 1 / sqrt(numbers that an output sums)."""
    bound = 1 / math.sqrt(in_channels * math.prod(kernel))
    return mx.random.uniform(-bound, bound, (out_channels, *kernel, in_channels))


def _check_groups(in_channels: int, groups: int) -> None:
    if in_channels % groups != 0:
        raise ValueError(
            f"The number of input channels ({in_channels}) must be "
            f"divisible by the number of groups ({groups}). Pass a divisor."
        )


class Conv1d(Module):
    """Layer that convolves sequences, (N, length, in_channels).

    Parameters are `weight`, (out_channels, kernel_size, in_channels / groups), drawn uniformly within
    ± 1 / sqrt(in_channels / groups * kernel_size), and `bias`, zeros at first.

    Args:
        in_channels (int): Channels of the input.
        out_channels (int): Channels of the output.
        kernel_size (int): Size of the kernel.
        stride (int): Step of the kernel.
        padding (int): Zeros on both sides of the input.
        dilation (int): Distance of the kernel's elements.
        groups (int): Groups of channels that are convolved apart.
        bias (bool): Adds a bias to each output channel.

    Raises:
        ValueError: If the input channels cannot be divided into such groups.

    Example:
        >>> nn.Conv1d(3, 8, kernel_size=3)(mx.ones((2, 10, 3))).shape
        (2, 8, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        _check_groups(in_channels, groups)
        self.weight = _new_weight(out_channels, (kernel_size,), in_channels // groups)
        if bias:
            self.bias = mx.zeros((out_channels,))
        self.padding = padding
        self.dilation = dilation
        self.stride = stride
        self.groups = groups

    def _extra_repr(self) -> str:
        out_channels, kernel_size, in_channels = self.weight.shape
        return (
            f"{in_channels * self.groups}, {out_channels}, kernel_size={kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"groups={self.groups}, bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        y = mx.conv1d(x, self["weight"], self.stride, self.padding, self.dilation, self.groups)
        return y + self["bias"] if "bias" in self else y


class Conv2d(Module):
    """Layer that convolves images, (N, height, width, in_channels).

    Parameters are `weight`, `(out_channels, *kernel_size, in_channels / groups)`, drawn uniformly within
    ± 1 / sqrt(numbers that an output sums), and `bias`, zeros at first.

    Args:
        in_channels (int): Channels of the input.
        out_channels (int): Channels of the output.
        kernel_size (int | tuple): Size of the kernel, for both axes or for each.
        stride (int | tuple): Step of the kernel.
        padding (int | tuple): Zeros on both sides of the input.
        dilation (int | tuple): Distance of the kernel's elements.
        groups (int): Groups of channels that are convolved apart.
        bias (bool): Adds a bias to each output channel.

    Raises:
        ValueError: If the input channels cannot be divided into such groups.

    Example:
        >>> nn.Conv2d(3, 8, kernel_size=3, padding=1)(mx.ones((2, 10, 12, 3))).shape
        (2, 10, 12, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        _check_groups(in_channels, groups)
        self.weight = _new_weight(out_channels, _per_axis(kernel_size, 2), in_channels // groups)
        if bias:
            self.bias = mx.zeros((out_channels,))
        self.padding = _per_axis(padding, 2)
        self.stride = _per_axis(stride, 2)
        self.dilation = dilation
        self.groups = groups

    def _extra_repr(self) -> str:
        out_channels, *kernel_size, in_channels = self.weight.shape
        return (
            f"{in_channels * self.groups}, {out_channels}, kernel_size={tuple(kernel_size)}, "
            f"stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"groups={self.groups}, bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        y = mx.conv2d(
            x, self["weight"], self["stride"], self["padding"], self.dilation, self.groups
        )
        return y + self["bias"] if "bias" in self else y


class Conv3d(Module):
    """Layer that convolves volumes, (N, depth, height, width, in_channels).

    Parameters are `weight`, `(out_channels, *kernel_size, in_channels)`, drawn uniformly within
    ± 1 / sqrt(numbers that an output sums), and `bias`, zeros at first.

    Args:
        in_channels (int): Channels of the input.
        out_channels (int): Channels of the output.
        kernel_size (int | tuple): Size of the kernel, for all three axes or for each.
        stride (int | tuple): Step of the kernel.
        padding (int | tuple): Zeros on both sides of the input.
        dilation (int | tuple): Distance of the kernel's elements.
        bias (bool): Adds a bias to each output channel.

    Example:
        >>> nn.Conv3d(3, 8, kernel_size=3, padding=1)(mx.ones((2, 4, 5, 6, 3))).shape
        (2, 4, 5, 6, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] = 1,
        padding: int | tuple[int, int, int] = 0,
        dilation: int | tuple[int, int, int] = 1,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight = _new_weight(out_channels, _per_axis(kernel_size, 3), in_channels)
        if bias:
            self.bias = mx.zeros((out_channels,))
        self.padding = _per_axis(padding, 3)
        self.stride = _per_axis(stride, 3)
        self.dilation = dilation

    def _extra_repr(self) -> str:
        out_channels, *kernel_size, in_channels = self.weight.shape
        return (
            f"{in_channels}, {out_channels}, kernel_size={tuple(kernel_size)}, "
            f"stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        y = mx.conv3d(x, self["weight"], self["stride"], self["padding"], self.dilation)
        return y + self["bias"] if "bias" in self else y
