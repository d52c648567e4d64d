"""Trees of lists, tuples and dictionaries: mapping, flattening, merging and reducing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Any, overload

__all__ = [
    "tree_flatten",
    "tree_map",
    "tree_map_with_path",
    "tree_merge",
    "tree_reduce",
    "tree_unflatten",
]


def tree_map(
    fn: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Calls a function with every leaf of a tree, and returns a tree of the results.

    Lists, tuples (named ones, too) and dictionaries are nodes, everything else is a leaf. Lists and tuples
    keep their type; dictionaries, modules among them, become plain dictionaries.

    Args:
        fn (Callable): Function of a leaf of `tree` and the values in the same place of each tree in `rest`.
        tree (Any): The tree that says which places are visited.
        *rest (Any): Trees that have at least the places of `tree`.
        is_leaf (Callable, optional): Predicate that makes a node a leaf. It is asked for every node and leaf.

    Returns:
        Any: Tree with the structure of `tree`.

    Raises:
        KeyError: If a tree in `rest` lacks a key.
        IndexError: If a list or tuple in `rest` is too short.

    Example:
        >>> from ultramarine.utils import tree_map
        >>> tree_map(lambda x, y: x + y, {"a": [1, 2]}, {"a": [10, 20]})
        {'a': [11, 22]}
    """
    if is_leaf is not None and is_leaf(tree):
        return fn(tree, *rest)
    if isinstance(tree, dict):
        return {
            k: tree_map(fn, child, *(r[k] for r in rest), is_leaf=is_leaf)
            for k, child in tree.items()
        }
    if isinstance(tree, (list, tuple)):
        children = [
            tree_map(fn, child, *(r[i] for r in rest), is_leaf=is_leaf)
            for i, child in enumerate(tree)
        ]
        return _sequence_like(tree, children)
    return fn(tree, *rest)


def tree_map_with_path(
    fn: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[[Any], bool] | None = None,
    path: Any | None = None,
) -> Any:
    """Calls a function with the path and the value of every leaf of a tree, and returns a tree of the results.

    A path joins the keys and indices that lead to a leaf with dots: `layers.0.weight`.

    Args:
        fn (Callable): Function of the path, the leaf, and the values in the same place of each tree in `rest`.
        tree (Any): The tree that says which places are visited.
        *rest (Any): Trees that have at least the places of `tree`.
        is_leaf (Callable, optional): Predicate that makes a node a leaf. It is asked for every node and leaf.
        path (Any, optional): First part of all paths.

    Returns:
        Any: Tree with the structure of `tree`.

    Example:
        >>> from ultramarine.utils import tree_map_with_path
        >>> tree_map_with_path(lambda path, x: path, {"a": [1, 2]})
        {'a': ['a.0', 'a.1']}
    """
    if is_leaf is not None and is_leaf(tree):
        return fn(path, tree, *rest)
    start = f"{path}." if path else ""
    if isinstance(tree, dict):
        return {
            k: tree_map_with_path(
                fn, child, *(r[k] for r in rest), is_leaf=is_leaf, path=f"{start}{k}"
            )
            for k, child in tree.items()
        }
    if isinstance(tree, (list, tuple)):
        children = [
            tree_map_with_path(
                fn, child, *(r[i] for r in rest), is_leaf=is_leaf, path=f"{start}{i}"
            )
            for i, child in enumerate(tree)
        ]
        return _sequence_like(tree, children)
    return fn(path, tree, *rest)


@overload
def tree_flatten(
    tree: Any,
    prefix: str = "",
    is_leaf: Callable[[Any], bool] | None = None,
    destination: list[tuple[str, Any]] | None = None,
) -> list[tuple[str, Any]]: ...


@overload
def tree_flatten(
    tree: Any,
    prefix: str = "",
    is_leaf: Callable[[Any], bool] | None = None,
    *,
    destination: dict[str, Any],
) -> dict[str, Any]: ...


