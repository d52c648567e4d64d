"""`python -m ultramarine.launch`: ranks by itself, by both implementations' mpirun and, through a stand-in for ssh, on other hosts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ultramarine
from ultramarine.launch import jobs, options, rank

PACKAGE = str(Path(ultramarine.__file__ or "").parents[1])
MPIRUNS = ["mpirun.openmpi", "mpirun.mpich"]

# Says what it got; then does what its first argument names.
PROGRAM = """
    import os, signal, sys, time

    names = ("MLX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
    rank = int(next(os.environ[name] for name in names if name in os.environ))
    action = sys.argv[1] if len(sys.argv) > 1 else ""
    if action == "show":
        known = ["MLX_RANK", "MLX_WORLD_SIZE", "NCCL_HOST_IP", "NCCL_PORT", "WORD"]
        print("got", *[os.environ.get(name) for name in known], *sys.argv[2:], os.getcwd())
        print("complaint", file=sys.stderr)
    if action == "parts":
        sys.stdout.write("first\\nsec")
        sys.stdout.flush()
        time.sleep(0.2)
        sys.stdout.write("ond\\rthird\\r\\nend")
    if action in ("fail", "kill", "raise") and rank == 1:
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "raise":
            raise ValueError("on purpose")
        sys.exit(3)
    if action == "stay" or action in ("fail", "kill", "raise"):
        signal.signal(signal.SIGTERM, lambda *_: (print("asked to end"), sys.exit(0)))
        print("stays", flush=True)
        time.sleep(120)
    if action == "stubborn":
        if rank == 1:
            time.sleep(0.5)
            sys.exit(4)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(120)
    if action == "input":
        print("read", repr(sys.stdin.read()))
"""

Ended = subprocess.CompletedProcess[str]


def environment(**more: str) -> dict[str, str]:
    marks = ("MLX_", "NCCL_", "OMPI_", "PMI", "ULTRAMARINE_")
    plain = {k: v for k, v in os.environ.items() if not k.startswith(marks)}
    return {**plain, "PYTHONPATH": PACKAGE, **more}


def launch(*arguments: str, **keywords: Any) -> Ended:
    command = [sys.executable, "-m", "ultramarine.launch", *arguments]
    given = {"env": environment(), "timeout": 120, **keywords}
    return subprocess.run(command, capture_output=True, text=True, check=False, **given)


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "a program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return str(path)


@pytest.mark.parametrize(
    ("visible", "given", "seen"),
    [
        (None, [], ["0", "1", "2"]),
        ("2,GPU-5,7", [], ["2", "GPU-5", "7"]),
        ("4, 5", [], ["4", "5", "4"]),
        ("", ["--env", "CUDA_VISIBLE_DEVICES=0,1"], ["0,1", "0,1", "0,1"]),
    ],
)
def test_each_rank_sees_a_gpu(
    visible: str | None, given: list[str], seen: list[str], tmp_path: Path
) -> None:
    more = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    plain = {k: v for k, v in environment().items() if k != "CUDA_VISIBLE_DEVICES"}
    program = tmp_path / "gpu.py"
    program.write_text("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])")
    done = launch("-n", "3", "--backend", "nccl", *given, str(program), env={**plain, **more})
    assert sorted(done.stdout.split("\n")[:-1]) == [f"[{i}] {gpu}" for i, gpu in enumerate(seen)]


def mpirun(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


# By itself, and by each mpirun.
WAYS: list[Callable[[], list[str]]] = [
    lambda: ["--backend", "nccl"],
    *[lambda name=name: ["--backend", "mpi", "--mpirun", mpirun(name)] for name in MPIRUNS],
]
ways = pytest.mark.parametrize("way", WAYS, ids=["itself", *MPIRUNS])


def test_variables_of_mlx(program: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    given = ["--env", "WORD=two words", "--nccl-port", "4321", "--cwd", str(folder)]
    ended = launch("-n", "3", "--backend", "nccl", *given, program, "show", "--n", 'a "b"')
    assert ended.returncode == 0, ended.stderr
    lines = sorted(ended.stdout.splitlines())
    rest = f'127.0.0.1 4321 two words --n a "b" {folder}'
    assert lines == [f"[{n}] got {n} 3 {rest}" for n in range(3)]
    assert sorted(ended.stderr.splitlines()) == [f"[{n}] complaint" for n in range(3)]


@pytest.mark.parametrize("name", MPIRUNS)
def test_mpirun(program: str, tmp_path: Path, name: str) -> None:
    given = ["--backend", "mpi", "--mpirun", mpirun(name), "--env", "WORD=two words"]
    ended = launch("-n", "2", *given, "--cwd", str(tmp_path), program, "show", 'a "b"')
    assert ended.returncode == 0, ended.stderr
    rest = f'None None None None two words a "b" {tmp_path}'
    assert sorted(ended.stdout.splitlines()) == [f"[{n}] got {rest}" for n in range(2)]
    assert sorted(ended.stderr.splitlines()) == [f"[{n}] complaint" for n in range(2)]


@ways
@pytest.mark.parametrize(
    ("action", "status", "text"),
    [
        ("fail", 3, "rank 1 failed: it exited with status 3"),
        ("kill", 137, "rank 1 failed: it was ended by signal 9 (SIGKILL)"),
    ],
)
def test_a_failure_ends_all(
    program: str, way: Callable[[], list[str]], action: str, status: int, text: str
) -> None:
    begin = time.monotonic()
    ended = launch("-n", "2", *way(), program, action)
    assert ended.returncode == status, ended.stderr
    assert f"ultramarine.launch: {text}; the other ranks are ended" in ended.stderr
    assert "rank 0 failed" not in ended.stderr
    assert time.monotonic() - begin < 60


def test_an_exception_is_shown_with_its_rank(program: str) -> None:
    ended = launch("-n", "2", "--backend", "nccl", program, "raise")
    assert ended.returncode == 1
    assert "[1] ValueError: on purpose\n" in ended.stderr
    assert "rank 1 failed: it exited with status 1" in ended.stderr


def test_ranks_that_do_not_end_are_killed(program: str) -> None:
    ended = launch("-n", "2", "--backend", "nccl", program, "stubborn")
    assert ended.returncode == 4
    assert "rank 1 failed: it exited with status 4" in ended.stderr


@ways
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_rank_outlives_the_launcher(
    program: str, way: Callable[[], list[str]], number: signal.Signals
) -> None:
    mark = f"mark{os.getpid()}x{int(number)}"
    command = ["-m", "ultramarine.launch", "-n", "2", *way(), program, "stay", mark]
    if number == signal.SIGKILL and sys.platform != "linux":
        pytest.skip("a process whose parent is killed goes on")
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, env=environment(), text=True
    )
    assert process.stdout is not None
    stays = [process.stdout.readline() for _ in range(2)]
    assert sorted(stays) == ["[0] stays\n", "[1] stays\n"]
    assert len(running(mark)) >= 2
    process.send_signal(number)
    rest = process.stdout.read()
    process.wait(timeout=60)
    limit = time.monotonic() + 30
    while running(mark) and time.monotonic() < limit:
        time.sleep(0.1)
    assert not running(mark)
    if number != signal.SIGKILL:
        assert process.returncode != 0
        if "nccl" in command:
            assert sorted(rest.splitlines()) == ["[0] asked to end", "[1] asked to end"]
            assert process.returncode == 128 + number


def running(mark: str) -> list[str]:
    """Processes of this system that have `mark` as an argument."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"\0{mark}\0".encode() in (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            pass
    return found


def test_lines_are_marked_whole(program: str) -> None:
    ended = launch("-n", "1", "--backend", "nccl", program, "parts", encoding="utf-8")
    # Text mode would change the ends of lines.
    command = [sys.executable, "-m", "ultramarine.launch", "--backend", "nccl", program, "parts"]
    raw = subprocess.run(command, capture_output=True, env=environment(), check=True, timeout=60)
    assert ended.returncode == 0
    assert raw.stdout == b"[0] first\n[0] second\r[0] third\r\n[0] end\n"


@ways
def test_lines_can_be_left_as_they_are(program: str, way: Callable[[], list[str]]) -> None:
    ended = launch("-n", "1", "--no-prefix", *way(), program, "show")
    assert ended.returncode == 0 and ended.stdout.startswith("got ")


def test_rank_0_has_the_input(program: str) -> None:
    ended = launch("-n", "2", "--backend", "nccl", program, "input", input="a line\n")
    assert sorted(ended.stdout.splitlines()) == ["[0] read 'a line\\n'", "[1] read ''"]


def test_modules_and_programs() -> None:
    ended = launch("-n", "2", "--backend", "nccl", "-m", "platform")
    assert ended.returncode == 0 and len(ended.stdout.splitlines()) == 2
    ended = launch("-n", "2", "--backend", "nccl", "echo", "-n", "word")
    assert sorted(ended.stdout.splitlines()) == ["[0] word", "[1] word"]


def test_any_takes_mpirun_where_it_is(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert options.parse(["-n", "2", program]).backend == "nccl"
    monkeypatch.undo()
    mpirun("mpirun")
    assert options.parse(["-n", "2", program]).backend == "mpi"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-n", "0", "p.py"], "'0' is not a number of 1 or more"),
        (["-n", "two", "p.py"], "'two' is not a number of 1 or more"),
        (["--backend", "ring", "p.py"], "invalid choice: 'ring'"),
        (["--hosts", "a,,b", "p.py"], "'a,,b' is not a list of hosts"),
        (["--hosts", "a,-oProxyCommand=x", "p.py"], "is not a list of hosts"),
        (["--env", "A", "p.py"], "'A' is not NAME=VALUE"),
        (["--nccl-port", "70000", "p.py"], "'70000' is not a port"),
        ([], "program"),
        (["missing.py"], "missing.py is not a file. Check the program's path"),
        (["no-such-program"], "neither a Python file nor a program on PATH"),
        (["--cwd", "/nowhere", "-m", "platform"], "/nowhere is not a directory"),
        (["--backend", "mpi", "--mpirun", "/nowhere/mpirun", "-m", "x"], "apt-get install openmpi"),
        (
            ["--backend", "mpi", "--mpirun", "/bin/true", "-m", "x"],
            "neither Open MPI's nor MPICH's",
        ),
        (
            ["--backend", "nccl", "--python", "/nowhere/python", "-m", "x"],
            "rank 0 cannot be started",
        ),
        (
            ["--backend", "nccl", "--hosts", "localhost,other.invalid", "-m", "x"],
            "Pass the address of rank 0 by --nccl-host",
        ),
    ],
)
def test_mistakes(arguments: list[str], text: str) -> None:
    ended = launch(*arguments)
    assert ended.returncode == 2 and text in ended.stderr, ended.stderr
    assert "Traceback" not in ended.stderr


