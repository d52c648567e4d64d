"""Attention of many heads, and the transformer of Vaswani et al., "Attention is all you need" (arXiv:1706.03762)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ultramarine as mx
from ultramarine.nn.layers.activation_functions import relu
from ultramarine.nn.layers.base import Module
from ultramarine.nn.layers.dropout import Dropout
from ultramarine.nn.layers.linear import Linear
from ultramarine.nn.layers.normalization import LayerNorm
from ultramarine.nn.utils import checkpoint as checkpointed

__all__ = [
    "MultiHeadAttention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

_Activation = Callable[[Any], Any]


class MultiHeadAttention(Module):
    """Layer of scaled dot product attention with several heads.

    Queries, keys and values are projected linearly and split into heads. Each head takes the mean of values,
    weighted by `softmax(queries @ keys.T / sqrt(dims / num_heads) + mask)`; the heads together are projected again.

    Args:
        dims (int): Size of projected queries and keys, and the default of the other sizes.
        num_heads (int): Number of heads.
        query_input_dims (int, optional): Size of the queries, by default `dims`.
        key_input_dims (int, optional): Size of the keys, by default `dims`.
        value_input_dims (int, optional): Size of the values, by default that of the keys.
        value_dims (int, optional): Size of projected values, by default `dims`.
        value_output_dims (int, optional): Size of the result, by default `dims`.
        bias (bool): Adds biases to the projections.

    Raises:
        ValueError: If `dims` cannot be divided by the number of heads.

    Example:
        >>> attention = nn.MultiHeadAttention(dims=8, num_heads=2)
        >>> x = mx.ones((1, 5, 8))
        >>> attention(x, x, x, mask=attention.create_additive_causal_mask(5)).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        query_input_dims: int | None = None,
        key_input_dims: int | None = None,
        value_input_dims: int | None = None,
        value_dims: int | None = None,
        value_output_dims: int | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        if dims % num_heads != 0:
            raise ValueError(
                "The input feature dimensions should be divisible by the "
                f"number of heads ({dims} % {num_heads}) != 0. Pass a divisor."
            )
        query_input_dims = query_input_dims or dims
        key_input_dims = key_input_dims or dims
        value_input_dims = value_input_dims or key_input_dims
        value_dims = value_dims or dims
        value_output_dims = value_output_dims or dims

        self.num_heads = num_heads
        self.query_proj = Linear(query_input_dims, dims, bias=bias)
        self.key_proj = Linear(key_input_dims, dims, bias=bias)
        self.value_proj = Linear(value_input_dims, value_dims, bias=bias)
        self.out_proj = Linear(value_dims, value_output_dims, bias=bias)

    def _heads(self, projected: mx.array) -> mx.array:
        """Splits (N, positions, dims) into (N, heads, positions, dims / heads)."""
        return mx.transpose(mx.unflatten(projected, -1, (self.num_heads, -1)), (0, 2, 1, 3))

    def __call__(
        self,
        queries: mx.array,
        keys: mx.array,
        values: mx.array,
        mask: mx.array | str | None = None,
    ) -> mx.array:
        """Attends to values.

        Args:
            queries (array): Queries, (N, queries, query_input_dims).
            keys (array): Keys, (N, keys, key_input_dims).
            values (array): Values, (N, keys, value_input_dims).
            mask (array | str, optional): Mask of `fast.scaled_dot_product_attention`: numbers to add to the scores,
                broadcast to (N, num_heads, queries, keys), bools that are false for keys to ignore, or "causal".

        Returns:
            array: Result, (N, queries, value_output_dims).
        """
        q = self._heads(self["query_proj"](queries))
        k = self._heads(self["key_proj"](keys))
        v = self._heads(self["value_proj"](values))
        y = mx.fast.scaled_dot_product_attention(
            q, k, v, scale=1 / math.sqrt(q.shape[-1]), mask=mask
        )
        merged = mx.flatten(mx.transpose(y, (0, 2, 1, 3)), -2, -1)
        result: mx.array = self["out_proj"](merged)
        return result

    @staticmethod
    def create_additive_causal_mask(N: int, dtype: mx.Dtype = mx.float32) -> mx.array:
        """Returns a mask that hides later positions from earlier ones.

        Args:
            N (int): Number of positions.
            dtype (Dtype): Dtype of the mask, of floats: that of the queries or one that is promoted to it.

        Returns:
            array: Mask, (N, N): 0, and the least finite number above the diagonal.

        Example:
            >>> nn.MultiHeadAttention.create_additive_causal_mask(3) < 0
            array([[False, True, True],
                   [False, False, True],
                   [False, False, False]], dtype=bool)
        """
        positions = mx.arange(N)
        later = mx.expand_dims(positions, 1) < positions
        return mx.where(later, mx.array(mx.finfo(dtype).min, dtype), mx.array(0, dtype))


