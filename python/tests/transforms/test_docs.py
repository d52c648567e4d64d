"""The examples of docs/transforms.md, docs/compile.md and docs/export.md are true."""

import re
from pathlib import Path

import pytest
from support.paths import DOCS

from ultramarine import backends


@pytest.mark.parametrize("name", ["transforms", "compile", "export"])
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All in one namespace, from top to bottom, as a reader would."""
    monkeypatch.chdir(tmp_path)
    page = DOCS / f"{name}.md"
    text = page.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 4
    names: dict[str, object] = {}
    # A reader's process had no thousands of other evaluations before.
    backends.set_executables(True)
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(page), "exec"), names)
