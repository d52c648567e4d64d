"""Trees: every function does what mlx's does, with all parameters, and for odd trees, too."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import pytest
from support.harness import rng

from ultramarine import utils

from .pairs import Case, same

Point = namedtuple("Point", "x y")


class Numbers(list[Any]):
    """A list of a type of its own."""


TREE = [1, (2, 3), {"a": 4, "b": [5]}, [], {}, None]
SHORT = [[1, 2], [3]]


def numbers(x: Any) -> bool:
    return isinstance(x, list) and bool(x) and isinstance(x[0], int)


def asked(function: str, *before: Any) -> Case:
    """The nodes for which `is_leaf` is asked, in order."""

    def case(lib: Any) -> Any:
        seen: list[Any] = []
        getattr(lib.utils, function)(*before, TREE, is_leaf=lambda x: seen.append(x))
        return seen

    return case


MAP: dict[str, Case] = {
    "all": lambda lib: lib.utils.tree_map(lambda x: (x,), TREE),
    "leaf": lambda lib: lib.utils.tree_map(lambda x: x + 1, 1),
    "types": lambda lib: [
        type(lib.utils.tree_map(lambda x: x, t))
        for t in (Numbers([1]), OrderedDict(a=1), Point(1, 2), lib.nn.ReLU(), ())
    ],
    "named tuple": lambda lib: lib.utils.tree_map(lambda x: -x, Point(1, [2]))._asdict(),
    "two trees": lambda lib: lib.utils.tree_map(lambda x, y: x * y, SHORT, [(10, 20), [30, 40], 7]),
    "dicts": lambda lib: lib.utils.tree_map(
        lambda x, y, z: x + y + z, {"a": 1}, {"a": 2, "b": 3}, {"a": 4}
    ),
    "deeper second": lambda lib: lib.utils.tree_map(lambda x, y: y, [1, 2], [[3], {"a": 4}]),
    "dict for list": lambda lib: lib.utils.tree_map(lambda x, y: y, [1, 2], {0: 3, 1: 4}),
    "missing key": lambda lib: lib.utils.tree_map(lambda x, y: y, {"a": 1}, {}),
    "too short": lambda lib: lib.utils.tree_map(lambda x, y: y, [1, 2], [1]),
    "no tree": lambda lib: lib.utils.tree_map(lambda x, y: y, [1, 2], 3),
    "is_leaf": lambda lib: lib.utils.tree_map(len, SHORT, is_leaf=numbers),
    "root is leaf": lambda lib: lib.utils.tree_map(len, SHORT, is_leaf=lambda x: True),
    "is_leaf and rest": lambda lib: lib.utils.tree_map(
        lambda x, y: (x, y), SHORT, "ab", is_leaf=numbers
    ),
    "asked": asked("tree_map", lambda x: x),
}

PATHS: dict[str, Case] = {
    "all": lambda lib: lib.utils.tree_map_with_path(lambda p, x: (p, x), TREE),
    "leaf": lambda lib: lib.utils.tree_map_with_path(lambda p, x: (p, x), 1),
    "leaf with path": lambda lib: lib.utils.tree_map_with_path(lambda p, x: (p, x), 1, path="q"),
    "path": lambda lib: lib.utils.tree_map_with_path(lambda p, x: p, TREE, path="model"),
    "path of int": lambda lib: lib.utils.tree_map_with_path(lambda p, x: p, TREE, path=3),
    "empty path": lambda lib: lib.utils.tree_map_with_path(lambda p, x: p, TREE, path=""),
    "path of zero": lambda lib: lib.utils.tree_map_with_path(lambda p, x: p, TREE, path=0),
    "keys": lambda lib: lib.utils.tree_map_with_path(lambda p, x: p, {1: 2, (3, 4): 5, "a.b": 6}),
    "named tuple": lambda lib: lib.utils.tree_map_with_path(
        lambda p, x: p, Point(1, [2])
    )._asdict(),
    "rest": lambda lib: lib.utils.tree_map_with_path(
        lambda p, x, y: (p, y), {"a": [1]}, {"a": [3, 4]}
    ),
    "is_leaf": lambda lib: lib.utils.tree_map_with_path(
        lambda p, x: (p, x), SHORT, is_leaf=numbers
    ),
    "asked": asked("tree_map_with_path", lambda p, x: x),
}

FLATTEN: dict[str, Case] = {
    "all": lambda lib: lib.utils.tree_flatten(TREE),
    "leaf": lambda lib: lib.utils.tree_flatten(1),
    "leaf with prefix": lambda lib: lib.utils.tree_flatten(1, ".abc"),
    "prefix": lambda lib: lib.utils.tree_flatten(TREE, ".model"),
    "prefix without dot": lambda lib: lib.utils.tree_flatten(TREE, "model"),
    "is_leaf": lambda lib: lib.utils.tree_flatten(TREE, is_leaf=lambda x: isinstance(x, tuple)),
    "all by place": lambda lib: lib.utils.tree_flatten(SHORT, ".r", numbers, {"q": 0}),
    "into list": lambda lib: lib.utils.tree_flatten(TREE, destination=[("z", 0)]),
    "into dict": lambda lib: lib.utils.tree_flatten(TREE, destination={"q": 1}),
    "into empty dict": lambda lib: lib.utils.tree_flatten(TREE, destination={}),
    "into tuple": lambda lib: lib.utils.tree_flatten(TREE, destination=()),
    "leaf into dict": lambda lib: lib.utils.tree_flatten(1, destination={}),
    "keys": lambda lib: lib.utils.tree_flatten({1: 2, (3, 4): 5, "a.b": 6}),
    "named tuple": lambda lib: lib.utils.tree_flatten(Point(1, [2])),
    "module": lambda lib: [path for path, _ in lib.utils.tree_flatten(lib.nn.Linear(2, 3))],
    "asked": asked("tree_flatten"),
}

UNFLATTENED: dict[str, Any] = {
    "nothing": [],
    "no entries": {},
    "leaf": [("", 5)],
    "dict": {"a.b": 1, "a.c": 2, "d.0": 3, "d.1": 4},
    "leaf of dict": {"": 5},
    "numbers and names": [("0", 5), ("a", 6)],
    "names and numbers": [("a", 5), ("0", 6)],
    "gaps": [("2", 5), ("4.a", 6)],
    "any order": [("2", 5), ("0", 6), ("1", 7)],
    "more than ten": [(str(i), i) for i in (10, 9, 1, 2, 0, 3)],
    "negative": [("-1", 5), ("0", 6)],
    "leading zeros": [("00", 5), ("1", 3)],
    "leaf and node": [("a", 5), ("a.b", 6)],
    "node and leaf": [("a.b", 5), ("a", 6)],
    "empty key": [("a.", 5)],
    "first key empty": [(".a", 5)],
    "tuple": (("a.0", 1),),
    "items": {"a.0": 1}.items(),
    "number for path": [(1, 1)],
}

MERGED: dict[str, tuple[Any, Any]] = {
    "dicts": ({"a": {"b": 1}}, {"a": {"c": 2}, "d": 3}),
    "leaves": ({"a": 1}, {"a": 2}),
    "longer": ([1, 2, 3], [4]),
    "shorter": ([1], [4, 5]),
    "None in lists": ([None, 1], [2, None]),
    "tuples": ((1,), (2, 3)),
    "tuple and list": ((1,), [2, 3]),
    "list and tuple": ([1], (2, 3)),
    "dicts in tuples": (({"a": 1},), ({"b": 2},)),
    "empty dict": ({}, {"a": 2}),
    "empty list": ([], {"a": 1}),
    "empty tuple": ((), 5),
    "empty below": ({"a": []}, {"a": {"x": 2}}),
    "leaf and empty": ({"a": 5}, {"a": {}}),
    "both empty": ({}, {}),
    "empty lists": ([], []),
    "empty dict and list": ({}, []),
    "empty tuple and list": ((), []),
    "empty and None": ({}, None),
    "None": (None, 5),
    "None behind": (5, None),
    "both None": (None, None),
    "dict and list": ({"a": 1}, [1]),
    "leaf and dict": ({"a": 1}, {"a": {"b": 1}}),
    "empty string": ({"a": ""}, {"a": 2}),
}

REDUCE: dict[str, Case] = {
    "all": lambda lib: lib.utils.tree_reduce(lambda acc, x: (acc, x), TREE),
    "initializer": lambda lib: lib.utils.tree_reduce(lambda acc, x: (acc, x), TREE, 10),
    "leaf": lambda lib: lib.utils.tree_reduce(lambda acc, x: acc + x, 5),
    "leaf with initializer": lambda lib: lib.utils.tree_reduce(lambda acc, x: acc + x, 5, 10),
    "no leaves": lambda lib: lib.utils.tree_reduce(lambda acc, x: acc + x, [{}]),
    "initializer alone": lambda lib: lib.utils.tree_reduce(lambda acc, x: acc + x, [], 3),
    "None first": lambda lib: lib.utils.tree_reduce(lambda acc, x: (acc, x), [None, 1, None]),
    "None from fn": lambda lib: lib.utils.tree_reduce(lambda acc, x: None, [1, 3, 2]),
    "is_leaf": lambda lib: lib.utils.tree_reduce(lambda acc, x: acc + len(x), SHORT, 0, numbers),
    "is_leaf by name": lambda lib: lib.utils.tree_reduce(
        lambda acc, x: (acc, x), SHORT, is_leaf=numbers
    ),
    "asked": asked("tree_reduce", lambda acc, x: x),
}

CASES = {
    f"{group} {name}": case
    for group, cases in {
        "map": MAP,
        "path": PATHS,
        "flatten": FLATTEN,
        "reduce": REDUCE,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("case", CASES)
def test_as_in_mlx(case: str) -> None:
    same(CASES[case])


@pytest.mark.parametrize("case", UNFLATTENED)
def test_unflatten_as_in_mlx(case: str) -> None:
    same(lambda lib: lib.utils.tree_unflatten(UNFLATTENED[case]))


def ordered(x: Any) -> Any:
    """A tree whose dictionaries are sorted: mlx merges keys in the order of a set."""
    if isinstance(x, dict):
        return {k: ordered(x[k]) for k in sorted(x)}
    if isinstance(x, (list, tuple)):
        return type(x)(map(ordered, x))
    return x


@pytest.mark.parametrize("merge", [None, lambda x, y: ("both", x, y)], ids=["alone", "merge_fn"])
@pytest.mark.parametrize("case", MERGED)
def test_merge_as_in_mlx(case: str, merge: Any) -> None:
    a, b = MERGED[case]
    same(lambda lib: ordered(lib.utils.tree_merge(a, b, merge)))


def test_merge_keeps_the_order_of_the_first_tree() -> None:
    merged = utils.tree_merge({"b": 1, "a": 2}, {"c": 3, "a": 4}, lambda x, y: x + y)
    assert list(merged.items()) == [("b", 1), ("a", 6), ("c", 3)]


def test_destination_is_returned() -> None:
    destinations: list[Any] = [[], {}]
    for destination in destinations:
        assert utils.tree_flatten(TREE, destination=destination) is destination


def test_unflatten_refuses_a_path_twice() -> None:
    """In mlx the recursion has no end."""
    for pairs in ([("a.b", 5), ("a.b", 6)], [("", 5), ("", 6)]):
        with pytest.raises(ValueError, match="twice"):
            utils.tree_unflatten(pairs)


def test_unflatten_takes_iterators() -> None:
    assert utils.tree_unflatten(iter([("a.0", 1)])) == {"a": [1]}


def drawn(random: Any, depth: int) -> Any:
    """A tree of lists that are not empty, and of dictionaries with names for keys."""
    kind = random.integers(3) if depth else 2
    if kind == 0:
        return [drawn(random, depth - 1) for _ in range(random.integers(1, 12))]
    if kind == 1:
        names = random.permutation(["w", "layers", "x1", "b"])[: random.integers(1, 4)]
        return {str(name): drawn(random, depth - 1) for name in names}
    return int(random.integers(100))


@pytest.mark.parametrize("key", range(20))
def test_unflatten_is_the_inverse(key: int) -> None:
    tree = [drawn(rng("tree", key), 4)]
    flat = utils.tree_flatten(tree)
    assert utils.tree_unflatten(flat) == tree
    assert utils.tree_unflatten(utils.tree_flatten(tree, destination={})) == tree
    assert [x for _, x in flat] == utils.tree_reduce(lambda acc, x: [*acc, x], tree, [])
    assert utils.tree_map_with_path(lambda path, x: (path, x), tree) == (
        utils.tree_unflatten([(path, (path, x)) for path, x in flat])
    )
