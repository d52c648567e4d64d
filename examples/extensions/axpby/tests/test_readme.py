"""The README's scripts, as they are."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parent.parent / "README.md").read_text()
SCRIPTS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_there_are_two():
    assert len(SCRIPTS) == 2


@pytest.mark.parametrize("script", SCRIPTS, ids=["right", "fast"])
def test_they_run(script, capsys):
    # Sizes are smaller here; nothing else changes.
    exec(script.replace("4096", "512").replace("runs=100", "runs=2"), {})
    said = capsys.readouterr().out
    assert "all right: True" in said or "composed" in said
