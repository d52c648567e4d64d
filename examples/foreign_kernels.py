"""Kernels of Triton, tvm-ffi and TileLang as operations: they write into Ultramarine's arrays, on its stream, and nobody waits.

    pip install ultramarine ultramarine-cuda torch triton apache-tvm-ffi tilelang
    python examples/foreign_kernels.py

Needs an NVIDIA GPU, and nvcc for tvm-ffi and TileLang; leaves out what is not there, and says so.
"""

# mypy: disable-error-code="import-untyped, import-not-found, untyped-decorator, no-untyped-def, no-untyped-call, name-defined, misc, valid-type, unused-ignore"

import shutil
import sys
from functools import cache

import ultramarine as mx

try:
    import torch
    import triton
    import triton.language as tl
    from torch.utils.dlpack import from_dlpack
except ImportError:
    triton = None  # type: ignore[assignment]
try:
    import tvm_ffi.cpp
except ImportError:
    tvm_ffi = None  # type: ignore[assignment]
try:
    import tilelang
    import tilelang.language as T
except ImportError:
    tilelang = None  # type: ignore[assignment]

N, BLOCK = 1 << 16, 256

# Each `axpby_...` writes 4 x + 2 y into `out`: arrays with memory, the last one uninitialised.

if triton is not None:

    @triton.jit
    def axpby_in_triton(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        result = 4.0 * tl.load(x + at, mask=inside) + 2.0 * tl.load(y + at, mask=inside)
        tl.store(out + at, result, mask=inside)


def axpby_by_triton(x: mx.array, y: mx.array, out: mx.array) -> None:
    # Triton launches on torch's current stream.
    ours = torch.cuda.ExternalStream(mx.default_stream(x.device).native)
    with torch.cuda.stream(ours):
        tensors = [from_dlpack(a) for a in (x, y, out)]
        axpby_in_triton[(x.size // BLOCK,)](*tensors, x.size, BLOCK=BLOCK)


TVM_FFI = """
__global__ void axpby_kernel(const float *x, const float *y, float *out, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) out[i] = 4 * x[i] + 2 * y[i];
}
void axpby(tvm::ffi::TensorView x, tvm::ffi::TensorView y, tvm::ffi::TensorView out) {
  int64_t n = x.numel();
  DLDevice device = x.device();
  auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  axpby_kernel<<<(n + 255) / 256, 256, 0, stream>>>(
      static_cast<const float *>(x.data_ptr()), static_cast<const float *>(y.data_ptr()),
      static_cast<float *>(out.data_ptr()), n);
}
"""


@cache
def tvm_ffi_module():
    return tvm_ffi.cpp.load_inline("axpby", cuda_sources=TVM_FFI, functions="axpby")


def axpby_by_tvm_ffi(x: mx.array, y: mx.array, out: mx.array) -> None:
    # It asks the table of DLPack's exchange API for the arrays, and for the stream.
    tvm_ffi_module().axpby(x, y, out)


@cache
def tilelang_kernel(n: int):
    @T.prim_func
    def axpby(
        x: T.Tensor((n,), "float32"),
        y: T.Tensor((n,), "float32"),
        out: T.Tensor((n,), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, BLOCK), threads=BLOCK) as at:
            for i in T.Parallel(BLOCK):
                out[at * BLOCK + i] = 4.0 * x[at * BLOCK + i] + 2.0 * y[at * BLOCK + i]

    return tilelang.compile(axpby, target="cuda")


def axpby_by_tilelang(x: mx.array, y: mx.array, out: mx.array) -> None:
    tilelang_kernel(x.size)(x, y, out)


def operation(function):
    """The function as an operation of two arrays."""
    kernel = mx.fast.foreign_kernel(function)
    return lambda x, y: kernel(inputs=[x, y], output_shapes=[x.shape], output_dtypes=[x.dtype])[0]


def main() -> int:
    if not mx.is_available(mx.gpu) or not mx.cuda.is_available():
        print("SKIPPED: there is no GPU here")
        return 0
    mx.set_default_device(mx.gpu)
    nvcc = shutil.which("nvcc") is not None
    libraries = {
        "triton": (axpby_by_triton, triton is not None),
        "tvm-ffi": (axpby_by_tvm_ffi, tvm_ffi is not None and nvcc),
        "tilelang": (axpby_by_tilelang, tilelang is not None and nvcc),
    }
    x, y = mx.random.normal((N,), key=mx.random.key(1)), mx.arange(N, dtype=mx.float32)
    wrong = 0
    for name, (function, is_there) in libraries.items():
        if not is_there:
            print(f"{name}: SKIPPED, it is not installed, or nvcc is not")
            continue
        out = mx.empty((N,), mx.float32)
        function(x, y, out)
        axpby = operation(function)
        compiled = mx.compile(lambda x, y, axpby=axpby: mx.sqrt(axpby(x * x, y)) + 1)
        right = mx.allclose(out, 4 * x + 2 * y).item()
        right &= mx.allclose(compiled(x, y), mx.sqrt(4 * x * x + 2 * y) + 1).item()
        wrong += not right
        print(f"{name}: {'right' if right else 'WRONG'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
