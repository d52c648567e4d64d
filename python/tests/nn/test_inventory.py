"""Every public name of mlx.nn, mlx.optimizers and mlx.utils is here, with mlx's parameters and class members."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

import mlx.nn as mlx_nn
import mlx.optimizers as mlx_optimizers
import pytest

import ultramarine as mx

# Modules of mlx and ours. Folders of layers are walked.
PACKAGES = {
    "mlx.nn": "ultramarine.nn",
    "mlx.optimizers": "ultramarine.optimizers",
    "mlx.utils": "ultramarine.utils",
}
# Members of classes that are not for callers.
INNER = {"__annotations__", "__dict__", "__doc__", "__module__", "__weakref__"}


def modules() -> list[str]:
    """Names of mlx's modules."""
    names = list(PACKAGES)
    for package in (mlx_nn, mlx_optimizers):
        found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        names += [info.name for info in found]
    return sorted(n for n in names if not any(part.startswith("_") for part in n.split(".")))


def ours(name: str) -> str:
    """The name of our module that stands for one of mlx's."""
    top = ".".join(name.split(".")[:2])
    return PACKAGES[top] + name.removeprefix(top)


MODULES = modules()


def public(module: ModuleType) -> list[str]:
    """Names that a module defines, or that a package exports of its modules, without what it imports for itself."""
    inside = f"{module.__name__}." if hasattr(module, "__path__") else "no module"
    names = []
    for name, value in vars(module).items():
        home = getattr(value, "__module__", None) or ""
        if not name.startswith("_") and (home == module.__name__ or home.startswith(inside)):
            names.append(name)
    return sorted(names)


def parameters(thing: Any) -> list[tuple[str, str, str]] | None:
    """Name, kind and default of each parameter; None for what has no signature."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return None
    return [(p.name, p.kind.name, shown(p.default)) for p in signature.parameters.values()]


def shown(default: Any) -> str:
    """A default as text: functions and dtypes by what they are."""
    if default is inspect.Parameter.empty:
        return ""
    if inspect.isfunction(default):
        return "a function"
    if type(default).__name__ == "Dtype":
        return str(default).rsplit(".", 1)[-1]
    return repr(default)


def members(cls: type) -> dict[str, Any]:
    """Methods and properties that a class has beyond those of `object` and `dict`, private ones without mlx's own helpers."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ != "builtins":
            found.update(vars(base))
    special = ("__call__", "__init__", "__getattr__", "__setattr__", "__delattr__", "__repr__")
    return {
        name: value
        for name, value in found.items()
        if name not in INNER and (not name.startswith("_") or name in special)
    }


def kind(member: Any) -> str:
    for of, name in ((staticmethod, "static"), (classmethod, "class"), (property, "property")):
        if isinstance(member, of):
            return name
    return "function" if callable(member) else "value"


def of_method(cls: type, name: str) -> list[tuple[str, str, str]] | None:
    """The parameters of a method, without that for the object itself."""
    found = parameters(getattr(cls, name))
    bound = not isinstance(inspect.getattr_static(cls, name), (staticmethod, classmethod))
    return found[1:] if found and bound else found


# Parameters of a method that hands them on to the base class. Ours is the base class's method, or names them.
ANY = [("args", "VAR_POSITIONAL", ""), ("kwargs", "VAR_KEYWORD", "")]


NAMES = [(name, member) for name in MODULES for member in public(importlib.import_module(name))]


def test_there_are_names() -> None:
    """The walk finds what is known to be there."""
    assert len(MODULES) > 20 and len(NAMES) > 250
    for known in [
        ("mlx.nn", "Linear"),
        ("mlx.nn.layers.distributed", "shard_linear"),
        ("mlx.nn.losses", "cross_entropy"),
        ("mlx.nn.init", "he_normal"),
        ("mlx.optimizers", "AdamW"),
        ("mlx.utils", "tree_map"),
    ]:
        assert known in NAMES


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    importlib.import_module(ours(name))


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_name(module: str, name: str) -> None:
    theirs = getattr(importlib.import_module(module), name)
    mine = getattr(importlib.import_module(ours(module)), name)
    assert isinstance(mine, type) == isinstance(theirs, type)
    assert callable(mine) == callable(theirs)
    assert parameters(mine) == parameters(theirs)
    if not isinstance(theirs, type):
        return
    assert [b.__name__ for b in theirs.__mro__ if b.__module__ == "builtins"] == [
        b.__name__ for b in mine.__mro__ if b.__module__ == "builtins"
    ]
    have = members(mine)
    for member, value in members(theirs).items():
        assert member in have, f"no {name}.{member}"
        assert kind(have[member]) == kind(value), member
        if kind(value) in ("static", "class", "function"):
            want = of_method(theirs, member)
            assert want == ANY or of_method(mine, member) == want, member


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_bases(module: str, name: str) -> None:
    """A class is a subclass of those that it is a subclass of in mlx, such as Module and Optimizer."""
    theirs = getattr(importlib.import_module(module), name)
    mine = getattr(importlib.import_module(ours(module)), name)
    if isinstance(theirs, type):
        bases = {b.__name__ for b in theirs.__mro__ if not b.__name__.startswith("_")}
        assert bases <= {b.__name__ for b in mine.__mro__}


def test_modules_are_reached_as_attributes() -> None:
    """`import mlx.nn as nn` gives `nn.layers`, `nn.losses` and so on."""
    for name in MODULES:
        if "layers." in name:
            continue
        theirs, mine = importlib.import_module(name), importlib.import_module(ours(name))
        missing = [
            member
            for member, value in vars(theirs).items()
            if isinstance(value, ModuleType)
            and value.__name__.startswith("mlx.")
            and value.__name__ != "mlx.core"
            and not member.startswith("_")
            and not hasattr(mine, member)
        ]
        assert not missing, name


def test_defaults_are_dtypes_of_ours() -> None:
    assert (
        shown(mx.float32) == "float32"
        and shown(lambda: 0) == "a function"
        and shown(None) == "None"
    )
