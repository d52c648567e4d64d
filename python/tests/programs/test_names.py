"""The names of mlx: what they stand for, how they are taken back, who else has them."""

from __future__ import annotations

import importlib
import importlib.metadata
import pickle
import pkgutil
from pathlib import Path
from typing import Any

import mlx.core as mlx
import pytest

from .children import AS_MLX, output, python, script

CHECK = """
import sys
import ultramarine
from ultramarine.as_mlx._finder import counterpart

def check():
    import mlx.core as mx
    for name, module in sys.modules.items():
        if name.startswith("mlx."):
            assert module is sys.modules[counterpart(name)], name
            assert module.__name__ == module.__spec__.name == counterpart(name), name
    assert mx is ultramarine
"""


def names_of_mlx() -> list[str]:
    """Modules of the installed mlx that programs import."""
    import mlx

    inner = ["cuda", "distributed", "fast", "fft", "linalg", "metal", "random"]
    names = {"mlx", *(f"mlx.core.{n}" for n in inner)}
    for found in pkgutil.walk_packages(mlx.__path__, "mlx."):
        if "._" not in found.name:
            names.add(found.name)
    return sorted(names)


def test_every_module() -> None:
    names = names_of_mlx()
    assert {"mlx.core", "mlx.nn.layers.linear", "mlx.optimizers", "mlx.utils"} <= {*names}
    lines = "\n".join(f"import {name}" for name in names)
    code = f"{CHECK}\n{lines}\ncheck()\nprint(*sorted(n for n in sys.modules if n.partition('.')[0] == 'mlx'))"
    assert {*script(code, as_mlx=True).split()} >= {*names}


@pytest.mark.parametrize(
    "lines",
    [
        "import mlx.core as mx",
        "import mlx.core\nmx = mlx.core",
        "from mlx import core as mx",
        "from mlx.core import fast\nimport mlx.core as mx\nassert fast is mx.fast is ultramarine.fast",
        "import mlx.core.fast as fast\nimport mlx.core as mx\nassert fast is ultramarine.fast",
        "import importlib\nmx = importlib.import_module('mlx.core')",
        "mx = __import__('mlx.core').core",
        "from mlx.core import *\nimport mlx.core as mx\nassert array is ultramarine.array",
        "import mlx.core as mx\nassert mx.random is __import__('mlx.core.random').core.random",
        "import importlib.util as u, mlx.core as mx\nassert u.find_spec('mlx') and u.find_spec('mlx.core')",
        "import importlib, mlx.core as mx\nassert importlib.reload(mx.fast) is ultramarine.fast",
        "import mlx.core as mx\nassert mx.array.__module__ == 'ultramarine'",
    ],
)
def test_ways_to_import(lines: str) -> None:
    script(f"{CHECK}\n{lines}\nassert mx is ultramarine\ncheck()", as_mlx=True)


def test_layers_are_ours() -> None:
    script(
        """
        import ultramarine.nn, ultramarine.optimizers, ultramarine.utils
        import mlx.nn as nn, mlx.optimizers as optim
        from mlx.nn.layers.base import Module
        from mlx.utils import tree_map
        assert nn is ultramarine.nn and Module is nn.Module is ultramarine.nn.Module
        assert optim is ultramarine.optimizers and optim.Adam is ultramarine.optimizers.Adam
        assert tree_map is ultramarine.utils.tree_map
        """,
        as_mlx=True,
    )


@pytest.mark.parametrize(
    "name",
    [
        "mlx.something",
        "mlx.data",
        "mlx.core.nn",
        "mlx.core.backends",
        "mlx.core.fast.inner",
        "mlx.nn.something",
        "mlx.nn.layers.something",
    ],
)
def test_unknown_names(name: str) -> None:
    ended = python(*AS_MLX, "-c", f"import {name}")
    assert ended.status == 1
    last = ended.err.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: No module named '{name}'")
    assert "ultramarine.as_mlx" in last or "not a package" in last


def test_unknown_names_can_be_caught() -> None:
    script(
        """
        try:
            import mlx.something
        except ImportError as error:
            assert error.name == "mlx.something"
        else:
            raise AssertionError
        try:
            from mlx import something
        except ImportError:
            pass
        """,
        as_mlx=True,
    )


def test_an_error_inside_of_ours_is_not_hidden(tmp_path: Path) -> None:
    """A module of ours that fails to import says why, and can be tried again."""
    (tmp_path / "setuptools.py").write_text("raise RuntimeError('broken setuptools')")
    script(
        """
        import sys
        for _ in range(2):
            try:
                import mlx.extension
            except RuntimeError as error:
                assert str(error) == "broken setuptools"
            else:
                raise AssertionError
        assert "mlx.extension" not in sys.modules
        """,
        as_mlx=True,
        cwd=tmp_path,
    )


