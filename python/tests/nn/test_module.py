"""Modules: attributes, walks, updates and freezing do what mlx's do, step by step."""

from __future__ import annotations

import contextlib
import copy
import pickle
from typing import Any

import pytest

import ultramarine as mx
from ultramarine import nn

from .pairs import OURS, Case, ordinary, same


def everything(lib: Any) -> Any:
    """A module with modules, arrays and others in lists, dictionaries and tuples."""

    class Everything(lib.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            mx, nn = lib.mx, lib.nn
            self.linear = nn.Linear(2, 3, bias=False)
            self.layers = [
                nn.ReLU(),
                {"x": nn.Tanh(), "y": [nn.Dropout(), mx.zeros(1)]},
                nn.Sequential(),
            ]
            self.weight = mx.zeros((2,))
            self._cache = mx.ones((1,))
            self.name = "a name"
            self.table = {"p": mx.zeros(1), "q": 3, "_r": mx.zeros(2)}
            self.number = 3
            self.pair = (mx.zeros(1), nn.Sequential(nn.ReLU()))
            self.nothing = None
            self.empty: list[Any] = []
            self.update({"linear": {"weight": mx.ones((3, 2))}})

    return Everything()


def small(lib: Any) -> Any:
    """A module whose submodules have parameters of the same names."""

    class Small(lib.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = lib.nn.LayerNorm(2)
            self.rest = [lib.nn.LayerNorm(3, bias=False), {"w": lib.mx.zeros(1)}]
            self.w = lib.mx.zeros(2)

    return Small()


def extra(lib: Any, children: int = 0, text: str = "x=3") -> Any:
    """A module with an `_extra_repr`."""

    class Extra(lib.nn.Module):  # type: ignore[misc]
        def _extra_repr(self) -> str:
            return text

    module = Extra()
    for i in range(children):
        module[f"child{i}"] = [extra(lib, i, "line\nsecond line\n\nlast")]
    return module


def names(lib: Any, tree: Any) -> Any:
    return [path for path, _ in lib.utils.tree_flatten(tree)]


def after(make: Any, *changes: Any) -> Case:
    """The contents of a module after some changes."""

    def case(lib: Any) -> Any:
        module = make(lib)
        for change in changes:
            change(lib, module)
        attributes = ordinary(module)
        return repr(module), dict(module), attributes

    return case


def asked(lib: Any) -> Any:
    """Arguments of the predicates of `filter_and_map`, in order, and the result."""
    calls: list[Any] = []

    def note(what: str, answer: Any) -> Any:
        def predicate(module: Any, key: str, value: Any) -> Any:
            calls.append((what, type(module).__name__, key, type(value).__name__))
            return answer(value)

        return predicate

    keep = note("filter", lambda v: True)
    leaf = note("leaf", lambda v: not isinstance(v, (list, dict)))
    result = everything(lib).filter_and_map(keep, lambda x: type(x).__name__, leaf)
    return calls, result


def values_of(lib: Any) -> list[Any]:
    return [lib.mx.ones(1), lib.nn.ReLU(), [], {}, (), 3, "text", None]


def predicates(lib: Any) -> Any:
    """Answers of the filters for `filter_and_map`, for values of all kinds, frozen and not."""
    module = small(lib).freeze(keys="w", recurse=False)
    filters = [
        lib.nn.Module.valid_parameter_filter,
        lib.nn.Module.valid_child_filter,
        lib.nn.Module.trainable_parameter_filter,
    ]
    keys = ["w", "x", "_x"]
    return [[f(module, k, v) for f in filters] for k in keys for v in values_of(lib)]


def applied(lib: Any) -> Any:
    """The arguments of the function for `apply_to_modules`, in order."""
    seen: list[Any] = []
    module = everything(lib)
    assert module.apply_to_modules(lambda path, m: seen.append((path, m))) is module
    return seen


ATTRIBUTES: dict[str, Case] = {
    "all": after(everything),
    "repr of nothing": lambda lib: repr(lib.nn.Module()),
    "extra repr": lambda lib: repr(extra(lib)),
    "nested extra repr": lambda lib: repr(extra(lib, 3)),
    "missing": lambda lib: everything(lib).foo,
    "delete missing": after(everything, lambda lib, m: delattr(m, "foo")),
    "delete": after(
        everything, lambda lib, m: delattr(m, "number"), lambda lib, m: delattr(m, "weight")
    ),
    "array for number": after(everything, lambda lib, m: setattr(m, "number", lib.mx.zeros(1))),
    "number for array": after(everything, lambda lib, m: setattr(m, "weight", 4)),
    "list for None": after(everything, lambda lib, m: setattr(m, "nothing", [])),
    "module for array": after(everything, lambda lib, m: setattr(m, "weight", lib.nn.Tanh())),
    "item": lambda lib: everything(lib)["weight"],
    "in": lambda lib: [
        k in everything(lib) for k in ("weight", "name", "pair", "nothing", "_cache")
    ],
    "length": lambda lib: (len(everything(lib)), bool(lib.nn.ReLU())),
    "hash": lambda lib: hash(everything(lib)),
    "name of a method": lambda lib: setattr(everything(lib), "items", lib.mx.zeros(1)),
    "state": lambda lib: (lambda m: m.state is m)(everything(lib)),
    "training": lambda lib: setattr(everything(lib), "training", False),
    "arguments": lambda lib: lib.nn.Module(a=3),
    "call": lambda lib: lib.nn.Module()(3),
    "item that is None": after(everything, lambda lib, m: m.update({"weight": None}, strict=False)),
}

WALKS: dict[str, Case] = {
    "parameters": lambda lib: everything(lib).parameters(),
    "trainable": lambda lib: everything(lib).trainable_parameters(),
    "children": lambda lib: everything(lib).children(),
    "leaf_modules": lambda lib: everything(lib).leaf_modules(),
    "modules": lambda lib: everything(lib).modules(),
    "named_modules": lambda lib: everything(lib).named_modules(),
    "shared": lambda lib: (lambda r: lib.nn.Sequential(r, r).named_modules())(lib.nn.ReLU()),
    "everything": lambda lib: everything(lib).filter_and_map(lambda m, k, v: True),
    "leaves by predicate": lambda lib: everything(lib).filter_and_map(
        lambda m, k, v: True, None, lambda m, k, v: isinstance(v, (dict, lib.mx.array, tuple, int))
    ),
    "no leaves": lambda lib: everything(lib).filter_and_map(
        lambda m, k, v: True, is_leaf_fn=lambda m, k, v: False
    ),
    "mapped": lambda lib: everything(lib).filter_and_map(
        lib.nn.Module.valid_parameter_filter, lambda x: x.shape
    ),
    "asked": asked,
    "is_module": lambda lib: [lib.nn.Module.is_module(x) for x in values_of(lib)],
    "predicates": predicates,
    "apply_to_modules": applied,
    "without init": lambda lib: type("Bare", (lib.nn.Module,), {"__init__": lambda self: None})(),
    "parameters without init": lambda lib: type(
        "Bare", (lib.nn.Module,), {"__init__": lambda self: setattr(self, "a", lib.mx.ones(1))}
    )().trainable_parameters(),
}


def updates(value: Any, *, strict: Any = None, method: str = "update") -> Case:
    """A module after an update. `value` makes the argument, of the library's arrays or modules."""

    def case(lib: Any) -> Any:
        module = everything(lib)
        arguments = {} if strict is None else {"strict": strict}
        assert getattr(module, method)(value(lib), **arguments) is module
        return after(lambda _: module)(lib)

    return case


ARRAYS: dict[str, Any] = {
    "array": lambda lib: {"weight": lib.mx.ones(3)},
    "its own": lambda lib: everything(lib).parameters(),
    "nested": lambda lib: {"linear": {"weight": lib.mx.ones((4, 5))}},
    "in list": lambda lib: {"layers": [{}, {"y": [{}, lib.mx.ones(4)]}]},
    "in dict": lambda lib: {"table": {"p": lib.mx.ones(3)}},
    "unknown": lambda lib: {"foo": lib.mx.ones(3)},
    "unknown below": lambda lib: {"linear": {"foo": lib.mx.ones(3)}},
    "unknown in list": lambda lib: {"layers": [{"foo": lib.mx.ones(3)}]},
    "unknown in dict": lambda lib: {"table": {"foo": lib.mx.ones(3)}},
    "too long": lambda lib: {"layers": [{}, {}, {}, {"weight": lib.mx.ones(1)}]},
    "dict for list": lambda lib: {"layers": {"weight": lib.mx.ones(3)}},
    "list for module": lambda lib: {"linear": [lib.mx.ones(3)]},
    "array for module": lambda lib: {"linear": lib.mx.ones(3)},
    "dict for array": lambda lib: {"weight": {"a": lib.mx.ones(3)}},
    "list for array": lambda lib: {"weight": [lib.mx.ones(3)]},
    "number": lambda lib: {"weight": 3},
    "string": lambda lib: {"weight": "text"},
    "for attribute": lambda lib: {"name": lib.mx.ones(1)},
    "for number in dict": lambda lib: {"table": {"q": lib.mx.ones(1)}},
    "tuple": lambda lib: {"pair": (lib.mx.ones(9),)},
    "in tuple": lambda lib: {"pair": [lib.mx.ones(9)]},
    "no dict": lambda lib: [lib.mx.ones(1)],
    "None": lambda lib: None,
    "empty": lambda lib: {},
    "underscore": lambda lib: {"_cache": lib.mx.zeros(2)},
}

MODULES: dict[str, Any] = {
    "module": lambda lib: {"linear": lib.nn.ReLU()},
    "its own": lambda lib: everything(lib).children(),
    "its leaves": lambda lib: everything(lib).leaf_modules(),
    "in list": lambda lib: {"layers": [lib.nn.Tanh(), {"y": [lib.nn.ReLU()]}]},
    "unknown": lambda lib: {"foo": lib.nn.ReLU()},
    "unknown below": lambda lib: {"linear": {"foo": lib.nn.ReLU()}},
    "unknown in list": lambda lib: {"layers": [{}, {"z": lib.nn.ReLU()}]},
    "too long": lambda lib: {"layers": [{}, {}, {}, lib.nn.ReLU()]},
    "number": lambda lib: {"linear": 3},
    "array": lambda lib: {"linear": lib.mx.ones(1)},
    "number in list": lambda lib: {"layers": [3]},
    "array in list": lambda lib: {"layers": [lib.mx.ones(1)]},
    "list for module": lambda lib: {"layers": [[lib.nn.Tanh()]]},
    "dict for list": lambda lib: {"layers": {"a": lib.nn.Tanh()}},
    "tuple": lambda lib: {"layers": (lib.nn.Tanh(),)},
    "None": lambda lib: {"linear": None},
    "empty": lambda lib: {"linear": {}},
}


def frozen(*changes: tuple[str, dict[str, Any]]) -> Case:
    """The trainable parameters, and the frozen names of each module, after each call of `freeze` or `unfreeze`."""

    def case(lib: Any) -> Any:
        module = small(lib)
        out = []
        for method, arguments in changes:
            assert getattr(module, method)(**arguments) is module
            frozen = [sorted(m._no_grad) for m in module.modules()]
            out.append((names(lib, module.trainable_parameters()), frozen))
        return out

    return case


KEYS = ["w", "weight", ["weight", "foo"], "foo", "rest", ["w", "first"], "rest.1.w"]

FROZEN: dict[str, Case] = {
    "all": frozen(("freeze", {}), ("freeze", {}), ("unfreeze", {})),
    "here": frozen(("freeze", {"recurse": False})),
    "all but here": frozen(("freeze", {}), ("unfreeze", {"recurse": False})),
    "training mode": lambda lib: (
        lambda m: (
            m.training,
            m.eval() is m,
            [x.training for x in m.modules()],
            m.train() is m,
            [x.training for x in m.modules()],
            m.train(False).training,
            m.train(0).training,
        )
    )(small(lib)),
    "by place": lambda lib: small(lib).freeze(True),
    **{
        f"{keys} {recurse} {strict}": frozen(
            ("freeze", {"keys": keys, "recurse": recurse, "strict": strict})
        )
        for keys in KEYS
        for recurse in (True, False)
        for strict in (True, False)
    },
    **{
        f"all but {keys} {recurse} {strict}": frozen(
            ("freeze", {}), ("unfreeze", {"keys": keys, "recurse": recurse, "strict": strict})
        )
        for keys in KEYS
        for recurse in (True, False)
        for strict in (True, False)
    },
}


def dtypes(change: Any) -> Case:
    def case(lib: Any) -> Any:
        module = small(lib)
        module.numbers = lib.mx.array([1])
        module.half = lib.mx.zeros(1, dtype=lib.mx.float16)
        result = change(lib, module)
        found = [(path, x.dtype) for path, x in lib.utils.tree_flatten(module.parameters())]
        return result is module, found

    return case


DTYPES: dict[str, Case] = {
    "apply": dtypes(lambda lib, m: m.apply(lambda x: x.astype(lib.mx.float16))),
    "apply with filter": dtypes(
        lambda lib, m: m.apply(
            lambda x: x.astype(lib.mx.float16), lambda m, k, v: k in ("first", "weight")
        )
    ),
    "apply no array": dtypes(lambda lib, m: m.apply(lambda x: 3)),
    "set_dtype": dtypes(lambda lib, m: m.set_dtype(lib.mx.bfloat16)),
    "set_dtype of all": dtypes(lambda lib, m: m.set_dtype(lib.mx.float32, None)),
    "set_dtype by predicate": dtypes(
        lambda lib, m: m.set_dtype(lib.mx.int32, predicate=lambda d: d == lib.mx.float16)
    ),
    "set_dtype of no dtype": dtypes(lambda lib, m: m.set_dtype("float32")),
}

CASES: dict[str, Case] = {
    f"{group} {name}": case
    for group, cases in {
        "attributes": ATTRIBUTES,
        "walks": WALKS,
        "update": {k: updates(v) for k, v in ARRAYS.items()},
        "update strict": {k: updates(v, strict=True) for k, v in ARRAYS.items()},
        "update loose": {k: updates(v, strict=False) for k, v in ARRAYS.items()},
        "modules": {k: updates(v, method="update_modules") for k, v in MODULES.items()},
        "modules loose": {
            k: updates(v, method="update_modules", strict=False) for k, v in MODULES.items()
        },
        "freeze": FROZEN,
        "dtypes": DTYPES,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("case", CASES)
def test_as_in_mlx(case: str) -> None:
    same(CASES[case])


def test_update_modules_refuses_a_parameter() -> None:
    """In mlx nothing happens."""
    with pytest.raises(ValueError, match="no module"):
        everything(OURS).update_modules({"weight": nn.ReLU()})
    module = everything(OURS)
    module.update_modules({"weight": nn.ReLU()}, strict=False)
    assert isinstance(module.weight, mx.array)


def test_keys_may_be_a_tuple() -> None:
    """In mlx the tuple is taken for one key."""
    layer = nn.Linear(2, 2).freeze(keys=("weight", "bias"))
    assert layer.trainable_parameters() == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update({"foo": mx.ones(1)}), "parameter named .foo.*strict=False"),
        (lambda m: m.update({"weight": 3}), "int for weight"),
        (lambda m: m.update_modules({"foo": nn.ReLU()}), "sub-module named .foo"),
        (lambda m: m.freeze(keys="foo", strict=True), "Linear has no member 'foo'"),
        (lambda m: m.save_weights("w.txt"), "w.txt has an unknown extension"),
        (lambda m: m.load_weights([("weight", mx.ones(1))]), "1 parameters of Linear.*\n  bias\n"),
    ],
)
def test_messages(change: Any, message: str) -> None:
    with pytest.raises((ValueError, KeyError), match=message):
        change(nn.Linear(2, 3))


class Model(nn.Module):
    """A module that can be pickled."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(2, 3), nn.Dropout(0.3)]
        self.scale = mx.array([2.0])
        self.name = "model"

    def __call__(self, x: mx.array) -> Any:
        return self.layers[0](x) * self.scale


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"]
)
def test_copies_are_independent(copied: Any) -> None:
    model = Model()
    model.freeze(keys="scale", recurse=False)
    model.eval()
    other = copied(model)
    assert type(other) is Model and repr(other) == repr(model) and other.name == "model"
    assert not other.training and not other.layers[1].training
    assert other._no_grad == {"scale"}
    x = mx.ones((1, 2))
    assert mx.array_equal(other(x), model(x))
    other.scale = mx.array([3.0])
    other.layers[0].weight = mx.zeros((3, 2))
    other.unfreeze()
    assert model.scale.item() == 2 and model.layers[0].weight.abs().sum() > 0
    assert model._no_grad == {"scale"}


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_submodules_of_copies_are_replaced(copied: Any) -> None:
    model = nn.Transformer(8, 1, 1, 1)
    other = copied(model)
    assert other.encoder is other["encoder"]
    other.encoder = nn.Linear(1, 1)
    assert isinstance(other.encoder, nn.Linear) and isinstance(other["encoder"], nn.Linear)
    assert isinstance(model.encoder, nn.TransformerEncoder)


def replaced_by_name(m: nn.Module, new: Any) -> None:
    m["first"] = new


def replaced_by_union(m: nn.Module, new: Any) -> None:
    m |= {"first": new}


@pytest.mark.parametrize(
    "change",
    [
        lambda m, new: setattr(m, "first", new),
        replaced_by_name,
        replaced_by_union,
        lambda m, new: (m.pop("first"), m.setdefault("first", new)),
        lambda m, new: (m.popitem(), setattr(m, "first", new)),
        lambda m, new: (m.clear(), setattr(m, "first", new)),
        lambda m, new: (delattr(m, "first"), setattr(m, "first", new)),
        lambda m, new: m.update_modules({"first": new}),
    ],
    ids=["attribute", "item", "union", "pop", "popitem", "clear", "delete", "update"],
)
@pytest.mark.parametrize("kind", ["module", "array", "number", "nothing"])
def test_attributes_follow_items(change: Any, kind: str) -> None:
    new = {"module": nn.Linear(1, 1), "array": mx.ones(1), "number": 3, "nothing": None}[kind]
    parent = nn.Module()
    parent.first = nn.Linear(2, 2)
    with contextlib.suppress(ValueError):  # update_modules wants modules
        change(parent, new)
    if parent.get("first") is not None:
        assert parent.first is parent["first"]
    elif "first" in parent.__dict__:
        assert parent.first is new and not isinstance(new, nn.Module)
    else:
        assert not hasattr(parent, "first")
    with contextlib.suppress(AttributeError):
        del parent.first
    assert not hasattr(parent, "first") and "first" not in parent


def test_attributes_hide_items_of_their_name() -> None:
    parent = nn.Module()
    parent.size = 3
    parent["size"] = nn.Linear(1, 1)
    assert parent.size == 3 and isinstance(parent["size"], nn.Linear)
    parent["size"] = nn.Linear(2, 1)
    assert parent.size == 3
    del parent["size"]
    assert parent.size == 3
    parent["train"] = nn.Linear(1, 1)
    assert callable(parent.train) and not isinstance(parent.train, nn.Module)
    with pytest.raises(KeyError):
        nn.Module().popitem()


def test_shallow_copy() -> None:
    model = Model()
    other = copy.copy(model)
    assert type(other) is Model and other.layers is model.layers
    other.scale = mx.array([3.0])
    assert model.scale.item() == 2


def test_compiled_functions_take_the_state() -> None:
    model = Model()
    step = mx.compile(lambda x: model(x), inputs=model.state)
    x = mx.ones((1, 2))
    before = step(x)
    model.scale = mx.array([4.0])
    assert mx.allclose(step(x), before * 2)
