"""An ssh server of the tests' own, on two addresses of this machine: `gpu-a` and `gpu-b` are two hosts for the launcher and for mpirun."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# `gpu-down` has no server, and `gpu-shut` one that does not know the key.
CLIENT = """
Host gpu-a
  HostName 127.0.0.1
Host gpu-b
  HostName 127.0.0.2
Host gpu-down
  HostName 127.0.0.3
Host gpu-shut
  HostName 127.0.0.2
  IdentityFile {folder}/other
Host gpu-a gpu-b gpu-down
  IdentityFile {folder}/key
Host *
  Port {port}
  IdentitiesOnly yes
  BatchMode yes
  ConnectTimeout 10
  StrictHostKeyChecking accept-new
  UserKnownHostsFile {folder}/known
  LogLevel ERROR
"""

SERVER = """
Port {port}
ListenAddress 127.0.0.1
ListenAddress 127.0.0.2
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PermitUserEnvironment no
UsePAM no
MaxStartups 50
PidFile none
"""


def server_program() -> str:
    """Path of sshd; skips the test where there is none."""
    found = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    if found is None or shutil.which("ssh") is None:
        pytest.skip("no ssh server is installed (apt-get install openssh-server)")
    return found


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Runs a server; gives the folder with an `ssh` that knows its hosts, for PATH."""
    program = server_program()
    for name in ("host", "key", "other"):
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(keygen, check=True, timeout=60)
    shutil.copy(folder / "key.pub", folder / "authorized")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    (folder / "server").write_text(SERVER.format(port=port, folder=folder))
    (folder / "client").write_text(CLIENT.format(port=port, folder=folder))
    programs = folder / "bin"
    programs.mkdir()
    client = programs / "ssh"
    client.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/client "$@"\n')
    client.chmod(0o755)
    if os.geteuid() == 0:
        # Where a server of the system's separates privileges.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    log = (folder / "log").open("w")
    command = [program, "-D", "-e", "-f", str(folder / "server")]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)
    try:
        wait_for(server, str(client), folder / "log")
        yield str(programs)
    finally:
        server.terminate()
        server.wait(timeout=30)
        log.close()


def wait_for(server: subprocess.Popen[bytes], client: str, log: Path) -> None:
    """Waits until both hosts answer."""
    limit = time.monotonic() + 30
    for host in ("gpu-a", "gpu-b"):
        while True:
            done = subprocess.run([client, host, "true"], capture_output=True, timeout=60)
            if done.returncode == 0:
                break
            if server.poll() is not None or time.monotonic() > limit:
                pytest.fail(f"{host} does not answer: {done.stderr!r}\n{log.read_text()}")
            time.sleep(0.1)
