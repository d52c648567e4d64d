"""Modules whose parameters are split over processes and gathered for each call."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import ultramarine as mx
from ultramarine.nn.layers._sharding import NOTE, default_group, shard
from ultramarine.nn.layers.base import Module
from ultramarine.utils import tree_flatten, tree_map_with_path


class FullyShardedModule(Module):
    """A module of which each process of a group has a part of every parameter.

    Parameters are split along their first axis, gathered before each call, and afterwards replaced by the parts
    again. Gradients are averaged over the processes, and each gets those of its parts, so that its optimizer has the
    state of its parts alone (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
    Models", 2020). Parameters of modules inside that are split by themselves are left to them.

    Attributes:
        module (Module): The module.

    Args:
        module (Module): The module, whose parameters are split in place.
        group (Group, optional): The processes; by default all.
        compute_dtype (Dtype, optional): Dtype to which floats are cast before they are gathered; by default they
            are not.

    Example:
        >>> nn.FullyShardedModule(nn.Linear(3, 4))(mx.ones((5, 3))).shape
        (5, 4)
    """

    def __init__(
        self,
        module: Module,
        group: mx.distributed.Group | None = None,
        compute_dtype: mx.Dtype | None = None,
    ) -> None:
        """Splits the module's parameters.

        Raises:
            ValueError: If a parameter is 0-d, or its first axis is no multiple of the number of processes.
        """
        super().__init__()
        self._group = default_group(group)
        self._compute_dtype = compute_dtype
        parameters = _own_parameters(module)
        for path, x in parameters:
            _check_parameter(path, x, self._group.size())
        # Set as an ordinary attribute: as an item, the list would be part of the module's state.
        object.__setattr__(self, "_paths", [path for path, _ in parameters])
        parts = [(path, shard(x, 0, 1, self._group)) for path, x in parameters]
        self.module = module
        _update(module, parts)
        note = (self._group.size(), dict.fromkeys((f"module.{path}" for path, _ in parts), 0))
        object.__setattr__(self, NOTE, note)

    def _extra_repr(self) -> str:
        return f"num_sharded_params={len(self._paths)}"

    def _gathered_call(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls a function while the module has its whole parameters."""
        current: dict[str, mx.array] = dict(tree_flatten(self["module"].parameters()))
        parts = [(path, current[path]) for path in self._paths]
        _update(self["module"], _gather(parts, self._group, self._compute_dtype))
        try:
            return fn(*args, **kwargs)
        finally:
            _update(self["module"], parts)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module with its whole parameters.

        Args:
            *args (Any): Arguments of the module.
            **kwargs (Any): Arguments of the module.

        Returns:
            Any: The module's result.
        """
        return self._gathered_call(self["module"], *args, **kwargs)

    def as_linear(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module's method `as_linear`, such as that of `Embedding`, with its whole parameters.

        Args:
            *args (Any): Arguments of the method.
            **kwargs (Any): Arguments of the method.

        Returns:
            Any: The method's result.

        Example:
            >>> module = nn.FullyShardedModule(nn.Embedding(10, 4))
            >>> module.as_linear(mx.ones((2, 4))).shape
            (2, 10)
        """
        return self._gathered_call(self["module"].as_linear, *args, **kwargs)


def fully_shard(
    module: Module,
    *,
    group: mx.distributed.Group | None = None,
    compute_dtype: mx.Dtype | None = None,
) -> Module:
    """Splits a module's parameters over the processes of a group; see `FullyShardedModule`.

    Args:
        module (Module): The module, whose parameters are split in place.
        group (Group, optional): The processes; by default all.
        compute_dtype (Dtype, optional): Dtype to which floats are cast before they are gathered; by default they
            are not.

    Returns:
        Module: `FullyShardedModule`, or the module itself if the group has one process, or there is nothing to split.

    Raises:
        ValueError: If a parameter is 0-d, or its first axis is no multiple of the number of processes.

    Example:
        >>> model = nn.fully_shard(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)))
        >>> model(mx.ones((5, 3))).shape
        (5, 1)
    """
    group = default_group(group)
    if isinstance(module, FullyShardedModule) or group.size() == 1 or not _own_parameters(module):
        return module
    return FullyShardedModule(module, group, compute_dtype)


def _own_parameters(module: Module) -> list[tuple[str, mx.array]]:
    """Paths and arrays of the parameters that no `FullyShardedModule` inside has."""
    inside = tuple(
        f"{path}." for path, m in module.named_modules() if isinstance(m, FullyShardedModule)
    )
    return [p for p in tree_flatten(module.parameters()) if not p[0].startswith(inside)]


def _check_parameter(path: str, x: mx.array, size: int) -> None:
    if x.ndim == 0:
        raise ValueError(
            f"[fully_shard] the parameter {path} has no axis to split. Give it shape (1,), or shard submodules."
        )
    if x.shape[0] % size:
        raise ValueError(
            f"[fully_shard] the first axis of the parameter {path} of shape {x.shape} cannot be split over "
            f"{size} processes. Use a multiple of {size}."
        )


def _update(module: Module, parameters: list[tuple[str, mx.array]]) -> None:
    new = dict(parameters)
    module.update(tree_map_with_path(lambda path, x: new.get(path, x), module.parameters()))


def _gather(
    parts: list[tuple[str, mx.array]],
    group: mx.distributed.Group,
    compute_dtype: mx.Dtype | None,
) -> list[tuple[str, mx.array]]:
    """Whole parameters, with one gathering operation for all of the same dtype."""
    by_dtype: dict[mx.Dtype, list[tuple[str, mx.array]]] = {}
    for path, x in parts:
        if compute_dtype is not None and mx.issubdtype(x.dtype, mx.floating):
            x = x.astype(compute_dtype)
        by_dtype.setdefault(x.dtype, []).append((path, x))
    whole = []
    size = group.size()
    for dtype, same in by_dtype.items():
        row = mx.concatenate([x.reshape(1, -1) for _, x in same], 1)
        if mx.issubdtype(dtype, mx.inexact):
            rows = _gather_rows(group)(row)
        else:
            rows = mx.distributed.all_gather(row, group=group)
        start = 0
        for path, x in same:
            columns = rows[:, start : start + x.size]
            whole.append((path, columns.reshape(size * x.shape[0], *x.shape[1:])))
            start += x.size
    return whole


@lru_cache
def _gather_rows(group: mx.distributed.Group) -> Callable[[mx.array], mx.array]:
    """The function that gathers the processes' rows (1, n), and whose gradient is averaged over them."""

    @mx.custom_function
    def gather(row: mx.array) -> mx.array:
        return mx.distributed.all_gather(row, group=group)

    @gather.vjp
    def gather_vjp(row: mx.array, cotangent: mx.array, _: mx.array) -> mx.array:
        return mx.distributed.sum_scatter(cotangent, group=group) / group.size()

    return gather