def test_help() -> None:
    ended = launch("--help")
    assert ended.returncode == 0
    for part in ("-n N", "--hosts", "MLX_WORLD_SIZE", "over ssh", "--mpirun"):
        assert part in ended.stdout


def given(**more: Any) -> options.Options:
    plain: dict[str, Any] = {
        "hosts": ["localhost"],
        "per_host": 2,
        "backend": "mpi",
        "command": ["python", "p.py"],
        "environment": {"A": "b c"},
        "mpirun": "/usr/bin/mpirun",
    }
    return options.Options(**{**plain, **more})


def test_hosts_of_mpirun() -> None:
    job = given(hosts=["a", "b"], cwd="/work", mpi_arguments=["--display-map"])
    command = jobs.mpi_command(job, "openmpi")
    pairs = list(zip(command, command[1:]))
    for pair in (("-n", "4"), ("--host", "a:2,b:2"), ("-wdir", "/work"), ("-x", "A=b c")):
        assert pair in pairs
    # The ranks' threads use all cores.
    assert command[command.index("--bind-to") + 1] == "none"
    assert command[-3:] == ["--", "python", "p.py"] and "--display-map" in command
    command = jobs.mpi_command(job, "mpich")
    assert command[command.index("-hosts") + 1] == "a:2,b:2"
    at = command.index("-genv")
    assert ["A", "b c"] in [command[i + 1 : i + 3] for i in range(at, len(command) - 3)]
    assert "--host" not in jobs.mpi_command(given(), "openmpi")


