"""Programs in processes of their own: as Python runs them, with the installed mlx, and with Ultramarine in its place."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import ultramarine

AS_MLX = ("-m", "ultramarine.as_mlx")
PACKAGE = Path(ultramarine.__file__ or "").parents[1]


@dataclass(frozen=True)
class Ended:
    """Exit status and output of a process."""

    status: int
    out: str
    err: str


def python(
    *arguments: str, cwd: Path | None = None, text: str | None = None, **environment: str
) -> Ended:
    """Runs the interpreter, which finds Ultramarine. Standard input is `text`."""
    mlx = ("ULTRAMARINE_", "MLX_")
    plain = {k: v for k, v in os.environ.items() if not k.startswith(mlx)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        input=text,
        env={**plain, "PYTHONPATH": str(PACKAGE), "ULTRAMARINE_LOG": "off", **environment},
        capture_output=True,
        text=True,
        timeout=180,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def output(*arguments: str, cwd: Path | None = None, **environment: str) -> str:
    """Output of a program that ends well."""
    ended = python(*arguments, cwd=cwd, **environment)
    assert ended.status == 0, ended.err
    return ended.out


def script(source: str, *, as_mlx: bool = False, cwd: Path | None = None) -> str:
    """Output of a piece of code that ends well; with `as_mlx`, it has MLX's names from the start."""
    return output(*(AS_MLX if as_mlx else ()), "-c", textwrap.dedent(source), cwd=cwd)
