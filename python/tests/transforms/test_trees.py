"""Containers that functions get from transforms, and what becomes of them; beside mlx."""

import threading
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from typing import Any

import mlx.core as mlx
import pytest
from support.both import same, values

import ultramarine as um


class Module(dict):
    """A dictionary with methods and attributes."""

    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.note = "noted"

    def norm(self) -> Any:
        return (self["a"] ** 2).sum()


class Layers(list):
    def norm(self) -> Any:
        return (self[0] ** 2).sum()


class Point(namedtuple("Point", "x y")):
    __slots__ = ()

    def norm(self) -> Any:
        return (self.x**2).sum()


class Pair(tuple):
    """A tuple whose constructor takes its items one by one, and with an attribute."""

    def __new__(cls, first: Any, second: Any) -> "Pair":
        made = tuple.__new__(cls, (first, second))
        made.note = "noted"
        return made

    def norm(self) -> Any:
        return (self[0] ** 2).sum()


class Frozen(dict):
    """A dictionary that does not let itself be written to, nor copied."""

    def __setitem__(self, key: Any, item: Any) -> None:
        raise TypeError("frozen")


MAKE: dict[str, Callable[[Any], Any]] = {
    "dict": lambda x: {"a": x},
    "list": lambda x: [x],
    "tuple": lambda x: (x, x * 2),
    "Module": lambda x: Module(a=x),
    "Layers": lambda x: Layers([x]),
    "Point": lambda x: Point(x, x * 2),
    "OrderedDict": lambda x: OrderedDict(b=x, a=x),
    "defaultdict": lambda x: defaultdict(int, a=x),
    "deep": lambda x: {"l": Layers([x, {"m": Module(a=x)}]), "a": x},
}
OURS_ALONE: dict[str, Callable[[Any], Any]] = {
    # mlx calls the class with a list of items.
    "Pair": lambda x: Pair(x, x * 2),
}
# mlx hands over what these are as plain dictionaries and lists.
SUBCLASSES = ["Module", "Layers", "Point", "OrderedDict", "defaultdict", "deep", "Pair"]


def norm(tree: Any) -> Any:
    array = tree["a"] if isinstance(tree, dict) else tree[0]
    return (array**2).sum()


# Calls a function of one argument with `t`, which is differentiated or is not.
GRADIENTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "grad": lambda mx, f, t: mx.grad(f)(t),
    "grad by name": lambda mx, f, t: mx.grad(lambda *, t: f(t), argnames="t")(t=t),
    "value_and_grad": lambda mx, f, t: mx.value_and_grad(f)(t),
    "beside": lambda mx, f, t: mx.grad(lambda x, t: (x * f(t)).sum())(mx.array([1.0]), t),
    "beside by name": lambda mx, f, t: mx.grad(lambda x, *, t: (x * f(t)).sum())(
        mx.array([1.0]), t=t
    ),
}
OTHERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "vmap": lambda mx, f, t: mx.vmap(f)(t),
    "compile": lambda mx, f, t: mx.compile(f)(t),
    "checkpoint": lambda mx, f, t: mx.checkpoint(f)(t),
    "checkpoint in grad": lambda mx, f, t: mx.grad(mx.checkpoint(f))(t),
}
BESIDE = [n for n in GRADIENTS if n.startswith("beside")]


