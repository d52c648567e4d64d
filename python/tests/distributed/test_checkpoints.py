"""Checkpoints that one number of processes writes and another reads, under Open MPI and MPICH."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.paths import DOCS, ROOT

from .launching import LAUNCHERS, mpirun, passes


@pytest.mark.parametrize("library", LAUNCHERS)
def test_any_number_of_processes_reads(library: str, tmp_path: Path) -> None:
    passes(library, 1, "checkpoints.py", "write", str(tmp_path))
    # Each writes the model again, for the next one.
    for size in (2, 3, 1):
        passes(library, size, "checkpoints.py", "read", str(tmp_path))


@pytest.mark.parametrize(("library", "sizes"), [("openmpi", (3, 2)), ("mpich", (2, 4))])
def test_several_processes_write(library: str, sizes: tuple[int, int], tmp_path: Path) -> None:
    passes(library, sizes[0], "checkpoints.py", "write", str(tmp_path))
    for size in (sizes[1], 1):
        passes(library, size, "checkpoints.py", "read", str(tmp_path))


@pytest.mark.parametrize("library", LAUNCHERS)
@pytest.mark.parametrize("size", [2, 3])
def test_faults(library: str, size: int, tmp_path: Path) -> None:
    passes(library, size, "checkpoints.py", "faults", str(tmp_path))


def test_the_example(tmp_path: Path) -> None:
    """Changes of the number of processes change nothing of the training."""
    ends = []
    for sizes in ((1, 1, 1), (2, 3, 1)):
        folder = tmp_path / str(sizes[0])
        for size in sizes:
            program = str(ROOT / "examples" / "distributed_checkpoint.py")
            ended = mpirun("mpich", size, program, str(folder))
            assert ended.status == 0, ended
        found = re.fullmatch(r"step 150 of 1 processes, loss ([\d.]+)\n", ended.out)
        assert found, ended
        ends.append(float(found[1]))
    assert abs(ends[0] - ends[1]) < 1e-3


def test_the_page_shows_the_example() -> None:
    page = (DOCS / "distributed.md").read_text()
    shown = page.partition("```python file=examples/distributed_checkpoint.py\n")[2]
    program = (ROOT / "examples" / "distributed_checkpoint.py").read_text()
    assert shown.partition("```")[0] == program
