"""Builds extensions, in C or C++, with setuptools. A `setup.py`:

    from setuptools import setup
    from ultramarine.extension import BuildExtension, Extension

    setup(
        packages=["package"],
        ext_modules=[Extension("package._native", ["native.c"])],
        cmdclass={"build_ext": BuildExtension},
    )

builds a module in one file that runs with every CPython from 3.11 on, and with every Ultramarine whose
extension contract has the same major. `pip install .` needs this package at build time. It hides installed packages from
builds, so a `setup.py` looks there by itself: `sys.path.append(sysconfig.get_path("platlib"))` before the import.
`python setup.py build_ext --inplace` builds beside the sources, for development.

The module includes `ultramarine/extension_python.h`; the guide is docs/native-arrays.md.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import setuptools
from setuptools.command.build_ext import build_ext

import ultramarine

# Older versions do not support the form of `license` in pyproject.toml, or `bdist_wheel`.
_SETUPTOOLS = 77
if int(setuptools.__version__.split(".")[0]) < _SETUPTOOLS:
    raise ImportError(
        f"setuptools {_SETUPTOOLS} or later is needed to build extensions, but {setuptools.__version__} is installed. "
        "Run pip install --upgrade setuptools."
    )

__all__ = ["BuildExtension", "Extension"]

# The oldest CPython that this package supports, in the forms for `Py_LIMITED_API` and for wheel
# tags.
_LIMITED_API = "0x030B0000"
_TAG = "cp311"

_CXX = (".cc", ".cpp", ".cxx", ".c++")


class Extension(setuptools.Extension):
    """An extension module, compiled against Ultramarine's headers.

    Args:
        name (str): The module's full name, as in `setuptools.Extension`.
        sources (list): Its files, in C (`.c`) or C++ (`.cpp`, `.cc`, `.cxx`).
        py_limited_api (bool): Whether it keeps to Python's limited API of CPython 3.11, so that one file
            serves all later versions.
        c_std (str): The standard of C sources.
        cxx_std (str): The standard of C++ sources.
        **options (Any): Further arguments of `setuptools.Extension`.

    Example:
        >>> from ultramarine.extension import Extension
        >>> Extension("package._native", ["native.c"]).name
        'package._native'
    """

    def __init__(
        self,
        name: str,
        sources: list[str],
        *,
        py_limited_api: bool = True,
        c_std: str = "c11",
        cxx_std: str = "c++11",
        **options: Any,
    ) -> None:
        include = ultramarine.get_include()
        options["include_dirs"] = [*options.get("include_dirs", ()), include]
        # List the headers as dependencies, so that a change of them triggers a rebuild.
        headers = sorted(str(h) for h in Path(include).glob("**/*.h*"))
        options["depends"] = [*options.get("depends", ()), *headers]
        if py_limited_api:
            macros = options.get("define_macros") or []
            options["define_macros"] = [*macros, ("Py_LIMITED_API", _LIMITED_API)]
        super().__init__(name, sources, py_limited_api=py_limited_api, **options)
        self.c_std = c_std
        self.cxx_std = cxx_std


class BuildExtension(build_ext):
    """The command `build_ext`, for setup's `cmdclass`.

    It compiles each source by its language's standard, optimised, with all symbols hidden but the module's entry. The
    wheel is named after the limited API if all its modules keep to that.

    Example:
        >>> from ultramarine.extension import BuildExtension
        >>> commands = {"build_ext": BuildExtension}
    """

    def finalize_options(self) -> None:
        """As in setuptools."""
        super().finalize_options()
        modules = self.distribution.ext_modules or []
        wheel = self.distribution.command_obj.get("bdist_wheel")
        limited = all(getattr(m, "py_limited_api", False) for m in modules)
        if wheel is not None and modules and limited and not wheel.py_limited_api:
            wheel.py_limited_api = _TAG

    def build_extension(self, ext: setuptools.Extension) -> None:
        """Builds one module."""
        if self.compiler.compiler_type == "unix" and isinstance(ext, Extension):
            with _Flags(self.compiler, ext):
                super().build_extension(ext)
        else:
            super().build_extension(ext)


class _Flags:
    """While it lasts, a compiler gets flags by the language of each source, before the module's own flags."""

    def __init__(self, compiler: Any, ext: Extension) -> None:
        self.compiler = compiler
        self.ext = ext

    def __enter__(self) -> None:
        compile_one = self.compiler._compile

        def compile_with(
            obj: str, src: str, ext: str, cc_args: Any, extra_postargs: Any, pp_opts: Any
        ) -> None:
            standard = self.ext.cxx_std if src.endswith(_CXX) else self.ext.c_std
            flags = [f"-std={standard}", "-O3", "-fvisibility=hidden"]
            compile_one(obj, src, ext, cc_args, [*flags, *(extra_postargs or [])], pp_opts)

        self.compiler._compile = compile_with

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del self.compiler._compile
