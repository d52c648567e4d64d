"""Builds the package's module from one C file, against Ultramarine's headers."""

from setuptools import setup

from ultramarine.extension import BuildExtension, Extension

setup(
    ext_modules=[
        Extension("ultramarine_axpby_c._native", ["axpby.c"], depends=["halves.h", "kernels.h"])
    ],
    cmdclass={"build_ext": BuildExtension},
)
