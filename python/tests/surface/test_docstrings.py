"""Docstrings: everything public has one, in order, and what is shared reads the same everywhere."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from types import GetSetDescriptorType, ModuleType
from typing import Any

import pytest

from .test_stubs import MODULES, public

STREAM = "Stream or device to run on; by default the inputs' accelerator, else the default device."


def documented(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Functions and classes of a module, and their methods and properties."""
    for name in sorted(public(module)):
        value = getattr(module, name)
        if not isinstance(value, type) and not inspect.isroutine(value):
            continue
        yield name, value
        if not isinstance(value, type) or issubclass(value, Exception):
            continue
        for member, method in sorted(vars(value).items()):
            own = callable(method) or isinstance(method, GetSetDescriptorType)
            if own and not member.startswith("_") and not isinstance(method, value):
                yield f"{name}.{member}", method


ALL = [
    pytest.param(value, id=f"{name.removeprefix('ultramarine').lstrip('.')}:{member}")
    for name in MODULES
    for member, value in documented(importlib.import_module(name))
]


@pytest.mark.parametrize("value", ALL)
def test_docstring(value: Any) -> None:
    doc = (value.__doc__ or "").strip()
    assert doc, "no docstring"
    assert not re.match(r"(What|Whether|Which|That|Who|How)\b", doc)
    sections = re.findall(r"^(\w+):$", doc, re.MULTILINE)
    order = ["Attributes", "Args", "Returns", "Raises", "Example"]
    assert sections == [s for s in order if s in sections]
    described = re.findall(
        r"^ +stream \(StreamOrDevice\): (.*?)(?=^$| +\w+ \(|\Z)", doc, re.M | re.S
    )
    assert {" ".join(text.split()) for text in described} <= {STREAM}
