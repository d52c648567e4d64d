"""A Triton kernel that works in place on an Ultramarine array: the memory crosses by DLPack, nothing is copied.

    pip install ultramarine ultramarine-cuda torch triton
    python examples/triton_kernel.py

Needs an NVIDIA GPU; says so and ends where there is none.
"""

# Triton has no types of its own, and takes those of Python for global variables.
# mypy: disable-error-code="import-untyped, import-not-found, untyped-decorator, no-untyped-def, no-untyped-call"

from __future__ import annotations

import sys

import ultramarine as mx

try:
    import torch
    import triton
    import triton.language as tl
    from torch.utils.dlpack import from_dlpack
except ImportError as missing:
    print(f"SKIPPED: {missing}")
    sys.exit(0)


@triton.jit
def swish_in_place(x_pointer, n, beta, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_pointer + at, mask=at < n)
    tl.store(x_pointer + at, x * tl.sigmoid(beta * x), mask=at < n)


def main() -> int:
    if not torch.cuda.is_available() or not mx.is_available(mx.gpu):
        print("SKIPPED: there is no GPU here")
        return 0
    mx.set_default_device(mx.gpu)
    x = mx.random.normal((1_000_003,), key=mx.random.key(7))
    want = x * mx.sigmoid(1.5 * x)
    # `want` is computed before the kernel writes over `x`.
    mx.eval(x, want)

    # torch's view of the memory; it waits for our stream, on the stream that is torch's current one.
    view = from_dlpack(x)
    address = view.data_ptr()
    swish_in_place[(triton.cdiv(x.size, 1024),)](view, x.size, 1.5, BLOCK=1024)
    # Our own later work does not know of torch's stream: wait for it once.
    torch.cuda.current_stream().synchronize()

    assert from_dlpack(x).data_ptr() == address, "the memory moved"
    far = mx.max(mx.abs(x - want)).item()
    print(f"in place at {address:#x}: largest difference to our own swish {far:.2g}")
    return 0 if far < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
