"""Builds the backend's library into the package, and names the wheel after the platform."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import setuptools

if tuple(map(int, setuptools.__version__.split(".")[:2])) < (77, 0):
    raise SystemExit(
        f"setuptools 77 or later builds this package, here is {setuptools.__version__}: "
        "run pip install --upgrade setuptools"
    )

from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

# pip hides the installed packages from a build: Ultramarine's headers are taken from there all the same.
sys.path.append(sysconfig.get_path("platlib"))
try:
    import ultramarine
except ImportError as error:
    raise SystemExit(f"install ultramarine first, its headers are needed: {error}") from None

SOURCE = Path(__file__).resolve().parents[1] / "minimal/minimal.c"


class Build(build_py):
    """The Python files, and the library."""

    def run(self) -> None:
        super().run()
        directory = Path(self.build_lib, "ultramarine_minimal", "backends")
        directory.mkdir(parents=True, exist_ok=True)
        library = directory / "libultramarine-minimal.so"
        compiler = os.environ.get("CC", "cc")
        flags = ["-std=c11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"]
        headers = ["-I", str(ultramarine.backends.include_dir())]
        subprocess.run(
            [compiler, *flags, *headers, "-o", str(library), str(SOURCE), "-lm"], check=True
        )


class Wheel(bdist_wheel):
    """A wheel for any Python on this platform: the library knows nothing of Python."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setuptools.setup(cmdclass={"build_py": Build, "bdist_wheel": Wheel})
