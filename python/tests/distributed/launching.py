"""Programs of several processes, by the `mpirun` of Open MPI and of MPICH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import ultramarine

PACKAGE = Path(ultramarine.__file__ or "").parents[1]
RANKS = Path(__file__).parent / "ranks"

LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
    "mpich": ["mpirun.mpich"],
}


@dataclass(frozen=True)
class Ended:
    """Exit status and output of all processes together."""

    status: int
    out: str
    err: str


def mpirun(
    library: str,
    size: int,
    program: str,
    *arguments: str,
    interpreter: bool = True,
    **environment: str,
) -> Ended:
    """Runs a program of the folder `ranks` as `size` processes; without `interpreter` an executable."""
    launcher, *options = LAUNCHERS[library]
    found = shutil.which(launcher)
    if found is None:
        pytest.skip(f"{launcher} is not installed")
    if library == "openmpi" and shutil.which("ssh") is None:
        # Open MPI looks for it on one host, too.
        options = [*options, "--mca", "plm", "isolated"]
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("ULTRAMARINE_", "MLX_"))}
    # Processes share few cores: those that wait let others run.
    plain |= {"OMPI_MCA_mpi_yield_when_idle": "1", "OMP_NUM_THREADS": "1", "ULTRAMARINE_LOG": "off"}
    plain |= {
        "ULTRAMARINE_DISTRIBUTED_TIMEOUT": "120",
        "PYTHONPATH": f"{PACKAGE}{os.pathsep}{RANKS}",
    }
    python = [sys.executable] if interpreter else []
    done = subprocess.run(
        [found, *options, "-n", str(size), *python, str(RANKS / program), *arguments],
        env=plain | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def passes(library: str, size: int, program: str, *arguments: str, **environment: str) -> str:
    """Output of a program whose processes all end well."""
    ended = mpirun(library, size, program, *arguments, **environment)
    assert ended.status == 0, f"{ended.out}\n{ended.err}"
    assert ended.out.count("done") == size, ended.out
    return ended.out
