"""`python -m ultramarine.as_mlx`: programs run as `python` itself runs them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import plugins

from .children import AS_MLX, output, python

FACTS = """
import sys
this = sys.modules["__main__"]
spec = __spec__ and (__spec__.name, __spec__.origin)
print(sys.argv, __name__, globals().get("__file__"), __package__, spec, repr(sys.path[0]))
print(this.__dict__ is globals(), __doc__, type(__builtins__).__name__, type(__loader__).__name__)
"""

PROGRAMS = {
    "facts.py": FACTS,
    "documented.py": '"""Text."""\n' + FACTS,
    "folder/inner.py": FACTS,
    "package/__init__.py": "print('package', __name__)",
    "package/__main__.py": FACTS,
    "package/part.py": FACTS + "\nfrom . import other\nprint(other.__name__)",
    "package/other.py": "",
    "bare/__init__.py": "",
    "broken/__init__.py": "[].nothing",
    "broken/__main__.py": "",
    "unfound/__init__.py": "import missing_one",
    "unfound/__main__.py": "",
    "archive/__main__.py": FACTS,
    "latin.py": "# coding: latin-1\nprint(len('\xe9'))",
    "wrong.py": "x = = 1",
    "raises.py": "def f():\n    return {}['missing']\n\nf()\n",
    "chained.py": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('b') from e\n",
    "group.py": "raise ExceptionGroup('all', [ValueError(1), TypeError(2)])",
    "exits.py": "import sys\nsys.exit(3)",
    "exits_with_text.py": "import sys\nsys.exit('the reason')",
    "exits_well.py": "raise SystemExit",
    "interrupted.py": "raise KeyboardInterrupt",
    "killed.py": "import os\nos._exit(7)",
    "at_exit.py": "import atexit\natexit.register(print, 'last', __name__)\n1 / 0",
    "own_hook.py": "import sys\nsys.excepthook = lambda k, v, t: print(k.__name__, v, t.tb_frame.f_code.co_name)\n"
    "1 / 0",
    "threads.py": "import sys, threading\nt = threading.Thread(target=lambda: print(threading.main_thread().name))\n"
    "t.start()\nt.join()\nprint(threading.current_thread().name)",
    "warns.py": "import warnings\nwarnings.warn('old', DeprecationWarning)\ndef f(): pass\nprint(f.__module__)",
    "pickles.py": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)",
    "annotated.py": "x: int = 1\nprint(__annotations__)",
    "imports.py": "import facts\nprint(facts.__file__)",
}

CALLS = {
    "script": ["facts.py"],
    "script with arguments": ["facts.py", "-m", "--flag", "a b", ""],
    "docstring": ["documented.py"],
    "script in a folder": ["folder/inner.py", "1"],
    "script with dots": ["folder/../facts.py"],
    "link to a script": ["link.py"],
    "module": ["-m", "facts", "-c", "1"],
    "module, joined": ["-mfacts", "1"],
    "package": ["-m", "package", "1"],
    "module in a package": ["-m", "package.part"],
    "module of the library": ["-m", "json.tool", "--help"],
    "code": ["-c", FACTS, "-m", "1"],
    "code, joined": [f"-c{FACTS}"],
    "code that is empty": ["-c", ""],
    "code that raises": ["-c", "def f(): 1 / 0\nf()"],
    "folder": ["package"],
    "archive": ["archive.zip", "1"],
    "imports its neighbour": ["imports.py"],
    "missing": ["missing.py", "1"],
    "a folder that is no program": ["bare"],
    "missing module": ["-m", "missing"],
    "missing module in nothing": ["-m", "missing.part"],
    "missing module in a package": ["-m", "package.missing"],
    "missing module in a module": ["-m", "facts.missing"],
    "package without a program": ["-m", "bare"],
    "module without code": ["-m", "sys"],
    **{name: [name] for name in PROGRAMS if "/" not in name},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs, in a folder."""
    root = tmp_path_factory.mktemp("programs")
    for name, source in PROGRAMS.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="latin-1")
    (root / "link.py").symlink_to("folder/inner.py")
    shutil.make_archive(str(root / "archive"), "zip", root / "archive")
    return root


