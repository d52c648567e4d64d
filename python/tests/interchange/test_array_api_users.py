"""Libraries that work on arrays by way of the array API standard: SciPy and scikit-learn."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
from support.paths import ROOT


def test_example() -> None:
    missing = [name for name in ("scipy", "sklearn") if importlib.util.find_spec(name) is None]
    if missing:
        reason = f"not installed: {', '.join(missing)}"
        if os.environ.get("ULTRAMARINE_NEEDS_PEERS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    # In a process of its own: SciPy reads its variable when it is imported.
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "array_api.py")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) > 20
    assert all(" ours " in line or " left out: " in line for line in lines)
