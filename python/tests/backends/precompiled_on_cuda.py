"""`fast.precompiled_cuda_kernel` on a CUDA device, with code that NVRTC made. test_precompiled.py runs it on the emulated driver,
whose "cubin", a library for the CPU, is a test double: it takes no PTX. testing/gpu-checks runs it on a GPU.

    PLUGIN=libultramarine-cuda.so python -m pytest -p no:cacheprovider precompiled_on_cuda.py
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ultramarine as mx
from ultramarine import backends

backends.load(os.environ["PLUGIN"])
mx.set_default_device(mx.gpu)
EMULATED = "Emulated" in str(mx.device_info(mx.gpu)["device_name"])
on_a_gpu = pytest.mark.skipif(EMULATED, reason="the emulated driver takes no PTX")

SOURCE = r"""
extern "C" __global__ void scale(const float *x, float *y, bool add, int n, float by, long long more) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = by * x[i] + (add ? more : 0);
}
extern "C" __global__ void reversed(const float *x, float *y, int n) {
  extern __shared__ float held[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) held[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = held[n - 1 - i];
}
template <class T> __global__ void mangled(const T *x, T *y) { y[threadIdx.x] = x[threadIdx.x] + 1; }
template __global__ void mangled(const int *x, int *y);
"""


def libraries() -> list[str]:
    """Where NVRTC may be."""
    folders = [
        Path(f) for f in os.environ.get("ULTRAMARINE_CUDA_LIBRARIES", "").split(os.pathsep) if f
    ]
    folders += [Path(p) / "nvidia" / "cu13" / "lib" for p in sys.path]
    found = [str(f / "libnvrtc.so.13") for f in folders if (f / "libnvrtc.so.13").is_file()]
    return [*found, "libnvrtc.so.13", "libnvrtc.so"]


@cache
def nvrtc() -> Any:
    for name in libraries():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    pytest.skip("NVRTC is not installed")


@cache
def compiled(arch: str, kind: str) -> bytes:
    """The source as "PTX" or "CUBIN"."""
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    source, none = SOURCE.encode(), None
    assert library.nvrtcCreateProgram(ctypes.byref(program), source, b"k.cu", 0, none, none) == 0
    names = [] if not EMULATED else [b"mangled<int>"]
    for name in names:
        library.nvrtcAddNameExpression(program, name)
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture={arch}".encode())
    assert library.nvrtcCompileProgram(program, 1, options) == 0
    assert getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)) == 0
    code = ctypes.create_string_buffer(size.value)
    assert getattr(library, f"nvrtcGet{kind}")(program, code) == 0
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


def capability() -> str:
    name = str(mx.device_info(mx.gpu)["device_name"])
    found = re.search(r"compute capability (\d+)\.(\d+)", name)
    assert found, name
    return "".join(found.groups())


def cubin() -> bytes:
    return compiled(f"sm_{capability()}", "CUBIN")


def ptx() -> bytes:
    return compiled(f"compute_{capability()}", "PTX")


def run(x: mx.array, **change: Any) -> mx.array:
    usual: dict[str, Any] = {
        "name": "scale",
        "compiled_source": cubin(),
        "inputs": [x],
        "output_shapes": [x.shape],
        "output_dtypes": [x.dtype],
        "scalars": [True, x.size, 2.0, (7, mx.int64)],
        "grid": (x.size, 1, 1),
        "threadgroup": (4, 1, 1),
    }
    return mx.fast.precompiled_cuda_kernel(**{**usual, **change})[0]


def test_a_cubin() -> None:
    assert run(mx.arange(6, dtype=mx.float32)).tolist() == [7, 9, 11, 13, 15, 17]


@on_a_gpu
def test_ptx() -> None:
    x = mx.arange(6, dtype=mx.float32)
    for code in (ptx(), ptx().rstrip(b"\0")):
        assert run(x, compiled_source=code).tolist() == [7, 9, 11, 13, 15, 17]


def test_scalars_and_the_initial_value() -> None:
    x = mx.arange(6, dtype=mx.float32)
    got = run(x, scalars=[False, 3, 0.5, (0, mx.int64)], init_value=-1)
    assert got.tolist() == [0, 0.5, 1, -1, -1, -1]


def test_shared_memory() -> None:
    for n in (16, 15_000):
        x = mx.arange(n, dtype=mx.float32)
        got = run(
            x,
            name="reversed",
            scalars=[n],
            grid=(256, 1, 1),
            threadgroup=(256, 1, 1),
            shared_memory=4 * n,
        )
        assert mx.array_equal(got, x[::-1])


def test_strides_are_the_callers_matter() -> None:
    x = mx.arange(12, dtype=mx.float32).reshape(6, 2)[:, 1]
    scalars = [False, 6, 1.0, (0, mx.int64)]
    assert run(x, scalars=scalars).tolist() == [1, 2, 3, 4, 5, 6]
    assert run(x, scalars=scalars, ensure_row_contiguous=True).tolist() == [1, 3, 5, 7, 9, 11]


@on_a_gpu
def test_mangled_names() -> None:
    x = mx.arange(4)
    got = run(x, name="_Z7mangledIiEvPKT_PS0_", scalars=[])
    assert got.tolist() == [1, 2, 3, 4]


def test_in_compile() -> None:
    f = mx.compile(lambda x: run(x * 2) + 1)
    x = mx.arange(6, dtype=mx.float32)
    for shift in (0, 0, 1):
        assert mx.array_equal(f(x + shift), 2 * (x + shift) * 2 + 8)


def test_derivatives_are_those_of_a_custom_function() -> None:
    x = mx.arange(3, dtype=mx.float32)
    with pytest.raises(ValueError, match="no vjp rule"):
        mx.grad(lambda x: run(x).sum())(x)
    f = mx.custom_function(run)
    f.vjp(lambda x, cotangent, output: 2 * cotangent)
    assert mx.grad(lambda x: f(x).sum())(x).tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"name": "scalar"}, "it has no kernel `scalar`"),
        ({"scalars": [True, 6, 2.0]}, "the kernel has 6 parameters, the launch 5 arguments"),
        ({"scalars": [True, 6, 2.0, 7]}, "argument 5 has 4 bytes, and the kernel's parameter 8"),
        ({"compiled_source": b"\x7fELF of nothing"}, "begin as a cubin, or ends too early"),
        ({"compiled_source": b"\0\1\2"}, "no PTX, which is text"),
        ({"compiled_source": b"a poem"}, "CUDA error"),
        ({"shared_memory": 1 << 24}, "shared memory"),
        ({"threadgroup": (4096, 1, 1), "grid": (4096, 1, 1)}, "threads"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value),
)
def test_errors_of_an_evaluation(change: dict[str, Any], text: str) -> None:
    y = run(mx.arange(6, dtype=mx.float32), **change)
    with pytest.raises((RuntimeError, ValueError), match=re.escape(text)):
        mx.eval(y)


def test_a_cut_cubin() -> None:
    with pytest.raises(RuntimeError, match="ends too early"):
        mx.eval(run(mx.ones((4,)), compiled_source=cubin()[:-1000]))


@on_a_gpu
def test_another_architecture() -> None:
    other = "sm_80" if capability() != "80" else "sm_90"
    code = compiled(other, "CUBIN")
    with pytest.raises(RuntimeError, match=f"the device is sm_{capability()}"):
        mx.eval(run(mx.ones((4,)), compiled_source=code))
    newest = ptx().replace(f".target sm_{capability()}".encode(), b".target sm_121")
    with pytest.raises(RuntimeError, match="sm_121"):
        mx.eval(run(mx.ones((4,)), compiled_source=newest))


@on_a_gpu
def test_names_that_there_are() -> None:
    for code in (cubin(), ptx()):
        with pytest.raises(RuntimeError, match=r"there are .*`scale`"):
            mx.eval(run(mx.ones((4,)), name="scalar", compiled_source=code))
    with pytest.raises(RuntimeError, match=r"error   : Unknown modifier '\.parem'"):
        mx.eval(run(mx.ones((4,)), compiled_source=ptx().replace(b"ld.param", b"ld.parem")))
