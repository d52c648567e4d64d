"""Tensors on devices: what is on a GPU for others, what others have for a GPU. On the OpenCL
backend, where there is a device for it; each test has an interpreter of its own, since a backend cannot be
unloaded. (The tests with raw OpenCL calls are in Rust: backends::opencl::dlpack.)"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.plugins import opencl, run

HEAD = """
import os, time
import numpy as np
if "PLUGIN" in os.environ:
    backends.load(os.environ["PLUGIN"])
    gpu = mx.Device(mx.gpu, 0)
E = mx.InterchangeError
def error(kind, f, *parts):
    try:
        f()
    except kind as e:
        assert all(p in str(e) for p in parts), e
        return e
    raise AssertionError("no error")
"""


@pytest.fixture
def plugin() -> Path:
    found = opencl()
    if found is None:
        pytest.skip("there is no OpenCL device here")
    return found


def on(plugin: Path, script: str) -> str:
    return run(HEAD + script, PLUGIN=str(plugin), ULTRAMARINE_VALIDATE="1")


def test_host_memory_on_a_device(plugin: Path) -> None:
    on(
        plugin,
        """
a = np.arange(12, dtype=np.float32).reshape(3, 4)
x = mx.from_dlpack(a, device=gpu)
assert x.device == gpu and x.tolist() == a.tolist()
assert mx.sum(x * 2).item() == a.sum() * 2
view = mx.from_dlpack(a[1:, ::-2], device=gpu)
assert view.tolist() == a[1:, ::-2].tolist()
own = mx.from_dlpack(a, device=gpu, copy=True)
try:
    shared = mx.from_dlpack(a, device=gpu, copy=False)
except E:
    shared = None
a[0, 0] = 50
assert own.tolist()[0][0] == 0
if shared is not None:
    assert shared.tolist()[0][0] == 50
assert mx.from_dlpack(a, device=mx.cpu).device == mx.cpu
assert mx.from_dlpack(np.zeros((0, 3), np.int8), device=gpu).shape == (0, 3)
assert backends.validation_findings() == 0
""",
    )


def test_a_device_for_consumers(plugin: Path) -> None:
    on(
        plugin,
        """
x = mx.copy(mx.array([[1.0, 2.0], [3.0, 4.0]]), gpu)
mx.eval(x)
assert x.__dlpack_device__() == (4, 0) and (x + x).__dlpack_device__() == (4, 0)
# A library that has no such device says so; one that asks for a copy on the CPU gets one.
error(Exception, lambda: np.from_dlpack(x))
there = np.from_dlpack(x.T, device="cpu")
assert there.tolist() == [[1.0, 3.0], [2.0, 4.0]]
there += 1 if there.flags.writeable else 0
assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
assert isinstance(error(E, lambda: x.__dlpack__(dl_device=(1, 0), copy=False)), BufferError)
for stream in (None, -1):
    assert "dltensor" in repr(x.__dlpack__(stream=stream))
for stream in (0, 1, 2, -2):
    error(ValueError, lambda: x.__dlpack__(stream=stream), "OpenCL")
error(TypeError, lambda: x.__dlpack__(dl_device=(2, 0)), 'the backend "cuda"', "opencl (OpenCL)")
error(E, lambda: x.__dlpack__(dl_device=(4, 9)), "no OpenCL device 9", "serves 1 device")
on_gpu = mx.array([5.0]).__dlpack__(dl_device=(4, 0), max_version=(1, 3))
assert mx.from_dlpack(on_gpu).device == gpu
assert backends.validation_findings() == 0
""",
    )


def test_from_a_device_to_itself_and_home(plugin: Path) -> None:
    on(
        plugin,
        """
x = mx.copy(mx.arange(6), gpu)
for capsule in (x.__dlpack__(), x.__dlpack__(max_version=(1, 3)), x[::2].__dlpack__()):
    y = mx.from_dlpack(capsule)
    assert y.device == gpu and y[0].item() == 0
class Other:
    def __dlpack__(self, *, stream=None, **words):
        self.stream = stream
        return x.__dlpack__(stream=stream, **words)
    def __dlpack_device__(self):
        return x.__dlpack_device__()
other = Other()
y = mx.from_dlpack(other)
assert y.device == gpu and (y + x).tolist() == [0, 2, 4, 6, 8, 10]
# Our queue, which a producer makes wait.
assert other.stream is None or other.stream > 2, other.stream
home = mx.from_dlpack(other, device=mx.cpu)
assert home.device == mx.cpu and home.tolist() == x.tolist()
error(E, lambda: mx.from_dlpack(other, device=mx.cpu, copy=False), "copy=False")
assert mx.from_dlpack(other, device=gpu, copy=False).device == gpu
assert np.array(mx.from_dlpack(x, device=mx.cpu)).sum() == 15
assert backends.validation_findings() == 0
""",
    )


def test_many_rounds_leave_no_memory(plugin: Path) -> None:
    on(
        plugin,
        """
a = np.ones(50_000, np.float32)
def rounds(n):
    for _ in range(n):
        x = mx.from_dlpack(a, device=gpu)
        y = mx.from_dlpack((x + 1).__dlpack__())
        assert y[-1].item() == 2.0
    del x, y
    mx.synchronize(mx.default_stream(gpu))
    return mx.get_active_memory(gpu)
before = rounds(3)
now = rounds(200)
# OpenCL gives memory up on threads of its own, a moment after the work that used it.
for _ in range(1000):
    if now <= before:
        break
    time.sleep(0.01)
    now = mx.get_active_memory(gpu)
assert now <= before, (before, now)
assert backends.validation_findings() == 0
""",
    )


def test_no_backend_serves_the_device() -> None:
    run(
        HEAD
        + """
x = mx.array([1.0])
e = error(E, lambda: x.__dlpack__(dl_device=(2, 0)), 'the backend "cuda"', "ultramarine-cuda",
          "loaded: cpu (CPU)", "ultramarine.backends")
assert isinstance(e, BufferError) and isinstance(e, ValueError) and isinstance(e, TypeError)
error(E, lambda: x.__dlpack__(dl_device=(8, 0)), "Metal")
error(E, lambda: x.__dlpack__(dl_device=(1, 1)), "no CPU 1")
""",
        ULTRAMARINE_BACKEND_AUTOLOAD="0",
    )
