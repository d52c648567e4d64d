"""The page on exchanges says what is so: its examples run, and its table is what a run gives."""

from __future__ import annotations

import re
import subprocess
import sys

import interchange_table
import pytest
from support.libraries import versions
from support.paths import ROOT

PAGE = ROOT / "docs" / "interchange.md"
EXAMPLE = ROOT / "examples" / "interchange.py"


def pinned() -> dict[str, str]:
    """The versions that the requirements name."""
    found = {}
    for path in (ROOT / "python" / "requirements").glob("*.txt"):
        for line in path.read_text().splitlines():
            match = re.match(r"([\w-]+)(?:\[\w+\])?==(\S+)", line)
            if match and not path.stem.startswith("bench"):
                found[match[1]] = match[2]
    return found


def test_examples_of_the_page() -> None:
    """All in one namespace, from top to bottom, as a reader would."""
    text = PAGE.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) > 5
    names: dict[str, object] = {}
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), names)


def test_table() -> None:
    wanted = pinned()
    packages = {"tvm_ffi": "apache-tvm-ffi"}
    others = [
        f"{name} {version or 'missing'}"
        for name, version in versions().items()
        if version != wanted[packages.get(name, name)]
    ]
    if others:
        pytest.skip(f"the table is of other versions: here {', '.join(others)}")
    assert interchange_table.main(["--check"]) == 0, "run python/tools/interchange_table.py --write"


def test_example() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("the same memory: True") >= 1
    assert "False" not in done.stdout