class TransformerEncoderLayer(Module):
    """Layer of an encoder: attention of the input to itself, then two linear layers at each position.

    Each is added to what it got. That is normalised before (`norm_first`), or the sum is.

    Args:
        dims (int): Size of the input.
        num_heads (int): Number of heads.
        mlp_dims (int, optional): Size between the linear layers, by default `4 * dims`.
        dropout (float): Probability of `Dropout`, behind attention and activation.
        activation (Callable): Function between the linear layers.
        norm_first (bool): Normalises inputs rather than sums.

    Example:
        >>> nn.TransformerEncoderLayer(dims=8, num_heads=2)(mx.ones((1, 5, 8)), None).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: _Activation = relu,
        norm_first: bool = True,
    ) -> None:
        super().__init__()
        mlp_dims = mlp_dims or dims * 4
        self.attention = MultiHeadAttention(dims, num_heads)
        self.ln1 = LayerNorm(dims)
        self.ln2 = LayerNorm(dims)
        self.linear1 = Linear(dims, mlp_dims)
        self.linear2 = Linear(mlp_dims, dims)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = activation
        self.norm_first = norm_first

    def _attend(self, x: mx.array, mask: mx.array | str | None) -> mx.array:
        result: mx.array = self["dropout1"](self["attention"](x, x, x, mask))
        return result

    def _mlp(self, x: mx.array) -> mx.array:
        hidden = self["dropout2"](self.activation(self["linear1"](x)))
        result: mx.array = self["linear2"](hidden)
        return result

    def __call__(self, x: mx.array, mask: mx.array | str | None) -> mx.array:
        """Applies the layer.

        Args:
            x (array): Input, (N, positions, dims).
            mask (array | str | None): Mask of the attention.

        Returns:
            array: Result, of the shape of `x`.
        """
        ln1, ln2 = self["ln1"], self["ln2"]
        if self.norm_first:
            x = x + self._attend(ln1(x), mask)
            return x + self._mlp(ln2(x))
        x = ln1(x + self._attend(x, mask))
        result: mx.array = ln2(x + self._mlp(x))
        return result


class TransformerEncoder(Module):
    """Encoder: a chain of `TransformerEncoderLayer`, and `LayerNorm`.

    Args:
        num_layers (int): Number of layers.
        dims (int): Size of the input.
        num_heads (int): Number of heads.
        mlp_dims (int, optional): Size between the linear layers, by default `4 * dims`.
        dropout (float): Probability of `Dropout`.
        activation (Callable): Function between the linear layers.
        norm_first (bool): Normalises inputs rather than sums.
        checkpoint (bool): Computes the layers again for gradients, which takes less memory.

    Example:
        >>> nn.TransformerEncoder(num_layers=2, dims=8, num_heads=2)(mx.ones((1, 5, 8)), None).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        num_layers: int,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: _Activation = relu,
        norm_first: bool = True,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        self.layers = [
            TransformerEncoderLayer(dims, num_heads, mlp_dims, dropout, activation, norm_first)
            for _ in range(num_layers)
        ]
        self.ln = LayerNorm(dims)
        self.checkpoint = checkpoint

    def __call__(self, x: mx.array, mask: mx.array | str | None) -> mx.array:
        """Encodes a sequence.

        Args:
            x (array): Input, (N, positions, dims).
            mask (array | str | None): Mask of the attention.

        Returns:
            array: Result, of the shape of `x`.
        """
        for layer in self["layers"]:
            x = checkpointed(layer)(x, mask) if self.checkpoint else layer(x, mask)
        result: mx.array = self["ln"](x)
        return result


