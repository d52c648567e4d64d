"""`python -m ultramarine.launch --hosts` over a real ssh to two addresses of this machine: real programs, under both MPIs and on the
emulated GPUs, and hosts that are not there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import plugins
from support.paths import ROOT

from .ssh_server import serving
from .test_launch import MPIRUNS, Ended, environment, mpirun, running

EXAMPLE = str(ROOT / "examples" / "distributed.py")
# Open MPI's hosts of one machine would take each other's shared memory for their own: they talk by TCP, over the loopback.
BY_TCP = {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo"}
NCCL = ["--backend", "nccl", "--nccl-host", "127.0.0.1"]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Folder of an `ssh` for which gpu-a and gpu-b are hosts."""
    with serving(tmp_path_factory.mktemp("ssh")) as programs:
        yield programs


def launch(programs: str, *arguments: str, **variables: str) -> Ended:
    """Runs the launcher; what ranks need of the environment goes to the other host by --env."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    plain = {"PYTHONPATH": environment()["PYTHONPATH"], "ULTRAMARINE_LOG": "off"}
    plain |= BY_TCP | {"OMPI_MCA_mpi_yield_when_idle": "1", "OMP_NUM_THREADS": "1", **variables}
    given = [part for name, value in plain.items() for part in ("--env", f"{name}={value}")]
    command = [sys.executable, "-m", "ultramarine.launch", *given, *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=environment(PATH=path),
        stdin=subprocess.DEVNULL,
    )


def gone(mark: str) -> bool:
    """Waits until no process has an argument."""
    limit = time.monotonic() + 30
    while running(mark) and time.monotonic() < limit:
        time.sleep(0.1)
    return not running(mark)


@pytest.mark.parametrize("name", MPIRUNS)
def test_an_example_on_two_hosts_by_mpirun(hosts: str, name: str) -> None:
    way = ["--backend", "mpi", "--mpirun", mpirun(name)]
    ended = launch(hosts, "-n", "2", "--hosts", "gpu-a,gpu-b", *way, EXAMPLE)
    assert ended.returncode == 0, ended
    assert ended.stdout == "[0] weights [1.0, -2.0, 0.5] of 4 processes\n", ended


@pytest.mark.parametrize("name", MPIRUNS)
def test_hosts_are_connected_by_ssh(hosts: str, name: str) -> None:
    """Ranks of mpirun are children of the server, and not of this machine's mpirun."""
    program = "import os; print(os.environ.get('SSH_CONNECTION', 'none').split()[2])"
    way = ["--backend", "mpi", "--mpirun", mpirun(name)]
    given = ["-n", "1", "--hosts", "gpu-a,gpu-b", *way, sys.executable, "-c", program]
    ended = launch(hosts, *given)
    assert ended.returncode == 0, ended
    assert sorted(ended.stdout.splitlines()) == ["[0] 127.0.0.1", "[1] 127.0.0.2"], ended


def emulated(size: int) -> dict[str, Any]:
    """Variables by which processes have emulated GPUs."""
    found = plugins.emulated_cuda()
    if found is None:
        pytest.skip("the CUDA backend and its emulated driver are not built")
    plugin, variables = found
    devices = {"ULTRAMARINE_CUDA_DEVICES": str(size), "EMULATED_CUDA_DEVICES": str(size)}
    return {**variables, **devices, "ULTRAMARINE_BACKEND_PATH": str(plugin.parent)}


def test_an_example_on_two_hosts_by_nccl(hosts: str) -> None:
    ended = launch(hosts, "-n", "1", "--hosts", "gpu-a,gpu-b", *NCCL, EXAMPLE, **emulated(1))
    assert ended.returncode == 0, ended
    assert ended.stdout == "[0] weights [1.0, -2.0, 0.5] of 2 processes\n", ended