def test_open_mpi_without_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    command = jobs.mpi_command(given(), "openmpi")
    assert ("plm", "isolated") in list(zip(command, command[1:]))
    assert "isolated" not in jobs.mpi_command(given(hosts=["a", "b"]), "openmpi")


# Runs the command of another host here, as a shell there would.
SSH = """\
#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
echo "to $1" >> "$LOG"
case "$1" in down*) echo "ssh: $1 is down" >&2; exit 255;; esac
exec env -i PATH="$PATH" sh -c "$2"
"""


@pytest.fixture
def ssh(tmp_path: Path) -> tuple[dict[str, Any], Path]:
    folder, log = tmp_path / "bin", tmp_path / "log"
    folder.mkdir()
    (folder / "ssh").write_text(SSH)
    (folder / "ssh").chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {"env": environment(PATH=path, LOG=str(log))}, log


OTHERS = ["--backend", "nccl", "--nccl-host", "10.0.0.1"]


def test_other_hosts(program: str, ssh: tuple[dict[str, Any], Path], tmp_path: Path) -> None:
    keywords, log = ssh
    hosts = ["--hosts", "gpu-a,gpu-b", *OTHERS, "--env", "WORD=it's two"]
    ended = launch("-n", "2", *hosts, program, "show", 'a "b" $c', cwd=tmp_path, **keywords)
    assert ended.returncode == 0, ended.stderr
    rest = f'4 10.0.0.1 12345 it\'s two a "b" $c {tmp_path}'
    assert sorted(ended.stdout.splitlines()) == [f"[{n}] got {n} {rest}" for n in range(4)]
    assert sorted(log.read_text().splitlines()) == ["to gpu-a"] * 2 + ["to gpu-b"] * 2


def test_a_failure_on_another_host(program: str, ssh: tuple[dict[str, Any], Path]) -> None:
    mark = f"mark{os.getpid()}s"
    ended = launch("-n", "1", "--hosts", "gpu-a,gpu-b", *OTHERS, program, "fail", mark, **ssh[0])
    assert ended.returncode == 3
    assert "rank 1 on gpu-b failed: it exited with status 3" in ended.stderr
    assert not running(mark)
    ended = launch("-n", "1", "--hosts", "gpu-a,down", *OTHERS, program, "stay", mark, **ssh[0])
    assert ended.returncode == 255
    assert (
        "rank 1 on down failed: it exited with status 255 (the connection failed)" in ended.stderr
    )
    assert "ssh: down is down" in ended.stderr
    limit = time.monotonic() + 30
    while running(mark) and time.monotonic() < limit:
        time.sleep(0.1)
    assert not running(mark)


def test_reports_name_signals() -> None:
    assert rank.how(3) == "it exited with status 3"
    assert rank.how(139) == "it was ended by signal 11 (SIGSEGV)"
    assert rank.how(255) == "it exited with status 255"
    assert rank.shell_status(-9) == 137 and rank.shell_status(3) == 3
