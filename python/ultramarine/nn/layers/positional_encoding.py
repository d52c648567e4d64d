"""Positional encodings: rotary, sinusoidal, and biases of attention scores."""

from __future__ import annotations

import math

import ultramarine as mx
from ultramarine.nn.layers.base import Module

__all__ = ["ALiBi", "RoPE", "SinusoidalPositionalEncoding"]


class RoPE(Module):
    """Layer that rotates pairs of elements by angles that grow with the position (rotary encoding).

    `fast.rope` computes it. Pair i of `dims / 2` turns by `scale * base ** (-2 * i / dims)` for each position.

    Args:
        dims (int): Number of leading elements of the last axis that are rotated; the others stay.
        traditional (bool): Pairs neighbours; else elements i and i + dims / 2 are a pair.
        base (float): Base of the angles.
        scale (float): Factor of the positions.

    References:
        Su et al.: RoFormer, https://arxiv.org/abs/2104.09864.

    Example:
        >>> nn.RoPE(8)(mx.ones((1, 4, 10, 8))).shape
        (1, 4, 10, 8)
    """

    def __init__(
        self, dims: int, traditional: bool = False, base: float = 10000, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.dims = dims
        self.traditional = traditional
        self.base = base
        self.scale = scale

    def _extra_repr(self) -> str:
        return f"{self.dims}, traditional={self.traditional}"

    def __call__(self, x: mx.array, offset: int | mx.array = 0) -> mx.array:
        """Rotates vectors.

        Args:
            x (array): Vectors, (N, ..., positions, elements).
            offset (int | array): First position, or one for each of the N.

        Returns:
            array: Rotated vectors, in shape and dtype of `x`.
        """
        return mx.fast.rope(
            x,
            self.dims,
            traditional=self.traditional,
            base=self.base,
            scale=self.scale,
            offset=offset,
        )


class SinusoidalPositionalEncoding(Module):
    """Layer that encodes numbers by sines and cosines of frequencies in geometric progression.

    The result is `scale * [sin(x * f), cos(x * f)]` for `dims / 2` frequencies f, the largest first.

    Args:
        dims (int): Size of an encoding, a positive even number.
        min_freq (float): Smallest frequency.
        max_freq (float): Largest frequency.
        scale (float, optional): Factor of the result, by default `sqrt(2 / dims)`.
        cos_first (bool): Puts the cosines before the sines.
        full_turns (bool): Multiplies the frequencies by 2 pi.

    Raises:
        ValueError: If `dims` is not positive and even.

    References:
        Vaswani et al.: Attention is all you need, https://arxiv.org/abs/1706.03762.

    Example:
        >>> nn.SinusoidalPositionalEncoding(8)(mx.arange(10)).shape
        (10, 8)
    """

    def __init__(
        self,
        dims: int,
        min_freq: float = 0.0001,
        max_freq: float = 1,
        scale: float | None = None,
        cos_first: bool = False,
        full_turns: bool = False,
    ) -> None:
        super().__init__()
        if dims <= 0 or dims % 2 != 0:
            raise ValueError(
                f"[SinusoidalPositionalEncoding] dims must be positive and even but got {dims}. Pass a positive even number."
            )
        half = dims // 2
        # A single frequency is the largest one.
        position = 1 - mx.arange(half) / max(half - 1, 1)
        low, high = math.log(min_freq), math.log(max_freq)
        sigmas = mx.exp(position * (high - low) + low)
        if full_turns:
            sigmas = sigmas * (2 * math.pi)
        # The underscore keeps the array out of the parameters.
        self._sigmas = sigmas
        self.scale = math.sqrt(2 / dims) if scale is None else scale
        self.cos_first = cos_first

    def __call__(self, x: mx.array) -> mx.array:
        """Encodes numbers.

        Args:
            x (array): Numbers, of any shape.

        Returns:
            array: Encodings, of the shape of `x` and one axis more, of size `dims`.
        """
        angles = mx.expand_dims(x, -1) * self["_sigmas"]
        parts = [mx.sin(angles), mx.cos(angles)]
        if self.cos_first:
            parts.reverse()
        y = mx.concatenate(parts, axis=-1)
        return y if self.scale == 1 else y * self.scale


def _slopes(count: int) -> list[float]:
    """Returns slopes in geometric progression for a power of two of heads."""
    return [2.0 ** (-8 * i / count) for i in range(1, count + 1)]


class ALiBi(Module):
    """Layer that adds biases to attention scores that fall with the distance of query and key.

    The bias is `-slope * abs(query position - key position)`, with a slope for each head.

    References:
        Press, Smith, Lewis: Train short, test long, https://arxiv.org/abs/2108.12409.

    Example:
        >>> nn.ALiBi()(mx.zeros((1, 4, 3, 3))).shape
        (1, 4, 3, 3)
    """

    @staticmethod
    def create_alibi_matrix(
        q_sequence_length: int,
        k_sequence_length: int,
        num_heads: int,
        offset: int = 0,
        dtype: mx.Dtype = mx.float32,
    ) -> mx.array:
        """Returns the biases.

        Args:
            q_sequence_length (int): Position behind the last query.
            k_sequence_length (int): Number of keys.
            num_heads (int): Number of heads.
            offset (int): Position of the first query.
            dtype (Dtype): Dtype of the result.

        Returns:
            array: Biases, (1, num_heads, q_sequence_length - offset, k_sequence_length).

        Example:
            >>> nn.ALiBi.create_alibi_matrix(3, 3, 4).shape
            (1, 4, 3, 3)
        """
        queries = mx.arange(offset, q_sequence_length)
        keys = mx.arange(k_sequence_length)
        biases = -mx.abs(mx.expand_dims(queries, 1) - keys)
        # Compute in float32, because bfloat16 cannot represent all distances beyond 256.
        slopes = ALiBi.create_alibi_slope(num_heads)
        return mx.expand_dims(biases * slopes, 0).astype(dtype)

    @staticmethod
    def create_alibi_slope(num_heads: int, dtype: mx.Dtype = mx.float32) -> mx.array:
        """Returns the slopes of heads.

        For n heads, n a power of two, they are `2 ** (-8 * i / n)` for i from 1 to n. Otherwise those of the
        power below come first, then every other one of the power above.

        Args:
            num_heads (int): Number of heads.
            dtype (Dtype): Dtype of the result.

        Returns:
            array: Slopes, (num_heads, 1, 1).

        Example:
            >>> nn.ALiBi.create_alibi_slope(2).flatten()
            array([0.0625, 0.00390625], dtype=float32)
        """
        power = 1 << (num_heads.bit_length() - 1)
        slopes = _slopes(power) + _slopes(2 * power)[::2][: num_heads - power]
        return mx.reshape(mx.array(slopes, dtype), (num_heads, 1, 1))

    def __call__(
        self, attention_scores: mx.array, offset: int = 0, mask: mx.array | None = None
    ) -> mx.array:
        """Adds the biases.

        Args:
            attention_scores (array): Scores, (N, heads, queries, keys).
            offset (int): Position of the first query.
            mask (array, optional): Mask that is added, too.

        Returns:
            array: Scores with the biases.
        """
        _, heads, queries, keys = attention_scores.shape
        scores = attention_scores + ALiBi.create_alibi_matrix(
            queries + offset, keys, heads, offset, attention_scores.dtype
        )
        return scores if mask is None else scores + mask
