"""Paths that ARCHITECTURE.md and docs/design name exist in the repository."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs/design").glob("*.md"))]
NAMED = re.compile(r"`([\w./-]+(?:\.(?:rs|py|md|toml|cuh|c|h|cpp|txt|pyi|tar)|/))`")


def missing(text: str, files: list[str]) -> set[str]:
    """Returns the paths in backticks that end no file's path (folders: that lie in none)."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return {
        name
        for name in NAMED.findall(prose)
        if not any(
            f"/{name}" in f"/{file}" if name.endswith("/") else f"/{file}".endswith(f"/{name}")
            for file in files
        )
    }


@pytest.fixture(scope="module")
def files() -> list[str]:
    try:
        done = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the sources are no git checkout")
    return done.stdout.splitlines()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_paths_exist(page: Path, files: list[str]) -> None:
    assert not missing(page.read_text(), files), "correct the path or the page"


def test_missing_paths_are_found() -> None:
    files = ["crates/a/src/graph/op.rs"]
    assert missing("`graph/op.rs` and `graph/` and `graph/no.rs`, `none/`", files) == {
        "graph/no.rs",
        "none/",
    }
