"""One rank: runs its program, marks its lines, passes signals on and says how it failed.

The launcher imports this file; `mpirun` runs it as a script, once a rank; ssh hands its text to the Python of another host. So it
imports nothing but the standard library.
"""

import argparse
import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
from types import FrameType
from typing import IO

# Environment variables in which launchers give a process its rank, and those for the number of
# processes.
RANKS = ("MLX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
# Seconds that a program gets to end by itself.
GRACE = 5.0

_LINE = re.compile(rb"[^\n\r]*(?:\r\n|\n|\r)")


class Lines:
    """Marks the lines of a pipe and hands them on, whole: those of several ranks do not mix.

    It reads and writes by descriptors: a thread that waits within one of Python's files aborts the interpreter's end.
    """

    lock = threading.Lock()

    def __init__(self, pipe: IO[bytes], into: int, mark: bytes) -> None:
        """Reads `pipe` in a thread of its own until it ends, and writes to the descriptor `into`, with `mark` before each line."""
        self.pipe, self.into, self.mark = pipe, into, mark
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        rest = b""
        while piece := os.read(self.pipe.fileno(), 65536):
            rest += piece
            end = 0
            for line in _LINE.finditer(rest):
                # A carriage return at the end may be the first half of a line ending.
                if line.group().endswith(b"\r") and line.end() == len(rest):
                    break
                self._write(line.group())
                end = line.end()
            rest = rest[end:]
        if rest:
            self._write(rest if rest.endswith((b"\n", b"\r")) else rest + b"\n")

    def _write(self, line: bytes) -> None:
        with self.lock:
            try:
                write(self.into, self.mark + line)
            except OSError:
                # Nothing reads the output; the program continues.
                pass


def signal_at_parents_end(number: int) -> None:
    """Has Linux send this process a signal when its parent ends, which may be killed and end nothing itself."""
    try:
        # prctl option PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(1, int(number), 0, 0, 0)
    except (AttributeError, OSError):
        pass


def kill_at_parents_end() -> None:
    """As `signal_at_parents_end`, in a new process."""
    signal_at_parents_end(signal.SIGKILL)


def end_at_parents_end() -> None:
    """As `signal_at_parents_end`, in a new process that ends others when it is told to."""
    signal_at_parents_end(signal.SIGTERM)


class Rank:
    """A running program of one rank."""

    def __init__(
        self,
        command: list[str],
        rank: int,
        prefix: bool = True,
        environment: dict[str, str] | None = None,
        cwd: str | None = None,
        stdin: int | None = None,
    ) -> None:
        """Starts the program. Call it in the main thread, before `relay` of any rank makes threads.

        Args:
            command (list[str]): The program with its arguments.
            rank (int): Its rank.
            prefix (bool): Puts `[rank]` before its lines.
            environment (dict[str, str], optional): Its environment.
            cwd (str, optional): Its working directory.
            stdin (int, optional): Its standard input, as for `subprocess.Popen`.
        """
        self.rank = rank
        pipe = subprocess.PIPE if prefix else None
        # MPICH's processes communicate with their launcher through an inherited open file.
        self.process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=pipe,
            stderr=pipe,
            env=environment,
            cwd=cwd,
            close_fds=False,
            preexec_fn=kill_at_parents_end,
        )
        self.lines: list[Lines] = []

    def relay(self) -> None:
        """Hands its lines on, marked, from here on."""
        mark = f"[{self.rank}] ".encode()
        process = self.process
        outputs = ((process.stdout, 1), (process.stderr, 2))
        self.lines = [Lines(pipe, into, mark) for pipe, into in outputs if pipe is not None]

    def poll(self) -> int | None:
        """Returns its status as a shell would give it, or None while it runs."""
        status = self.process.poll()
        return None if status is None else shell_status(status)

    def wait(self) -> int:
        """Waits for its end and its last lines; returns its status."""
        status = shell_status(self.process.wait())
        self.drain()
        return status

    def drain(self) -> None:
        """Waits for its last lines. Children that it left behind may hold the pipe: not for long."""
        for lines in self.lines:
            lines.thread.join(timeout=2.0)

    def signal(self, number: int) -> None:
        """Sends a signal, unless it has ended."""
        if self.process.poll() is None:
            try:
                self.process.send_signal(number)
            except ProcessLookupError:
                pass

    def end(self) -> None:
        """Asks it to end, and kills it where it does not."""
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def shell_status(status: int) -> int:
    """128 and the signal's number for a process that a signal ended."""
    return 128 - status if status < 0 else status


def how(status: int) -> str:
    """Says how a program with this status ended."""
    if status > 128:
        try:
            name = signal.Signals(status - 128).name
        except ValueError:
            pass
        else:
            return f"it was ended by signal {status - 128} ({name})"
    return f"it exited with status {status}"


def write(descriptor: int, text: bytes) -> None:
    """Writes all of it, at once where the system takes it so."""
    while text:
        text = text[os.write(descriptor, text) :]


def say(text: str) -> None:
    """Writes a line of the launcher's own."""
    with Lines.lock:
        write(2, f"ultramarine.launch: {text}\n".encode())


def here() -> int:
    """Returns this process's rank, by its environment; 0 where no launcher gave one."""
    for name in RANKS:
        text = os.environ.get(name, "")
        if text.isdigit():
            return int(text)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Runs the program of this rank; returns its status."""
    parser = argparse.ArgumentParser(prog="ultramarine.launch.rank")
    parser.add_argument("--no-prefix", action="store_true", help="leave lines as they are")
    parser.add_argument("--host", default="", help="this host's name, for reports")
    parser.add_argument("--quiet", action="store_true", help="do not report failures")
    parser.add_argument(
        "--ends-with-input", action="store_true", help="end when standard input is closed"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    rank = here()
    stdin = subprocess.DEVNULL if options.ends_with_input else None
    try:
        running = Rank(command, rank, prefix=not options.no_prefix, stdin=stdin)
    except OSError as error:
        say(f"rank {rank} failed: {command[0]} cannot be started: {error.strerror}; status 127")
        return 127
    running.relay()
    ended: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        ended.append(number)
        running.signal(number)
        if number != signal.SIGINT:
            timer = threading.Timer(GRACE, running.process.kill)
            timer.daemon = True
            timer.start()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, forward)
    end_at_parents_end()
    if options.ends_with_input:

        def watch() -> None:
            while os.read(0, 4096):
                pass
            ended.append(0)
            running.end()

        threading.Thread(target=watch, daemon=True).start()
    status = running.wait()
    # A process that was told to end did not fail.
    if status and not ended and not options.quiet:
        host = f" on {options.host}" if options.host else ""
        say(f"rank {rank}{host} failed: {how(status)}; the other ranks are ended")
    return status


if __name__ == "__main__":
    sys.exit(main())
