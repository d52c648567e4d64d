"""Kernels of users in CUDA C++ through `fast.cuda_kernel`: elementwise, strided, templates, halves, atomics, shared memory,
errors. Prints a line for each; the exit status is 1 if one fails.

    python3 testing/gpu-checks/user_kernels.py [PLUGIN]
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import ultramarine as mx
from ultramarine import backends

CHECKS: list[Callable[[], None]] = []


def check(f: Callable[[], None]) -> Callable[[], None]:
    CHECKS.append(f)
    return f


def make(body: str, inputs: str = "x", outputs: str = "y", **how: Any) -> mx.fast.CustomKernel:
    return mx.fast.cuda_kernel("mine", inputs.split(), outputs.split(), body, **how)


def run(kernel: mx.fast.CustomKernel, *inputs: mx.array, **how: Any) -> mx.array:
    shape = how.pop("shape", inputs[0].shape if inputs else ())
    usual: dict[str, Any] = {
        "grid": (int(np.prod(shape)), 1, 1),
        "threadgroup": (128, 1, 1),
        "output_shapes": [shape],
        "output_dtypes": [mx.float32],
        "stream": mx.gpu,
    }
    return kernel(inputs=list(inputs), **{**usual, **how})[0]


@check
def elementwise() -> None:
    kernel = make(
        "auto i = cooperative_groups::this_grid().thread_rank(); T v = x[i]; y[i] = exp(float(v));"
    )
    for dtype in (mx.float32, mx.float16):
        x = mx.random.normal(shape=(1000,)).astype(dtype)
        got = run(kernel, x, template=[("T", dtype)])
        np.testing.assert_allclose(np.array(got), np.exp(np.array(x.astype(mx.float32))), rtol=1e-5)


@check
def names_of_threads() -> None:
    kernel = make(
        "uint3 p = thread_position_in_grid; y[(p.z * 3 + p.y) * 5 + p.x] = p.x + 10 * p.y + 100 * p.z;",
        "",
    )
    got = run(kernel, shape=(2, 3, 5), grid=(5, 3, 2), threadgroup=(2, 2, 2))
    want = np.arange(5) + 10 * np.arange(3)[:, None] + 100 * np.arange(2)[:, None, None]
    np.testing.assert_array_equal(np.array(got), want)


@check
def layouts() -> None:
    body = "auto i = thread_position_in_grid.x; y[i] = x[elem_to_loc(i, x_shape.data(), x_strides.data(), x_ndim)];"
    kernel = make(body, ensure_row_contiguous=False)
    x = mx.arange(24, dtype=mx.float32).reshape(2, 3, 4)
    for view in (
        x,
        x.T,
        x[1],
        x[:, ::2, 1:],
        x[::-1],
        mx.broadcast_to(x[:, :1], (2, 3, 4)),
        x[0, 0, 0],
    ):
        np.testing.assert_array_equal(np.array(run(kernel, view)), np.array(view))


@check
def every_dtype() -> None:
    kernel = make("auto i = thread_position_in_grid.x; um_store(T, y, i, um_load(T, x, i));")
    names = "bool_ uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64"
    for name in names.split():
        dtype = getattr(mx, name)
        x = mx.array([0.0, 1.0, 2.5, 100.0]).astype(dtype)
        got = run(kernel, x, template=[("T", dtype)], output_dtypes=[dtype])
        assert mx.array_equal(got, x).item(), name


@check
def templates() -> None:
    kernel = make("if constexpr (FLAG) { y[0] = N * sizeof(T); } else { y[0] = T::missing; }", "")
    got = run(kernel, shape=(1,), template=[("T", mx.int64), ("N", 3), ("FLAG", True)])
    assert got.item() == 24


@check
def complex_numbers() -> None:
    kernel = make(
        "auto i = thread_position_in_grid.x; y[i] = x[i] * x[i] + um_conjugate(x[i]) / um_complex(2, 0);"
    )
    x = mx.array([1 + 2j, -0.5j])
    got = run(kernel, x, output_dtypes=[mx.complex64])
    want = np.array(x) ** 2 + np.conj(np.array(x)) / 2
    np.testing.assert_allclose(np.array(got), want, rtol=1e-6)


@check
def atomics_and_first_values() -> None:
    kernel = make("um_atomic_add(float, y, int(x[thread_position_in_grid.x]), 1.0f);")
    x = mx.array([0, 1, 1, 3] * 100)
    assert run(kernel, x, output_shapes=[(4,)], init_value=0).tolist() == [100.0, 200.0, 0.0, 100.0]


@check
def shared_memory() -> None:
    body = """
        extern __shared__ float s[];
        auto l = thread_position_in_threadgroup.x;
        s[l] = x[thread_position_in_grid.x];
        __syncthreads();
        y[thread_position_in_grid.x] = s[threads_per_threadgroup.x - 1 - l];
    """
    x = mx.arange(256, dtype=mx.float32)
    got = run(make(body, shared_memory=64 * 4), x, threadgroup=(64, 1, 1))
    np.testing.assert_array_equal(np.array(got), np.array(x).reshape(4, 64)[:, ::-1].reshape(-1))


@check
def errors_count_the_lines_of_the_body() -> None:
    try:
        mx.eval(run(make("float a = x[0];\ny[0] = a + nothing;"), mx.array([1.0])))
    except RuntimeError as error:
        assert "> 2 | y[0] = a + nothing;" in str(error), error
    else:
        raise AssertionError("it compiles")


def main() -> int:
    if len(sys.argv) > 1:
        backends.load(sys.argv[1])
    if not mx.is_available(mx.gpu):
        print("there is no GPU")
        return 1
    failed = 0
    for f in CHECKS:
        try:
            f()
            print(f"ok      {f.__name__}")
        except Exception:
            failed += 1
            print(f"FAILED  {f.__name__}\n{traceback.format_exc()}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
