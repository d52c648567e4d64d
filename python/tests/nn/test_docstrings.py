"""Docstrings of ultramarine.nn and ultramarine.utils: everything public has one, in order, and examples run."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest
from surface.documented import doc_of, failures
from surface.documented import documented as documented_anywhere

from ultramarine import nn

MODULES = ["ultramarine.utils", "ultramarine.nn"] + [
    info.name for info in pkgutil.walk_packages(nn.__path__, "ultramarine.nn.")
]


def documented(name: str) -> Iterator[tuple[str, Any]]:
    """A module, and the public functions, classes, methods and properties that it defines."""
    module = importlib.import_module(name)
    yield name, module
    for key, value in vars(module).items():
        if key.startswith("_") or getattr(value, "__module__", "") != name:
            continue
        if isinstance(value, type) or inspect.isfunction(value):
            yield f"{name}.{key}", value
        for member, method in vars(value).items() if isinstance(value, type) else ():
            method_or_property = (property, classmethod, staticmethod)
            if not member.startswith("_") and (
                callable(method) or isinstance(method, method_or_property)
            ):
                yield f"{name}.{key}.{member}", method


ALL = dict(pair for name in MODULES for pair in documented(name))


@pytest.mark.parametrize("name", ALL)
def test_docstring(name: str) -> None:
    doc = inspect.cleandoc(ALL[name].__doc__ or "")
    assert doc, "no docstring"
    assert not re.match(r"(What|Whether|Which|That|Who|How)\b", doc)
    sections = re.findall(r"^((?!References)\w+):$", doc, re.MULTILINE)
    order = ["Attributes", "Args", "Returns", "Raises", "Example"]
    assert sections == [s for s in order if s in sections]


# Of things that surface/test_examples.py does not see.
SEEN = {id(value) for _, value, _ in documented_anywhere()}


@pytest.mark.parametrize(
    "name",
    [n for n, value in ALL.items() if ">>>" in (value.__doc__ or "") and id(value) not in SEEN],
)
def test_example(name: str) -> None:
    said = failures(name, doc_of(ALL[name]))
    assert not said, said
