"""Every public function, class and method has its arguments described and an example, and all examples run."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from surface.documented import doc_of, documented, failures, is_property

ALL = {name: (value, inherited) for name, value, inherited in documented()}

# Names without an example, each with the reason.
NO_EXAMPLE = {
    "fast.precompiled_cuda_kernel": "needs compiled code and its GPU: docs/kernels.md has one",
    "metal.clear_cache": "an old name, of which each call warns",
    "metal.get_active_memory": "an old name, of which each call warns",
    "metal.get_cache_memory": "an old name, of which each call warns",
    "metal.get_peak_memory": "an old name, of which each call warns",
    "metal.reset_peak_memory": "an old name, of which each call warns",
    "metal.set_cache_limit": "an old name, of which each call warns",
    "metal.set_memory_limit": "an old name, of which each call warns",
    "metal.set_wired_limit": "an old name, of which each call warns",
    "extension.BuildExtension.build_extension": "a step of setuptools",
    "extension.BuildExtension.finalize_options": "a step of setuptools",
}

# Examples that end the automatic loading of backends in their process, or show a setting of the process that other tests change.
ALONE = {"backends.load_all", "backends.Offer", "get_deterministic"}

EXAMPLES = [name for name, (value, _) in ALL.items() if ">>>" in doc_of(value)]


def missing(name: str) -> list[str]:
    """The parameters of a function or class that its docstring does not describe."""
    value, _ = ALL[name]
    function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return []
    described = doc_of(value).partition("\nArgs:\n")[2]
    own = [p for p in parameters if p not in ("self", "cls")]
    return [p for p in own if f" {p} (" not in described and f"*{p} (" not in described]


def test_names_are_found() -> None:
    assert len(ALL) > 700
    assert NO_EXAMPLE.keys() | ALONE <= ALL.keys()


@pytest.mark.parametrize("name", ALL)
def test_arguments_and_example(name: str) -> None:
    value, inherited = ALL[name]
    assert doc_of(value), "no docstring"
    if is_property(value) or inherited:
        return
    if not isinstance(value, type):
        assert not missing(name) or name.startswith("extension.BuildExtension.")
    assert (name in EXAMPLES) != (name in NO_EXAMPLE)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Some write files.
    monkeypatch.chdir(tmp_path)
    doc = doc_of(ALL[name][0])
    assert "+SKIP" not in doc
    if name not in ALONE:
        said = failures(name, doc)
        assert not said, said
        return
    code = f"from surface.documented import failures; print(failures({name!r}, {doc!r}), end='')"
    path = f"import sys; sys.path[:0] = {sys.path!r}; "
    done = subprocess.run(
        [sys.executable, "-c", path + code], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize(
    "doc",
    [
        ">>> mx.add(mx.array([1, 2]), 1)\narray([2, 4], dtype=int32)",
        ">>> mx.add(mx.array([1, 2]), 1)\narray([2, 3], dtype=int64)",
        ">>> mx.add(mx.array([1, 2]), 1)",
        ">>> mx.no_such_function(1)",
        ">>> x = 1\n1",
    ],
)
def test_wrong_example_fails(doc: str) -> None:
    assert failures("wrong", "Adds.\n\nExample:\n    " + doc.replace("\n", "\n    "))


def test_undescribed_argument_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(a: Any, b: Any = None, *args: Any, **options: Any) -> None:
        """Does nothing.

        Args:
            a (Any): The first.
            **options (Any): The rest.
        """

    monkeypatch.setitem(ALL, "function", (function, False))
    assert missing("function") == ["b", "args"]
