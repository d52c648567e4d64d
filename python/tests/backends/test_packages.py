"""Backends that installed packages bring: declared by an entry point, found by the loader."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.plugins import ROOT, make, run

EXAMPLE = ROOT / "examples/backends/package"
GROUP = "ultramarine.backends"


def install(site: Path, value: str, name: str = "fake") -> None:
    """What an installer leaves behind of a package that declares backends."""
    about = site / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {value}\n")


def package(site: Path, *path: str) -> Path:
    """A package that cannot be imported; where its backends belong."""
    place = site.joinpath(*path)
    place.mkdir(parents=True)
    for above in [place, *place.parents][: len(path)]:
        (above / "__init__.py").write_text("raise ImportError('must not be imported')")
    return place / "backends"


@pytest.mark.parametrize("path", [["bring"], ["bring", "gpu", "deep"]])
def test_a_package_is_found_and_not_imported(tmp_path: Path, path: list[str]) -> None:
    make(package(tmp_path, *path), "brought")
    install(tmp_path, ".".join(path))
    run(
        """
        import sys
        assert mx.is_available(mx.gpu)
        assert [(c.name, c.outcome, c.rule) for c in backends.report()] == [
            ("brought", "loaded", "entry point of fake")
        ]
        assert "bring" not in sys.modules
        assert mx.add(mx.ones(2), 1, stream=mx.gpu).tolist() == [2, 2]
        """,
        PYTHONPATH=pythonpath(tmp_path),
    )


def test_a_module_and_a_namespace(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("raise ImportError")
    make(tmp_path / "backends", "module")
    install(tmp_path, "one", "one")
    make(tmp_path / "space/part/backends", "namespace")
    install(tmp_path, "space.part", "two")
    printed = run(
        "print(sorted(b.name for b in backends.load_all()))", PYTHONPATH=pythonpath(tmp_path)
    )
    assert printed.strip() == "['module', 'namespace']"


def test_a_broken_declaration_leaves_the_others_usable(tmp_path: Path) -> None:
    make(package(tmp_path, "bring"), "brought")
    install(tmp_path, "bring", "fake")
    install(tmp_path, "not_there", "gone")
    run(
        """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert [b.name for b in backends.load_all()] == ["brought"]
        assert ["gone" in str(w.message) and "not_there" in str(w.message) for w in caught] == [True]
        """,
        PYTHONPATH=pythonpath(tmp_path),
    )


def test_it_is_found_from_its_source_directory(tmp_path: Path) -> None:
    """There the sources hide the installed package, and the metadata of a build that of the installation."""
    site, source = tmp_path / "site", tmp_path / "source"
    make(package(site, "bring"), "brought")
    install(site, "bring")
    package(source, "bring")
    install(source, "bring")
    (source / "fake-1.0.dist-info").rename(source / "fake.egg-info")
    (source / "fake.egg-info/METADATA").rename(source / "fake.egg-info/PKG-INFO")
    run(
        """
        import warnings
        warnings.simplefilter("error")
        assert [b.name for b in backends.load_all()] == ["brought"]
        assert [c.rule for c in backends.report()] == ["entry point of fake"]
        """,
        PYTHONPATH=f"{source}:{pythonpath(site)}",
    )


def test_an_editable_installation(tmp_path: Path) -> None:
    """Its files are where Python finds the module, not beside its metadata."""
    site, source = tmp_path / "site", tmp_path / "source"
    make(package(source, "bring"), "brought")
    install(site, "bring")
    (site / "bring.pth").write_text(str(source))
    printed = run(
        f"import site; site.addsitedir({str(site)!r}); print([b.name for b in backends.load_all()])",
        PYTHONPATH=pythonpath(site),
    )
    assert printed.strip() == "['brought']"


def test_the_environment_comes_before_packages(tmp_path: Path) -> None:
    make(package(tmp_path, "bring"), "brought")
    install(tmp_path, "bring")
    run(
        "assert backends.load_all() == []",
        PYTHONPATH=pythonpath(tmp_path),
        ULTRAMARINE_BACKEND_PATH=str(tmp_path / "nowhere"),
    )


def test_the_example_is_built_installed_and_found(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    alone = ["--no-deps", "--no-index"]
    source = tmp_path / "source/package"
    # A copy: what the build leaves beside the sources is not ours to leave.
    copy = "import shutil, sys; shutil.copytree(*sys.argv[1:])"
    subprocess.run([sys.executable, "-c", copy, str(EXAMPLE), str(source)], check=True)
    minimal = EXAMPLE.parent / "minimal"
    subprocess.run(
        [sys.executable, "-c", copy, str(minimal), str(source.parent / "minimal")], check=True
    )
    wheels = tmp_path / "wheels"
    build = [*pip, "wheel", *alone, "--no-build-isolation", "--wheel-dir", str(wheels)]
    subprocess.run([*build, str(source)], check=True, timeout=120)
    (wheel,) = wheels.glob("*.whl")
    assert wheel.name.startswith("ultramarine_minimal-") and "-py3-none-" in wheel.name
    assert not wheel.name.endswith("-any.whl")

    site = tmp_path / "site"
    subprocess.run([*pip, "install", *alone, "--target", str(site), str(wheel)], check=True)
    run(
        f"""
        import sys
        x = mx.array([1.0, 2.0, 3.0])
        with mx.stream(mx.gpu):
            y = (x @ x + mx.exp(x)).sum()
        assert abs(y.item() - (3 * 14 + 2.718281828 + 7.389056099 + 20.085536923)) < 1e-4
        b = backends.get(mx.gpu)
        assert b.name == "minimal" and b.path.startswith("{site}"), b
        assert backends.report().candidates[0].rule == "entry point of ultramarine-minimal"
        assert "ultramarine_minimal" not in sys.modules
        native = {{c.op for c in backends.op_counts() if c.backend == "minimal" and c.native}}
        assert {{"matmul", "exp", "sum"}} <= native, native
        """,
        PYTHONPATH=pythonpath(site),
    )


def pythonpath(first: Path) -> str:
    """Where a new interpreter finds that, and what this one finds."""
    return ":".join([str(first), *filter(None, sys.path)])
