"""Builds the package's module from one C file, against Ultramarine's headers."""

import sys
import sysconfig

from setuptools import setup

# pip hides the installed packages from a build: Ultramarine is taken from there all the same.
sys.path.append(sysconfig.get_path("platlib"))

from ultramarine.extension import BuildExtension, Extension

setup(
    ext_modules=[
        Extension("ultramarine_axpby_c._native", ["axpby.c"], depends=["halves.h", "kernels.h"])
    ],
    cmdclass={"build_ext": BuildExtension},
)
