"""`python -m ultramarine conform`: the kit from Python, on a backend that is right and partial, and its figures."""

import json
import subprocess
from pathlib import Path

import pytest
from support.plugins import EXAMPLES, HEADERS, command, kit, minimal


@pytest.fixture(scope="module")
def partial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("partial") / "libultramarine-partial.so"
    cxx = ["c++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    source = EXAMPLES / "partial/partial.cpp"
    flags = ["-fvisibility=hidden", "-pthread", "-I", str(HEADERS), "-o", str(path), str(source)]
    subprocess.run([*cxx, *flags], check=True)
    return path


def test_a_right_but_partial_backend_passes(partial: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    status, printed = kit("--json", str(found), str(partial))
    assert status == 0, printed
    last = printed.strip().splitlines()[-1]
    assert last.startswith("keeps the contract (") and last.endswith("grade: below basic"), last
    # Every missing operation is listed, in lines of those that lack the same.
    lines = printed[printed.index("operations that are not native") :]
    for text in ("matmul of float32", "unary of float32: sign square rsqrt", "greater_equal"):
        assert text in lines, lines
    report = json.loads(found.read_text())
    assert (report["contract"], report["grade"]) == ("kept", "none")
    assert "matmul float32" in report["missing"] and "unary exp float32" not in report["missing"]


def test_figures(partial: Path) -> None:
    def rows(line: str) -> dict[str, list[str]]:
        """The measured lines whose names contain a text: all of them take long."""
        status, printed = kit("--bench", "--check", line, str(partial))
        assert status == 0, printed
        found = [line for line in printed.splitlines() if line[:2] == "  "]
        return {line[2:52].strip(): line[52:].split() for line in found}

    # Its launch and its bandwidth have one name, of which the latter is the last.
    (filled,) = rows("fill").values()
    own, cpu, ratio = map(float, filled)
    assert own > 0 and cpu > 0 and ratio > 0, filled
    # An operation that the backend refuses has the CPU's figure alone.
    (refused,) = rows("arange").values()
    assert (refused[0], refused[2]) == ("-", "-") and float(refused[1]) > 0, refused


def test_without_the_kit_it_says_how_to_get_it() -> None:
    status, printed = command("conform", "x.so", PATH="/nowhere")
    assert status == 2
    assert "pip install ultramarine-conform" in printed and "ULTRAMARINE_CONFORM" in printed, (
        printed
    )


def test_its_options_are_the_programs() -> None:
    status, printed = kit("--help")
    assert status == 0 and "usage: ultramarine-conform" in printed, printed
    assert kit("--grade", "best", str(minimal()))[0] == 2
