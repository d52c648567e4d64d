"""Trees of axes, of arguments and results of vmap; beside mlx."""

import math
from collections import namedtuple
from typing import Any

import mlx.core as mlx
import pytest
from support.both import same, values

import ultramarine as um

Point = namedtuple("Point", "x y")

# Shapes of arguments; of `in_axes`; whether mlx takes it, too.
A, B, C = (2, 3, 4), (3, 2, 5), (2, 7)
IN_AXES: dict[str, tuple[list[Any], Any, bool]] = {
    "one dictionary": ([{"a": A, "b": B}], {"a": 0, "b": 1}, True),
    "one dictionary with None": ([{"a": A, "b": B}], {"a": 0, "b": None}, True),
    "one dictionary in a tuple": ([{"a": A, "b": B}], ({"a": 0, "b": 1},), False),
    "one dictionary in a list": ([{"a": A, "b": B}], [{"a": 0, "b": 1}], False),
    "a part of one dictionary": ([{"a": A, "b": B}], {"a": 0}, True),
    "more than one dictionary": ([{"a": A, "b": B}], {"a": 0, "b": 1, "c": 0}, True),
    "other names": ([{"a": A, "b": B}], {"a": 0, "c": 1}, True),
    "one tuple": ([(A, B)], (0, 1), True),
    "one tuple in a tuple": ([(A, B)], ((0, 1),), False),
    "one list": ([[A, B]], [0, 1], True),
    "one list by a tuple": ([[A, B]], (0, 1), False),
    "one tuple by a list": ([(A, B)], [0, 1], False),
    "one list of lists": ([[[A, B], C]], [[0, 1], None], True),
    "one list, deeper": ([[{"a": A}, [B, B]]], [{"a": 1}, 0], True),
    "one tuple of one": ([(A,)], (1,), True),
    "one tuple of one in a tuple": ([(A,)], ((1,),), False),
    "one array": ([A], (1,), True),
    "one array in a list": ([A], [1], False),
    "one array by a tree": ([A], ((1,),), True),
    "one array by a dictionary": ([A], {"a": 0}, True),
    "one array by nothing": ([A], (), True),
    "one array by text": ([A], "x", True),
    "one array by a float": ([A], 1.0, True),
    "one array out of range": ([A], 3, True),
    "not mapped": ([A], (None,), True),
    "several": ([A, B], (0, 1), True),
    "several in a list": ([A, B], [0, 1], False),
    "several by a named tuple": ([A, B], Point(0, 1), True),
    "a tree among several": ([{"a": A, "b": B}, C], ({"a": 0, "b": 1}, 0), True),
    "a tree that is not mapped": ([{"a": A, "b": B}, C], (None, 0), True),
    "a tuple among several": ([(A, B), C], ((0, 1), None), True),
    "a list among several": ([[A, B], C], ([0, 1], 0), True),
    "too few": ([A, B], (0,), True),
    "too many": ([A, B], (0, 0, 0), True),
    "a dictionary for several": ([A, C], {"a": 0}, True),
    "text among several": ([A, C], (0, "x"), True),
}


def arrays(mx: Any, tree: Any) -> Any:
    """The tree with arrays of these shapes."""
    if isinstance(tree, dict):
        return {k: arrays(mx, v) for k, v in tree.items()}
    if isinstance(tree, list):
        return [arrays(mx, v) for v in tree]
    if all(isinstance(n, int) for n in tree):
        return mx.arange(math.prod(tree)).reshape(tree)
    return tuple(arrays(mx, v) for v in tree)


