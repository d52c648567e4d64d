"""NVIDIA's compute-sanitizer over the kernels: accesses outside of memory, races within blocks, barriers that not all
threads reach, memory that is read before anything was written.

    python3 testing/gpu-checks/sanitize.py [--tools memcheck,racecheck] [--only sort] [--work]

Each tool runs this file again with `--work`, which computes every family of operations at sizes that take each of their
kernels, and compares with the CPU. Without the allocator's cache each buffer is an allocation of the driver's, so that
an access beyond one is seen.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator

import ultramarine as mx

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
# What compute-sanitizer ends with when it found something.
FOUND = 86
Case = tuple[str, Callable[[], mx.array]]


def numbers(*shape: int, dtype: mx.Dtype = mx.float32) -> mx.array:
    """The same on every device; no ties in the first 2^20."""
    count = 1
    for size in shape:
        count *= size
    mixed = (mx.arange(count).astype(mx.uint32) * 2654435761) % (1 << 20)
    small = mixed.astype(mx.float32) / (1 << 19) - 1.0
    if dtype in (mx.float32, mx.float16, mx.bfloat16):
        return small.astype(dtype).reshape(shape)
    return (small * 100).astype(dtype).reshape(shape)


def attention(q: mx.array, k: mx.array, v: mx.array) -> mx.array:
    return mx.fast.scaled_dot_product_attention(q, k, v, scale=0.125, mask="causal")


def families() -> Iterator[Case]:
    """Odd sizes, so that the ends of blocks and of packs are met."""
    f = numbers(67, 1027)
    yield "copy transposed", lambda: mx.contiguous(numbers(67, 1027).T)
    yield "copy strided", lambda: mx.contiguous(numbers(67, 1027)[::-2, 3::5])
    yield "fused", lambda: mx.tanh(f * 3.0 + f[:, :1]) - f[:1]
    yield "fused, reduced", lambda: mx.sum(mx.abs(f) * 2.0, axis=1)
    for dtype in (mx.float16, mx.bfloat16, mx.int32, mx.uint8):
        x = numbers(33, 515, dtype=dtype)
        yield f"elementwise {dtype}", lambda x=x: x[:, 1:] * x[:, :-1]
        yield f"sum of columns {dtype}", lambda x=x: mx.sum(x.astype(mx.float32), axis=0)
        yield f"max {dtype}", lambda x=x: mx.max(x, axis=1)
        yield f"sort {dtype}", lambda x=x: mx.sort(x, axis=1)
    for shape in ((3, 200_003), (200_003, 3), (257, 129, 31)):
        x = numbers(*shape)
        for axis in range(len(shape)):
            yield f"sum {shape} {axis}", lambda x=x, axis=axis: mx.sum(x, axis=axis)
            yield f"argmax {shape} {axis}", lambda x=x, axis=axis: mx.argmax(x, axis=axis)
            yield f"cumsum {shape} {axis}", lambda x=x, axis=axis: mx.cumsum(x, axis=axis)
        yield f"sum {shape}", lambda x=x: mx.sum(x)
    for rows, length in ((300, 100), (7, 3001), (3, 20_000), (2, 70_001)):
        x = numbers(rows, length)
        yield f"sort {length}", lambda x=x: mx.sort(x, axis=-1)
        yield f"argsort {length}", lambda x=x: mx.argsort(x, axis=-1)
        yield f"topk {length}", lambda x=x: mx.sort(mx.topk(x, 17, axis=-1), axis=-1)
        yield f"softmax {length}", lambda x=x: mx.softmax(x, axis=-1)
        yield f"logsumexp {length}", lambda x=x: mx.logsumexp(x, axis=-1)
        yield f"rms_norm {length}", lambda x=x: mx.fast.rms_norm(x, x[0], 1e-5)
        yield f"layer_norm {length}", lambda x=x: mx.fast.layer_norm(x, x[0], x[1], 1e-5)
    q = numbers(2, 3, 65, 32)
    yield "rope", lambda: mx.fast.rope(q, 24, traditional=False, base=1e4, scale=1.0, offset=3)
    yield (
        "rope, pairs",
        lambda: mx.fast.rope(q, 24, traditional=True, base=1e4, scale=1.0, offset=3),
    )
    at = mx.arange(0, 4000, 7) % 67
    yield "take", lambda: mx.take(f, at, axis=0)
    yield "take along", lambda: mx.take_along_axis(f, mx.argsort(f, axis=1), axis=1)
    yield (
        "scatter add",
        lambda: mx.zeros((67, 1027), mx.int32).at[at].add(numbers(572, 1, dtype=mx.int32)),
    )
    yield "scatter", lambda: mx.put_along_axis(f, mx.argsort(f, axis=1), f, axis=1)
    yield "matmul", lambda: numbers(65, 130) @ numbers(130, 33)
    half = numbers(65, 130, dtype=mx.bfloat16)
    yield "matmul of halves", lambda: mx.matmul(half, half.T)
    image, weight = numbers(2, 17, 19, 5), numbers(7, 3, 3, 5)
    yield "convolution", lambda: mx.conv2d(image, weight, stride=2, padding=1)
    # Wide enough for tensor cores, and stride 1, for the kernels that keep a range of the input in shared memory.
    for dtype in (mx.float32, mx.bfloat16):
        wide, taps = numbers(2, 13, 11, 64, dtype=dtype), numbers(64, 3, 3, 64, dtype=dtype)
        yield f"convolution of stride 1 {dtype}", lambda x=wide, w=taps: mx.conv2d(x, w, padding=1)
        yield (
            f"gradient of a convolution {dtype}",
            lambda x=wide, w=taps: mx.grad(lambda w: mx.conv2d(x, w, padding=1).sum())(w),
        )
        alone = numbers(32, 5, 5, 1, dtype=dtype)
        yield (
            f"depthwise convolution {dtype}",
            lambda x=wide[..., :32], w=alone: mx.conv2d(x, w, padding=2, groups=32),
        )
        q, k, v = (numbers(1, 2, n, 64, dtype=dtype) for n in (77, 133, 133))
        yield f"attention {dtype}", lambda q=q, k=k, v=v: attention(q, k, v)
        yield f"one query {dtype}", lambda q=q, k=k, v=v: attention(q[:, :, :1], k, v)
        yield (
            f"gradient of attention {dtype}",
            lambda q=q, k=k, v=v: mx.concatenate(
                mx.grad(lambda *of: attention(*of).astype(mx.float32).sum(), (0, 1, 2))(q, k, v),
                axis=2,
            ),
        )
    yield "random bits", lambda: mx.random.bits((1001,), key=mx.random.key(3))
    yield "arange", lambda: mx.arange(5, 100_000, 3)
    yield "where", lambda: mx.where(f > 0, f, -f[:, ::-1])


def work(only: str) -> int:
    """Each on the GPU and on the CPU."""
    results: list[dict[str, mx.array]] = []
    for device in (mx.gpu, mx.cpu):
        mx.set_default_device(device)
        chosen = (case for case in families() if case[0].startswith(only))
        results.append({name: mx.copy(call(), mx.cpu) for name, call in chosen})
        mx.eval(results[-1])
    there, here = results
    wrong = [
        name
        for name, right in here.items()
        if not mx.allclose(
            there[name].astype(mx.float32), right.astype(mx.float32), rtol=1e-2, atol=5e-3
        ).item()
    ]
    for name in wrong:
        print(f"differs from the CPU: {name}")
    print(f"{len(here)} cases, {len(wrong)} differ")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", default=",".join(TOOLS), help="which tools")
    parser.add_argument("--only", default="", help="families whose names begin so, to find which")
    parser.add_argument("--work", action="store_true", help="compute, without a tool")
    options = parser.parse_args()
    if options.work:
        return work(options.only)
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.access(sanitizer, os.X_OK):
        print("SKIPPED: there is no compute-sanitizer")
        return 0
    environment = {
        **os.environ,
        "ULTRAMARINE_CUDA_MEMORY_CACHE": "0",
        "ULTRAMARINE_CUDA_FUSE": "wait",
    }
    failed = 0
    for tool in options.tools.split(","):
        command = [sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), "--print-limit", "5"]
        command += ["--", sys.executable, __file__, "--work", "--only", options.only]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        how = "nothing found" if done.returncode == 0 else f"exit status {done.returncode}"
        print(f"{tool}: {how}; {lines[-1] if lines else ''}")
        if done.returncode:
            failed += 1
            print("\n".join(f"    {line}" for line in lines[:60]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
