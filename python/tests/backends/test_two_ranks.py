"""Two processes with a device each, on the emulated driver and its NCCL: testing/gpu-checks/two_ranks.py without its rates."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import plugins
from support.paths import ROOT

import ultramarine as mx


@pytest.mark.parametrize(
    "part",
    [
        "collectives",
        "programs",
        "training",
        "replays",
        "replays in debug mode",
        "limits of thread blocks",
        "exit beside a group that ends",
        "a rank that dies",
        "a rank that does not come",
        "ranks that differ",
        "a rank that dies, calls that do not block",
        "a rank that dies in a replay",
    ],
)
def test_on_the_emulated_driver(part: str) -> None:
    found = plugins.emulated_cuda()
    if found is None:
        pytest.skip("the CUDA backend and its emulated driver are not built")
    plugin, variables = found
    package = str(Path(mx.__file__ or "").parents[1])
    done = subprocess.run(
        [
            *(sys.executable, str(ROOT / "testing/gpu-checks/two_ranks.py"), "--quick"),
            *("--part", part),
        ],
        env={
            **os.environ,
            **variables,
            "ULTRAMARINE_CUDA_DEVICES": "2",
            "EMULATED_CUDA_DEVICES": "2",
            "EMULATED_NCCL_CHECK": "1",
            "EMULATED_NCCL_CONNECT": "1",
            "ULTRAMARINE_BACKEND_PATH": str(plugin.parent),
            "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing was checked" not in done.stdout, done.stdout
