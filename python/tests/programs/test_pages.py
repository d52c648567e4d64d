"""The pages for newcomers are true: their programs run, and both columns of their tables compute the same."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from support.paths import DOCS, ROOT

import ultramarine as mx
from ultramarine import nn

PROGRAMS = [
    ROOT / "README.md",
    *(
        DOCS / f"{name}.md"
        for name in (
            "quick-start",
            "concepts",
            "gpus",
            "coming-from-numpy",
            "coming-from-pytorch",
            "coming-from-jax",
            "differences",
            "index",
        )
    ),
]
TABLES = {"numpy": "numpy", "pytorch": "torch", "jax": "jax"}
NEEDED = os.environ.get("ULTRAMARINE_NEEDS_PEERS") == "1"

X = np.array([[1.5, -2.0, 0.25, 3.0], [-1.0, 0.5, 2.0, -0.75], [4.0, -3.5, 1.0, 0.125]], "float32")
Y = np.array([[0.5, 1.0, -1.5, 2.0], [2.5, -0.5, 0.75, 1.25], [-2.0, 3.0, 0.0, -1.0]], "float32")


def blocks(page: Path) -> list[tuple[int, str]]:
    """The blocks of Python, each with the number of lines before it."""
    text = page.read_text()
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, block.start(1)), block[1]) for block in found]


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: page.stem)
def test_program(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks in one namespace, from top to bottom, as a reader would."""
    monkeypatch.chdir(tmp_path)
    device = mx.default_device()
    mx.random.seed(0)
    names: dict[str, object] = {}
    found = blocks(page)
    assert found, "no block of Python"
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for line, block in found:
                exec(compile("\n" * line + block, str(page), "exec"), names)
    finally:
        mx.set_default_device(device)
    if page.name == "README.md":
        assert printed.getvalue() == "array([1, -2, 3], dtype=float32)\n"


def rows(name: str) -> list[tuple[str, str]]:
    """The pairs of calls in a page's first table."""
    section = (DOCS / f"coming-from-{name}.md").read_text().partition("## The same call")[2]
    return re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", section.partition("\n## ")[0], re.MULTILINE)


def peer(name: str) -> tuple[ModuleType, dict[str, Any]]:
    """A library, and the names that its calls use."""
    if name == "numpy":
        return np, {"np": np, "x": X, "y": Y, "i": np.array([2, 0])}
    if NEEDED:
        __import__(TABLES[name])
    module = pytest.importorskip(TABLES[name])
    if name == "pytorch":
        x, y, i = (module.from_numpy(v.copy()) for v in (X, Y, np.array([2, 0])))
        return module, {"torch": module, "x": x, "y": y, "i": i}
    jnp = __import__("jax.numpy").numpy
    arrays = {"x": jnp.array(X), "y": jnp.array(Y), "i": jnp.array([2, 0])}
    return module, {"jax": module, "jnp": jnp, **arrays}


@pytest.mark.parametrize(
    ("name", "theirs", "ours"), [(name, *row) for name in TABLES for row in rows(name)]
)
def test_row(name: str, theirs: str, ours: str) -> None:
    _, names = peer(name)
    wanted = np.asarray(eval(theirs, names))
    arrays = {"x": mx.array(X), "y": mx.array(Y), "i": mx.array([2, 0])}
    got = np.asarray(eval(ours, {"mx": mx, "nn": nn, **arrays}))
    assert got.shape == wanted.shape
    assert np.allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_tables_are_found() -> None:
    assert all(len(rows(name)) > 15 for name in TABLES)


def test_charts_are_those_of_the_last_runs() -> None:
    command = [sys.executable, "-m", "bench.chart", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")
