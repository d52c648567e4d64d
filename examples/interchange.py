"""Arrays of other libraries without a copy: NumPy, torch and a function compiled for tvm-ffi.

Run it where the package and numpy are installed; what needs torch or tvm-ffi is left out where
these are missing.  Each step prints where the elements are: it is one memory throughout.
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import ultramarine as mx

KERNEL = r"""
#include <tvm/ffi/c_api.h>

/* x[i] *= 2 for a vector of float32, in place. */
__attribute__((visibility("default")))
int __tvm_ffi_twice(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
    DLTensor *x = 0;
    /* Other libraries' arrays are lent as a DLTensor; tvm-ffi's own begin with a header. */
    if (n == 1 && args[0].type_index == kTVMFFIDLTensorPtr) x = args[0].v_ptr;
    if (n == 1 && args[0].type_index == kTVMFFITensor) x = (DLTensor *)((char *)args[0].v_obj + sizeof(TVMFFIObject));
    if (!x || x->ndim != 1 || x->dtype.code != kDLFloat || x->dtype.bits != 32) {
        TVMFFIErrorSetRaisedFromCStr("ValueError", "a vector of float32 is expected");
        return -1;
    }
    float *data = (float *)((char *)x->data + x->byte_offset);
    for (int64_t i = 0; i < x->shape[0]; i++) data[i * x->strides[0]] *= 2;
    result->type_index = kTVMFFINone;
    return 0;
}
"""


def optional(name: str) -> Any:
    """A library, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed: its part is left out")
        return None


def where(x: mx.array) -> int:
    """The address of an array's first element, as NumPy sees it."""
    return int(np.from_dlpack(x).ctypes.data)


def with_numpy() -> mx.array:
    data = np.arange(-4, 4, dtype=np.float32) / 4
    x = mx.from_dlpack(data)
    print(f"numpy       {data.ctypes.data:#x}  {data.tolist()[:3]} ...")
    print(f"ultramarine {where(x):#x}  the same memory: {where(x) == data.ctypes.data}")
    data[0] = -7
    print(f"            after numpy's write, ours begins with {x[0].item()}")
    # What is computed from it lies elsewhere. Nobody else has that memory yet.
    y = mx.square(x) + 1
    print(f"            x * x + 1 is at {where(y):#x}")
    return y


def with_torch(x: mx.array) -> None:
    torch = optional("torch")
    if torch is None:
        return
    tensor = torch.from_dlpack(x)
    print(f"torch       {tensor.data_ptr():#x}  the same memory: {tensor.data_ptr() == where(x)}")
    layer = torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Hardtanh(0, 2, inplace=True))
    with torch.no_grad():
        layer(tensor)
    print(f"            after a layer that works in place, ours is {x.tolist()}")


def with_tvm_ffi(x: mx.array) -> None:
    tvm_ffi, compiler = optional("tvm_ffi"), shutil.which("cc")
    if tvm_ffi is None:
        return
    if compiler is None:
        print("no C compiler (cc): the part with tvm-ffi is left out")
        return
    paths = [tvm_ffi.libinfo.find_include_path(), tvm_ffi.libinfo.find_dlpack_include_path()]
    with tempfile.TemporaryDirectory() as place:
        source, library = Path(place) / "kernel.c", Path(place) / "kernel.so"
        source.write_text(KERNEL)
        flags = ["-O2", "-shared", "-fPIC", *(f"-I{path}" for path in paths)]
        subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
        kernels = tvm_ffi.load_module(str(library))
        kernels.twice(x)
        print(f"tvm-ffi     {where(x):#x}  after a function in C, ours is {x.tolist()}")


def main() -> None:
    y = with_numpy()
    with_torch(y)
    with_tvm_ffi(y)
    total = np.from_dlpack(y).sum()
    print(f"numpy       {where(y):#x}  the sum is {total}, ours says {y.sum().item()}")


if __name__ == "__main__":
    main()
