"""Transposed convolution layers: what gradients of convolutions by their inputs are. Channels are the last axis."""

from __future__ import annotations

import ultramarine as mx
from ultramarine.nn.layers.base import Module
from ultramarine.nn.layers.convolution import _new_weight, _per_axis

__all__ = ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class ConvTranspose1d(Module):
    """Layer that applies a transposed convolution to sequences, (N, length, in_channels).

    Parameters are `weight`, (out_channels, kernel_size, in_channels), drawn uniformly within
    ± 1 / sqrt(in_channels * kernel_size), and `bias`, zeros at first.

    Args:
        in_channels (int): Channels of the input.
        out_channels (int): Channels of the output.
        kernel_size (int): Size of the kernel.
        stride (int): Distance of the inputs in the output.
        padding (int): Elements that are cut off both sides of the output.
        dilation (int): Distance of the kernel's elements.
        output_padding (int): Elements that are added to the end of the output.
        bias (bool): Adds a bias to each output channel.

    Example:
        >>> nn.ConvTranspose1d(3, 8, kernel_size=2, stride=2)(mx.ones((2, 10, 3))).shape
        (2, 20, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        output_padding: int = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight = _new_weight(out_channels, (kernel_size,), in_channels)
        if bias:
            self.bias = mx.zeros((out_channels,))
        self.padding = padding
        self.dilation = dilation
        self.stride = stride
        self.output_padding = output_padding

    def _extra_repr(self) -> str:
        out_channels, kernel_size, in_channels = self.weight.shape
        return (
            f"{in_channels}, {out_channels}, kernel_size={kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"output_padding={self.output_padding}, bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        y = mx.conv_transpose1d(
            x, self["weight"], self.stride, self.padding, self.dilation, self.output_padding
        )
        return y + self["bias"] if "bias" in self else y


class ConvTranspose2d(Module):
    """Layer that applies a transposed convolution to images, (N, height, width, in_channels).

    Parameters are `weight`, `(out_channels, *kernel_size, in_channels)`, drawn uniformly within
    ± 1 / sqrt(in_channels * elements of the kernel), and `bias`, zeros at first.

    Args:
        in_channels (int): Channels of the input.
        out_channels (int): Channels of the output.
        kernel_size (int | tuple): Size of the kernel, for both axes or for each.
        stride (int | tuple): Distance of the inputs in the output.
        padding (int | tuple): Elements that are cut off both sides of the output.
        dilation (int | tuple): Distance of the kernel's elements.
        output_padding (int | tuple): Elements that are added to the end of the output.
        bias (bool): Adds a bias to each output channel.

    Example:
        >>> nn.ConvTranspose2d(3, 8, kernel_size=2, stride=2)(mx.ones((2, 10, 12, 3))).shape
        (2, 20, 24, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] = 0,
        dilation: int | tuple[int, int] = 1,
        output_padding: int | tuple[int, int] = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight = _new_weight(out_channels, _per_axis(kernel_size, 2), in_channels)
        if bias:
            self.bias = mx.zeros((out_channels,))
        self.padding = _per_axis(padding, 2)
        self.stride = _per_axis(stride, 2)
        self.dilation = dilation
        self.output_padding = _per_axis(output_padding, 2)

    def _extra_repr(self) -> str:
        return _repr_of_axes(self)

    def __call__(self, x: mx.array) -> mx.array:
        y = mx.conv_transpose2d(
            x,
            self["weight"],
            self["stride"],
            self["padding"],
            self.dilation,
            self["output_padding"],
        )
        return y + self["bias"] if "bias" in self else y


class ConvTranspose3d(Module):
    """Layer that applies a transposed convolution to volumes, (N, depth, height, width, in_channels).

    Parameters are `weight`, `(out_channels, *kernel_size, in_channels)`, drawn uniformly within
    ± 1 / sqrt(in_channels * elements of the kernel), and `bias`, zeros at first.

    Args:
        in_channels (int): Channels of the input.
        out_channels (int): Channels of the output.
        kernel_size (int | tuple): Size of the kernel, for all three axes or for each.
        stride (int | tuple): Distance of the inputs in the output.
        padding (int | tuple): Elements that are cut off both sides of the output.
        dilation (int | tuple): Distance of the kernel's elements.
        output_padding (int | tuple): Elements that are added to the end of the output.
        bias (bool): Adds a bias to each output channel.

    Example:
        >>> nn.ConvTranspose3d(3, 8, kernel_size=2, stride=2)(mx.ones((2, 4, 5, 6, 3))).shape
        (2, 8, 10, 12, 8)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int, int],
        stride: int | tuple[int, int, int] = 1,
        padding: int | tuple[int, int, int] = 0,
        dilation: int | tuple[int, int, int] = 1,
        output_padding: int | tuple[int, int, int] = 0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight = _new_weight(out_channels, _per_axis(kernel_size, 3), in_channels)
        if bias:
            self.bias = mx.zeros((out_channels,))
        self.padding = _per_axis(padding, 3)
        self.stride = _per_axis(stride, 3)
        self.dilation = dilation
        self.output_padding = _per_axis(output_padding, 3)

    def _extra_repr(self) -> str:
        return _repr_of_axes(self)

    def __call__(self, x: mx.array) -> mx.array:
        y = mx.conv_transpose3d(
            x,
            self["weight"],
            self["stride"],
            self["padding"],
            self.dilation,
            self["output_padding"],
        )
        return y + self["bias"] if "bias" in self else y


def _repr_of_axes(layer: ConvTranspose2d | ConvTranspose3d) -> str:
    out_channels, *kernel_size, in_channels = layer.weight.shape
    return (
        f"{in_channels}, {out_channels}, kernel_size={tuple(kernel_size)}, "
        f"stride={layer.stride}, padding={layer.padding}, dilation={layer.dilation}, "
        f"output_padding={layer.output_padding}, bias={'bias' in layer}"
    )
