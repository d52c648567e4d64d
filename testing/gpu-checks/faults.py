"""Failures of a GPU: out of memory, a kernel that faults, each in a process of its own. The exception has to be clear, and
the process has to go on as far as CUDA allows.

    python3 testing/gpu-checks/faults.py [CASE]
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import ultramarine as mx

CASES: dict[str, Callable[[], None]] = {}


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


@case
def out_of_memory() -> None:
    """More than the device has: an error; what was there is there still, and work goes on."""
    keep = mx.arange(1000)
    mx.eval(keep)
    try:
        mx.eval(mx.zeros((1 << 42,), dtype=mx.uint8) + 1)
    except (MemoryError, RuntimeError) as error:
        print("reported:", error)
    else:
        raise SystemExit("4 TiB were given")
    assert mx.sum(keep).item() == 499500
    assert mx.sum(mx.ones((1 << 20,))).item() == 1 << 20


@case
def memory_comes_back() -> None:
    """What the cache holds is given back before an allocation fails."""
    total = mx.device_info(mx.gpu)["memory_size"]
    part = int(total * 0.3)
    for size in (part, part + 4096, part + 8192, part + 12288, part + 16384):
        mx.eval(mx.zeros((size,), dtype=mx.uint8))
    mx.eval(mx.zeros((int(total * 0.6),), dtype=mx.uint8))
    print("cache", mx.get_cache_memory(), "active", mx.get_active_memory())


@case
def limit() -> None:
    """A memory limit is kept, with a clear error."""
    former = mx.set_memory_limit(64 << 20)
    try:
        mx.eval(mx.zeros((256 << 20,), dtype=mx.uint8))
        print("reported: nothing; limits are not firm here")
    except (MemoryError, RuntimeError) as error:
        print("reported:", error)
    mx.set_memory_limit(former)
    assert mx.sum(mx.ones((1 << 20,))).item() == 1 << 20


@case
def kernel_fault() -> None:
    """A kernel of the user's writes where nothing is: waits report it; the CPU works on, values that the host
    has are there."""
    kept = mx.arange(10, stream=mx.cpu)
    mx.eval(kept)
    bad = mx.fast.cuda_kernel(
        "bad", ["x"], ["y"], "((float *)(size_t)(64 + x[0]))[threadIdx.x] = 1; y[0] = 2;"
    )
    x = mx.zeros((4,))
    try:
        (y,) = bad(
            inputs=[x],
            grid=(32, 1, 1),
            threadgroup=(32, 1, 1),
            output_shapes=[(4,)],
            output_dtypes=[mx.float32],
            stream=mx.gpu,
        )
        mx.eval(y)
        print(y.tolist())
    except RuntimeError as error:
        print("reported:", error)
    else:
        raise SystemExit("no error after a fault")
    try:
        print(mx.sum(mx.ones((8,), stream=mx.gpu), stream=mx.gpu).item())
    except RuntimeError as error:
        print("later work reports:", error)
    else:
        raise SystemExit("the context should be lost")
    assert mx.sum(kept, stream=mx.cpu).item() == 45
    assert mx.sum(mx.ones((8,), stream=mx.cpu), stream=mx.cpu).item() == 8


@case
def compile_error() -> None:
    """A kernel that does not compile: the log, in the user's lines; all else goes on."""
    bad = mx.fast.cuda_kernel("bad", ["x"], ["y"], "y[0] = no_such_thing(x[0]);")
    try:
        (y,) = bad(
            inputs=[mx.zeros((4,))],
            grid=(1, 1, 1),
            threadgroup=(1, 1, 1),
            output_shapes=[(4,)],
            output_dtypes=[mx.float32],
            stream=mx.gpu,
        )
        mx.eval(y)
    except Exception as error:
        assert "no_such_thing" in str(error), error
        print("reported:", str(error).splitlines()[0])
    else:
        raise SystemExit("it compiled")
    assert mx.sum(mx.ones((8,))).item() == 8


def main() -> int:
    if len(sys.argv) > 1:
        mx.set_default_device(mx.gpu)
        CASES[sys.argv[1]]()
        return 0
    failed = []
    for name in CASES:
        done = subprocess.run(
            [sys.executable, __file__, name], capture_output=True, text=True, timeout=60
        )
        words = (done.stdout + done.stderr).strip().splitlines()
        print(
            f"{'ok' if done.returncode == 0 else 'FAILED':7} {name} ({done.returncode}): "
            + "\n        ".join(line[:400] for line in words[-6:])
        )
        if done.returncode:
            failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
