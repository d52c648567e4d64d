"""Builds the wheel: see `python/tools/backend_wheel.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python" / "tools"))
from backend_wheel import build_program

build_program("ultramarine-conform")
