"""The wheel of a backend, or of a program, that is a crate of this repository: puts the binary into the package, and names the
wheel after the platform. A backend's `setup.py` calls `build`, a program's `build_program`.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parents[2]
# The name of a library `x`, by platform.
FORMS = {"win32": "{}.dll", "linux": "lib{}.so", "darwin": "lib{}.dylib"}


def build(crate: str, backends: dict[str, str]) -> None:
    """Builds the package of a crate. `backends` has the declared name of its backend by platform.

    The library is the one that the environment names (`ULTRAMARINE_CUDA_LIBRARY` for `ultramarine-cuda`), or is built here
    by cargo.
    """
    if sys.platform not in backends:
        raise SystemExit(f"{crate} is for {', '.join(backends)}, not for {sys.platform}")
    form = FORMS[sys.platform]
    name = form.format(f"ultramarine-{backends[sys.platform]}")
    package(
        crate,
        f"{variable(crate)}_LIBRARY",
        form.format(crate.replace("-", "_")),
        f"backends/{name}",
    )


def build_program(crate: str) -> None:
    """Builds the package of a crate's program, which goes into the directory `bin` of the package. The program is the one that
    the environment names (`ULTRAMARINE_CONFORM_PROGRAM` for `ultramarine-conform`), or is built here by cargo."""
    name = f"{crate}.exe" if sys.platform == "win32" else crate
    package(crate, f"{variable(crate)}_PROGRAM", name, f"bin/{name}")


def variable(crate: str) -> str:
    """The beginning of the names of a crate's environment variables."""
    return crate.replace("-", "_").upper()


def package(crate: str, given: str, built: str, place: str) -> None:
    """Builds a package with a file of a crate at `place`: what the environment variable `given` names, or what cargo puts at
    `built`."""
    module = crate.replace("-", "_")

    def binary() -> Path:
        if path := os.environ.get(given):
            return Path(path)
        command = ["cargo", "build", "--release", "--quiet", "-p", crate]
        subprocess.run(command, cwd=ROOT, check=True)
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        return target / "release" / built

    class Build(build_py):
        """The Python files, and the binary under the name that it is looked for."""

        def run(self) -> None:
            super().run()
            to = Path(self.build_lib, module, place)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(binary(), to)
            if sys.platform == "linux" and shutil.which("strip"):
                subprocess.run(["strip", "--strip-unneeded", str(to)], check=True)

    class Wheel(bdist_wheel):
        """A wheel for any Python on this platform: the binary knows nothing of Python."""

        def finalize_options(self) -> None:
            super().finalize_options()
            self.root_is_pure = False

        def get_tag(self) -> tuple[str, str, str]:
            return "py3", "none", platform(super().get_tag()[2], binary())

    setup(cmdclass={"build_py": Build, "bdist_wheel": Wheel})


def platform(plain: str, library: Path) -> str:
    """The tag of systems whose C library has all versions of functions that the library asks for (PEP 600). It needs
    nothing else but the compiler's own runtime."""
    asked = re.findall(rb"GLIBC_2\.(\d+)", library.read_bytes())
    if not plain.startswith("linux_") or not asked:
        return plain
    return plain.replace("linux_", f"manylinux_2_{max(map(int, asked))}_", 1)
