"""Processes that no launcher started, and launchers whose library is missing."""

from __future__ import annotations

import pytest
from programs.children import output, python
from support.paths import DOCS, ROOT

import ultramarine as mx

ALONE = """
import ultramarine as mx
group = mx.distributed.init()
x = mx.array([1.0, 2.0])
f = mx.compile(lambda x: mx.distributed.all_sum(x * 2))
print(group.rank(), group.size(), f(x).tolist(), mx.distributed.all_gather(x).tolist())
"""


def test_one_process_needs_no_library() -> None:
    assert output("-c", ALONE, ULTRAMARINE_MPI_LIBRARY="/no/such/library.so") == (
        "0 1 [2.0, 4.0] [1.0, 2.0]\n"
    )


def test_a_launched_process_without_library_is_an_error() -> None:
    """Processes that each took themselves for the only one would train apart, without a word."""
    ended = python(
        "-c",
        ALONE,
        OMPI_COMM_WORLD_SIZE="2",
        OMPI_COMM_WORLD_RANK="0",
        ULTRAMARINE_MPI_LIBRARY="/no/such/library.so",
    )
    assert ended.status == 1
    assert "[init]" in ended.err and "/no/such/library.so" in ended.err


def test_is_available() -> None:
    found = mx.distributed.is_available("mpi")
    assert mx.distributed.is_available() is found
    missing = "import ultramarine as mx; print(mx.distributed.is_available())"
    assert output("-c", missing, ULTRAMARINE_MPI_LIBRARY="/no/such/library.so") == "False\n"


def test_strict_wants_a_launcher() -> None:
    """As in mlx. MPI is not started for one process."""
    for backend in ("any", "mpi"):
        with pytest.raises(
            RuntimeError,
            match=f"'{backend}' is not available. This process was not started .*mpirun",
        ):
            mx.distributed.init(strict=True, backend=backend)


def test_the_page_shows_the_example() -> None:
    page = (DOCS / "distributed.md").read_text()
    shown = page.partition("```python file=examples/distributed.py\n")[2].partition("```")[0]
    assert shown == (ROOT / "examples" / "distributed.py").read_text()
