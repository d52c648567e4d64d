"""docs/write-an-operation.md shows nothing that was not run.

A block of code on the page says what it is behind its language:

- `file=PATH`: a piece of a file of this repository. Its lines stand there, in this order; `...` is a gap.
- `console`: commands (`$ ...`) and what they print, run one after the other; `...` in the output is a gap.
- `python`: run in one namespace, from top to bottom.

There are no other blocks.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.paths import DOCS, ROOT, TESTS

PAGE = DOCS / "write-an-operation.md"
NEEDED = os.environ.get("ULTRAMARINE_NEEDS_EXTENSIONS") == "1"


@dataclass(frozen=True)
class Block:
    """A block of code and where it stands."""

    language: str
    file: str
    text: str
    line: int


def blocks() -> list[Block]:
    text = PAGE.read_text()
    found = []
    for match in re.finditer(
        r"^( *)```(\S*)( [^\n]*)?\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL
    ):
        line = text.count("\n", 0, match.start()) + 2
        file = re.fullmatch(r"file=(\S+)", (match[3] or "").strip())
        body = textwrap.dedent(match[4])
        found.append(Block(match[2], file[1] if file else "", body, line))
    assert len(found) == len(re.findall(r"^ *```", text, re.MULTILINE)) / 2
    return found


BLOCKS = blocks() if PAGE.is_file() else []
PIECES = [b for b in BLOCKS if b.file]


def gaps(text: str) -> list[str]:
    """The parts between lines that say `...`."""
    return [p for p in re.split(r"^ *\.\.\.\n", text, flags=re.MULTILINE) if p.strip()]


def missing(text: str, source: str) -> str:
    """The first part that does not stand in the source behind the part before it."""
    at = 0
    for part in gaps(text):
        # Pieces of nested code may be shown with less indentation.
        lines = [re.escape(line) if line else "" for line in part.rstrip("\n").split("\n")]
        indented = r"\n".join(
            rf"(?:(?P=i){line})?" if not line else rf"(?P=i){line}" for line in lines[1:]
        )
        pattern = rf"^(?P<i>[ \t]*){lines[0]}" + (rf"\n{indented}" if lines[1:] else "") + "$"
        match = re.compile(pattern, re.MULTILINE).search(source, at)
        if not match:
            return part
        at = match.end()
    return ""


def test_every_block_is_checked() -> None:
    kinds = {(b.language, b.line) for b in BLOCKS if not b.file}
    assert [k for k in sorted(kinds) if k[0] not in ("python", "console")] == []
    assert len(PIECES) > 10


@pytest.mark.parametrize("block", PIECES, ids=lambda b: f"{PAGE.name}:{b.line}")
def test_pieces_of_files(block: Block) -> None:
    source = (ROOT / block.file).read_text()
    part = missing(block.text, source)
    assert not part, f"{PAGE.name}:{block.line} is not in {block.file}, or not there:\n{part}"


def test_what_is_not_there_is_noticed() -> None:
    source = "a {\n    b();\n\n    c();\n}\nd\n"
    for right in ("a {\n    b();\n\n    c();\n}\n", "b();\n\nc();\n", "a {\n...\nd\n", "c();\n"):
        assert missing(right, source) == ""
    for wrong in ("c();\n...\nb();\n", "b();\nc();\n", "b()\n", "a {\nb();\n", "d\n...\nd\n"):
        assert missing(wrong, source) != ""
    assert as_shown("", "c") and as_shown("a\n...\nd\n", source) and as_shown("b...c", source)
    assert not as_shown("d\n...\na\n", source) and not as_shown("e\n", source)


def test_links() -> None:
    """What the page points at is there."""
    text = PAGE.read_text()
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (PAGE.parent / link).exists(), link
    heads = {
        re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-")
        for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= heads


class Shell:
    """Runs the page's commands in a copy of the examples, with an environment of its own beside this one's packages."""

    def __init__(self, place: Path) -> None:
        shutil.copytree(
            ROOT / "examples" / "extensions",
            place / "examples" / "extensions",
            ignore=shutil.ignore_patterns("target", "build", "*.so", "*.egg-info", "dist", "*.whl"),
        )
        # Examples name the crates that they need by paths in this repository.
        for name in ("crates", "Cargo.toml", "Cargo.lock", "LICENSE-MIT", "LICENSE-APACHE"):
            (place / name).symlink_to(ROOT / name)
        self.directory = place
        venv = place / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        own = Path(sysconfig.get_path("purelib", vars={"base": str(venv)}))
        paths = [str(Path(p).resolve()) for p in sys.path if Path(p).is_dir()]
        paths = [p for p in paths if p != str(TESTS) and p != str(Path.cwd())]
        (own / "tests.pth").write_text("\n".join(paths))
        pip = venv / "bin" / "pip"
        pip.write_text(f'#!/bin/sh\nexec {venv}/bin/python -m pip "$@"\n')
        pip.chmod(0o755)
        beside = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        if maturin := shutil.which("maturin", path=beside):
            (venv / "bin" / "maturin").symlink_to(maturin)
        ours = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self.environment = {
            **ours,
            "PATH": f"{venv / 'bin'}:{os.environ['PATH']}",
            "VIRTUAL_ENV": str(venv),
            "CARGO_TARGET_DIR": str(ROOT / "target" / "extensions"),
            # The packages that build are here already.
            "PIP_NO_BUILD_ISOLATION": "0",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "ULTRAMARINE_LOG": "off",
        }

    def run(self, command: str) -> str:
        if moved := re.fullmatch(r"cd (\S+)", command):
            self.directory = (self.directory / moved[1]).resolve()
            assert self.directory.is_dir()
            return ""
        done = subprocess.run(
            command,
            shell=True,
            cwd=self.directory,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=900,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout


def as_shown(shown: str, printed: str) -> bool:
    """Whether a command printed what the page says, which is nothing of most; `...` stands for anything."""
    parts = [re.escape(part.strip()) for part in shown.split("...")]
    return re.search(".*".join(parts), printed, re.DOTALL) is not None


@pytest.mark.skipif(not NEEDED, reason="builds packages: ULTRAMARINE_NEEDS_EXTENSIONS=1")
def test_commands(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for block in BLOCKS:
        if block.language != "console" or block.file:
            continue
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            printed = shell.run(command)
            assert as_shown(shown, printed), f"{PAGE.name}:{block.line}: {command}\n{printed}"


def test_python() -> None:
    """All in one namespace, from top to bottom, as a reader would."""
    wanted = [b for b in BLOCKS if b.language == "python" and not b.file]
    names: dict[str, object] = {}
    try:
        import ultramarine_axpby  # noqa: F401
    except ImportError:
        if NEEDED:
            raise
        pytest.skip("ultramarine_axpby is not installed")
    for block in wanted:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec"), names)
