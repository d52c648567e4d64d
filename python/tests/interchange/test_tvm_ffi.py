"""tvm-ffi: functions compiled here, in C, are called with our arrays as they are."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.capsules import READ_ONLY, address, header

import ultramarine as mx

tvm_ffi: Any = pytest.importorskip("tvm_ffi", reason="tvm_ffi is not installed")
CC = shutil.which("cc")

# The calling convention of tvm-ffi: arguments as tagged unions. What is not one of its own tensors
# arrives as a borrowed DLTensor.
SOURCE = r"""
#include <stdint.h>
#include <tvm/ffi/c_api.h>

#define EXPORT __attribute__((visibility("default")))

static DLTensor *tensor_of(const TVMFFIAny *any) {
    if (any->type_index == kTVMFFIDLTensorPtr) return any->v_ptr;
    if (any->type_index == kTVMFFITensor) return (DLTensor *)((char *)any->v_obj + sizeof(TVMFFIObject));
    TVMFFIErrorSetRaisedFromCStr("TypeError", "a tensor is expected");
    return 0;
}

static float *first(const DLTensor *t) { return (float *)((char *)t->data + t->byte_offset); }

/* x[i, j] = 10 * x[i, j] + i, in place, for any strides. */
EXPORT int __tvm_ffi_in_place(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
    DLTensor *x = n == 1 ? tensor_of(&args[0]) : 0;
    if (!x) return -1;
    if (x->ndim != 2 || x->dtype.code != kDLFloat || x->dtype.bits != 32) {
        TVMFFIErrorSetRaisedFromCStr("ValueError", "a matrix of float32 is expected");
        return -1;
    }
    for (int64_t i = 0; i < x->shape[0]; i++)
        for (int64_t j = 0; j < x->shape[1]; j++) {
            float *at = first(x) + i * x->strides[0] + j * x->strides[1];
            *at = 10 * *at + (float)i;
        }
    result->type_index = kTVMFFINone;
    return 0;
}

/* Where the first element is. */
EXPORT int __tvm_ffi_where(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
    DLTensor *x = n == 1 ? tensor_of(&args[0]) : 0;
    if (!x) return -1;
    result->type_index = kTVMFFIInt;
    result->v_int64 = (int64_t)(intptr_t)first(x);
    return 0;
}

/* out[i] = a[i] + b[i]. */
EXPORT int __tvm_ffi_add(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
    DLTensor *t[3];
    for (int k = 0; k < 3; k++)
        if (!(t[k] = tensor_of(&args[k]))) return -1;
    for (int64_t i = 0; i < t[0]->shape[0]; i++)
        first(t[2])[i * t[2]->strides[0]] = first(t[0])[i * t[0]->strides[0]] + first(t[1])[i * t[1]->strides[0]];
    result->type_index = kTVMFFINone;
    return 0;
}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if CC is None:
        pytest.skip("no C compiler (cc)")
    place: Path = tmp_path_factory.mktemp("kernels")
    source, library = place / "kernels.c", place / "kernels.so"
    source.write_text(SOURCE)
    includes = [f"-I{path}" for path in tvm_ffi.libinfo.find_include_path().split() or []]
    includes += [f"-I{tvm_ffi.libinfo.find_dlpack_include_path()}"]
    built = [CC, "-O1", "-shared", "-fPIC", "-w", *includes, str(source), "-o", str(library)]
    subprocess.run(built, check=True, timeout=120)
    return tvm_ffi.load_module(str(library))


def test_in_place_on_our_memory(kernels: Any) -> None:
    x = mx.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mx.eval(x)
    where = address(x)
    assert kernels.where(x) == where
    kernels.in_place(x)
    assert x.tolist() == [[10, 20, 30], [41, 51, 61]]
    assert address(x) == where
    assert (x + 1)[1, 2].item() == 62


