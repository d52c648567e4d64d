"""Folders of the repository."""

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parents[1]
DOCS = ROOT / "docs"
TOOLS = ROOT / "python" / "tools"
