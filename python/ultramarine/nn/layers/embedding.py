"""Lookup tables of vectors."""

from __future__ import annotations

import math

import ultramarine as mx
from ultramarine.nn.layers._affine import affine
from ultramarine.nn.layers.base import Module
from ultramarine.nn.layers.quantized import QuantizedEmbedding

__all__ = ["Embedding"]


class Embedding(Module):
    """Table that has a vector for each integer from 0 on, such as tokens.

    The vectors start normally distributed, with mean 0 and standard deviation 1 / sqrt(dims).

    Attributes:
        weight (array): Array of the shape (num_embeddings, dims).

    Args:
        num_embeddings (int): Number of vectors.
        dims (int): Size of a vector.

    Example:
        >>> nn.Embedding(1000, 16)(mx.array([[1, 5, 2]])).shape
        (1, 3, 16)
    """

    def __init__(self, num_embeddings: int, dims: int) -> None:
        """Makes the layer, with random parameters."""
        super().__init__()
        scale = math.sqrt(1 / dims)
        self.weight = mx.random.normal((num_embeddings, dims), scale=scale)

    def _extra_repr(self) -> str:
        return f"{self['weight'].shape[0]}, {self['weight'].shape[1]}"

    def __call__(self, x: mx.array) -> mx.array:
        """Looks vectors up.

        Args:
            x (array): Integers, of any shape.

        Returns:
            array: Array of the shape (*x.shape, dims).
        """
        vectors: mx.array = self["weight"][x]
        return vectors

    def as_linear(self, x: mx.array) -> mx.array:
        """Multiplies with all vectors: the last layer of models whose first and last layers share weights.

        Args:
            x (array): Array of the shape (..., dims).

        Returns:
            array: Array of the shape (..., num_embeddings).

        Example:
            >>> embedding = nn.Embedding(1000, 16)
            >>> embedding.as_linear(mx.ones((2, 16))).shape
            (2, 1000)
        """
        products: mx.array = affine(x, self["weight"])
        return products

    def to_quantized(
        self,
        group_size: int | None = None,
        bits: int | None = None,
        mode: str = "affine",
        quantize_input: bool = False,
    ) -> QuantizedEmbedding:
        """Makes a layer whose vectors have few bits; see `ultramarine.quantize`.

        Args:
            group_size (int, optional): Elements that share a scale; by default the mode's.
            bits (int, optional): Bits of an element; by default the mode's.
            mode (str): Meaning of the bits.
            quantize_input (bool): Not supported.

        Returns:
            QuantizedEmbedding: The layer.

        Raises:
            ValueError: If the mode is unknown or does not fit the other arguments, or if `quantize_input`.

        Example:
            >>> nn.Embedding(1000, 64).to_quantized(group_size=32, bits=8)
            QuantizedEmbedding(1000, 64, group_size=32, bits=8, mode=affine)
        """
        if quantize_input:
            raise ValueError(
                "[to_quantized] the input of an Embedding is integers, which cannot be quantized. "
                "Exclude it by class_predicate, or pass quantize_input=False."
            )
        return QuantizedEmbedding.from_embedding(self, group_size, bits, mode)
