"""docs/coming-from-mlx.md is true: its examples run, and what it says is missing is missing."""

import re

from parity.surface import LATER
from support.paths import DOCS

import ultramarine
import ultramarine.extension
from ultramarine import distributed

from .children import AS_MLX, output, script

PAGE = DOCS / "coming-from-mlx.md"


def test_examples() -> None:
    """All in one process, from top to bottom, as a reader would."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    script("\n".join(blocks))


def test_commands() -> None:
    """The one that needs no files."""
    commands = re.findall(
        r"^python -m ultramarine.as_mlx -c '(.*)'$", PAGE.read_text(), re.MULTILINE
    )
    assert [output(*AS_MLX, "-c", code) for code in commands] == ["array([0, 1, 2], dtype=int32)\n"]


def test_missing_names() -> None:
    section = PAGE.read_text().partition("## What is not there yet")[2]
    assert [name for name in LATER if f"`mx.{name}`" not in section] == []
    named = re.findall(r"`mx\.(\w+)`", section)
    assert sorted(n for n in named if hasattr(ultramarine, n)) == []
    builds = re.findall(r"`(CMake\w+)`", section)
    assert builds and not any(hasattr(ultramarine.extension, n) for n in builds)
    assert not any(map(distributed.is_available, ("ring", "jaccl")))