@pytest.mark.parametrize("call", CALLS)
def test_as_python_itself(folder: Path, call: str) -> None:
    want = python(*CALLS[call], cwd=folder)
    assert python(*AS_MLX, *CALLS[call], cwd=folder) == want


def test_standard_input(folder: Path) -> None:
    want = python("-", "1", cwd=folder, text=FACTS)
    assert want.status == 0
    assert python(*AS_MLX, "-", "1", cwd=folder, text=FACTS) == want


@pytest.mark.parametrize("call", ["script", "module", "code"])
def test_safe_path(folder: Path, call: str) -> None:
    """The program's folder is left out, where Python was asked to."""
    environment = {"PYTHONSAFEPATH": "1"}
    want = python(*CALLS[call], cwd=folder, **environment)
    assert python(*AS_MLX, *CALLS[call], cwd=folder, **environment) == want


@pytest.mark.parametrize("package", ["broken", "broken.part", "unfound", "unfound.__main__"])
def test_package_that_raises(folder: Path, package: str) -> None:
    """Frames of the import system are left out, too, which Python's own traceback begins with."""
    want = python("-m", package, cwd=folder)
    ended = python(*AS_MLX, "-m", package, cwd=folder)
    assert ended.status == want.status == 1
    lines = [line for line in want.err.splitlines() if "<frozen " not in line]
    assert ended.err.splitlines() == lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "usage: python -m ultramarine.as_mlx"),
        (["-m"], "Argument expected for the -m option"),
        (["-c"], "Argument expected for the -c option"),
        (["-O", "x.py"], "Unknown option: -O"),
        (["--version"], "Unknown option: --version"),
        (["--device"], "'' is not a device"),
        (["--device", "tpu", "x.py"], "--device tpu: 'tpu' is not a device. Use cpu, gpu, or one"),
        (["--device=gpu:", "x.py"], "'gpu:' is not a device"),
        (["--device=gpu:1", "x.py"], "No backend is loaded for device gpu:1"),
        (["--device=cpu"], "usage: python -m ultramarine.as_mlx"),
    ],
)
def test_wrong_calls(arguments: list[str], message: str) -> None:
    ended = python(*AS_MLX, *arguments, ULTRAMARINE_BACKEND_AUTOLOAD="0")
    assert (ended.status, ended.out) == (2, "")
    assert message in ended.err


def test_help() -> None:
    assert "as with `python` itself" in output(*AS_MLX, "--help")


DEVICES = """
import multiprocessing
import sys
import mlx.core as mx

def work(n):
    return mx.default_device().type.name, mx.default_device().index, mx.arange(n).sum().item()

if __name__ == "__main__":
    print(sys.argv[1:], work(3))
    for method in ("spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.apply(work, (4,)))
"""


@pytest.mark.parametrize("option", [["--device", "gpu:1"], ["--device=gpu"]])
def test_device(tmp_path: Path, option: list[str]) -> None:
    """The default device, in processes of the program's own, too."""
    (tmp_path / "program.py").write_text(DEVICES)
    backend = tmp_path / "backends"
    backend.mkdir()
    shutil.copy(plugins.minimal(), backend)
    environment = {"ULTRAMARINE_BACKEND_PATH": str(backend)}
    number = int(option[-1].endswith(":1"))
    own, child = ("gpu", number, 3), ("gpu", number, 6)
    call = (*AS_MLX, *option, "program.py", "1")
    assert output(*call, cwd=tmp_path, **environment) == f"['1'] {own}\n{child}\n{child}\n"


def test_pytest_runs_programs_of_mlx(tmp_path: Path) -> None:
    """Its own finder stands before ours, and leaves our names alone."""
    (tmp_path / "test_it.py").write_text(
        "import mlx.core as mx, ultramarine\ndef test_it():\n    assert mx is ultramarine\n"
    )
    out = output(*AS_MLX, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path))
    assert "1 passed" in out