def shapes(tree: Any) -> Any:
    """The tree of its arrays' shapes."""
    if isinstance(tree, dict):
        return {k: shapes(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [shapes(v) for v in tree]
    return tree.shape


@pytest.mark.parametrize("name", IN_AXES)
def test_in_axes(name: str) -> None:
    trees, in_axes, taken = IN_AXES[name]

    def case(mx: Any) -> Any:
        seen: list[Any] = []

        def f(*args: Any) -> Any:
            seen.append(shapes(args))
            return args

        made = mx.vmap(f, in_axes=in_axes)(*[arrays(mx, t) for t in trees])
        return seen, list(made)

    if taken:
        same(case)
        return
    # The same as with what mlx takes.
    made = case(um)
    want = {
        "one dictionary in a tuple": {"a": 0, "b": 1},
        "one dictionary in a list": {"a": 0, "b": 1},
        "one array in a list": (1,),
    }
    kind = type(trees[0]) if isinstance(trees[0], (list, tuple)) else tuple
    flat = in_axes[0] if name.endswith(" in a tuple") else in_axes
    reading = want.get(name, kind(flat) if len(trees) == 1 else tuple(in_axes))
    for mx in (um, mlx):
        seen: list[Any] = []
        f = lambda *args: (seen.append(shapes(args)), args)[1]
        mx.vmap(f, in_axes=reading)(*[arrays(mx, t) for t in trees])
        assert seen == made[0]


# (Of an array that is returned twice mlx uses one axis for both.)
OUT_AXES: dict[str, tuple[Any, Any, bool]] = {
    "array": (lambda x: x, 1, True),
    "array by a tuple": (lambda x: x, (1,), True),
    "array by a list": (lambda x: x, [1], True),
    "dictionary": (lambda x: {"a": x, "b": x.sum()}, {"a": 1, "b": 0}, True),
    "part of a dictionary": (lambda x: {"a": x, "b": x + 1}, {"a": 1}, True),
    "tuple": (lambda x: (x, x + 1), (1, 0), True),
    "list": (lambda x: [x, x + 1], [1, 0], True),
    "list by a tuple": (lambda x: [x, x + 1], (1, 0), False),
    "tuple by a list": (lambda x: (x, x + 1), [1, 0], False),
    "named tuple": (lambda x: Point(x, x + 1), (1, 0), True),
    "list of lists": (lambda x: [[x, x + 1], x * 2], [[0, 1], 1], True),
    "one for a tree": (lambda x: [[x, x + 1], x * 2], [1, 0], True),
    "too few": (lambda x: (x, x + 1), (1,), True),
    "text": (lambda x: x, "x", True),
    "dictionary for an array": (lambda x: x, {"a": 0}, True),
}


@pytest.mark.parametrize("name", OUT_AXES)
def test_out_axes(name: str) -> None:
    f, out_axes, taken = OUT_AXES[name]

    def case(mx: Any) -> Any:
        return mx.vmap(f, out_axes=out_axes)(mx.arange(24).reshape(2, 3, 4))

    if name == "array by a list":
        assert values(case(um)) == values(um.vmap(f, out_axes=1)(um.arange(24).reshape(2, 3, 4)))
    elif taken:
        same(case)
    else:
        kind = tuple if "tuple by" in name else list
        want = um.vmap(f, out_axes=kind(out_axes))(um.arange(24).reshape(2, 3, 4))
        assert values(case(um)) == values(want)


def test_axes_that_do_not_fit_are_named() -> None:
    x = um.zeros((2, 3))
    with pytest.raises(
        ValueError, match=r"in_axes does not fit: it has \{'a': 0\} for a dict of 2"
    ):
        um.vmap(lambda t: t, in_axes=({"a": 0},))({"a": x, "b": x})
    with pytest.raises(
        ValueError, match=r"out_axes does not fit: it has \(0, 0, 0\) for a tuple of 2"
    ):
        um.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(x)
    with pytest.raises(ValueError, match="int or None, but in_axes has float"):
        um.vmap(lambda x: x, in_axes=0.5)(x)


def test_arrays_of_no_tree_are_named() -> None:
    with pytest.raises(ValueError, match="only arrays, but it has int"):
        um.vmap(lambda t: t["a"])({"a": um.zeros(2), "n": 3})
