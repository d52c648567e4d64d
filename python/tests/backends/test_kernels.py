"""Kernels in source form. What runs on the CPU is here; what needs a device that takes OpenCL C or
WGSL is in kernels_on_opencl.py and kernels_on_vulkan.py, run in interpreters of their own, because what is loaded is
never unloaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.plugins import opencl, vulkan

import ultramarine as mx

HERE = Path(__file__).parent


def in_its_own_interpreter(file: str, plugin: Path, **environment: str) -> None:
    package = str(Path(mx.__file__ or "").parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider", file],
        cwd=HERE,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]),
            "PLUGIN": str(plugin),
            "ULTRAMARINE_LOG": "off",
            "ULTRAMARINE_VALIDATE": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout, done.stdout


def test_on_opencl() -> None:
    plugin = opencl()
    if plugin is None:
        pytest.skip("there is no OpenCL device here")
    in_its_own_interpreter("kernels_on_opencl.py", plugin)


@pytest.mark.parametrize("file", ["kernels_on_vulkan.py", "gpu_kernels_on_vulkan.py"])
def test_on_vulkan(file: str) -> None:
    found = vulkan()
    if found is None:
        pytest.skip("there is no Vulkan device here, or `cargo xtask plugins` has not run")
    plugin, environment = found
    in_its_own_interpreter(file, plugin, **environment)


def call(kernel: mx.fast.CustomKernel, **change: object) -> list[mx.array]:
    usual: dict[str, object] = {
        "inputs": [mx.array([1.0, 2.0])],
        "grid": (2, 1, 1),
        "threadgroup": (2, 1, 1),
        "output_shapes": [(2,)],
        "output_dtypes": [mx.float32],
    }
    return kernel(**{**usual, **change})  # type: ignore[arg-type]


def test_the_cpu_says_which_languages_there_are() -> None:
    both = mx.fast.kernel("both", ["x"], ["y"], {"opencl-c": "y[0] = 1;", "wgsl": "y[0] = 1.0;"})
    with pytest.raises(RuntimeError) as failed:
        call(both, stream=mx.cpu)
    text = "[both] The kernel is in opencl-c, wgsl, but cpu:0 (backend cpu) takes: none. Add a source in one of these."
    assert str(failed.value) == text
    for kernel, language in [
        (mx.fast.metal_kernel("m", ["x"], ["y"], "y[0] = 1;"), "msl"),
        (mx.fast.cuda_kernel("c", ["x"], ["y"], "y[0] = 1;"), "cuda-c"),
    ]:
        with pytest.raises(RuntimeError, match=f"is in {language}, but cpu:0"):
            call(kernel, stream=mx.cpu)


def test_definitions_are_validated() -> None:
    source = {"opencl-c": "y[0] = 1;"}
    with pytest.raises(ValueError, match="at least one output"):
        mx.fast.kernel("k", ["x"], [], source)
    with pytest.raises(ValueError, match="source in at least one language"):
        mx.fast.kernel("k", ["x"], ["y"], {})
    with pytest.raises(
        ValueError,
        match=r"Unknown language of kernels `hlsl`\. Use one of opencl-c, cuda-c, msl, wgsl",
    ):
        mx.fast.kernel("k", ["x"], ["y"], {"hlsl": ""})
    with pytest.raises(ValueError, match="Unknown language"):
        mx.fast.kernel("k", ["x"], ["y"], source, header={"c": ""})
    for names in (["x", "x"], ["a b"], ["um_x"], ["1"], [""]):
        with pytest.raises(ValueError):
            mx.fast.kernel("k", names, ["y"], source)
    with pytest.raises(ValueError, match="given twice"):
        mx.fast.kernel("k", ["y"], ["y"], source)
    with pytest.raises(ValueError, match="name is empty"):
        mx.fast.kernel("", ["x"], ["y"], source)
    for wrong in (
        {"source": "y[0] = 1;"},
        {"source": {"opencl-c": 3}},
        {"source": {3: ""}},
        {"input_names": "x"},
        {"header": 3},
        {"name": 3},
        {"shared_memory": "much"},
    ):
        arguments = {
            "name": "k",
            "input_names": ["x"],
            "output_names": ["y"],
            "source": source,
            **wrong,
        }
        with pytest.raises(TypeError):
            mx.fast.kernel(**arguments)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        mx.fast.kernel("k", ["x"], ["y"], source, shared_memory=-1)


def test_it_shows_its_name() -> None:
    kernel = mx.fast.kernel("mine", [], ["y"], source={"msl": ""})
    assert kernel.name == "mine" and repr(kernel) == "<ultramarine.fast.CustomKernel 'mine'>"
