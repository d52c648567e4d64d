"""Jobs: the ranks by mpirun, or by this process itself."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from types import FrameType

from . import rank
from .options import LaunchError, Options, is_this_host
from .rank import GRACE, Rank, how, say

# Seconds that mpirun gets to end a job after one of its ranks has failed.
_PATIENCE = 2.0
# Matches a failure report of rank.py.
_FAILED = re.compile(rb"ultramarine\.launch: rank \d+.* failed: .*\b(signal|status) (\d+)")
# The port on which rank 0 listens under mlx.launch.
_PORT = 12345


def run(options: Options) -> int:
    """Runs a job to its end.

    Args:
        options (Options): What is to be started.

    Returns:
        int: 0, or the status of the rank that failed first.

    Raises:
        LaunchError: The job cannot be started.
    """
    return by_mpirun(options) if options.backend == "mpi" else by_itself(options)


def environment(options: Options) -> dict[str, str]:
    """Variables that all ranks get beside those that they inherit."""
    # Print lines at once, although the output goes through a pipe.
    return {"PYTHONUNBUFFERED": "1", **options.environment}


def mpi_flavour(mpirun: str) -> str:
    """Returns "openmpi" or "mpich", by what mpirun says of itself."""
    try:
        done = subprocess.run(
            [mpirun, "--version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(
            f"{mpirun} --version cannot be run: {error}. Install Open MPI or MPICH, or pass another path by --mpirun"
        ) from None
    text = done.stdout + done.stderr
    if "Open MPI" in text or "OpenRTE" in text or "PRRTE" in text:
        return "openmpi"
    if "HYDRA" in text or "MPICH" in text or "Intel(R) MPI" in text:
        return "mpich"
    raise LaunchError(
        f"{mpirun} is neither Open MPI's nor MPICH's (its version is {text[:60]!r}). Pass the path of one by --mpirun"
    )


def mpi_command(options: Options, flavour: str) -> list[str]:
    """The command line of mpirun.

    Args:
        options (Options): What is to be started.
        flavour (str): "openmpi" or "mpich".

    Returns:
        list[str]: The command.
    """
    size, per_host = str(options.size), options.per_host
    variables = environment(options)
    slots = ",".join(f"{host}:{per_host}" for host in options.hosts)
    if flavour == "openmpi":
        # By default, mpirun binds each rank, with all its threads, to one core.
        command = [options.mpirun, "-q", "-n", size, "--oversubscribe", "--bind-to", "none"]
        if os.geteuid() == 0:
            command.append("--allow-run-as-root")
        if not options.is_local:
            command += ["--host", slots]
        elif not (shutil.which("ssh") or shutil.which("rsh")):
            # Open MPI 4 searches for remote launchers even if it does not need them.
            command += ["--mca", "plm", "isolated"]
        if options.cwd:
            command += ["-wdir", options.cwd]
        for name, value in variables.items():
            command += ["-x", f"{name}={value}"]
    else:
        command = [options.mpirun, "-n", size]
        if not options.is_local:
            command += ["-hosts", slots, "-ppn", str(per_host)]
        if options.cwd:
            command += ["-wdir", options.cwd]
        for name, value in variables.items():
            command += ["-genv", name, value]
    prefix = [] if options.prefix else ["--no-prefix"]
    # The ranks may use another interpreter; rank.py runs with any version.
    wrapper = [sys.executable, os.path.abspath(rank.__file__), *prefix, "--"]
    return [*command, *options.mpi_arguments, *wrapper, *options.command]


class Report(rank.Lines):
    """Standard error of mpirun, handed on as it is; keeps the status of the first rank that failed."""

    status = 0

    def _write(self, line: bytes) -> None:
        super()._write(line)
        if not self.status and (found := _FAILED.match(line)):
            number = int(found[2])
            self.status = 128 + number if found[1] == b"signal" else number


# Variables of batch systems. Under these, mpirun starts ranks by the batch system's own means.
_BATCH = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "LOADL_STEP_ID")


def check_hosts(options: Options) -> None:
    """Runs nothing on each host, by ssh: mpirun may wait for ever for one that it does not reach.

    Args:
        options (Options): What is to be started.

    Raises:
        LaunchError: A host is not reached, or lacks the working directory or the interpreter.
    """
    others = [host for host in dict.fromkeys(options.hosts) if not is_this_host(host)]
    if any(os.environ.get(name) for name in _BATCH) or not shutil.which(options.ssh[0]):
        return
    directory = shlex.quote(options.cwd or ".")
    programs = dict.fromkeys([sys.executable, options.command[0]])
    wanted = " && ".join(f"command -v {shlex.quote(program)}" for program in programs)
    asked = {
        host: subprocess.Popen(
            [*options.ssh, host, f"cd {directory} && {wanted}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            preexec_fn=rank.kill_at_parents_end,
        )
        for host in others
    }
    said = {host: process.communicate() for host, process in asked.items()}
    for host, process in asked.items():
        found, text = (part.strip() for part in said[host])
        if process.returncode == 0:
            continue
        text = f": {text}" if text else ""
        if process.returncode == 255:
            raise LaunchError(
                f"{options.ssh[0]} cannot connect to {host}{text}. Check its name, and that {options.ssh[0]} {host} "
                "asks for no password"
            )
        missing = list(programs)[min(len(found.splitlines()), len(programs) - 1)]
        raise LaunchError(
            f"{host} lacks the directory {options.cwd} or the program {missing}{text}. Give paths that all hosts have, by "
            "--cwd and --python"
        )


def by_mpirun(options: Options) -> int:
    """Runs the ranks by mpirun, and ends it where it does not end all ranks by itself when one fails."""
    check_hosts(options)
    command = mpi_command(options, mpi_flavour(options.mpirun))
    if options.verbose:
        say(f"runs {shlex.join(command)}")
    process = subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=rank.end_at_parents_end)
    assert process.stderr is not None
    report = Report(process.stderr, 2, b"")
    stopped: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        stopped.append(number)
        # An interrupt from the keyboard reaches mpirun directly. A second one would make it abandon its ranks.
        process.send_signal(signal.SIGTERM)

    before = [signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        failed = None
        while process.poll() is None:
            # MPICH's mpirun does not end the other ranks because of one rank's status.
            if report.status and failed is None:
                failed = time.monotonic()
            waited = 0.0 if failed is None else time.monotonic() - failed
            if waited > _PATIENCE and not stopped:
                forward(signal.SIGTERM, None)
            if waited > _PATIENCE + 2 * GRACE:
                process.kill()
            time.sleep(0.02)
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])
    report.thread.join(timeout=GRACE)
    status = rank.shell_status(process.returncode)
    if report.status:
        return report.status
    if stopped:
        # MPICH's mpirun returns 0 if its ranks ended with 0.
        return status or 128 + stopped[0]
    if status:
        say(f"the job failed: mpirun ended with status {status}")
    return status


def mlx_variables(options: Options, number: int) -> dict[str, str]:
    """The variables by which ranks find each other without MPI, as mlx.launch sets them.

    Args:
        options (Options): What is to be started, with the address of rank 0.
        number (int): The rank.

    Returns:
        dict[str, str]: The variables.
    """
    return {
        "MLX_RANK": str(number),
        "MLX_WORLD_SIZE": str(options.size),
        "NCCL_HOST_IP": options.nccl_host or "",
        "NCCL_PORT": str(options.nccl_port),
    }


def own_gpu(options: Options, number: int) -> dict[str, str]:
    """The variable by which a rank sees one GPU, as mlx.launch sets it: streams that a program makes before `init` are that GPU's.

    Args:
        options (Options): What is to be started.
        number (int): The rank.

    Returns:
        dict[str, str]: CUDA_VISIBLE_DEVICES: on this host one of those that it names already.
    """
    local = number % options.per_host
    here = is_this_host(options.hosts[number // options.per_host])
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "").strip() if here else ""
    gpus = [name.strip() for name in named.split(",") if name.strip()]
    return {"CUDA_VISIBLE_DEVICES": gpus[local % len(gpus)] if gpus else str(local)}


def address(options: Options) -> None:
    """Sets the address of rank 0, where it was not given."""
    if options.nccl_host is None:
        first = options.hosts[0]
        if options.is_local:
            options.nccl_host = "127.0.0.1"
        else:
            try:
                options.nccl_host = socket.gethostbyname(first)
            except OSError as error:
                raise LaunchError(
                    f"the address of the host {first} is unknown: {error}. Pass the address of rank 0 by --nccl-host"
                ) from None
            if options.nccl_host.startswith("127."):
                raise LaunchError(
                    f"{first} has the address {options.nccl_host}, which other hosts cannot reach. Pass the address of rank 0 by --nccl-host"
                )
    if options.nccl_port is None:
        options.nccl_port = _free_port() if options.is_local else _PORT


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def ssh_command(options: Options, host: str, variables: dict[str, str]) -> list[str]:
    """The command that runs a rank on another host: the text of rank.py in the Python there.

    Args:
        options (Options): What is to be started.
        host (str): The host.
        variables (dict[str, str]): The rank's variables.

    Returns:
        list[str]: The command.
    """
    with open(rank.__file__, encoding="utf-8") as file:
        source = file.read()
    prefix = [] if options.prefix else ["--no-prefix"]
    # When the connection ends, the rank ends too, so no rank is left behind if this process dies.
    wrapper = ["-c", source, "--quiet", "--ends-with-input", *prefix, "--", *options.command]
    python = options.command[0] if _is_python(options.command[0]) else "python3"
    settings = [f"{name}={value}" for name, value in variables.items()]
    inside = shlex.join(["env", *settings, python, *wrapper])
    return [*options.ssh, host, f"cd {shlex.quote(options.cwd or '.')} && exec {inside}"]


def _is_python(program: str) -> bool:
    return os.path.basename(program).startswith("python")


def start(options: Options, number: int) -> Rank:
    """Starts a rank here or on its host."""
    host = options.hosts[number // options.per_host]
    variables = {
        **own_gpu(options, number),
        **environment(options),
        **mlx_variables(options, number),
    }
    stdin = None if number == 0 else subprocess.DEVNULL
    if is_this_host(host):
        everything = {**os.environ, **variables}
        return Rank(options.command, number, options.prefix, everything, options.cwd, stdin)
    command = ssh_command(options, host, variables)
    # The remote rank.py prefixes its lines itself.
    return Rank(command, number, prefix=False, stdin=subprocess.PIPE)


def by_itself(options: Options) -> int:
    """Runs the ranks as children of this process, or of ssh, and ends all when one fails."""
    address(options)
    if options.verbose:
        say(
            f"runs {options.size} ranks of {shlex.join(options.command)}, "
            f"rank 0 at {options.nccl_host}:{options.nccl_port}"
        )
    ranks: list[Rank] = []
    stopped: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        stopped.append(number)

    before = [signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        for number in range(options.size):
            try:
                ranks.append(start(options, number))
            except OSError as error:
                raise LaunchError(
                    f"rank {number} cannot be started: {error.strerror}: {options.command[0]}. Check the program and its permissions"
                ) from None
        for one in ranks:
            one.relay()
        return watch(options, ranks, stopped)
    finally:
        end_all(ranks)
        for number, handler in zip((signal.SIGTERM, signal.SIGINT), before):
            signal.signal(number, handler)


def watch(options: Options, ranks: list[Rank], stopped: list[int]) -> int:
    """Waits until all ranks have ended, one has failed, or this process is to stop; returns the status."""
    running = list(ranks)
    while running:
        if stopped:
            say(f"ends all ranks: signal {stopped[0]} ({signal.Signals(stopped[0]).name})")
            return 128 + stopped[0]
        for one in list(running):
            status = one.poll()
            if status is None:
                continue
            running.remove(one)
            one.drain()
            if status:
                host = options.hosts[one.rank // options.per_host]
                where = "" if options.is_local else f" on {host}"
                lost = _remote(options, status) if where else ""
                others = "; the other ranks are ended" if running else ""
                say(f"rank {one.rank}{where} failed: {how(status)}{lost}{others}")
                return status
        time.sleep(0.02)
    return 0


def _remote(options: Options, status: int) -> str:
    """Meaning that the status of a rank on another host may have."""
    if status == 255:
        # The exit status of ssh itself.
        return " (the connection failed)"
    if status == 127:
        program = options.command[0]
        return f" (is {program} there? Name the Python of the hosts by --python)"
    return ""


def end_all(ranks: list[Rank]) -> None:
    """Ends what still runs: all are asked, then those that stay are killed."""
    for one in ranks:
        if one.process.stdin is not None:
            one.process.stdin.close()
        one.signal(signal.SIGTERM)
    limit = time.monotonic() + GRACE
    while any(one.poll() is None for one in ranks) and time.monotonic() < limit:
        time.sleep(0.02)
    for one in ranks:
        one.signal(signal.SIGKILL)
    for one in ranks:
        one.wait()