def test_variables_reach_the_hosts(hosts: str, tmp_path: Path) -> None:
    names = [
        "MLX_RANK",
        "MLX_WORLD_SIZE",
        "NCCL_HOST_IP",
        "NCCL_PORT",
        "CUDA_VISIBLE_DEVICES",
        "WORD",
    ]
    program = tmp_path / "it's a program.py"
    program.write_text(
        f"import os, sys\nprint(*[os.environ[n] for n in {names}], "
        "os.environ['SSH_CONNECTION'].split()[2], *sys.argv[1:])"
    )
    given = [
        "-n",
        "2",
        "--hosts",
        "gpu-a,gpu-b",
        *NCCL,
        "--nccl-port",
        "4321",
        str(program),
        'a "b" $c',
    ]
    ended = launch(hosts, *given, WORD="it's two")
    assert ended.returncode == 0, ended
    assert sorted(ended.stdout.splitlines()) == [
        f'[{n}] {n} 4 127.0.0.1 4321 {n % 2} it\'s two 127.0.0.{n // 2 + 1} a "b" $c'
        for n in range(4)
    ]


# Stays, unless it is rank 1, which ends as the first argument says.
FAULTY = """
import os, signal, sys, time
names = ("MLX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
if next(int(os.environ[name]) for name in names if name in os.environ) == 1:
    time.sleep(0.5)
    if sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(3)
time.sleep(200)
"""
ALL = pytest.mark.parametrize("name", ["nccl", *MPIRUNS])


def way(name: str) -> list[str]:
    return NCCL if name == "nccl" else ["--backend", "mpi", "--mpirun", mpirun(name)]


@ALL
@pytest.mark.parametrize(
    ("fault", "status", "text"), [("exit", 3, "status 3"), ("kill", 137, "SIGKILL")]
)
def test_a_program_that_dies(hosts: str, name: str, fault: str, status: int, text: str) -> None:
    mark = f"mark{os.getpid()}{name}{fault}"
    given = ["-n", "1", "--hosts", "gpu-a,gpu-b", *way(name)]
    ended = launch(hosts, *given, sys.executable, "-c", FAULTY, fault, mark)
    assert ended.returncode == status, ended
    assert "rank 1" in ended.stderr and text in ended.stderr, ended
    assert gone(mark), running(mark)


@ALL
@pytest.mark.parametrize(("other", "text"), [("gpu-down", "refused"), ("gpu-shut", "denied")])
def test_a_host_that_is_not_reached(hosts: str, name: str, other: str, text: str) -> None:
    mark = f"mark{os.getpid()}{name}{other}"
    begin = time.monotonic()
    given = ["-n", "1", "--hosts", f"gpu-a,{other}", *way(name)]
    ended = launch(hosts, *given, sys.executable, "-c", FAULTY, "stay", mark)
    assert text in ended.stderr, ended
    if name == "nccl":
        said = f"rank 1 on {other} failed: it exited with status 255 (the connection failed)"
        assert ended.returncode == 255 and said in ended.stderr, ended
    else:
        said = f"ssh cannot connect to {other}: "
        assert ended.returncode == 2 and said in ended.stderr, ended
    assert time.monotonic() - begin < 100
    assert gone(mark), running(mark)


@ALL
def test_a_host_without_python(hosts: str, name: str) -> None:
    given = ["-n", "1", "--hosts", "gpu-a,gpu-b", "--python", "/nowhere/python", *way(name)]
    ended = launch(hosts, *given, "-m", "platform")
    if name == "nccl":
        assert ended.returncode == 127, ended
        said = "is /nowhere/python there? Name the Python of the hosts by --python"
    else:
        assert ended.returncode == 2, ended
        said = "gpu-a lacks the directory"
    assert said in ended.stderr and "/nowhere/python" in ended.stderr, ended


@ALL
def test_a_host_without_the_directory(hosts: str, name: str) -> None:
    given = ["-n", "1", "--hosts", "gpu-a,gpu-b", "--cwd", "/nowhere", *way(name), "-m", "platform"]
    ended = launch(hosts, *given)
    assert ended.returncode == (1 if name == "nccl" else 2), ended
    assert "/nowhere" in ended.stderr, ended
