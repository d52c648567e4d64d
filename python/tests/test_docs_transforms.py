"""The examples of docs/transforms.md are true."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "transforms.md"


def test_examples() -> None:
    """All in one namespace, from top to bottom, as a reader would."""
    text = PAGE.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 5
    names: dict[str, object] = {}
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(PAGE), "exec"), names)