def test_extension() -> None:
    script(
        "import mlx.extension, ultramarine.extension\nassert mlx.extension is ultramarine.extension",
        as_mlx=True,
    )


def test_version() -> None:
    """Programs compare the version of mlx.core, or of the distribution."""
    out = script(
        """
        import importlib.metadata as metadata
        import mlx.core as mx, ultramarine.as_mlx
        found = metadata.distribution("mlx")
        assert found.metadata["Name"] == "mlx" and found.files is None
        assert "mlx" in metadata.packages_distributions()["mlx"]
        assert sum(d.name == "mlx" and d.version == mx.__version__ for d in metadata.distributions()) >= 1
        assert metadata.entry_points() and found.requires is None
        assert not list(metadata.distributions(name="mlx", path=["/"]))
        assert tuple(map(int, mx.__version__.split("."))) >= (0, 30)
        print(mx.__version__, metadata.version("mlx"), metadata.version("MLX"), ultramarine.as_mlx.MLX_VERSION)
        ultramarine.as_mlx.uninstall()
        print(ultramarine.__version__ == ultramarine._core.__version__, metadata.version("mlx"))
        """,
        as_mlx=True,
    )
    want: str = mlx.__version__  # type: ignore[attr-defined]
    assert importlib.metadata.version("mlx") == want
    assert out.splitlines() == [" ".join([want] * 4), f"True {want}"]


def test_installed_mlx_is_shadowed(tmp_path: Path) -> None:
    """So is a folder of that name beside the program."""
    (tmp_path / "mlx").mkdir()
    (tmp_path / "mlx" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "mlx" / "own.py").write_text("")
    ended = python(*AS_MLX, "-c", "import mlx.core\nprint(1)\nimport mlx.own", cwd=tmp_path)
    assert (ended.status, ended.out) == (1, "1\n")
    assert "ModuleNotFoundError: No module named 'mlx.own'" in ended.err


def test_mlx_that_is_imported_already() -> None:
    """It is an error, and mlx stays as it is."""
    out = script(
        """
        import sys
        import mlx.core as mx
        before = set(sys.modules), list(sys.meta_path)
        try:
            import ultramarine.as_mlx
        except ImportError as error:
            print(error)
        import ultramarine
        assert sys.modules["mlx.core"] is mx and mx is not ultramarine
        assert list(sys.meta_path) == before[1] and "ultramarine.as_mlx" not in sys.modules
        assert ultramarine.__version__ != mx.__version__
        assert mx.ones(2).tolist() == [1, 1]
        """
    )
    assert mlx.__file__ in out
    assert "Import ultramarine.as_mlx before mlx" in out
    assert "python -m ultramarine.as_mlx" in out


def test_mlx_without_a_file(tmp_path: Path) -> None:
    (tmp_path / "mlx").mkdir()
    ended = python("-c", "import mlx, ultramarine.as_mlx", cwd=tmp_path)
    assert ended.status == 1
    assert f"ImportError: [as_mlx] mlx is imported already, from {tmp_path}/mlx, " in ended.err


def test_taken_back() -> None:
    out = script(
        """
        import sys
        import ultramarine
        def state():
            return {n for n in sys.modules if n.partition(".")[0] == "mlx"}, list(sys.meta_path), ultramarine.__version__
        before = state()
        from ultramarine import as_mlx
        assert as_mlx.installed() and as_mlx.MLX_VERSION == ultramarine.__version__
        import mlx.core as ours, mlx.utils
        assert ours is ultramarine
        as_mlx.uninstall()
        as_mlx.uninstall()
        assert not as_mlx.installed() and state() == before
        with as_mlx.install() as installation:
            import mlx.core as again
            assert again is ultramarine and isinstance(installation, as_mlx.Installation)
            as_mlx.install()
            assert len(sys.meta_path) == len(before[1]) + 1
        assert state() == before
        try:
            with as_mlx.install():
                raise KeyError
        except KeyError:
            assert state() == before
        import mlx.core as real
        assert real is not ultramarine and ultramarine.array is ours.array is not real.array
        print(real.__file__, (real.ones(2) + 1).tolist(), (ours.ones(2) + 1).tolist())
        try:
            as_mlx.install()
        except ImportError as error:
            print("imported already" in str(error))
        """
    )
    assert out.splitlines() == [f"{mlx.__file__} [2.0, 2.0] [2.0, 2.0]", "True"]


