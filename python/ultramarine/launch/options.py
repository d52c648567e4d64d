"""Arguments of the launcher."""

import argparse
import dataclasses
import os
import shutil
import socket
import sys

BACKENDS = ("any", "mpi", "nccl")
_LOCAL = ("localhost", "127.0.0.1", "::1")

DESCRIPTION = """\
Starts a program as several processes, the ranks of `ultramarine.distributed`, on this host or, over ssh, on several. Their lines are
marked with their rank. When one fails, the others are ended, and its status is the launcher's."""

EPILOG = """\
backends:
  mpi   starts the ranks by mpirun (Open MPI or MPICH). Arrays of the CPU, and of GPUs with NCCL.
  nccl  starts them without MPI, with the variables that mlx.launch sets: MLX_RANK, MLX_WORLD_SIZE, NCCL_HOST_IP, NCCL_PORT,
        and a GPU for each by CUDA_VISIBLE_DEVICES (--env CUDA_VISIBLE_DEVICES=0,1 shows all ranks the same ones).
  any   mpi where mpirun is installed, else nccl.

examples:
  python -m ultramarine.launch -n 2 train.py --epochs 3
  python -m ultramarine.launch -n 4 --backend nccl -m package.train
  python -m ultramarine.launch -n 8 --hosts gpu-a,gpu-b --env NCCL_DEBUG=INFO train.py

Other hosts need the same paths of Python, of the program and of the working directory, and ssh without a password."""


class LaunchError(Exception):
    """A job that cannot be started. Its text has the remedy."""


@dataclasses.dataclass
class Options:
    """The job that is to be started.

    Attributes:
        hosts (list[str]): Names of the hosts, in the order of ranks.
        per_host (int): Ranks on each host.
        backend (str): "mpi" or "nccl".
        command (list[str]): The program with its arguments.
        environment (dict[str, str]): Variables of all ranks.
        cwd (str, optional): Their working directory.
        prefix (bool): Marks lines with the rank.
        mpirun (str): Path of mpirun, for "mpi".
        mpi_arguments (list[str]): More arguments of mpirun.
        nccl_host (str, optional): Address of rank 0, for "nccl".
        nccl_port (int, optional): Port of rank 0.
        ssh (list[str]): Command that runs another on a host.
        verbose (bool): Shows what is started.
    """

    hosts: list[str]
    per_host: int
    backend: str
    command: list[str]
    environment: dict[str, str]
    cwd: str | None = None
    prefix: bool = True
    mpirun: str = ""
    mpi_arguments: list[str] = dataclasses.field(default_factory=list)
    nccl_host: str | None = None
    nccl_port: int | None = None
    ssh: list[str] = dataclasses.field(default_factory=lambda: ["ssh", "-o", "BatchMode=yes"])
    verbose: bool = False

    @property
    def size(self) -> int:
        """Number of all ranks."""
        return len(self.hosts) * self.per_host

    @property
    def is_local(self) -> bool:
        """True where this host alone takes part."""
        return all(is_this_host(host) for host in self.hosts)


def is_this_host(name: str) -> bool:
    """Returns True for names of the host that this runs on."""
    return name in _LOCAL or name in (socket.gethostname(), socket.getfqdn())


def _positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return number


def _port(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if not 1 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port. Pass 1 to 65535")
    return number


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.replace("_", "a").isalnum() or name[0].isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _hosts(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    # ssh would interpret such a name as an option.
    if not all(names) or any(name.startswith("-") for name in names):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of hosts. Pass names separated by commas"
        )
    return names


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m ultramarine.launch",
        usage="python -m ultramarine.launch -n N [options] program [arguments]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("-n", "--processes", type=_positive, default=1, metavar="N", help="ranks on each host (1)")
    add("--hosts", type=_hosts, default=["localhost"], help="names with commas (localhost)")
    add("--backend", choices=BACKENDS, default="any", help="see below (any)")
    add("-m", "--module", action="store_true", help="the program is a module's name")
    add(
        "--env",
        type=_variable,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable of all ranks; again for more",
    )
    add("--cwd", metavar="DIR", help="working directory of the ranks (this one)")
    add("--python", metavar="PATH", help="interpreter of the ranks (this one)")
    add("--no-prefix", action="store_true", help="leave the ranks' lines as they are")
    add("--mpirun", metavar="PATH", help="mpirun of Open MPI or MPICH (the first on PATH)")
    add(
        "--mpi-arg",
        action="append",
        default=[],
        metavar="ARG",
        help="an argument for mpirun, as --mpi-arg=--display-map; again for more",
    )
    add("--nccl-host", metavar="IP", help="address of rank 0 that all hosts reach")
    add(
        "--nccl-port",
        type=_port,
        metavar="PORT",
        help="port of rank 0 (a free one; with other hosts 12345)",
    )
    add("--verbose", action="store_true", help="show what is started")
    add("program", help="a Python file, a module with -m, or any program")
    add("arguments", nargs=argparse.REMAINDER, help="its arguments")
    return made


def parse(arguments: list[str] | None) -> Options:
    """Returns the options of a command line.

    Args:
        arguments (list[str], optional): The arguments; those of this process by default.

    Returns:
        Options: What is to be started.

    Raises:
        LaunchError: The program, mpirun or a directory is missing.
    """
    given = parser().parse_args(arguments)
    made = Options(
        hosts=given.hosts,
        per_host=given.processes,
        backend=given.backend,
        command=_command(given),
        environment=dict(given.env),
        cwd=given.cwd,
        prefix=not given.no_prefix,
        mpi_arguments=given.mpi_arg,
        nccl_host=given.nccl_host,
        nccl_port=given.nccl_port,
        verbose=given.verbose,
    )
    if made.cwd is None and not made.is_local:
        made.cwd = os.getcwd()
    if made.cwd is not None and made.is_local and not os.path.isdir(made.cwd):
        raise LaunchError(f"--cwd {made.cwd} is not a directory. Create it, or name another")
    if given.backend in ("any", "mpi"):
        made.mpirun = _mpirun(given.mpirun) or ""
        if not made.mpirun and (given.backend == "mpi" or given.mpirun):
            wanted = given.mpirun or "mpirun"
            raise LaunchError(
                f"{wanted} is not found. Install Open MPI or MPICH (apt-get install openmpi-bin; brew install open-mpi), or give "
                "its path by --mpirun"
            )
        made.backend = "mpi" if made.mpirun else "nccl"
    return made


def _mpirun(given: str | None) -> str | None:
    names = [given] if given else ["mpirun", "mpiexec", "mpirun.openmpi", "mpirun.mpich"]
    return next((path for name in names if (path := shutil.which(name))), None)


def _command(given: argparse.Namespace) -> list[str]:
    """The program with its interpreter."""
    python = given.python or sys.executable
    if given.module:
        return [python, "-m", given.program, *given.arguments]
    program = given.program
    local = all(is_this_host(host) for host in given.hosts)
    if program.endswith(".py"):
        path = os.path.join(given.cwd or "", program)
        if local and not os.path.isfile(path):
            raise LaunchError(f"{path} is not a file. Check the program's path")
        return [python, program, *given.arguments]
    if local and shutil.which(program) is None:
        raise LaunchError(
            f"{program} is neither a Python file nor a program on PATH. Give a file that ends with .py, a module with -m, or the "
            "program's path"
        )
    return [program, *given.arguments]
