"""GPUs under mpirun, on the emulated driver: their memory handed to MPI, and NCCL's id over MPI with debug mode."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import plugins

from .launching import LAUNCHERS, RANKS, mpirun, passes
from .test_launch import environment, launch

each_library = pytest.mark.parametrize("library", LAUNCHERS)


@pytest.fixture
def emulated() -> dict[str, str]:
    """Variables by which each process has two emulated GPUs."""
    found = plugins.emulated_cuda()
    if found is None:
        pytest.skip("the CUDA backend and its emulated driver are not built")
    plugin, variables = found
    devices = {"ULTRAMARINE_CUDA_DEVICES": "2", "EMULATED_CUDA_DEVICES": "2"}
    return {**variables, **devices, "ULTRAMARINE_BACKEND_PATH": str(plugin.parent)}


@each_library
def test_memory_of_gpus_is_handed_to_mpi(library: str, emulated: dict[str, str]) -> None:
    """Memory of emulated GPUs is the host's, so that MPI can read it where the variable says that it may."""
    variables = {**emulated, "ULTRAMARINE_MPI_DEVICE_MEMORY": "1"}
    passes(library, 2, "device_memory.py", "1", **variables)


def test_three_ranks_and_messages_in_pieces(emulated: dict[str, str]) -> None:
    variables = {**emulated, "ULTRAMARINE_MPI_DEVICE_MEMORY": "1", "ULTRAMARINE_MPI_PIECE": "64"}
    passes("mpich", 3, "device_memory.py", "1", "small", **variables)


@each_library
@pytest.mark.parametrize("direct", ["0", "1"])
def test_groups_in_opposite_orders(library: str, direct: str, emulated: dict[str, str]) -> None:
    """Copies to and from a GPU do not wait behind those of another group, whether MPI takes the GPU's memory or not."""
    limit = {"ULTRAMARINE_DISTRIBUTED_TIMEOUT": "30", "ULTRAMARINE_MPI_DEVICE_MEMORY": direct}
    passes(library, 2, "crossed.py", "gpu", **emulated, **limit)


@each_library
def test_by_itself_mpi_says_what_it_takes(library: str, emulated: dict[str, str]) -> None:
    """Debian's libraries know no CUDA: arrays go by way of the host."""
    passes(library, 2, "device_memory.py", "0", **emulated)


@each_library
@pytest.mark.parametrize("fault", ["shapes", "kinds", "parts"])
def test_debug_mode_where_the_id_came_over_mpi(
    library: str, fault: str, emulated: dict[str, str]
) -> None:
    variables = {**emulated, "RANKS_BACKEND": "nccl", "ULTRAMARINE_DISTRIBUTED_DEBUG": "1"}
    ended = mpirun(library, 2, "faults.py", fault, **variables)
    caught = [line for line in ended.out.splitlines() if line.startswith("caught: ")]
    assert len(caught) == 2, ended
    for line in caught:
        assert "processes of a group run different operations: rank 1 runs " in line, line
        # Each operation is named once.
        assert line.count("[all_") == 1, line


def test_checkpoints_by_nccl(emulated: dict[str, str], tmp_path: Path) -> None:
    for action in ("write", "read"):
        program = [str(RANKS / "checkpoints.py"), action, str(tmp_path)]
        ended = launch("-n", "2", "--backend", "nccl", *program, env=environment(**emulated))
        assert ended.returncode == 0 and ended.stdout.count("done") == 2, ended


PARTS = """
import ultramarine as mx
group = mx.distributed.init(strict=True, backend="nccl")
part = group.split(0)
print("sum", mx.distributed.all_sum(mx.ones(2), group=part).tolist())
"""


def test_debug_mode_says_what_it_does_not_compare(emulated: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "parts.py"
    program.write_text(PARTS)
    variables = environment(**emulated, ULTRAMARINE_DISTRIBUTED_DEBUG="1")
    ended = launch("-n", "2", "--backend", "nccl", str(program), env=variables)
    assert sorted(ended.stdout.splitlines()) == ["[0] sum [2.0, 2.0]", "[1] sum [2.0, 2.0]"], ended
    said = "compares operations of the group of all processes only"
    assert ended.stderr.count(said) == 2, ended
