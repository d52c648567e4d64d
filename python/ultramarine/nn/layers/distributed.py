"""Layers whose parameters are split over the processes of a group.

`AllToShardedLinear` has some rows of the weight in each process, so that its output is split; `ShardedToAllLinear`
has some columns, takes such an input and sums the results. One after the other they need one sum in the forward
pass and one in the backward pass (Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models
Using Model Parallelism", 2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import ultramarine as mx
from ultramarine.nn.layers._affine import affine
from ultramarine.nn.layers._fully_sharded import FullyShardedModule, fully_shard
from ultramarine.nn.layers._sharding import (
    Axis,
    Segments,
    all_to_sharded,
    check_divisible,
    default_group,
    note_sharding,
    predicate_of,
    shard_module,
    sharded_to_all,
)
from ultramarine.nn.layers.base import Module
from ultramarine.nn.layers.quantized import Quantized

__all__ = [
    "AllToShardedLinear",
    "FullyShardedModule",
    "QuantizedAllToShardedLinear",
    "QuantizedShardedToAllLinear",
    "ShardedToAllLinear",
    "fully_shard",
    "shard_inplace",
    "shard_linear",
    "sum_gradients",
]


@lru_cache
def sum_gradients(group: mx.distributed.Group) -> Callable[[mx.array], mx.array]:
    """Returns an identity whose gradient is summed over the processes of a group.

    Args:
        group (Group): The processes.

    Returns:
        Callable: Function of an array that returns it.

    Example:
        >>> f = nn.layers.distributed.sum_gradients(mx.distributed.init())
        >>> mx.grad(lambda x: f(x).sum())(mx.ones(2))
        array([1, 1], dtype=float32)
    """
    if group.size() == 1:
        return lambda x: x

    @mx.custom_function
    def identity(x: mx.array) -> mx.array:
        return x

    @identity.vjp
    def identity_vjp(x: mx.array, cotangent: mx.array, _: mx.array) -> mx.array:
        return mx.distributed.all_sum(cotangent, group=group)

    return identity


def shard_inplace(
    module: Module,
    sharding: str | Callable[[str, mx.array], Axis],
    *,
    segments: Segments = 1,
    group: mx.distributed.Group | None = None,
) -> None:
    """Replaces parameters of a module by this process's parts of them.

    The module stays what it is: it communicates if it does so by itself.

    Args:
        module (Module): The module.
        sharding (str or Callable): `"all-to-sharded"` splits rows of matrices and biases, `"sharded-to-all"`
            columns. A function of the path of a parameter, such as `layers.0.weight`, and the array returns the axis
            that is split, the axis and its segments, or None to leave it.
        segments (int or list): Parts of the axis that are split each by itself, such as the queries, keys and
            values of one matrix: their number, or where those after the first begin, as indices or fractions.
            Functions return their own.
        group (Group, optional): The processes; by default all.

    Raises:
        ValueError: If `sharding` is unknown, or an axis cannot be split into parts of the same size.

    Example:
        >>> layer = nn.Linear(8, 4)
        >>> nn.layers.distributed.shard_inplace(layer, "all-to-sharded")
        >>> layer.weight.shape
        (4, 8)
    """
    predicate = predicate_of(sharding, segments)
    shard_module(module, module.parameters(), predicate, default_group(group))


def shard_linear(
    module: Module,
    sharding: str,
    *,
    segments: Segments = 1,
    group: mx.distributed.Group | None = None,
) -> Module:
    """Makes a layer that has this process's part of a linear layer, and communicates with those of the others.

    Args:
        module (Module): `Linear` or `QuantizedLinear`.
        sharding (str): `"all-to-sharded"` for a layer whose output is split, `"sharded-to-all"` for one whose
            input is.
        segments (int or list): Parts of the axis that are split each by itself; see `shard_inplace`.
        group (Group, optional): The processes; by default all.

    Returns:
        Module: New layer.

    Raises:
        ValueError: If `sharding` is unknown, or the layer cannot be split into parts of the same size.

    Example:
        >>> layer = nn.layers.distributed.shard_linear(nn.Linear(8, 4), "all-to-sharded")
        >>> layer(mx.ones((5, 8))).shape
        (5, 4)
    """
    if sharding not in ("all-to-sharded", "sharded-to-all"):
        raise ValueError(
            f"Sharding {sharding!r} is unknown. Use 'all-to-sharded' or 'sharded-to-all'."
        )
    to_sharded = sharding == "all-to-sharded"
    if "scales" in module:
        quantized = QuantizedAllToShardedLinear if to_sharded else QuantizedShardedToAllLinear
        return quantized.from_quantized_linear(module, segments=segments, group=group)
    linear = AllToShardedLinear if to_sharded else ShardedToAllLinear
    return linear.from_linear(module, segments=segments, group=group)


class AllToShardedLinear(Module):
    """`Linear` of which each process computes a part of the output.

    All processes get the same input. Gradients by it are summed over them.

    Attributes:
        weight (array): Array of the shape (output_dims / size of the group, input_dims).
        bias (array): Array of the shape (output_dims / size of the group,), if there is a bias.

    Args:
        input_dims (int): Size of the last axis of the input.
        output_dims (int): Size of the last axis of the output of all processes together.
        bias (bool): Adds a bias.
        group (Group, optional): The processes; by default all.

    Example:
        >>> nn.AllToShardedLinear(8, 4)(mx.ones((5, 8))).shape
        (5, 4)
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group: mx.distributed.Group | None = None,
    ) -> None:
        """Makes the layer, with random parameters as those of `Linear`.

        Raises:
            ValueError: If the output cannot be split into parts of the same size.
        """
        super().__init__()
        self.group = default_group(group)
        check_divisible("The output", output_dims, self.group)
        rows = output_dims // self.group.size()
        scale = math.sqrt(1.0 / input_dims)
        self.weight = mx.random.uniform(-scale, scale, (rows, input_dims))
        if bias:
            self.bias = mx.random.uniform(-scale, scale, (rows,))
        note_sharding(self, self.parameters(), all_to_sharded(1), self.group)

    def _extra_repr(self) -> str:
        rows, columns = self["weight"].shape
        return (
            f"input_dims={columns}, output_dims={rows * self.group.size()}, bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        """Maps the last axis.

        Args:
            x (array): Array of the shape (..., input_dims), the same in all processes.

        Returns:
            array: This process's part of the output, of the shape (..., output_dims / size of the group).
        """
        x = sum_gradients(self.group)(x)
        return affine(x, self["weight"], self.get("bias"))

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        *,
        segments: Segments = 1,
        group: mx.distributed.Group | None = None,
    ) -> AllToShardedLinear:
        """Makes a layer with this process's part of a `Linear`.

        Args:
            linear_layer (Module): The layer.
            segments (int or list): Parts of the output that are split each by itself; see `shard_inplace`.
            group (Group, optional): The processes; by default all.

        Returns:
            AllToShardedLinear: New layer.

        Raises:
            ValueError: If the output or a segment cannot be split into parts of the same size.

        Example:
            >>> nn.AllToShardedLinear.from_linear(nn.Linear(8, 4))(mx.ones((5, 8))).shape
            (5, 4)
        """
        group = default_group(group)
        output_dims, input_dims = linear_layer.weight.shape
        layer = cls(input_dims, output_dims, "bias" in linear_layer, group)
        shard_module(layer, linear_layer.parameters(), all_to_sharded(segments), group)
        return layer


class ShardedToAllLinear(Module):
    """`Linear` of which each process takes a part of the input, and whose results are summed over them.

    All processes get the same output.

    Attributes:
        weight (array): Array of the shape (output_dims, input_dims / size of the group).
        bias (array): Array of the shape (output_dims,), if there is a bias.

    Args:
        input_dims (int): Size of the last axis of the input of all processes together.
        output_dims (int): Size of the last axis of the output.
        bias (bool): Adds a bias.
        group (Group, optional): The processes; by default all.

    Example:
        >>> nn.ShardedToAllLinear(8, 4)(mx.ones((5, 8))).shape
        (5, 4)
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group: mx.distributed.Group | None = None,
    ) -> None:
        """Makes the layer, with random parameters as those of `Linear`.

        Raises:
            ValueError: If the input cannot be split into parts of the same size.
        """
        super().__init__()
        self.group = default_group(group)
        check_divisible("The input", input_dims, self.group)
        columns = input_dims // self.group.size()
        scale = math.sqrt(1.0 / input_dims)
        self.weight = mx.random.uniform(-scale, scale, (output_dims, columns))
        if bias:
            self.bias = mx.random.uniform(-scale, scale, (output_dims,))
        note_sharding(self, self.parameters(), sharded_to_all(1), self.group)

    def _extra_repr(self) -> str:
        rows, columns = self["weight"].shape
        return (
            f"input_dims={columns * self.group.size()}, output_dims={rows}, bias={'bias' in self}"
        )

    def __call__(self, x: mx.array) -> mx.array:
        """Maps the last axis.

        Args:
            x (array): This process's part of the input, of the shape (..., input_dims / size of the group).

        Returns:
            array: Array of the shape (..., output_dims), the same in all processes.
        """
        y = mx.distributed.all_sum(affine(x, self["weight"]), group=self.group)
        return y + self["bias"] if "bias" in self else y

    @classmethod
    def from_linear(
        cls,
        linear_layer: Module,
        *,
        segments: Segments = 1,
        group: mx.distributed.Group | None = None,
    ) -> ShardedToAllLinear:
        """Makes a layer with this process's part of a `Linear`.

        Args:
            linear_layer (Module): The layer.
            segments (int or list): Parts of the input that are split each by itself; see `shard_inplace`.
            group (Group, optional): The processes; by default all.

        Returns:
            ShardedToAllLinear: New layer.

        Raises:
            ValueError: If the input or a segment cannot be split into parts of the same size.

        Example:
            >>> nn.ShardedToAllLinear.from_linear(nn.Linear(8, 4))(mx.ones((5, 8))).shape
            (5, 4)
        """
        group = default_group(group)
        output_dims, input_dims = linear_layer.weight.shape
        layer = cls(input_dims, output_dims, "bias" in linear_layer, group)
        shard_module(layer, linear_layer.parameters(), sharded_to_all(segments), group)
        return layer


