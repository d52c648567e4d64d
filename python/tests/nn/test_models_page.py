"""docs/models.md is true: its program runs, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from programs.children import script
from support.paths import DOCS

import ultramarine.nn as nn

TEXT = (DOCS / "models.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)

# The page's checkpoints without one of their parts: the run that is resumed is another one then.
FORGETFUL = {
    "optimizer": '    optimizer.state = state["optimizer"]\n',
    "random": '    mx.random.state[0] = state["random"]\n',
    "weights": '    model.load_weights(f"{folder}/model.safetensors")\n',
}


def test_program(tmp_path: Path) -> None:
    """All blocks in one process, from top to bottom, as a reader would."""
    assert len(BLOCKS) == 11
    script("\n".join(BLOCKS), cwd=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"model.safetensors", "state.safetensors"}


@pytest.mark.parametrize("part", FORGETFUL)
def test_every_part_of_a_checkpoint_is_needed(part: str, tmp_path: Path) -> None:
    source = "\n".join(BLOCKS[:-1])
    claim = "assert run(again, resumed, 10) == losses\n"
    assert source.count(FORGETFUL[part]) == source.count(claim) == 1
    source = source.replace(FORGETFUL[part], "").partition(claim)[0]
    script(f"{source}\nassert run(again, resumed, 10) != losses\n", cwd=tmp_path)


def test_methods() -> None:
    section = TEXT.partition("## Modules")[2].partition("## Training")[0]
    named = set(re.findall(r"`model\.(\w+)\(", section))
    assert len(named) == 10
    assert [name for name in named if not callable(getattr(nn.Module, name, None))] == []


def test_links() -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", TEXT)
    assert targets
    assert [target for target in targets if not (DOCS / target).exists()] == []
