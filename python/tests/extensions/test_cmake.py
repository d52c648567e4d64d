"""The CMake package in the wheel: an extension and a backend built with `find_package(Ultramarine)`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import extensions
from support.extensions import python

import ultramarine as mx

EXTENSION = extensions.ROOT / "examples/extensions/axpby-c"
BACKEND = extensions.ROOT / "examples/backends/minimal"
USE_EXTENSION = """
import ultramarine as mx
from ultramarine_axpby_c import axpby
assert axpby(mx.ones((2, 3)), mx.arange(3), 4.0, 2.0).tolist() == [[4, 6, 8]] * 2
"""
USE_BACKEND = """
import sys
import ultramarine as mx
backend = mx.backends.load(sys.argv[1])
assert backend.name == "minimal", backend
x = mx.copy(mx.arange(4.0), backend.devices[0])
assert (x + x).tolist() == [0, 2, 4, 6]
"""


@pytest.fixture(scope="module")
def cmake() -> str:
    pytest.importorskip("cmake")
    found = shutil.which("cmake", path=str(Path(sys.executable).parent))
    assert found is not None
    return found


def configure(cmake: str, source: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Configures a project into its folder `build`."""
    command = [
        cmake,
        f"-DUltramarine_DIR={mx.backends.cmake_dir()}",
        f"-DPython_EXECUTABLE={sys.executable}",
        *options,
        "-S",
        str(source),
        "-B",
        str(source / "build"),
    ]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def build(cmake: str, source: Path) -> None:
    configured = configure(cmake, source, "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror")
    assert configured.returncode == 0, configured.stdout
    built = subprocess.run(
        [cmake, "--build", str(source / "build")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert built.returncode == 0, built.stdout


def copied(example: Path, to: Path) -> Path:
    leave = shutil.ignore_patterns("build", "*.egg-info", "*.so", "*.out")
    return Path(shutil.copytree(example, to / example.name, ignore=leave))


def project(folder: Path, *lines: str) -> Path:
    """A project that finds the package and then does what lines say."""
    text = ["cmake_minimum_required(VERSION 3.26)", "project(tried LANGUAGES C)", *lines]
    (folder / "CMakeLists.txt").write_text("\n".join(text))
    return folder


def test_the_extension(cmake: str, tmp_path: Path) -> None:
    source = copied(EXTENSION, tmp_path)
    build(cmake, source)
    (library,) = (source / "src/ultramarine_axpby_c").glob("_native*.so")
    assert library.name == "_native.abi3.so"
    python("-c", USE_EXTENSION, path=[source / "src"])


def test_the_backend(cmake: str, tmp_path: Path) -> None:
    source = copied(BACKEND, tmp_path)
    build(cmake, source)
    library = source / "build" / "libultramarine-minimal.so"
    # A file that others may write to is not loaded.
    os.chmod(library, 0o755)
    python("-c", USE_BACKEND, str(library))


def test_the_directory() -> None:
    assert python("-m", "ultramarine", "cmake").strip() == mx.backends.cmake_dir()
    assert (Path(mx.backends.cmake_dir()) / "UltramarineConfig.cmake").is_file()


@pytest.mark.parametrize(
    ("wanted", "fits"), [("0.1", True), (mx.__version__, True), ("0.2", False), ("1.0", False)]
)
def test_the_version(cmake: str, tmp_path: Path, wanted: str, fits: bool) -> None:
    source = project(tmp_path, f"find_package(Ultramarine {wanted} REQUIRED)")
    configured = configure(cmake, source)
    assert (configured.returncode == 0) is fits, configured.stdout
    assert fits or mx.__version__ in configured.stdout


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ultramarine_add_backend(My-GPU x.c)", "no name of a backend"),
        ("ultramarine_add_backend(mine)", "has no sources"),
        ("ultramarine_add_extension(mine)", "has no sources"),
    ],
)
def test_wrong_calls(cmake: str, tmp_path: Path, line: str, message: str) -> None:
    source = project(tmp_path, "find_package(Ultramarine REQUIRED)", line)
    configured = configure(cmake, source)
    assert configured.returncode != 0
    assert message in " ".join(configured.stdout.split())