class _QuantizedSharded(Quantized):
    """Base of layers with a part of a weight of few bits, whose parameters stay frozen."""

    group: mx.distributed.Group

    def _set_parameters(self, rows: int, columns: int, scale: float, bias: bool) -> None:
        self._set_weight(mx.random.uniform(-scale, scale, (rows, columns)))
        if bias:
            self.bias = mx.zeros((rows,))
        self.freeze()

    def unfreeze(self, *args: Any, **kwargs: Any) -> Module:
        """Unfreezes modules that the layer contains; its own parameters stay frozen.

        Args:
            *args (Any): Arguments of `Module.unfreeze`.
            **kwargs (Any): Arguments of `Module.unfreeze`.

        Returns:
            Module: The layer itself.
        """
        super().unfreeze(*args, **kwargs)
        return self.freeze(recurse=False)


class QuantizedAllToShardedLinear(_QuantizedSharded):
    """`QuantizedLinear` of which each process computes a part of the output.

    All processes get the same input. Gradients by it are summed over them. Parameters are frozen.

    Attributes:
        weight (array): Words with the elements of this process's rows.
        scales (array): Scales of the groups.
        biases (array): Biases of the groups; None in modes other than affine.
        bias (array): Array of the shape (output_dims / size of the group,), if there is a bias.

    Args:
        input_dims (int): Size of the last axis of the input.
        output_dims (int): Size of the last axis of the output of all processes together.
        bias (bool): Adds a bias.
        group_size (int): Elements that share a scale; if None, the mode's.
        bits (int): Bits of an element; if None, the mode's.
        mode (str): Meaning of the bits; see `ultramarine.quantize`.
        group (Group, optional): The processes; by default all.

    Example:
        >>> nn.QuantizedAllToShardedLinear(64, 4)(mx.ones((5, 64))).shape
        (5, 4)
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: int = 64,
        bits: int = 4,
        mode: str = "affine",
        group: mx.distributed.Group | None = None,
    ) -> None:
        """Makes the layer, with random parameters.

        Raises:
            ValueError: If mode, bits, group size and `input_dims` do not fit, or the output cannot be split into parts
                of the same size.
        """
        super().__init__()
        self._set_mode(group_size, bits, mode)
        self.group = default_group(group)
        check_divisible("The output", output_dims, self.group)
        rows = output_dims // self.group.size()
        self._set_parameters(rows, input_dims, math.sqrt(1.0 / input_dims), bias)
        note_sharding(self, self.parameters(), all_to_sharded(1), self.group)

    def _dims(self) -> tuple[int, int]:
        rows, columns = super()._dims()
        return rows * self.group.size(), columns

    def __call__(self, x: mx.array) -> mx.array:
        """Maps the last axis.

        Args:
            x (array): Array of the shape (..., input_dims), the same in all processes.

        Returns:
            array: This process's part of the output, of the shape (..., output_dims / size of the group).
        """
        y = self._matmul(sum_gradients(self.group)(x))
        return y + self["bias"] if "bias" in self else y

    @classmethod
    def from_quantized_linear(
        cls,
        quantized_linear_layer: Module,
        *,
        segments: Segments = 1,
        group: mx.distributed.Group | None = None,
    ) -> QuantizedAllToShardedLinear:
        """Makes a layer with this process's part of a `QuantizedLinear`.

        Args:
            quantized_linear_layer (Module): The layer.
            segments (int or list): Parts of the output that are split each by itself; see `shard_inplace`.
            group (Group, optional): The processes; by default all.

        Returns:
            QuantizedAllToShardedLinear: New layer.

        Raises:
            ValueError: If the output or a segment cannot be split into parts of the same size.

        Example:
            >>> layer = nn.Linear(64, 4).to_quantized()
            >>> nn.QuantizedAllToShardedLinear.from_quantized_linear(layer)(mx.ones((5, 64))).shape
            (5, 4)
        """
        group = default_group(group)
        layer = cls(*_arguments(quantized_linear_layer), group=group)
        parameters = quantized_linear_layer.parameters()
        shard_module(layer, parameters, all_to_sharded(segments), group)
        return layer


class QuantizedShardedToAllLinear(_QuantizedSharded):
    """`QuantizedLinear` of which each process takes a part of the input, and whose results are summed over them.

    All processes get the same output. Parameters are frozen.

    Attributes:
        weight (array): Words with the elements of this process's columns.
        scales (array): Scales of the groups.
        biases (array): Biases of the groups; None in modes other than affine.
        bias (array): Array of the shape (output_dims,), if there is a bias.

    Args:
        input_dims (int): Size of the last axis of the input of all processes together.
        output_dims (int): Size of the last axis of the output.
        bias (bool): Adds a bias.
        group_size (int): Elements that share a scale; if None, the mode's.
        bits (int): Bits of an element; if None, the mode's.
        mode (str): Meaning of the bits; see `ultramarine.quantize`.
        group (Group, optional): The processes; by default all.

    Example:
        >>> nn.QuantizedShardedToAllLinear(64, 4)(mx.ones((5, 64))).shape
        (5, 4)
    """

    def __init__(
        self,
        input_dims: int,
        output_dims: int,
        bias: bool = True,
        group_size: int = 64,
        bits: int = 4,
        mode: str = "affine",
        group: mx.distributed.Group | None = None,
    ) -> None:
        """Makes the layer, with random parameters.

        Raises:
            ValueError: If the input cannot be split into parts of the same size, or mode, bits and group size do not
                fit the parts.
        """
        super().__init__()
        self._set_mode(group_size, bits, mode)
        self.group = default_group(group)
        check_divisible("The input", input_dims, self.group)
        columns = input_dims // self.group.size()
        self._set_parameters(output_dims, columns, math.sqrt(1.0 / input_dims), bias)
        note_sharding(self, self.parameters(), sharded_to_all(1), self.group)

    def _dims(self) -> tuple[int, int]:
        rows, columns = super()._dims()
        return rows, columns * self.group.size()

    def __call__(self, x: mx.array) -> mx.array:
        """Maps the last axis.

        Args:
            x (array): This process's part of the input, of the shape (..., input_dims / size of the group).

        Returns:
            array: Array of the shape (..., output_dims), the same in all processes.
        """
        y = mx.distributed.all_sum(self._matmul(x), group=self.group)
        return y + self["bias"] if "bias" in self else y

    @classmethod
    def from_quantized_linear(
        cls,
        quantized_linear_layer: Module,
        *,
        segments: Segments = 1,
        group: mx.distributed.Group | None = None,
    ) -> QuantizedShardedToAllLinear:
        """Makes a layer with this process's part of a `QuantizedLinear`.

        Args:
            quantized_linear_layer (Module): The layer.
            segments (int or list): Parts of the input that are split each by itself; see `shard_inplace`. Fractions
                suit weights, scales and biases alike.
            group (Group, optional): The processes; by default all.

        Returns:
            QuantizedShardedToAllLinear: New layer.

        Raises:
            ValueError: If the input or a segment cannot be split into parts of the same size and of whole groups.

        Example:
            >>> layer = nn.Linear(64, 4).to_quantized()
            >>> nn.QuantizedShardedToAllLinear.from_quantized_linear(layer)(mx.ones((5, 64))).shape
            (5, 4)
        """
        group = default_group(group)
        layer = cls(*_arguments(quantized_linear_layer), group=group)
        parameters = quantized_linear_layer.parameters()
        shard_module(layer, parameters, sharded_to_all(segments), group)
        return layer


def _arguments(layer: Module) -> tuple[int, int, bool, int, int, str]:
    """Arguments that would make a `QuantizedLinear`."""
    rows, words = layer.weight.shape
    columns = words * 32 // layer.bits
    return columns, rows, "bias" in layer, layer.group_size, layer.bits, layer.mode
