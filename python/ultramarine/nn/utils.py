"""Gradients by a module's parameters: computed, recomputed, averaged over processes and clipped."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import accumulate, chain
from typing import Any

import ultramarine as mx
from ultramarine.nn.layers.base import Module
from ultramarine.utils import tree_flatten, tree_map, tree_reduce

__all__ = ["average_gradients", "checkpoint", "clip_grad_norm_sharded", "value_and_grad"]


def value_and_grad(model: Module, fn: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function of the value of another one and its gradient by a model's trainable parameters.

    Args:
        model (Module): The model.
        fn (Callable): Function that uses the model and returns a scalar, or a tuple that starts with one.

    Returns:
        Callable: Function of the same arguments that returns the value and the gradients, a tree with the structure of
        `model.trainable_parameters()`.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> loss = lambda x: model(x).sum()
        >>> value, gradients = nn.value_and_grad(model, loss)(mx.ones((3, 2)))
        >>> gradients["weight"]
        array([[3, 3]], dtype=float32)
    """
    compute = mx.value_and_grad(_with_parameters(model, fn))

    @wraps(fn)
    def value_and_grad_of(*args: Any, **kwargs: Any) -> Any:
        return compute(model.trainable_parameters(), *args, **kwargs)

    return value_and_grad_of


def checkpoint(module: Module, fn: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Makes a function whose intermediate results are computed again in the backward pass, to save memory.

    Gradients by the module's trainable parameters and by the arguments are those of `fn`.

    Args:
        module (Module): The module.
        fn (Callable, optional): Function that uses the module; by default the module itself.

    Returns:
        Callable: Function of the same arguments and with the same result as `fn`.
    """
    if fn is None:
        fn = module
        named = type(module).__call__
    else:
        named = fn
    compute = mx.checkpoint(_with_parameters(module, fn))

    @wraps(named)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return compute(module.trainable_parameters(), *args, **kwargs)

    return checkpointed


def _with_parameters(module: Module, fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function of parameters and of the arguments of `fn` that calls it with these parameters.

    Afterwards the module has its own again, except for those that `fn` set.
    """

    def call(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        replaced: list[tuple[Any, Any, Any, Any]] = []
        _replace(module, parameters, replaced)
        try:
            return fn(*args, **kwargs)
        finally:
            # Restore from the last to the first: if a module occurs twice, its original value is the one that was saved
            # first.
            for node, key, before, after in reversed(replaced):
                if _item(node, key) is after:
                    node[key] = before

    return call


def _replace(target: Any, new: Any, replaced: list[tuple[Any, Any, Any, Any]]) -> None:
    """Sets arrays of a module, and lists the node, the key, the array before and the new one of each."""
    items: Any = new.items() if isinstance(new, dict) else enumerate(new)
    for key, value in items:
        before = target[key]
        if isinstance(value, mx.array):
            replaced.append((target, key, before, value))
            target[key] = value
        else:
            _replace(before, value, replaced)


def _item(node: Any, key: Any) -> Any:
    if isinstance(node, dict):
        return node.get(key)
    return node[key] if key < len(node) else None


def average_gradients(
    gradients: Any,
    group: mx.distributed.Group | None = None,
    all_reduce_size: int = 32 * 1024**2,
    communication_stream: mx.Stream | None = None,
) -> Any:
    """Averages gradients over the processes of a group.

    Small arrays are concatenated, so that there are fewer and larger messages. The last ones go first: a backward pass
    computes these first, and the communication runs beside the rest of it.

    Args:
        gradients (Any): Tree of arrays, of the same structure in all processes.
        group (Group, optional): The processes; by default all.
        all_reduce_size (int): Bytes from which arrays are no longer concatenated. If it is 0 or negative, or the
            arrays differ in dtype, none are.
        communication_stream (Stream, optional): Stream of the communication.

    Returns:
        Any: Tree of averages; `gradients` itself if the group has one process.

    Example:
        >>> nn.average_gradients({"weight": mx.ones(2)})
        {'weight': array([1, 1], dtype=float32)}
    """
    group = mx.distributed.init() if group is None else group
    size = group.size()
    if size == 1:
        return gradients

    def average(x: mx.array) -> mx.array:
        return mx.distributed.all_sum(x, group=group, stream=communication_stream) / size

    flat = tree_flatten(gradients)
    if not flat:
        return gradients
    arrays = [x for _, x in flat]
    joins = all_reduce_size > 0 and len({x.dtype for x in arrays}) == 1
    groups = _by_size(arrays, all_reduce_size) if joins else [[x] for x in arrays]
    averages: list[list[mx.array]] = []
    for members in reversed(groups):
        if len(members) == 1:
            averages.append([average(members[0])])
            continue
        joined = average(mx.concatenate([x.reshape(-1) for x in members]))
        ends = list(accumulate(x.size for x in members))
        parts = mx.split(joined, ends[:-1])
        averages.append([part.reshape(x.shape) for part, x in zip(parts, members, strict=True)])
    in_order = chain.from_iterable(reversed(averages))
    return tree_map(lambda _: next(in_order), gradients)


def _by_size(arrays: list[mx.array], size: int) -> list[list[mx.array]]:
    """Arrays in groups, each of which but the last has at least `size` bytes."""
    groups: list[list[mx.array]] = [[]]
    total = 0
    for x in arrays:
        if total >= size:
            groups.append([])
            total = 0
        groups[-1].append(x)
        total += x.nbytes
    return groups


def clip_grad_norm_sharded(
    gradients: Any, max_norm: float, group: mx.distributed.Group | None = None
) -> tuple[Any, mx.array]:
    """Scales gradients that are split over processes so that their norm is at most a bound.

    It is the Euclidean norm of all elements in all processes.

    Args:
        gradients (Any): Tree of this process's parts, such as those of a `FullyShardedModule`.
        max_norm (float): Bound of the norm.
        group (Group, optional): The processes; by default all.

    Returns:
        tuple: Tree of scaled gradients, and the norm before, as float32.

    Example:
        >>> grads, norm = nn.utils.clip_grad_norm_sharded({"w": mx.array([3.0, 4.0])}, max_norm=1.0)
        >>> norm
        array(5, dtype=float32)
    """
    group = mx.distributed.init() if group is None else group
    # Compute in float32, because squares of float16 overflow from 256 on.
    squares = tree_reduce(
        lambda total, x: total + x.astype(mx.float32).square().sum(), gradients, mx.array(0.0)
    )
    norm = mx.sqrt(mx.distributed.all_sum(squares, group=group))
    scale = mx.minimum(max_norm / (norm + 1e-6), 1.0)
    return tree_map(lambda x: (x * scale).astype(x.dtype), gradients), norm