def test_threads() -> None:
    """Many threads import the same names for the first time."""
    script(
        """
        import threading
        found = []
        start = threading.Barrier(16)
        def work(i):
            start.wait()
            if i % 2:
                import mlx.utils, mlx.core as mx
                found.append((mlx.utils, mx, mx.arange(i).sum().item() == i * (i - 1) // 2))
            else:
                import ultramarine.utils, ultramarine as mx
                found.append((ultramarine.utils, mx, mx.arange(i).sum().item() == i * (i - 1) // 2))
        threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert len(found) == 16 and len({(id(a), id(b), c) for a, b, c in found}) == 1 and found[0][2]
        """,
        as_mlx=True,
    )


PARENT = """
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
import mlx.core as mx

def work(n):
    import ultramarine
    assert mx is ultramarine and mx.array is ultramarine.array
    return mx.arange(n)

if __name__ == "__main__":
    for method in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            print(method, [x.sum().item() for x in pool.map(work, [3, 4])])
"""
SUMS = "spawn [3, 6]\nforkserver [3, 6]\nfork [3, 6]\n"


def test_processes(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    assert output(*AS_MLX, "parent.py", cwd=tmp_path) == SUMS
    assert output(*AS_MLX, "-m", "parent", cwd=tmp_path) == SUMS
    code = PARENT.replace("def work", "import parent\ndef _").replace("(work", "(parent.work")
    assert output(*AS_MLX, "-c", code, cwd=tmp_path) == SUMS


def test_processes_of_a_program_that_installs_the_names_itself(tmp_path: Path) -> None:
    """Before and after multiprocessing is imported, and where Ultramarine is found by the program's own path."""
    from .children import PACKAGE

    (tmp_path / "parent.py").write_text(PARENT)
    for first, second in [
        ("multiprocessing.pool", "ultramarine.as_mlx"),
        ("ultramarine.as_mlx",) * 2,
    ]:
        head = f"import sys\nsys.path.append({str(PACKAGE)!r})\nimport {first}, {second}, parent\n"
        code = PARENT.replace("(work", "(parent.work")
        (tmp_path / "own.py").write_text(f"if __name__ == '__main__':\n{indented(head + code)}")
        assert output("own.py", cwd=tmp_path, PYTHONPATH="") == SUMS


def indented(code: str) -> str:
    return "".join(f"    {line}\n" for line in code.splitlines())


def test_multiprocessing_is_as_before() -> None:
    script(
        """
        import multiprocessing.spawn as spawn, multiprocessing.forkserver as forkserver
        before = spawn.get_preparation_data
        import ultramarine.as_mlx
        assert spawn.get_preparation_data is not before
        ultramarine.as_mlx.uninstall()
        assert spawn.get_preparation_data is before
        """
    )
    script(
        """
        import sys
        import ultramarine.as_mlx
        assert "multiprocessing" not in sys.modules
        import multiprocessing.spawn as spawn
        assert "ultramarine_as_mlx" in spawn.get_preparation_data("x")
        assert type(spawn.__spec__.loader) is type(spawn.__loader__) is type(sys.__spec__.loader) or \
            type(spawn.__loader__).__name__ == "SourceFileLoader"
        ultramarine.as_mlx.uninstall()
        assert "ultramarine_as_mlx" not in spawn.get_preparation_data("x")
        """
    )


def test_pickles_of_mlx(tmp_path: Path) -> None:
    """What was pickled with mlx is loaded as ours; what is pickled with ours loads without the names."""
    nn: Any = importlib.import_module("mlx.nn")
    import mlx.utils

    things = [nn.Linear, nn.losses.mse_loss, mlx.utils.tree_map, nn.Module]
    (tmp_path / "theirs").write_bytes(pickle.dumps(things))
    script(
        """
        import pickle
        from pathlib import Path
        import ultramarine.nn as nn, ultramarine.utils
        things = pickle.loads(Path("theirs").read_bytes())
        assert things == [nn.Linear, nn.losses.mse_loss, ultramarine.utils.tree_map, nn.Module]
        import mlx.core as mx
        Path("ours").write_bytes(pickle.dumps([things, mx.arange(3)]))
        """,
        as_mlx=True,
        cwd=tmp_path,
    )
    script(
        """
        import pickle, sys
        from pathlib import Path
        things, x = pickle.loads(Path("ours").read_bytes())
        assert x.tolist() == [0, 1, 2] and "mlx" not in sys.modules
        """,
        cwd=tmp_path,
    )