def test_views_of_own_arrays(kernels: Any) -> None:
    """Strides and offsets arrive; what lies between stays."""
    x = mx.array(np.zeros((4, 6), np.float32))
    kernels.in_place(x[1:3, ::2])
    want = np.zeros((4, 6))
    want[2, ::2] = 1
    assert x.tolist() == want.tolist()
    kernels.in_place(x.T[::-1, 2:3])
    want[2] = [10 * (1 - j % 2) + (5 - j) for j in range(6)]
    assert x.tolist() == want.tolist()


def test_lazy_arguments_are_evaluated(kernels: Any) -> None:
    a = mx.arange(4, dtype=mx.float32)
    out = mx.empty((4,), mx.float32)
    kernels.add(a * 2, a + 1, out)
    assert out.tolist() == [1, 4, 7, 10]


def test_arguments_of_several_libraries(kernels: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    out = mx.empty((3,), mx.float32)
    kernels.add(np.array([1, 2, 3], np.float32), torch.tensor([10.0, 20.0, 30.0]), out)
    assert out.tolist() == [11, 22, 33]


def test_its_tensors_of_own_arrays(kernels: Any) -> None:
    x = mx.array([[1.0, 2.0]])
    there = tvm_ffi.from_dlpack(x)
    assert kernels.where(there) == address(x) == there.data_ptr()
    kernels.in_place(there)
    assert x.tolist() == [[10, 20]]
    assert address(mx.from_dlpack(there)) == address(x)


def test_its_errors(kernels: Any) -> None:
    with pytest.raises(ValueError, match="matrix"):
        kernels.in_place(mx.zeros((3,)))
    with pytest.raises(TypeError, match="tensor"):
        kernels.in_place(3)


def test_it_does_not_know_read_only(kernels: Any) -> None:
    """Its tensors have no such mark, so that it is lost on the way through them."""
    held = np.zeros((2, 2), np.float32)
    held.setflags(write=False)
    x = mx.from_dlpack(held)
    assert header(x).flags & READ_ONLY
    assert not header(tvm_ffi.from_dlpack(x)).flags & READ_ONLY


def test_many_calls_from_many_threads(kernels: Any) -> None:
    arrays = [mx.array(np.zeros((3, 3), np.float32)) for _ in range(8)]

    def call(x: mx.array) -> None:
        for _ in range(200):
            kernels.in_place(x)

    threads = [threading.Thread(target=call, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want = np.zeros((3, 3), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(200):
            want = want * 10 + np.arange(3, dtype=np.float32)[:, None]
    assert all((np.array(x) == want).all() for x in arrays)


def test_callbacks_get_its_tensors() -> None:
    """A function of Python that tvm-ffi calls: ours goes in, its tensor comes, ours takes that."""
    seen = []

    @tvm_ffi.register_global_func("ultramarine.test_callback", override=True)
    def callback(tensor: Any) -> int:
        seen.append(address(mx.from_dlpack(tensor)))
        return 5

    x = mx.array([1.0, 2.0])
    assert tvm_ffi.get_global_func("ultramarine.test_callback")(x) == 5
    assert seen == [address(x)]


def test_as_an_operation(kernels: Any) -> None:
    """Its function writes an output when that is computed, among other operations and in `compile`."""
    added = mx.fast.foreign_kernel(kernels.add, name="add")

    def f(a: mx.array, b: mx.array) -> mx.array:
        arguments = {"output_shapes": [a.shape], "output_dtypes": [mx.float32], "stream": mx.cpu}
        return mx.sqrt(added(inputs=[a * 2, b + 1], **arguments)[0])  # type: ignore[arg-type]

    a, b = mx.arange(4, dtype=mx.float32), mx.array([0.0, 1.0, 4.0, 9.0])
    want = mx.sqrt(a * 2 + b + 1).tolist()
    assert f(a, b).tolist() == want
    compiled = mx.compile(f)
    assert [compiled(a, b).tolist() for _ in range(3)] == [want] * 3
