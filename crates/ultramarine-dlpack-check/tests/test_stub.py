"""The stub of the native module agrees with the module: names, parameters, kinds and defaults."""

from __future__ import annotations

import subprocess
import sys


def test_stub_and_native_module_agree() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "ultramarine_dlpack_check._lab"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