def classes(tree: Any) -> Any:
    """The tree of its containers' classes."""
    if isinstance(tree, dict):
        return type(tree), {k: classes(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree), [classes(v) for v in tree]
    return None


@pytest.mark.parametrize("transform", GRADIENTS)
@pytest.mark.parametrize("kind", MAKE)
def test_gradients_hand_over_the_caller_s_containers(kind: str, transform: str) -> None:
    def case(mx: Any) -> Any:
        seen: list[Any] = []
        x = mx.array([1.0, 2.0])
        tree = MAKE[kind](x)
        before = classes(tree)

        def f(t: Any) -> Any:
            method = getattr(t, "norm", None)
            seen.append((t is tree, classes(t), getattr(t, "note", None)))
            return norm(t) if method is None else method()

        GRADIENTS[transform](mx, f, tree)
        mine = tree["a"] if isinstance(tree, dict) else tree[0]
        return repr(seen), classes(tree) == before, mine is x

    seen, unchanged, mine = same(case)
    # Tuples are new ones, of the same class.
    assert unchanged and mine and ("True" in seen) == (kind not in ("tuple", "Point"))


@pytest.mark.parametrize("transform", [*GRADIENTS, *OTHERS])
@pytest.mark.parametrize("kind", SUBCLASSES)
def test_classes_are_kept(kind: str, transform: str) -> None:
    """By the function's argument, and by what comes out of transforms: mlx makes plain lists and dictionaries."""
    tree = (MAKE | OURS_ALONE)[kind](um.array([1.0, 2.0]))
    seen: list[Any] = []

    def f(t: Any) -> Any:
        seen.append((classes(t), getattr(t, "note", None)))
        return norm(t)

    made = (GRADIENTS | OTHERS)[transform](um, f, tree)
    assert set(map(repr, seen)) == {repr((classes(tree), getattr(tree, "note", None)))}
    if transform in ("grad", "checkpoint in grad"):
        assert classes(made) == classes(tree)
        assert getattr(made, "note", None) == getattr(tree, "note", None)


@pytest.mark.parametrize("kind", SUBCLASSES)
def test_results_keep_their_classes(kind: str) -> None:
    make = (MAKE | OURS_ALONE)[kind]
    x = um.array([[1.0, 2.0], [3.0, 4.0]])
    want = classes(make(x))
    compiled = um.compile(make)
    rule = um.custom_function(make)
    rule.vjp(lambda x, cotangents, outputs: x)
    for f in (um.vmap(make), compiled, compiled, um.checkpoint(make), rule):
        made = f(x)
        assert classes(made) == want
        assert values(made) == values(make(x))
    value, _ = um.value_and_grad(lambda x: (x.sum(), make(x)))(x)
    assert classes(value[1]) == want
    assert classes(um.vmap(lambda t: t)(make(x))) == want


def test_a_class_that_cannot_be_copied() -> None:
    """It is itself where containers are the caller's, else a plain dictionary, as in mlx."""
    tree = Frozen(a=um.array([1.0, 2.0]))
    x = tree["a"]
    seen: list[type] = []
    f = lambda t: (seen.append(type(t)), norm(t))[1]
    assert values(um.grad(f)(tree)) == {"a": [2.0, 4.0]}
    assert um.vmap(f)(tree).tolist() == [1.0, 4.0]
    assert seen == [Frozen, dict] and tree["a"] is x


def assign(mx: Any, t: Any) -> Any:
    t["new"] = t["a"] * 3
    t["constant"] = mx.array([7.0])
    t["text"] = "text"
    return norm(t)


def replace(mx: Any, t: Any) -> Any:
    t["a"] = mx.array([5.0, 5.0])
    return norm(t)


def increase(mx: Any, t: Any) -> Any:
    t["a"] += 1
    return norm(t)


def increase_elsewhere(mx: Any, t: Any) -> Any:
    x = t["a"]
    x += 1
    return (x**2).sum()


def delete(mx: Any, t: Any) -> Any:
    del t["b"]
    return norm(t)


def deeper(t: Any) -> Any:
    t["l"][0] = t["l"][0] * 2
    t["l"].append(t["a"])
    t["p"][1]["q"] = t["a"] + 1
    return norm(t)


ASSIGNMENTS = {f.__name__: f for f in (assign, replace, increase, increase_elsewhere, delete)}


def tree_of(mx: Any) -> Any:
    x = mx.array([1.0, 2.0])
    return {"a": x, "b": x}


@pytest.mark.parametrize("transform", [*GRADIENTS, *OTHERS])
@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_assigned_entries(assignment: str, transform: str) -> None:
    """They stay after gradients. Other transforms call with containers of their own."""

    def case(mx: Any) -> Any:
        tree = tree_of(mx)
        f = lambda t: ASSIGNMENTS[assignment](mx, t)
        (GRADIENTS | OTHERS)[transform](mx, f, tree)
        return tree

    if transform in GRADIENTS and transform not in BESIDE and assignment in ("assign", "delete"):
        # mlx builds the gradient in the changed container, and crashes.
        made = values(case(um))
        want = values(tree_of(um)) | {"new": [3.0, 6.0], "constant": [7.0], "text": "text"}
        assert made == (want if assignment == "assign" else {"a": [1.0, 2.0]})
    else:
        made = same(case)
        assert (made == values(tree_of(um))) == (transform not in GRADIENTS)


def test_gradients_have_the_structure_that_the_argument_had() -> None:
    def f(t: Any) -> Any:
        loss = norm(t) + (t["l"][1] * 3).sum()
        t["new"] = t["a"]
        t["l"].insert(0, t["a"] * 2)
        del t["a"]
        return loss

    x = um.array([1.0, 2.0])
    tree = {"a": x, "l": [x, x]}
    gradient = um.grad(f)(tree)
    assert values(gradient) == {"a": [2.0, 4.0], "l": [[0.0, 0.0], [3.0, 3.0]]}
    assert values(tree) == {"l": [[2.0, 4.0], [1.0, 2.0], [1.0, 2.0]], "new": [1.0, 2.0]}
    # What moved, or has another name, is the caller's array again.
    assert tree["l"][1] is x and tree["l"][2] is x and tree["new"] is x


def test_deeper_assignments() -> None:
    x = um.array([1.0, 2.0])
    inner = {"q": x}
    tree = {"a": x, "l": [x], "p": (x, inner)}
    um.grad(lambda y, t: (y * deeper(t)).sum())(um.array([1.0]), tree)
    assert values(tree) == {
        "a": [1.0, 2.0],
        "l": [[2.0, 4.0], [1.0, 2.0]],
        "p": [[1.0, 2.0], {"q": [2.0, 3.0]}],
    }
    assert tree["l"][1] is x and tree["p"][0] is x and tree["p"][1] is inner


@pytest.mark.parametrize("transform", GRADIENTS)
def test_after_an_error_the_caller_s_arrays_are_back(transform: str) -> None:
    x = um.array([1.0, 2.0])
    inner, pair = {"a": x}, (x, x)
    tree = {"a": x, "l": [x, inner], "p": pair}

    def f(t: Any) -> Any:
        assert t["l"][1] is inner and t["a"] is not x
        t["z"] = 1
        raise KeyError("boom")

    with pytest.raises(KeyError, match="boom"):
        GRADIENTS[transform](um, f, tree)
    assert tree["a"] is x and tree["l"][0] is x and inner["a"] is x and tree["p"] is pair
    assert tree["z"] == 1


def updated(x: Any) -> Any:
    x += 10
    return (x**2).sum()


@pytest.mark.parametrize("transform", [*GRADIENTS, *OTHERS, "vjp", "jvp", "disabled"])
def test_arrays_of_the_caller_are_not_rebound(transform: str) -> None:
    extra: dict[str, Callable[[Any, Any, Any], Any]] = {
        "vjp": lambda mx, f, x: mx.vjp(f, [x], [mx.array(1.0)]),
        "jvp": lambda mx, f, x: mx.jvp(f, [x], [x]),
    }

    def disabled(mx: Any, f: Any, x: Any) -> Any:
        mx.disable_compile()
        try:
            return mx.compile(f)(x)
        finally:
            mx.enable_compile()

    extra["disabled"] = disabled

    def case(mx: Any) -> Any:
        x = mx.array([1.0, 2.0])
        made = (GRADIENTS | OTHERS | extra)[transform](mx, updated, x)
        return made, x

    assert same(case)[1] == [1.0, 2.0]


def test_arrays_in_containers_are_not_rebound() -> None:
    def case(mx: Any) -> Any:
        x, y, z = mx.array([1.0]), mx.array([2.0]), mx.array([3.0])

        def f(x: Any, t: Any, *, k: Any) -> Any:
            y = t["y"][0]
            y += 1
            k *= 2
            return (x * y * k).sum()

        tree = {"y": (y, 1)}
        return mx.grad(f)(x, tree, k=z), x, y, z, tree

    # The place in the container has the new array: the function assigned there.
    assert same(case) == [[18.0], [1.0], [2.0], [3.0], {"y": [[3.0], 1]}]


def test_one_container_in_several_places() -> None:
    """Each place is differentiated apart. (In mlx the last one takes all.)"""
    shared = {"x": um.array(2.0)}
    x = shared["x"]
    f = lambda a, b: a["x"] * 2 + b["x"] * 3
    assert values(um.grad(f, argnums=(0, 1))(shared, shared)) == [{"x": 2.0}, {"x": 3.0}]
    assert values(um.grad(f)(shared, shared)) == {"x": 2.0}
    assert values(um.grad(f, argnums=1)(shared, shared)) == {"x": 3.0}
    g = lambda t: t["p"]["x"] * 2 + t["q"][0]["x"] * 3
    tree = {"p": shared, "q": (shared,)}
    assert values(um.grad(g)(tree)) == {"p": {"x": 2.0}, "q": [{"x": 3.0}]}
    assert tree["p"] is shared and tree["q"][0] is shared and shared["x"] is x
    # An argument beside it may have it, and itself, in it.
    owner = Module(params=shared, a=x)
    owner["self"] = owner
    h = lambda params, m: params["x"] * 2 + m["self"]["params"]["x"] * 3 + m["a"]
    assert values(um.grad(h)(shared, owner)) == {"x": 2.0}
    assert owner["params"] is shared and owner["self"] is owner and owner["a"] is x


def test_gradients_inside_of_gradients_of_one_container() -> None:
    tree = {"a": um.array([1.0, 2.0])}
    x = tree["a"]

    def slope(t: Any) -> Any:
        assert t is tree
        return um.grad(lambda u: (u["a"] ** 3).sum())(t)["a"].sum()

    assert values(um.grad(slope)(tree)) == {"a": [6.0, 12.0]}
    assert tree["a"] is x


def test_threads_with_one_container() -> None:
    """What one thread traces does not get into the other one's function."""
    tree = {"a": um.array([1.0, 2.0])}
    x = tree["a"]
    inside, finished = threading.Event(), threading.Event()
    made: dict[str, Any] = {}

    def first(t: Any) -> Any:
        inside.set()
        assert finished.wait(60)
        return (t["a"] ** 2).sum()

    def run() -> None:
        made["first"] = um.grad(first)(tree)

    thread = threading.Thread(target=run)
    thread.start()
    assert inside.wait(60)
    made["second"] = um.grad(lambda t: (t["a"] ** 3).sum())(tree)
    finished.set()
    thread.join()
    assert values(made) == {"first": {"a": [2.0, 4.0]}, "second": {"a": [3.0, 12.0]}}
    assert tree["a"] is x
    # And none is left noted as taken.
    f = lambda t: (t["a"] * (2 if t is tree else 1)).sum()
    assert values(um.grad(f)(tree)) == {"a": [2.0, 2.0]}


def test_containers_are_not_kept_alive() -> None:
    import gc
    import weakref

    tree = Module(a=um.array([1.0, 2.0]))
    note = weakref.ref(tree)
    um.grad(norm)(tree)
    um.vmap(norm)(tree)
    um.checkpoint(norm)(tree)
    del tree
    gc.collect()
    assert note() is None


def test_order_of_argnums() -> None:
    """As mlx's: gradients come in the order of the arguments."""
    f = lambda a, b, c: a * 2 + b * 3 + c * 4

    def case(mx: Any) -> Any:
        x = mx.array(1.0)
        named = lambda *, a, b: a * 2 + b * 3
        return (
            mx.grad(f, argnums=(1, 0))(x, x, x),
            mx.value_and_grad(f, argnums=[2, 0])(x, x, x),
            mx.grad(named, argnames=("b", "a"))(a=x, b=x),
        )

    assert same(case) == [[2.0, 3.0], [9.0, [2.0, 4.0]], [None, {"a": 2.0, "b": 3.0}]]


def test_nothing_to_differentiate() -> None:
    """It is said before the function is called."""
    called = lambda *_: 1 / 0

    def refused(mx: Any, *args: Any, **options: Any) -> None:
        for transform in (mx.grad, mx.value_and_grad):
            with pytest.raises(ValueError, match="Must specify at least one argument"):
                transform(called, **options)(*args)

    for mx in (um, mlx):
        for tree in ({}, [], (), {"a": [{}]}):
            refused(mx, tree)
            refused(mx, tree, mx.array(1.0))
        refused(mx, [], {}, argnums=(0, 1))
    # One of several may be empty.
    both = lambda mx: mx.grad(lambda t, y: y * 2, argnums=(0, 1))([], mx.array(1.0))
    assert same(both) == [[], 2.0]
