"""The package as such: its stubs, its version, its place in a process."""

import importlib.metadata
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import ultramarine_axpby
from ultramarine_axpby import axpby


def test_stubs_lie_beside_the_code():
    folder = Path(ultramarine_axpby.__file__).parent
    assert (folder / "py.typed").exists()
    assert "def axpby(" in (folder / "_native.pyi").read_text()


def test_the_signature_is_what_the_stub_says():
    parameters = inspect.signature(axpby).parameters
    assert list(parameters) == ["x", "y", "alpha", "beta", "stream"]
    assert parameters["stream"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["stream"].default is None
    assert axpby.__doc__.startswith("alpha * x + beta * y")


def test_the_version_is_that_of_the_package():
    assert ultramarine_axpby.__version__ == importlib.metadata.version("ultramarine-axpby")


def test_it_may_be_imported_before_ultramarine():
    text = "from ultramarine_axpby import axpby; import ultramarine as um; print(axpby(1.0, 2.0, 3.0, 4.0).item())"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "11.0\n"


def test_types_are_seen_by_checkers(tmp_path):
    pytest.importorskip("mypy")
    lines = [
        "import ultramarine as um",
        "from ultramarine_axpby import axpby",
        "x: um.array = axpby(um.ones((3,)), 1.0, 4.0, 2.0, stream=um.cpu)",
        "y: int = axpby(x, x, 1.0, 1.0)",
    ]
    (tmp_path / "typed.py").write_text("\n".join(lines))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "typed.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("typed.py:4: error: Incompatible types"), done.stdout
    assert "Found 1 error" in done.stdout
