"""Layers that are linear in their inputs."""

from __future__ import annotations

import math
from typing import Any

import ultramarine as mx
from ultramarine.nn.layers._affine import affine
from ultramarine.nn.layers.base import Module
from ultramarine.nn.layers.quantized import QQLinear, QuantizedLinear

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Returns its input.

    Args:
        *args (Any): Ignored.
        **kwargs (Any): Ignored.

    Example:
        >>> nn.Identity()(mx.array([1, 2]))
        array([1, 2], dtype=int32)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Makes the layer."""
        super().__init__()

    def __call__(self, x: mx.array) -> mx.array:
        """Returns the input.

        Args:
            x (array): Anything.

        Returns:
            array: `x`.
        """
        return x


class Linear(Module):
    """Affine map of the last axis: `y = x @ weight.T + bias`.

    Weight and bias start uniformly distributed in [-k, k] with k = 1 / sqrt(input_dims).

    Attributes:
        weight (array): Array of the shape (output_dims, input_dims).
        bias (array): Array of the shape (output_dims,), if there is a bias.

    Args:
        input_dims (int): Size of the last axis of the input.
        output_dims (int): Size of the last axis of the output.
        bias (bool): Adds a bias.

    Example:
        >>> nn.Linear(3, 2)(mx.ones((5, 3))).shape
        (5, 2)
    """

    def __init__(self, input_dims: int, output_dims: int, bias: bool = True) -> None:
        """Makes the layer, with random parameters."""
        super().__init__()
        scale = math.sqrt(1.0 / input_dims)
        self.weight = mx.random.uniform(-scale, scale, (output_dims, input_dims))
        if bias:
            self.bias = mx.random.uniform(-scale, scale, (output_dims,))

    def _extra_repr(self) -> str:
        output_dims, input_dims = self["weight"].shape[-2:]
        return f"input_dims={input_dims}, output_dims={output_dims}, bias={'bias' in self}"

    def __call__(self, x: mx.array) -> mx.array:
        """Maps the last axis.

        Args:
            x (array): Array of the shape (..., input_dims).

        Returns:
            array: Array of the shape (..., output_dims).
        """
        return affine(x, self["weight"], self.get("bias"))

    def to_quantized(
        self,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
        quantize_input: bool = False,
    ) -> QuantizedLinear | QQLinear:
        """Makes a layer whose weight has few bits; see `ultramarine.quantize`.

        Args:
            group_size (int, optional): Elements that share a scale; by default the mode's.
            bits (int, optional): Bits of an element; by default the mode's.
            mode (str): Meaning of the bits.
            quantize_input (bool): Rounds the input, too, of the modes nvfp4 and mxfp8.

        Returns:
            QuantizedLinear or QQLinear: The layer; a `QQLinear` if `quantize_input`.

        Raises:
            ValueError: If the mode is unknown, or does not fit the other arguments.
            NotImplementedError: If `quantize_input` and the layer has a bias.

        Example:
            >>> nn.Linear(64, 2).to_quantized(group_size=32, bits=8)
            QuantizedLinear(input_dims=64, output_dims=2, bias=True, group_size=32, bits=8, mode=affine)
        """
        if not quantize_input:
            return QuantizedLinear.from_linear(self, group_size, bits, mode)
        if mode not in ("nvfp4", "mxfp8"):
            raise ValueError(
                f"[to_quantized] inputs cannot be quantized in the mode {mode!r}. Use 'nvfp4' or 'mxfp8'."
            )
        return QQLinear.from_linear(self, group_size, bits, mode)


class Bilinear(Module):
    """Bilinear map of the last axes of two inputs: `y[i] = x2 @ weight[i] @ x1 + bias[i]`.

    Weight and bias start uniformly distributed in [-k, k] with k = 1 / sqrt(input1_dims).

    Attributes:
        weight (array): Array of the shape (output_dims, input2_dims, input1_dims).
        bias (array): Array of the shape (output_dims,), if there is a bias.

    Args:
        input1_dims (int): Size of the last axis of the first input.
        input2_dims (int): Size of the last axis of the second input.
        output_dims (int): Size of the last axis of the output.
        bias (bool): Adds a bias.

    Example:
        >>> nn.Bilinear(3, 4, 2)(mx.ones((5, 3)), mx.ones((5, 4))).shape
        (5, 2)
    """

    def __init__(
        self, input1_dims: int, input2_dims: int, output_dims: int, bias: bool = True
    ) -> None:
        """Makes the layer, with random parameters."""
        super().__init__()
        scale = math.sqrt(1.0 / input1_dims)
        self.weight = mx.random.uniform(-scale, scale, (output_dims, input2_dims, input1_dims))
        if bias:
            self.bias = mx.random.uniform(-scale, scale, (output_dims,))

    def _extra_repr(self) -> str:
        output_dims, input2_dims, input1_dims = self["weight"].shape
        return (
            f"input1_dims={input1_dims}, input2_dims={input2_dims}, "
            f"output_dims={output_dims}, bias={'bias' in self}"
        )

    def __call__(self, x1: mx.array, x2: mx.array) -> mx.array:
        """Maps the last axes.

        Args:
            x1 (array): Array of the shape (..., input1_dims).
            x2 (array): Array of the shape (..., input2_dims).

        Returns:
            array: Array of the shape (..., output_dims).
        """
        weight: mx.array = self["weight"]
        output_dims, input2_dims, input1_dims = weight.shape
        # One product computes a matrix (output_dims, input2_dims) for each row; each matrix is then multiplied by a
        # vector.
        matrices = x1 @ weight.reshape(-1, input1_dims).T
        matrices = matrices.reshape(*matrices.shape[:-1], output_dims, input2_dims)
        y = mx.squeeze(matrices @ mx.expand_dims(x2, -1), -1)
        return y + self["bias"] if "bias" in self else y
