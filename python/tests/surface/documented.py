"""Public functions, classes and methods of the package, and their examples."""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Iterator
from types import GetSetDescriptorType, ModuleType
from typing import Any

import ultramarine as mx
from ultramarine import nn

# Modules whose public names have documentation, arguments and an example.
MODULES = [
    "ultramarine",
    "ultramarine.backends",
    "ultramarine.cuda",
    "ultramarine.distributed",
    "ultramarine.extension",
    "ultramarine.fast",
    "ultramarine.fft",
    "ultramarine.linalg",
    "ultramarine.metal",
    "ultramarine.nn",
    "ultramarine.nn.checkpoints",
    "ultramarine.nn.init",
    "ultramarine.nn.layers.distributed",
    "ultramarine.nn.losses",
    "ultramarine.optimizers",
    "ultramarine.random",
    "ultramarine.utils",
]

_PROPERTIES = (property, GetSetDescriptorType)
_METHODS = (classmethod, staticmethod)


def public(module: ModuleType) -> Iterator[str]:
    """The names of a module's own functions and classes."""
    for name in getattr(module, "__all__", None) or sorted(vars(module)):
        value = getattr(module, name)
        origin = getattr(value, "__module__", None) or ""
        ours = isinstance(value, type) or inspect.isroutine(value)
        if ours and not name.startswith("_") and origin.startswith("ultramarine"):
            yield name


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class defines."""
    for name, value in sorted(vars(kind).items()):
        documented = callable(value) or isinstance(value, (*_PROPERTIES, *_METHODS))
        if documented and not name.startswith("_") and not isinstance(value, kind):
            yield name, value


def is_property(value: Any) -> bool:
    """Returns True for a property of a class, in Python or in Rust."""
    return isinstance(value, _PROPERTIES)


def overrides(kind: type, name: str) -> bool:
    """Returns True for a method that a public base class documents."""
    bases = (base for base in kind.__mro__[1:] if base.__module__.startswith("ultramarine"))
    return any(name in vars(base) for base in bases)


def documented() -> Iterator[tuple[str, Any, bool]]:
    """Each public thing once: its name, itself, and True if its docstring may rest on a base class."""
    seen: set[int] = set()
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        short = module_name.removeprefix("ultramarine").lstrip(".")
        for name in public(module):
            value = getattr(module, name)
            if id(value) in seen:
                continue
            seen.add(id(value))
            path = f"{short}.{name}".lstrip(".")
            yield path, value, False
            if isinstance(value, type) and not issubclass(value, Exception):
                for member, method in members(value):
                    yield f"{path}.{member}", method, overrides(value, member)


def doc_of(value: Any) -> str:
    """The docstring without indentation."""
    return inspect.cleandoc(value.__doc__ or "")


def failures(name: str, doc: str) -> str:
    """Runs the example of a docstring and returns what doctest reports; empty if all is as written."""
    names = {"mx": mx, "nn": nn}
    example = doctest.DocTestParser().get_doctest(doc, names, name, None, None)
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    return "".join(said)