class TransformerDecoderLayer(Module):
    """Layer of a decoder: attention to itself, then to the encoder's result, then two linear layers.

    Each is added to what it got. That is normalised before (`norm_first`), or the sum is.

    Args:
        dims (int): Size of the input.
        num_heads (int): Number of heads.
        mlp_dims (int, optional): Size between the linear layers, by default `4 * dims`.
        dropout (float): Probability of `Dropout`, behind attentions and activation.
        activation (Callable): Function between the linear layers.
        norm_first (bool): Normalises inputs rather than sums.

    Example:
        >>> layer = nn.TransformerDecoderLayer(dims=8, num_heads=2)
        >>> layer(mx.ones((1, 5, 8)), mx.ones((1, 7, 8)), None, None).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: _Activation = relu,
        norm_first: bool = True,
    ) -> None:
        super().__init__()
        mlp_dims = mlp_dims or dims * 4
        self.self_attention = MultiHeadAttention(dims, num_heads)
        self.cross_attention = MultiHeadAttention(dims, num_heads)
        self.ln1 = LayerNorm(dims)
        self.ln2 = LayerNorm(dims)
        self.ln3 = LayerNorm(dims)
        self.linear1 = Linear(dims, mlp_dims)
        self.linear2 = Linear(mlp_dims, dims)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = activation
        self.norm_first = norm_first

    def _attend(self, x: mx.array, mask: mx.array | str | None) -> mx.array:
        result: mx.array = self["dropout1"](self["self_attention"](x, x, x, mask))
        return result

    def _cross(self, x: mx.array, memory: mx.array, mask: mx.array | str | None) -> mx.array:
        result: mx.array = self["dropout2"](self["cross_attention"](x, memory, memory, mask))
        return result

    def _mlp(self, x: mx.array) -> mx.array:
        hidden = self["dropout3"](self.activation(self["linear1"](x)))
        result: mx.array = self["linear2"](hidden)
        return result

    def __call__(
        self,
        x: mx.array,
        memory: mx.array,
        x_mask: mx.array | str | None,
        memory_mask: mx.array | str | None,
    ) -> mx.array:
        """Applies the layer.

        Args:
            x (array): Input, (N, positions, dims).
            memory (array): Result of the encoder, (N, source positions, dims).
            x_mask (array | str | None): Mask of the attention to `x`.
            memory_mask (array | str | None): Mask of the attention to `memory`.

        Returns:
            array: Result, of the shape of `x`.
        """
        ln1, ln2, ln3 = self["ln1"], self["ln2"], self["ln3"]
        if self.norm_first:
            x = x + self._attend(ln1(x), x_mask)
            x = x + self._cross(ln2(x), memory, memory_mask)
            return x + self._mlp(ln3(x))
        x = ln1(x + self._attend(x, x_mask))
        x = ln2(x + self._cross(x, memory, memory_mask))
        result: mx.array = ln3(x + self._mlp(x))
        return result


class TransformerDecoder(Module):
    """Decoder: a chain of `TransformerDecoderLayer`, and `LayerNorm`.

    Args:
        num_layers (int): Number of layers.
        dims (int): Size of the input.
        num_heads (int): Number of heads.
        mlp_dims (int, optional): Size between the linear layers, by default `4 * dims`.
        dropout (float): Probability of `Dropout`.
        activation (Callable): Function between the linear layers.
        norm_first (bool): Normalises inputs rather than sums.
        checkpoint (bool): Computes the layers again for gradients, which takes less memory.

    Example:
        >>> decoder = nn.TransformerDecoder(num_layers=2, dims=8, num_heads=2)
        >>> decoder(mx.ones((1, 5, 8)), mx.ones((1, 7, 8)), None, None).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        num_layers: int,
        dims: int,
        num_heads: int,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: _Activation = relu,
        norm_first: bool = True,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        self.layers = [
            TransformerDecoderLayer(dims, num_heads, mlp_dims, dropout, activation, norm_first)
            for _ in range(num_layers)
        ]
        self.ln = LayerNorm(dims)
        self.checkpoint = checkpoint

    def __call__(
        self,
        x: mx.array,
        memory: mx.array,
        x_mask: mx.array | str | None,
        memory_mask: mx.array | str | None,
    ) -> mx.array:
        """Decodes a sequence.

        Args:
            x (array): Input, (N, positions, dims).
            memory (array): Result of the encoder, (N, source positions, dims).
            x_mask (array | str | None): Mask of the attention to `x`.
            memory_mask (array | str | None): Mask of the attention to `memory`.

        Returns:
            array: Result, of the shape of `x`.
        """
        for layer in self["layers"]:
            call = checkpointed(layer) if self.checkpoint else layer
            x = call(x, memory, x_mask, memory_mask)
        result: mx.array = self["ln"](x)
        return result


