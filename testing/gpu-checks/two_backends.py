"""One GPU under two backends, CUDA and Vulkan: one device unless duplicates are wanted, else two, between which arrays go.

    ULTRAMARINE_BACKEND_PATH=FOLDER:FOLDER python3 testing/gpu-checks/two_backends.py

The folders have the two plugins. Prints a line for each check; the exit status is 1 if
one is wrong.
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

import ultramarine as mx
from ultramarine import backends

DTYPES = (mx.float32, mx.bfloat16, mx.float16, mx.uint8, mx.int64, mx.complex64, mx.bool_)
MIB = 1 << 20


def gpu(i: int) -> mx.Device:
    return mx.Device(mx.gpu, i)


def load(duplicates: bool) -> None:
    backends.load_all(allowed=["cuda", "vulkan"], duplicates=duplicates)


def without_duplicates() -> None:
    """In a process of its own, since backends are not unloaded."""
    load(duplicates=False)
    assert mx.device_count(mx.gpu) == 1, mx.device_count(mx.gpu)
    assert backends.get(gpu(0)).name == "cuda", backends.list()


def arrays_on_both() -> None:
    key = mx.random.key(3)
    results = []
    for i in range(2):
        with mx.stream(gpu(i)):
            x = mx.random.normal((256, 256), key=key)
            y = mx.softmax(x @ x.T, axis=-1) + mx.exp(-x)
            assert y.device == gpu(i)
            results.append(np.array(y))
    np.testing.assert_allclose(results[0], results[1], rtol=2e-4, atol=1e-6)


def copies() -> None:
    for source, target in ((0, 1), (1, 0)):
        for dtype in DTYPES:
            x = mx.arange(5000, dtype=mx.float32, stream=gpu(source)).astype(dtype)
            x = x.reshape(50, 100)
            for view in (x, x[10:20], x.T, x[::-1, ::3], x[7, 7], x[:0]):
                there = mx.copy(view, gpu(target))
                assert there.device == gpu(target)
                want, got = (mx.copy(a, mx.cpu) for a in (view, there))
                assert mx.array_equal(want, got), (dtype, view.shape)
    # Each copy waits for what wrote its source.
    x = mx.zeros((MIB // 4,), stream=gpu(0))
    for i in range(20):
        x = mx.copy(x + 1, gpu(1 - i % 2))
    assert mx.min(x).item() == mx.max(x).item() == 20


def rates() -> None:
    for source, target in ((0, 1), (1, 0)):
        x = mx.zeros((256 * MIB,), mx.uint8, stream=gpu(source)) + 1
        best = float("inf")
        for _ in range(3):
            fresh = x + 0
            mx.eval(fresh)
            mx.synchronize(gpu(source))
            begun = time.perf_counter()
            there = mx.copy(fresh, gpu(target))
            mx.eval(there)
            mx.synchronize(gpu(target))
            best = min(best, time.perf_counter() - begun)
        print(f"gpu:{source} -> gpu:{target}: {256 * MIB / best / 1e9:.1f} GB/s")


def main() -> int:
    if sys.argv[1:] == ["--one"]:
        without_duplicates()
        return 0
    done = subprocess.run([sys.executable, __file__, "--one"], check=False)
    print(f"one device without duplicates: {'WRONG' if done.returncode else 'right'}", flush=True)
    load(duplicates=True)
    assert mx.device_count(mx.gpu) == 2, mx.device_count(mx.gpu)
    for check in (arrays_on_both, copies, rates):
        check()
        print(f"{check.__name__.replace('_', ' ')}: right", flush=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
