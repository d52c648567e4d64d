"""Programs of several processes under Open MPI and MPICH: the folder `ranks`."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from support.paths import ROOT

from .launching import LAUNCHERS, mpirun, passes

# Each number of processes under one library at least, and the smallest under both.
RUNS = [("openmpi", 2), ("mpich", 2), ("openmpi", 3), ("mpich", 4)]
each_run = pytest.mark.parametrize(("library", "size"), RUNS)


@each_run
@pytest.mark.parametrize(
    "program", ["collectives.py", "orders.py", "derivatives.py", "training.py"]
)
def test_programs(library: str, size: int, program: str) -> None:
    passes(library, size, program)


@pytest.mark.parametrize(("library", "size"), [("openmpi", 2), ("mpich", 2), ("mpich", 3)])
def test_groups_in_opposite_orders(library: str, size: int) -> None:
    passes(library, size, "crossed.py", "cpu", ULTRAMARINE_DISTRIBUTED_TIMEOUT="30")


def test_order_without_executables_and_compilation() -> None:
    passes("openmpi", 2, "orders.py", ULTRAMARINE_EXECUTABLES="0", ULTRAMARINE_FUSION="0")
    passes("mpich", 2, "orders.py", ULTRAMARINE_DISABLE_COMPILE="1")


def test_debug_mode_lets_equal_operations_pass() -> None:
    passes("openmpi", 3, "orders.py", ULTRAMARINE_DISTRIBUTED_DEBUG="1")


@pytest.mark.parametrize("library", LAUNCHERS)
@pytest.mark.parametrize(
    ("fault", "texts"),
    [
        ("shapes", ("all_sum(float32, (2, 3))", "rank 1 runs all_sum(float32, (1, 3))")),
        ("dtypes", ("all_sum(float32, (2, 3))", "rank 1 runs all_sum(int32, (2, 3))")),
        ("kinds", ("all_sum(float32, (2, 3))", "rank 1 runs all_gather(float32, (2, 3))")),
    ],
)
def test_debug_mode_names_the_rank(library: str, fault: str, texts: tuple[str, str]) -> None:
    ended = mpirun(library, 3, "faults.py", fault, ULTRAMARINE_DISTRIBUTED_DEBUG="1")
    caught = [line for line in ended.out.splitlines() if line.startswith("caught: ")]
    assert len(caught) == 3, ended
    for line in caught:
        assert texts[1] in line and f"rank 0 runs {texts[0]} as operation 2" in line, line


@pytest.mark.parametrize("library", LAUNCHERS)
def test_a_rank_that_does_not_come(library: str) -> None:
    ended = mpirun(library, 2, "faults.py", "hangs", ULTRAMARINE_DISTRIBUTED_TIMEOUT="2")
    assert ended.status != 0
    text = ended.out + ended.err
    assert "caught: [all_sum]" in text and "all_sum(float32, (2, 3)), operation 2 of rank 0" in text
    assert "again after 0 s" in text


@pytest.mark.parametrize("library", LAUNCHERS)
@pytest.mark.parametrize(("fault", "text"), [("raises", "rank 1 fails on purpose"), ("dies", "")])
def test_a_rank_that_ends(library: str, fault: str, text: str) -> None:
    """The others, which wait for it, end with it."""
    ended = mpirun(library, 3, "faults.py", fault)
    assert ended.status != 0 and text in ended.out + ended.err, ended


def test_a_waiting_rank_can_be_interrupted() -> None:
    ended = mpirun("openmpi", 2, "faults.py", "interrupt")
    assert ended.status == 0 and ended.out.count("done") == 2, ended
    assert "interrupted" in ended.out


def test_the_example() -> None:
    ended = mpirun("mpich", 2, str(ROOT / "examples" / "distributed.py"))
    assert ended.status == 0, ended
    assert ended.out == "weights [1.0, -2.0, 0.5] of 2 processes\n"


@pytest.mark.skipif(importlib.util.find_spec("tqdm") is None, reason="not installed: tqdm")
def test_the_text_example(tmp_path: Path) -> None:
    """Two processes with half of each batch learn what one does with all of it."""
    losses = []
    for size in (1, 2):
        arguments = ("--steps", "8", "--out", str(tmp_path))
        ended = mpirun("mpich", size, str(ROOT / "examples" / "text.py"), *arguments)
        found = re.findall(r"Held-out loss: ([\d.]+) bits", ended.out)
        assert len(found) == 1, ended
        losses.append(float(found[0]))
    assert abs(losses[0] - losses[1]) < 0.01
