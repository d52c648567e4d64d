"""Puts the backend's library into the package, and names the wheel after the platform.

The library is the one that `ULTRAMARINE_CUDA_LIBRARY` names, or is built here by cargo.
"""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parents[3]
# What cargo makes, and what the loader looks for.
NAMES = {
    "win32": ("ultramarine_cuda.dll", "ultramarine-cuda.dll"),
    "linux": ("libultramarine_cuda.so", "libultramarine-cuda.so"),
}


@cache
def library() -> Path:
    if given := os.environ.get("ULTRAMARINE_CUDA_LIBRARY"):
        return Path(given)
    command = ["cargo", "build", "--release", "--quiet", "-p", "ultramarine-cuda"]
    subprocess.run(command, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / NAMES[sys.platform][0]


def platform(plain: str) -> str:
    """The tag of systems whose C library has all versions of functions that the library asks for (PEP 600). It needs
    nothing else but the compiler's own runtime."""
    asked = re.findall(rb"GLIBC_2\.(\d+)", library().read_bytes())
    if not plain.startswith("linux_") or not asked:
        return plain
    return plain.replace("linux_", f"manylinux_2_{max(map(int, asked))}_", 1)


class Build(build_py):
    """The Python files, and the library."""

    def run(self) -> None:
        super().run()
        directory = Path(self.build_lib, "ultramarine_cuda", "backends")
        directory.mkdir(parents=True, exist_ok=True)
        to = directory / NAMES[sys.platform][1]
        shutil.copyfile(library(), to)
        if sys.platform == "linux" and shutil.which("strip"):
            subprocess.run(["strip", "--strip-unneeded", str(to)], check=True)


class Wheel(bdist_wheel):
    """A wheel for any Python on this platform: the library knows nothing of Python."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", platform(super().get_tag()[2])


if sys.platform not in NAMES:
    raise SystemExit(f"CUDA is for Linux and Windows, not for {sys.platform}")
setup(cmdclass={"build_py": Build, "bdist_wheel": Wheel})
