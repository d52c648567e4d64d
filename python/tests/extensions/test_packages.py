"""Extensions as packages: how they are built, and which Ultramarine they load into."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support import extensions
from support.extensions import python

import ultramarine as mx

AXPBY = extensions.ROOT / "examples/extensions/axpby-c"
HEADERS = ["extension.h", "extension_python.h", "backend.h", "dlpack.h"]
USE = """
import ultramarine as mx
from ultramarine_axpby_c import axpby
assert axpby(mx.ones((2, 3)), mx.arange(3), 4.0, 2.0).tolist() == [[4, 6, 8]] * 2
assert mx.grad(lambda x: axpby(x, x, 4.0, 2.0).sum())(mx.ones(2)).tolist() == [6, 6]
print(mx.__file__)
"""


def pip(*arguments: str) -> None:
    python("-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy: what a build leaves beside the sources is not ours to leave."""
    pytest.importorskip("setuptools")
    copy = tmp_path_factory.mktemp("source") / "axpby"
    leave = shutil.ignore_patterns("build", "*.egg-info", "*.so")
    shutil.copytree(AXPBY, copy, ignore=leave)
    return copy


@pytest.fixture(scope="module")
def installed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the example is installed from its wheel."""
    wheels, site = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("site")
    alone = ["--no-deps", "--no-index"]
    pip("wheel", *alone, "--no-build-isolation", "--wheel-dir", str(wheels), str(source))
    (wheel,) = wheels.glob("*.whl")
    assert wheel.name.startswith("ultramarine_axpby_c-0.1.0-cp311-abi3-")
    pip("install", *alone, "--target", str(site), str(wheel))
    return site


def test_headers() -> None:
    folder = Path(mx.get_include(), "ultramarine")
    assert [h for h in HEADERS if not (folder / h).is_file()] == []
    assert mx.get_include() == mx.backends.include_dir()
    assert python("-m", "ultramarine", "include").strip() == mx.get_include()


def test_setuptools_is_imported_by_builds_only() -> None:
    printed = python("-c", "import sys, ultramarine; print('setuptools' in sys.modules)")
    assert printed.strip() == "False"


def test_the_wheel(installed: Path) -> None:
    package = installed / "ultramarine_axpby_c"
    assert {"py.typed", "_native.pyi", "__init__.py"} <= {f.name for f in package.iterdir()}
    python("-c", USE, path=[installed])
    (library,) = package.glob("_native*.so")
    assert library.name == "_native.abi3.so"
    if shutil.which("nm"):
        listed = subprocess.run(
            ["nm", "-D", "--defined-only", str(library)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert [line.split()[-1] for line in listed.stdout.splitlines()] == ["PyInit__native"]
        linked = subprocess.run(
            ["nm", "-D", "--undefined-only", str(library)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert "ultramarine" not in linked.stdout, "nothing of the host is linked"


def test_in_place(source: Path) -> None:
    python("setup.py", "--quiet", "build_ext", "--inplace", cwd=source)
    assert (source / "src/ultramarine_axpby_c/_native.abi3.so").is_file()
    python("-c", USE, path=[source / "src"])


def test_each_language_has_its_flags(tmp_path: Path) -> None:
    """A module of a C and a C++ source, each with its own standard."""
    pytest.importorskip("setuptools")
    (tmp_path / "one.c").write_text(
        """
        #include <ultramarine/extension_python.h>
        _Static_assert(__STDC_VERSION__ >= 201112L, "C11");
        extern long standard(void);
        static PyObject *cpp_standard(PyObject *self, PyObject *none) {
          (void)self, (void)none;
          return PyLong_FromLong(um_import() == NULL ? 0 : standard());
        }
        static PyMethodDef methods[] = {{"standard", cpp_standard, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
        static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "mixed", NULL, 0, methods, NULL, NULL, NULL, NULL};
        PyMODINIT_FUNC PyInit_mixed(void) { return PyModuleDef_Init(&definition); }
        """
    )
    (tmp_path / "two.cpp").write_text(
        """
        #include <ultramarine/extension_python.h>
        #include <stdexcept>
        extern "C" long standard() { return um_import() == nullptr ? 0 : __cplusplus; }
        """
    )
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\n"
        "from ultramarine.extension import BuildExtension, Extension\n"
        "mixed = Extension('mixed', ['one.c', 'two.cpp'], cxx_std='c++17', extra_compile_args=['-Werror'])\n"
        "setup(name='mixed', ext_modules=[mixed], cmdclass={'build_ext': BuildExtension})\n"
    )
    python("setup.py", "--quiet", "build_ext", "--inplace", cwd=tmp_path)
    assert (
        python("-c", "import mixed; print(mixed.standard())", path=[tmp_path]).strip() == "201703"
    )


def test_another_build_of_ultramarine(installed: Path) -> None:
    """One binary of the extension, built once, in two builds of Ultramarine."""
    other = os.environ.get("ULTRAMARINE_OTHER_BUILD")
    if not other:
        pytest.skip("ULTRAMARINE_OTHER_BUILD names no folder (`cargo xtask test` makes one)")
    (core,) = Path(other, "ultramarine").glob("_core*.so")
    (own,) = Path(mx.__file__ or "").parent.glob("_core*.so")
    assert core.read_bytes() != own.read_bytes(), "the builds are different"
    before = next(installed.rglob("_native*.so")).read_bytes()
    places = {
        python("-c", USE, path=path).strip() for path in ([installed], [Path(other), installed])
    }
    assert len(places) == 2 and any(p.startswith(other) for p in places)
    assert next(installed.rglob("_native*.so")).read_bytes() == before


@pytest.mark.parametrize(
    "major,minor,less,text",
    [
        (2, 0, 0, r"version 1\.2.*has version 2\.0.*rebuild"),
        (0, 7, 0, r"version 1\.2.*has version 0\.7.*rebuild"),
        (1, 0, 8, r"version 1\.2.*9\.9\.9.*lacks a part"),
    ],
)
def test_another_contract_is_refused(
    installed: Path, tmp_path: Path, major: int, minor: int, less: int, text: str
) -> None:
    """A host with another major is made up: a module that offers such a table in Ultramarine's place."""
    extensions.build(tmp_path, "other_major.c")
    script = f"""
import re
import ultramarine, other_major
ultramarine._C_API = other_major.capsule({major}, {minor}, {less})
try:
    import ultramarine_axpby_c
except ImportError as error:
    assert re.search({text!r}, str(error)), error
else:
    raise AssertionError("was imported")
ultramarine._C_API = ultramarine._core._C_API
from ultramarine_axpby_c import axpby
assert axpby(1.0, 2.0, 1.0, 1.0).item() == 3
"""
    python("-c", script, path=[tmp_path, installed])


def test_without_ultramarine(installed: Path) -> None:
    """No capsule, no crash."""
    script = """
import sys, types
sys.modules["ultramarine"] = types.ModuleType("ultramarine")
try:
    import ultramarine_axpby_c
except (ImportError, AttributeError) as error:
    assert "_C_API" in str(error)
else:
    raise AssertionError("was imported")
"""
    python("-c", script, path=[installed])
