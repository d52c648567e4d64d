"""Two devices of one backend, on the emulated driver: testing/gpu-checks/two_gpus.py without its times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import plugins
from support.paths import ROOT

import ultramarine as mx


def test_on_the_emulated_driver() -> None:
    found = plugins.emulated_cuda()
    if found is None:
        pytest.skip("the CUDA backend and its emulated driver are not built")
    plugin, variables = found
    package = str(Path(mx.__file__ or "").parents[1])
    done = subprocess.run(
        [sys.executable, str(ROOT / "testing/gpu-checks/two_gpus.py"), "--quick"],
        env={
            **os.environ,
            **variables,
            "ULTRAMARINE_CUDA_DEVICES": "2",
            "EMULATED_CUDA_DEVICES": "2",
            "ULTRAMARINE_BACKEND_PATH": str(plugin.parent),
            "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("8 of 8 passed\n"), done.stdout
