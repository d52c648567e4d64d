"""The examples of docs/transforms.md and docs/compile.md are true."""

import re

import pytest
from support.paths import DOCS

from ultramarine import backends


@pytest.mark.parametrize("name", ["transforms", "compile"])
def test_examples(name: str) -> None:
    """All in one namespace, from top to bottom, as a reader would."""
    page = DOCS / f"{name}.md"
    text = page.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 5
    names: dict[str, object] = {}
    # A reader's process had no thousands of other evaluations before.
    backends.set_executables(True)
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(page), "exec"), names)
