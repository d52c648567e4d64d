"""The line of strict suites: counts by name, of workers too."""

import pytest

from support import devices
from support.devices import Ran, strict_line


def test_the_strict_line_counts_the_backend_s_own_operations() -> None:
    rows = [
        Ran("gpu:0", "vulkan", "", "fft", 3, 0, 200),
        Ran("gpu:1", "vulkan", "", "fft", 0, 1, 5),
        Ran("gpu:0", "vulkan", "", "lu", 0, 0, 112),
        Ran("gpu:0", "vulkan", "", "add", 10_000, 0, 0),
        Ran("cpu:0", "cpu", "", "lu", 7, 0, 0),
    ]
    assert strict_line("vulkan", 523, rows) == (
        "strict for vulkan: 523 passed; 317 of 10,321 operations went to the CPU, "
        "as cpu_ops.py lists them: fft 205, lu 112"
    )
    assert strict_line("cuda", 1, rows) == (
        "strict for cuda: 1 passed; 0 of 0 operations went to the CPU"
    )


def test_counts_of_workers_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "OF_WORKERS", [])
    before = len(devices.op_counts())
    for cpu in (2, 3):
        devices.worker_finished({"op_counts": [("gpu:0", "made up", "", "fft", 1, 0, cpu)]})
    devices.worker_finished({})
    assert strict_line("made up", 2, devices.op_counts()).startswith(
        "strict for made up: 2 passed; 5 of 7 operations went to the CPU"
    )
    assert len(devices.op_counts()) == before + 2
