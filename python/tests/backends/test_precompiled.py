"""Compiled kernels: errors on the CPU, and all the rest on the emulated driver and on Vulkan, in interpreters of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import plugins

import ultramarine as mx

HERE = Path(__file__).parent


def check(file: str, found: tuple[Path, dict[str, str]] | None) -> None:
    """Runs a file on a device."""
    if found is None:
        pytest.skip("the backend or its driver is not there")
    plugin, variables = found
    package = str(Path(mx.__file__ or "").parents[1])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--noconftest",
        "-p",
        "no:cacheprovider",
        "-rs",
    ]
    done = subprocess.run(
        [*command, file],
        cwd=HERE,
        env={
            **os.environ,
            **variables,
            "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]),
            "PLUGIN": str(plugin),
            "ULTRAMARINE_VALIDATE": "1",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if " passed" not in done.stdout:
        pytest.skip(done.stdout)


def test_on_the_emulated_driver() -> None:
    check("precompiled_on_cuda.py", plugins.emulated_cuda())


def test_on_vulkan() -> None:
    check("precompiled_on_vulkan.py", plugins.vulkan())


def call(**change: Any) -> list[mx.array]:
    usual: dict[str, Any] = {
        "name": "k",
        "compiled_source": b"\x7fELF",
        "inputs": [mx.array(1.0)],
        "output_shapes": [(1,)],
        "output_dtypes": [mx.float32],
        "scalars": [],
        "grid": (1, 1, 1),
        "threadgroup": (1, 1, 1),
        "stream": mx.cpu,
    }
    return mx.fast.precompiled_kernel(**{**usual, **change})


def test_the_cpu_takes_none() -> None:
    binaries = [
        (b"\x7fELF", "cubin"),
        (b"\x50\xed\x55\xba", "cubin"),
        (b"\x03\x02\x23\x07", "spirv"),
    ]
    for code, language in [*binaries, (b".v", "ptx")]:
        text = rf"compiled code \({language}\), but cpu:0 \(backend cpu\) takes: none"
        with pytest.raises(RuntimeError, match=text):
            call(compiled_source=code)


def test_arguments_are_validated() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"compiled_source": b""}, "no code"),
        ({"name": ""}, "name `` is empty"),
        ({"output_dtypes": []}, "1 shapes and 0 dtypes"),
        ({"scalars": [1 << 40]}, "does not fit"),
        ({"grid": (-1, 1, 1)}, "-1 threads"),
    ]
    for change, text in refused:
        with pytest.raises(ValueError, match=text):
            call(**change)
    wrong: list[dict[str, Any]] = [
        {"scalars": ["1"]},
        {"compiled_source": "text"},
        {"scalars": [(1, 2)]},
    ]
    for change in wrong:
        with pytest.raises(TypeError):
            call(**change)