@overload
def tree_flatten(
    tree: Any, prefix: str, is_leaf: Callable[[Any], bool] | None, destination: dict[str, Any]
) -> dict[str, Any]: ...


def tree_flatten(
    tree: Any,
    prefix: str = "",
    is_leaf: Callable[[Any], bool] | None = None,
    destination: list[tuple[str, Any]] | dict[str, Any] | None = None,
) -> list[tuple[str, Any]] | dict[str, Any]:
    """Lists the leaves of a tree with their paths.

    A path joins the keys and indices that lead to a leaf with dots. `tree_unflatten` is the inverse for trees of
    lists and of dictionaries whose keys are Python identifiers. Empty nodes leave nothing.

    Args:
        tree (Any): Tree of lists, tuples and dictionaries.
        prefix (str): First part of all paths. Its first character is dropped.
        is_leaf (Callable, optional): Predicate that makes a node a leaf. It is asked for every node and leaf.
        destination (list or dict, optional): Where the leaves are added; by default a new list.

    Returns:
        list or dict: The destination: pairs of path and leaf, or a dictionary from paths to leaves.

    Raises:
        ValueError: If `destination` is neither a list nor a dictionary.

    Example:
        >>> from ultramarine.utils import tree_flatten
        >>> tree_flatten({"a": [1, {"b": 2}]})
        [('a.0', 1), ('a.1.b', 2)]
        >>> tree_flatten({"a": {"b": 2}}, prefix=".model", destination={})
        {'model.a.b': 2}
    """
    add: Callable[[str, Any], None]
    if destination is None:
        destination = []
    if isinstance(destination, list):
        append = destination.append
        add = lambda path, leaf: append((path, leaf))
    elif isinstance(destination, dict):
        add = destination.__setitem__
    else:
        raise ValueError(
            f"[tree_flatten] destination is a {type(destination).__name__}. Pass a list, a dict or None."
        )
    _flatten(tree, prefix, is_leaf, add)
    return destination


def _flatten(
    tree: Any,
    prefix: str,
    is_leaf: Callable[[Any], bool] | None,
    add: Callable[[str, Any], None],
) -> None:
    """Adds the leaves below `prefix`, whose first character is the dot before the first key."""
    if is_leaf is not None and is_leaf(tree):
        add(prefix[1:], tree)
    elif isinstance(tree, dict):
        for k, child in tree.items():
            _flatten(child, f"{prefix}.{k}", is_leaf, add)
    elif isinstance(tree, (list, tuple)):
        for i, child in enumerate(tree):
            _flatten(child, f"{prefix}.{i}", is_leaf, add)
    else:
        add(prefix[1:], tree)


def tree_unflatten(tree: Iterable[tuple[str, Any]] | dict[str, Any]) -> Any:
    """Makes the tree whose leaves have the given paths.

    A node is a list if all its keys are integers, else a dictionary. Indices of a list that no path names hold
    empty dictionaries.

    Args:
        tree (Iterable or dict): Pairs of path and leaf, or a dictionary from paths to leaves, as `tree_flatten`
            returns them.

    Returns:
        Any: Tree of lists and dictionaries. Without paths it is an empty list.

    Raises:
        ValueError: If a path occurs twice.

    Example:
        >>> from ultramarine.utils import tree_unflatten
        >>> tree_unflatten([("a.0", 1), ("a.1.b", 2)])
        {'a': [1, {'b': 2}]}
    """
    pairs = list(tree.items() if isinstance(tree, dict) else tree)
    if not pairs:
        return []
    return _unflatten(pairs, "")


