"""Extension modules made for tests with the C and C++ compilers, without any build system."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

import ultramarine as mx
from support.paths import ROOT, TESTS

SOURCES = TESTS / "extensions" / "sources"


def build(directory: Path, source: str, *flags: str, name: str = "") -> Path:
    """The module of a source in `extensions/sources/`, as a file that any CPython from 3.11 on can import."""
    python = Path(sysconfig.get_path("include"))
    if not (python / "Python.h").is_file():
        pytest.skip("Python's headers are not installed")
    path = SOURCES / source
    module = directory / f"{name or path.stem}.abi3.so"
    compiler = ["cc", "-std=c11"] if path.suffix == ".c" else ["c++", "-std=c++11"]
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
    how = ["-O1", "-g", "-shared", "-fPIC", "-fvisibility=hidden", "-DPy_LIMITED_API=0x030B0000"]
    folders = [f"-I{mx.get_include()}", f"-I{python}"]
    command = [*compiler, *warnings, *how, *folders, *flags, "-o", str(module), str(path)]
    subprocess.run(command, check=True)
    return module


def load(path: Path) -> ModuleType:
    """Imports a module from its file."""
    spec = importlib.util.spec_from_file_location(path.name.partition(".")[0], path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python(
    *arguments: str, path: Sequence[Path] = (), cwd: Path | None = None, **environment: str
) -> str:
    """What an interpreter of its own prints, that finds modules in these folders first, and then as this one."""
    found = [*map(str, path), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(found), **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cargo(directory: Path, source: str) -> Path:
    """The same, of a crate in `extensions/sources/`. What it is compiled of is kept for the next time."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    target = ROOT / "target/extensions"
    manifest = SOURCES / source / "Cargo.toml"
    command = ["cargo", "build", "--quiet", "--release", f"--manifest-path={manifest}"]
    environment = {**os.environ, "PYO3_PYTHON": sys.executable, "CARGO_TARGET_DIR": str(target)}
    subprocess.run(command, check=True, env=environment)
    module = directory / f"{source}.abi3.so"
    shutil.copy(target / "release" / f"lib{source}.so", module)
    return module