class Transformer(Module):
    """Transformer: an encoder of the source, and a decoder of the target that attends to its result.

    Args:
        dims (int): Size of the inputs.
        num_heads (int): Number of heads.
        num_encoder_layers (int): Number of layers of the encoder.
        num_decoder_layers (int): Number of layers of the decoder.
        mlp_dims (int, optional): Size between the linear layers, by default `4 * dims`.
        dropout (float): Probability of `Dropout`.
        activation (Callable): Function between the linear layers.
        custom_encoder (Module, optional): Encoder to use instead.
        custom_decoder (Module, optional): Decoder to use instead.
        norm_first (bool): Normalises inputs rather than sums.
        checkpoint (bool): Computes the layers again for gradients, which takes less memory.

    Example:
        >>> model = nn.Transformer(dims=8, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
        >>> model(mx.ones((1, 7, 8)), mx.ones((1, 5, 8)), None, None, None).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        dims: int = 512,
        num_heads: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        mlp_dims: int | None = None,
        dropout: float = 0.0,
        activation: _Activation = relu,
        custom_encoder: Any | None = None,
        custom_decoder: Any | None = None,
        norm_first: bool = True,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        shared = (dims, num_heads, mlp_dims, dropout, activation, norm_first, checkpoint)
        self.encoder = (
            TransformerEncoder(num_encoder_layers, *shared)
            if custom_encoder is None
            else custom_encoder
        )
        self.decoder = (
            TransformerDecoder(num_decoder_layers, *shared)
            if custom_decoder is None
            else custom_decoder
        )

    def __call__(
        self,
        src: mx.array,
        tgt: mx.array,
        src_mask: mx.array | str | None,
        tgt_mask: mx.array | str | None,
        memory_mask: mx.array | str | None,
    ) -> mx.array:
        """Encodes the source and decodes the target.

        Args:
            src (array): Source, (N, source positions, dims).
            tgt (array): Target, (N, positions, dims).
            src_mask (array | str | None): Mask of the encoder's attention.
            tgt_mask (array | str | None): Mask of the decoder's attention to the target.
            memory_mask (array | str | None): Mask of the decoder's attention to the source.

        Returns:
            array: Result, of the shape of `tgt`.
        """
        memory = self.encoder(src, src_mask)
        result: mx.array = self.decoder(tgt, memory, tgt_mask, memory_mask)
        return result