def _unflatten(pairs: list[tuple[str, Any]], where: str) -> Any:
    if len(pairs) == 1 and pairs[0][0] == "":
        return pairs[0][1]
    groups: dict[str, list[tuple[str, Any]]] = {}
    for path, leaf in pairs:
        key, _, rest = path.partition(".")
        groups.setdefault(key, []).append((rest, leaf))
    if len(groups.get("", ())) > 1 and all(rest == "" for rest, _ in groups[""]):
        raise ValueError(f"[tree_unflatten] the path {where!r} occurs twice. Pass each path once.")
    children = {
        key: _unflatten(group, f"{where}.{key}" if where else key) for key, group in groups.items()
    }
    try:
        indices = sorted((int(key), key) for key in children)
    except ValueError:
        return children
    out: list[Any] = []
    for index, key in indices:
        out.extend({} for _ in range(index - len(out)))
        out.append(children[key])
    return out


def tree_reduce(
    fn: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = None,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Combines the leaves of a tree from left to right.

    Args:
        fn (Callable): Function of the value so far and a leaf, which returns the next value.
        tree (Any): Tree of lists, tuples and dictionaries.
        initializer (Any, optional): First value. By default it is the first leaf.
        is_leaf (Callable, optional): Predicate that makes a node a leaf. It is asked for every node and leaf.

    Returns:
        Any: Last value. It is `initializer` if there are no leaves.

    Example:
        >>> from ultramarine.utils import tree_reduce
        >>> tree_reduce(lambda total, x: total + x, {"a": [1, 2], "b": 3}, 10)
        16
    """
    children: Any
    if is_leaf is not None and is_leaf(tree):
        children = None
    elif isinstance(tree, dict):
        children = tree.values()
    elif isinstance(tree, (list, tuple)):
        children = tree
    else:
        children = None
    if children is None:
        return tree if initializer is None else fn(initializer, tree)
    for child in children:
        initializer = tree_reduce(fn, child, initializer, is_leaf)
    return initializer


def tree_merge(tree_a: Any, tree_b: Any, merge_fn: Callable[[Any, Any], Any] | None = None) -> Any:
    """Merges two trees into one that has the leaves of both.

    An empty node, a place that only one tree has, and `None` give way to what the other tree has there.

    Args:
        tree_a (Any): First tree. Sequences of the result have its types.
        tree_b (Any): Second tree.
        merge_fn (Callable, optional): Function that combines two leaves in the same place.

    Returns:
        Any: Merged tree. It shares its leaves, and nodes that are in one tree only, with the arguments.

    Raises:
        ValueError: If both trees have a leaf in the same place and there is no `merge_fn`, or if two empty nodes
            of different types meet.

    Example:
        >>> from ultramarine.utils import tree_merge
        >>> tree_merge({"a": {"b": 1}}, {"a": {"c": 2}})
        {'a': {'b': 1, 'c': 2}}
    """
    empty_a, empty_b = _is_empty(tree_a), _is_empty(tree_b)
    if empty_a and empty_b:
        if type(tree_a) is type(tree_b):
            return tree_a
        raise ValueError(
            f"[tree_merge] an empty {type(tree_a).__name__} meets an empty {type(tree_b).__name__}. "
            "Use the same type in both trees."
        )
    a, b = None if empty_a else tree_a, None if empty_b else tree_b
    if a is None and b is not None:
        return b
    if b is None and a is not None:
        return a
    if isinstance(a, dict) and isinstance(b, dict):
        return {k: tree_merge(a.get(k), b.get(k), merge_fn) for k in (a | b)}
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return _sequence_like(a, [tree_merge(x, y, merge_fn) for x, y in zip_longest(a, b)])
    if merge_fn is None:
        raise ValueError(
            f"[tree_merge] both trees have a value in the same place, of types {type(a).__name__} and "
            f"{type(b).__name__}. Pass merge_fn to combine them."
        )
    return merge_fn(a, b)


def _is_empty(tree: Any) -> bool:
    return isinstance(tree, (dict, list, tuple)) and not tree


def _sequence_like(like: list[Any] | tuple[Any, ...], items: list[Any]) -> Any:
    """A list or tuple of the type of `like`; named tuples take their items as arguments."""
    kind: Any = type(like)
    if kind is list:
        return items
    return kind(*items) if hasattr(kind, "_fields") else kind(items)
