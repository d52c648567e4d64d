"""The type stubs are those of the module: names, signatures, docstrings."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import make_stubs
import pytest

import ultramarine as mx

MODULES = [
    "ultramarine",
    "ultramarine.fast",
    "ultramarine.fft",
    "ultramarine.linalg",
    "ultramarine.random",
    "ultramarine.backends",
    "ultramarine.cuda",
    "ultramarine.distributed",
    "ultramarine.metal",
]


def stub_of(module: ModuleType) -> set[str]:
    package = Path(mx.__file__ or "").parent
    name = module.__name__.removeprefix("ultramarine").lstrip(".")
    candidates = [package / (name or "__init__"), package / name / "__init__"]
    path = next(c.with_suffix(".pyi") for c in candidates if c.with_suffix(".pyi").is_file())
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names.update(t.id for t in node.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            names.update(a.asname for a in node.names if a.asname == a.name)
    return names


def public(module: ModuleType) -> set[str]:
    return {
        n
        for n in dir(module)
        if not n.startswith("_") and not isinstance(getattr(module, n), ModuleType)
    }


@pytest.mark.parametrize("name", MODULES)
def test_stubs_and_module_agree(name: str) -> None:
    module = importlib.import_module(name)
    stub = {n for n in stub_of(module) if not n.startswith("_")}
    have = public(module)
    assert have - stub == set(), "without a stub"
    modules = {n for n in stub if isinstance(getattr(module, n, None), ModuleType)}
    only_types = modules | {n for n in stub - have if n[0].isupper() or n == "scalar"}
    assert stub - have - only_types == set(), "a stub without the thing"


def test_stubs_are_fresh() -> None:
    assert make_stubs.stale() == [], "run python/tools/make_stubs.py: see CONTRIBUTING.md"


def test_stub_that_is_written_by_hand() -> None:
    """Names, parameters, their kinds and defaults, in both directions. The other stubs are made from
    the module."""
    command = [sys.executable, "-m", "mypy.stubtest", "ultramarine.backends"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_typed() -> None:
    assert (Path(mx.__file__ or "").parent / "py.typed").is_file()
