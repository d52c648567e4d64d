"""Layers whose weights have few bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ultramarine as mx
from ultramarine.nn.layers.base import Module
from ultramarine.utils import tree_map_with_path

__all__ = ["QQLinear", "QuantizedEmbedding", "QuantizedLinear", "quantize"]

# Default group size and bits of `ultramarine.quantize`.
_DEFAULTS = {"affine": (64, 4), "mxfp4": (32, 4), "nvfp4": (16, 4), "mxfp8": (32, 8)}


def _defaults_for_mode(mode: str, group_size: int | None, bits: int | None) -> tuple[int, int]:
    """Returns group size and bits, or the mode's where they are None.

    Raises:
        ValueError: If the mode is unknown.
    """
    if mode not in _DEFAULTS:
        raise ValueError(
            f"Quantization mode {mode!r} is unknown. Use one of {', '.join(_DEFAULTS)}."
        )
    default_group_size, default_bits = _DEFAULTS[mode]
    return group_size or default_group_size, bits or default_bits


class Quantized(Module):
    """Base of layers with a weight of few bits: `weight`, `scales` and, of the mode affine, `biases`."""

    group_size: int
    bits: int
    mode: str

    def _set_mode(self, group_size: int | None, bits: int | None, mode: str) -> None:
        self.group_size, self.bits = _defaults_for_mode(mode, group_size, bits)
        self.mode = mode

    def _set_weight(self, weight: mx.array) -> None:
        """Rounds a matrix to the layer's mode."""
        self.weight, self.scales, *biases = mx.quantize(
            weight, self.group_size, self.bits, self.mode
        )
        self.biases = biases[0] if biases else None

    def _matmul(self, x: mx.array) -> mx.array:
        """Returns `x @ weight.T`."""
        return mx.quantized_matmul(
            x,
            self["weight"],
            self["scales"],
            self.get("biases"),
            True,
            self.group_size,
            self.bits,
            self.mode,
        )

    def _dims(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        rows, words = self["weight"].shape[-2:]
        return rows, words * 32 // self.bits

    def _extra_repr(self) -> str:
        rows, columns = self._dims()
        return (
            f"input_dims={columns}, output_dims={rows}, bias={'bias' in self}, "
            f"group_size={self.group_size}, bits={self.bits}, mode={self.mode}"
        )


class QuantizedEmbedding(Quantized):
    """`Embedding` whose vectors have few bits.

    Parameters are frozen. See `ultramarine.quantize` for group sizes, bits and modes.

    Attributes:
        weight (array): Words with the elements, of the shape (num_embeddings, dims * bits / 32).
        scales (array): Scales of the groups, of the shape (num_embeddings, dims / group_size).
        biases (array): Biases of the groups, of the same shape; None in modes other than affine.

    Args:
        num_embeddings (int): Number of vectors.
        dims (int): Size of a vector.
        group_size (int, optional): Elements that share a scale; by default the mode's.
        bits (int, optional): Bits of an element; by default the mode's.
        mode (str): Meaning of the bits.

    Example:
        >>> nn.QuantizedEmbedding(1000, 64)(mx.array([1, 5])).shape
        (2, 64)
    """

    def __init__(
        self,
        num_embeddings: int,
        dims: int,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
    ) -> None:
        """Makes the layer, with random parameters.

        Raises:
            ValueError: If mode, bits, group size and `dims` do not fit.
        """
        super().__init__()
        self._set_mode(group_size, bits, mode)
        scale = math.sqrt(1 / dims)
        self._set_weight(mx.random.normal((num_embeddings, dims), scale=scale))
        self.num_embeddings = num_embeddings
        self.dims = dims
        self.freeze()

    def __call__(self, x: mx.array) -> mx.array:
        """Looks vectors up.

        Args:
            x (array): Integers, of any shape.

        Returns:
            array: Array of the shape (*x.shape, dims).
        """
        biases = self.get("biases")
        return mx.dequantize(
            self["weight"][x],
            self["scales"][x],
            None if biases is None else biases[x],
            self.group_size,
            self.bits,
            self.mode,
        )

    def as_linear(self, x: mx.array) -> mx.array:
        """Multiplies with all vectors: the last layer of models whose first and last layers share weights.

        Args:
            x (array): Array of the shape (..., dims).

        Returns:
            array: Array of the shape (..., num_embeddings).

        Example:
            >>> nn.QuantizedEmbedding(1000, 64).as_linear(mx.ones((2, 64))).shape
            (2, 1000)
        """
        return self._matmul(x)

    def _extra_repr(self) -> str:
        return (
            f"{self.num_embeddings}, {self.dims}, "
            f"group_size={self.group_size}, bits={self.bits}, mode={self.mode}"
        )

    @classmethod
    def from_embedding(
        cls,
        embedding_layer: Module,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
    ) -> QuantizedEmbedding:
        """Rounds the vectors of an `Embedding`.

        Args:
            embedding_layer (Module): The layer.
            group_size (int, optional): Elements that share a scale; by default the mode's.
            bits (int, optional): Bits of an element; by default the mode's.
            mode (str): Meaning of the bits.

        Returns:
            QuantizedEmbedding: New layer.

        Raises:
            ValueError: If mode, bits, group size and the size of vectors do not fit.

        Example:
            >>> nn.QuantizedEmbedding.from_embedding(nn.Embedding(1000, 64), bits=8)
            QuantizedEmbedding(1000, 64, group_size=64, bits=8, mode=affine)
        """
        num_embeddings, dims = embedding_layer.weight.shape
        layer = cls(num_embeddings, dims, group_size, bits, mode)
        layer._set_weight(embedding_layer.weight)
        return layer


class QuantizedLinear(Quantized):
    """`Linear` whose weight has few bits: `y = x @ weight.T + bias`.

    Parameters are frozen. See `ultramarine.quantize` for group sizes, bits and modes.

    Attributes:
        weight (array): Words with the elements, of the shape (output_dims, input_dims * bits / 32).
        scales (array): Scales of the groups, of the shape (output_dims, input_dims / group_size).
        biases (array): Biases of the groups, of the same shape; None in modes other than affine.
        bias (array): Array of the shape (output_dims,), if there is a bias.

    Args:
        input_dims (int): Size of the last axis of the input.
        output_dims (int): Size of the last axis of the output.
        bias (bool): Adds a bias, which starts as zeros.
        group_size (int, optional): Elements that share a scale; by default the mode's.
        bits (int, optional): Bits of an element; by default the mode's.
        mode (str): Meaning of the bits.

    Example:
        >>> nn.QuantizedLinear(64, 2, group_size=32, bits=8)(mx.ones((5, 64))).shape
        (5, 2)
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
    ) -> None:
        """Makes the layer, with random parameters.

        Raises:
            ValueError: If mode, bits, group size and `input_dims` do not fit.
        """
        super().__init__()
        self._set_mode(group_size, bits, mode)
        scale = math.sqrt(1 / input_dims)
        self._set_weight(mx.random.uniform(-scale, scale, (output_dims, input_dims)))
        if bias:
            self.bias = mx.zeros((output_dims,))
        self.freeze()

    def __call__(self, x: mx.array) -> mx.array:
        """Maps the last axis.

        Args:
            x (array): Array of the shape (..., input_dims).

        Returns:
            array: Array of the shape (..., output_dims).
        """
        y = self._matmul(x)
        return y + self["bias"] if "bias" in self else y

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
    ) -> QuantizedLinear:
        """Rounds the weight of a `Linear`.

        Args:
            linear_layer (Module): The layer. Its bias is that of the new one, where it is trainable.
            group_size (int, optional): Elements that share a scale; by default the mode's.
            bits (int, optional): Bits of an element; by default the mode's.
            mode (str): Meaning of the bits.

        Returns:
            QuantizedLinear: New layer.

        Raises:
            ValueError: If mode, bits, group size and the size of the input do not fit.

        Example:
            >>> layer = nn.Linear(64, 2)
            >>> quantized = nn.QuantizedLinear.from_linear(layer, group_size=32, bits=8)
            >>> x = mx.ones((5, 64))
            >>> mx.allclose(quantized(x), layer(x), atol=0.1)
            array(True, dtype=bool)
        """
        output_dims, input_dims = linear_layer.weight.shape
        layer = cls(input_dims, output_dims, False, group_size, bits, mode)
        layer._set_weight(linear_layer.weight)
        if "bias" in linear_layer:
            layer.bias = linear_layer.bias
        return layer


class QQLinear(Module):
    """Linear map whose weight and input are both rounded to few bits, for training with them.

    In training mode the weight is an array of floats, which is rounded in each call, and gradients by it are those
    of the rounded product. In evaluation mode it is stored rounded: `train` and `eval` convert it, and what
    rounding drops is lost. There is no bias.

    Attributes:
        weight (array): Array of the shape (output_dims, input_dims), or in evaluation mode words with its
            elements.
        scales (array): Scales of the groups, in evaluation mode alone.

    Args:
        input_dims (int): Size of the last axis of the input.
        output_dims (int): Size of the last axis of the output.
        group_size (int, optional): Elements that share a scale; by default the mode's.
        bits (int, optional): Bits of an element; by default the mode's.
        mode (str): Meaning of the bits: nvfp4 or mxfp8.

    Example:
        >>> nn.QQLinear(64, 32, mode="nvfp4")
        QQLinear(input_dims=64, output_dims=32, group_size=16, bits=4, mode=nvfp4)
    """

    weight: mx.array
    scales: mx.array

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "nvfp4",
    ) -> None:
        """Makes the layer in training mode, with random parameters.

        Raises:
            ValueError: If the mode is unknown.
        """
        super().__init__()
        self.group_size, self.bits = _defaults_for_mode(mode, group_size, bits)
        self.mode = mode
        scale = math.sqrt(1 / input_dims)
        self.weight = mx.random.uniform(-scale, scale, (output_dims, input_dims))
        self._quantized = False

    def _extra_repr(self) -> str:
        output_dims, input_dims = self["weight"].shape[-2:]
        if self._quantized:
            input_dims = input_dims * 32 // self.bits
        return (
            f"input_dims={input_dims}, output_dims={output_dims}, "
            f"group_size={self.group_size}, bits={self.bits}, mode={self.mode}"
        )

    def quantize(self) -> None:
        """Stores the weight rounded, as in evaluation mode.

        Example:
            >>> layer = nn.QQLinear(64, 32, mode="nvfp4")
            >>> layer.quantize()
            >>> layer.weight.dtype
            ultramarine.uint32
        """
        if not self._quantized:
            self.weight, self.scales, *_ = mx.quantize(
                self["weight"], self.group_size, self.bits, self.mode
            )
            self._quantized = True

    def dequantize(self) -> None:
        """Stores the weight as bfloat16, as in training mode.

        Example:
            >>> layer = nn.QQLinear(64, 32, mode="nvfp4")
            >>> layer.quantize()
            >>> layer.dequantize()
            >>> layer.weight.shape
            (32, 64)
        """
        if self._quantized:
            self.weight = mx.dequantize(
                self["weight"], self["scales"], None, self.group_size, self.bits, self.mode
            )
            del self.scales
            self._quantized = False

    def _set_training_mode(self, mode: bool) -> None:
        super()._set_training_mode(mode)
        if mode:
            self.dequantize()
        else:
            self.quantize()

    def __call__(self, x: mx.array) -> mx.array:
        """Maps the last axis.

        Args:
            x (array): Array of the shape (..., input_dims), of floats.

        Returns:
            array: Array of the shape (..., output_dims).
        """
        return mx.qqmm(x, self["weight"], self.get("scales"), self.group_size, self.bits, self.mode)

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "nvfp4",
    ) -> QQLinear:
        """Makes a layer with the weight of a `Linear`, in the same of training and evaluation mode.

        Args:
            linear_layer (Module): The layer.
            group_size (int, optional): Elements that share a scale; by default the mode's.
            bits (int, optional): Bits of an element; by default the mode's.
            mode (str): Meaning of the bits: nvfp4 or mxfp8.

        Returns:
            QQLinear: New layer.

        Raises:
            ValueError: If the mode is unknown.
            NotImplementedError: If the layer has a bias.

        Example:
            >>> nn.QQLinear.from_linear(nn.Linear(64, 32, bias=False), mode="nvfp4")
            QQLinear(input_dims=64, output_dims=32, group_size=16, bits=4, mode=nvfp4)
        """
        if "bias" in linear_layer:
            raise NotImplementedError(
                "[QQLinear] the layer has a bias, which is not supported. Use a Linear with bias=False."
            )
        output_dims, input_dims = linear_layer.weight.shape
        layer = cls(input_dims, output_dims, group_size, bits, mode)
        layer.weight = linear_layer.weight
        layer.train(linear_layer.training)
        return layer


def quantize(
    model: Module,
    group_size: int | None = None,
    bits: int | None = None,
    *,
    mode: str = "affine",
    quantize_input: bool = False,
    class_predicate: Callable[[str, Module], bool | dict[str, Any]] | None = None,
) -> None:
    """Replaces layers of a model by ones whose weights have few bits, in place.

    Layers are modules without submodules; those that have a method `to_quantized`, such as `Linear` and
    `Embedding`, are replaced by what it returns. See `ultramarine.quantize` for group sizes, bits and modes.

    Args:
        model (Module): The model.
        group_size (int, optional): Elements that share a scale; by default the mode's.
        bits (int, optional): Bits of an element; by default the mode's.
        mode (str): Meaning of the bits.
        quantize_input (bool): Rounds inputs of layers, too: of the modes nvfp4 and mxfp8, and of `Linear` without
            bias.
        class_predicate (Callable, optional): Function of the path of a layer, such as `layers.0.mlp`, and the
            layer. It returns True if the layer is replaced, a dictionary of the arguments of its `to_quantized`,
            in place of all those above, or False.

    Raises:
        ValueError: If the predicate selects a layer without `to_quantized` or returns anything else, or arguments do
            not fit a layer.

    Example:
        >>> model = nn.Sequential(nn.Embedding(100, 64), nn.Linear(64, 100))
        >>> nn.quantize(model, bits=8)
        >>> model
        Sequential(
          (layers.0): QuantizedEmbedding(100, 64, group_size=64, bits=8, mode=affine)
          (layers.1): QuantizedLinear(input_dims=64, output_dims=100, bias=True, group_size=64, bits=8, mode=affine)
        )
    """
    arguments: dict[str, Any] = {"group_size": group_size, "bits": bits, "mode": mode}
    if quantize_input:
        # Layers of other packages may not have this parameter.
        arguments["quantize_input"] = True

    def replaced(path: str, layer: Module) -> Module:
        if class_predicate is None:
            chosen: Any = hasattr(layer, "to_quantized")
        else:
            chosen = class_predicate(path, layer)
        if not chosen:
            return layer
        if not isinstance(chosen, (bool, dict)):
            raise ValueError(
                f"[quantize] class_predicate returned a {type(chosen).__name__} for {path}. "
                "Return a bool, or a dict of arguments of to_quantized."
            )
        if not hasattr(layer, "to_quantized"):
            raise ValueError(
                f"[quantize] class_predicate selected {path}, and {type(layer).__name__} has no to_quantized. "
                "Return False for it."
            )
        new: Module = layer.to_quantized(**(chosen if isinstance(chosen, dict) else arguments))
        return new

    leaves = model.leaf_modules()
    model.update_modules(tree_map_with_path(replaced, leaves, is_leaf=Module.is_module))
