"""Trees of a module's parameters and submodules: what `Module.filter_and_map` selects, and replacing parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import ultramarine as mx
from ultramarine.nn.layers._items import Items


def is_leaf(module: Items, key: str, value: Any) -> bool:
    """Returns True for all but modules, lists and dictionaries."""
    return not isinstance(value, (dict, list))


def select(
    module: Items,
    key: str,
    value: Any,
    filter_fn: Callable[[Any, str, Any], bool],
    map_fn: Callable[..., Any],
    is_leaf_fn: Callable[[Any, str, Any], bool],
) -> Any:
    """Returns the mapped contents of a value that `filter_and_map` keeps."""
    if is_leaf_fn(module, key, value):
        return map_fn(value)
    if isinstance(value, Items):
        return {
            k: select(value, k, v, filter_fn, map_fn, is_leaf_fn)
            for k, v in value.items()
            if filter_fn(value, k, v)
        }

    def inner(k: Any, v: Any) -> Any:
        path = f"{key}.{k}"
        if not filter_fn(module, path, v):
            return {}
        return select(module, path, v, filter_fn, map_fn, is_leaf_fn)

    if isinstance(value, dict):
        return {k: inner(k, v) for k, v in value.items()}
    if isinstance(value, list):
        return [inner(i, v) for i, v in enumerate(value)]
    raise RuntimeError(
        f"[filter_and_map] {key} is of type {type(value).__name__}, which is not a container. "
        "Let is_leaf_fn return True for it."
    )


def update_parameters(target: Any, new: Any, strict: bool) -> None:
    """Replaces parameters in `target` by those of the tree `new`; see `Module.update`."""
    for key, value in _places(target, new, strict, "parameter"):
        current = target[key]
        if isinstance(current, mx.array):
            if strict and not isinstance(value, mx.array):
                _refuse("update", key, value, "an array")
            target[key] = value
        else:
            update_parameters(current, value, strict)


def update_modules(target: Any, new: Any, strict: bool) -> None:
    """Replaces submodules in `target` by those of the tree `new`; see `Module.update_modules`."""
    for key, value in _places(target, new, strict, "sub-module"):
        current = target[key]
        if isinstance(current, Items) and isinstance(value, Items):
            target[key] = value
        elif isinstance(current, (dict, list)):
            update_modules(current, value, strict)
        elif strict and not (type(value) is dict and not value):
            _refuse("update_modules", key, value, f"no module for a {type(current).__name__}")


def _places(target: Any, new: Any, strict: bool, kind: str) -> list[tuple[Any, Any]]:
    """Keys and values of a tree's node that the target has, too."""
    if isinstance(new, dict):
        found = [(key, value) for key, value in new.items() if key in target]
        if strict and len(found) < len(new):
            unknown = next(key for key in new if key not in target)
            raise ValueError(
                f'Module does not have {kind} named "{unknown}". Check the name or pass strict=False.'
            )
        return found
    if isinstance(new, list):
        if strict and len(new) > len(target):
            raise ValueError(
                f"List of {len(new)} {kind}s does not fit one of {len(target)}. "
                "Pass a shorter one or strict=False."
            )
        return list(enumerate(new[: len(target)]))
    if strict:
        _refuse("update", kind, new, "a dict or a list")
    return []


def _refuse(function: str, key: Any, value: Any, wanted: str) -> NoReturn:
    raise ValueError(f"[{function}] received a {type(value).__name__} for {key}. Pass {wanted}.")
