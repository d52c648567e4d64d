"""Two devices of one backend, where there is one or none: testing/gpu-checks/two_gpus.py without its times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import plugins
from support.paths import ROOT

import ultramarine as mx


def check(plugin: Path, variables: dict[str, str]) -> None:
    package = str(Path(mx.__file__ or "").parents[1])
    done = subprocess.run(
        [sys.executable, str(ROOT / "testing/gpu-checks/two_gpus.py"), "--quick"],
        env={
            **os.environ,
            **variables,
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


def test_on_the_emulated_driver() -> None:
    found = plugins.emulated_cuda()
    if found is None:
        pytest.skip("the CUDA backend and its emulated driver are not built")
    plugin, variables = found
    two = {"ULTRAMARINE_CUDA_DEVICES": "2", "EMULATED_CUDA_DEVICES": "2"}
    check(plugin, {**variables, **two})


def test_on_vulkan_by_a_layer_that_lists_the_driver_twice(tmp_path: Path) -> None:
    found, layer = plugins.vulkan(), plugins.VULKAN_LAYER
    if found is None or not layer.is_file():
        pytest.skip("the Vulkan backend or the tests' layer is not built, or there is no driver")
    plugin, variables = found
    text = (ROOT / "testing/vulkan-layer/manifest.json").read_text()
    (tmp_path / "layer.json").write_text(text.replace(f"./{layer.name}", str(layer)))
    two = {
        "VK_LAYER_PATH": str(tmp_path),
        "VK_INSTANCE_LAYERS": "VK_LAYER_ULTRAMARINE_test",
        "ULTRAMARINE_TEST_LAYER": "twice",
    }
    check(plugin, {**variables, **two})
