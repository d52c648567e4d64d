"""The other libraries, each behind the same few functions, with what is known of it.

What a library cannot do stands here as data. The tests hold both the library and us to it, and
`python/tools/interchange_table.py` prints it as a table after having tried it.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import ultramarine as mx
from support.capsules import address, header

# Use no accelerator, and do not let the library search for one.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

PACKAGES = {
    "numpy": "numpy",
    "torch": "torch",
    "jax": "jax",
    "tvm_ffi": "apache-tvm-ffi",
    "pyarrow": "pyarrow",
    "mlx": "mlx",
    "ml_dtypes": "ml_dtypes",
}

ARRAYS = [
    *("bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64"),
]
# Dtypes that are stored, converted and exported again, but not computed with.
STORAGE = [
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    *("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
    *("float6_e2m3fn_packed", "float6_e3m2fn_packed", "float4_e2m1fn_packed"),
]
DTYPES = ARRAYS + STORAGE
BFLOAT = {"bfloat16"}
# Dtypes that are stored one to a byte in some libraries, and without gaps in others.
PADDED = {"float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"}
PACKED = {"float6_e2m3fn_packed", "float6_e3m2fn_packed", "float4_e2m1fn_packed"}

# Errors by which libraries reject a tensor.
THEIR_ERRORS = (BufferError, TypeError, ValueError, RuntimeError, AttributeError)

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda x: x,
    "offset": lambda x: x[1:],
    "transposed": lambda x: x.T,
    "strided": lambda x: x[:, ::2],
    "reversed": lambda x: x[::-1],
    "0-d": lambda x: x[1:2, 2:3].reshape(()),
    "one row": lambda x: x[1:2],
    "empty": lambda x: x[:0],
}


def numbers(dtype: str) -> list[Any]:
    """Six values that every dtype has, down to four bits."""
    return [True, False, True, True, False, True] if dtype == "bool_" else [1, 2, 4, 4, 2, 1]


@dataclass(frozen=True)
class Library:
    """A library as a partner of exchanges."""

    name: str
    module: str
    # The call that makes an array of the library from Ultramarine's.
    call: str
    take: Callable[[Any], Any]
    # Makes an array of the library from numbers, given Ultramarine's name for the dtype.
    make: Callable[[Any, str], Any]
    address: Callable[[Any], int]
    values: Callable[[Any], Any]
    # Dtypes that the library cannot export to Ultramarine, or cannot import from it.
    cannot_give: frozenset[str] = frozenset()
    cannot_take: frozenset[str] = frozenset()
    # Dtypes that change on the way, with the dtype that arrives.
    gives: dict[str, str] = field(default_factory=dict)
    converts: dict[str, str] = field(default_factory=dict)
    # Layouts of Ultramarine's arrays that the library rejects or copies.
    refuses: frozenset[str] = frozenset()
    copies: frozenset[str] = frozenset()
    # Layouts that the library's own arrays cannot have.
    lacks: frozenset[str] = frozenset()
    # Wraps NumPy's memory, for libraries without views.
    wrap: Callable[[Any], Any] | None = None
    # Writes to an array that the library made from Ultramarine's; None if it cannot.
    writes: Callable[[Any], None] | None = None
    ndim: int | None = None

    def is_there(self) -> bool:
        return importlib.util.find_spec(self.module) is not None

    def layouts(self) -> list[str]:
        """Those that its number of dimensions allows."""
        return ["whole", "offset", "reversed", "empty"] if self.ndim == 1 else list(LAYOUTS)

    def numbers(self) -> np.ndarray:
        """0 to 11 in float32: three rows if it can, else one."""
        flat = np.arange(12, dtype=np.float32)
        return flat if self.ndim == 1 else flat.reshape(3, 4)

    def laid_out(self, layout: str) -> Any:
        """Its array of these numbers in a layout."""
        if self.wrap is not None:
            return self.wrap(LAYOUTS[layout](self.numbers()))
        return LAYOUTS[layout](self.make(self.numbers(), "float32"))


def module(name: str) -> Any:
    """A library, imported at the first need."""
    loaded = importlib.import_module(name)
    if name == "jax":
        loaded.config.update("jax_enable_x64", True)
    return loaded


def versions() -> dict[str, str | None]:
    """The libraries' versions; None for those that are not there."""
    found: dict[str, str | None] = {}
    for name, package in PACKAGES.items():
        there = importlib.util.find_spec(name) is not None
        found[name] = importlib.metadata.version(package) if there else None
    return found


def plain(dtype: str) -> str:
    return "bool" if dtype == "bool_" else dtype


def tensor_of_torch(values: Any, dtype: str) -> Any:
    torch = module("torch")
    return torch.tensor(np.asarray(values).tolist()).to(getattr(torch, plain(dtype)))


def array_of_numpy(values: Any, dtype: str) -> Any:
    return np.array(values, getattr(np, plain(dtype)))


def array_of_jax(values: Any, dtype: str) -> Any:
    made = module("jax.numpy").asarray(np.asarray(values).tolist(), dtype=plain(dtype))
    return module("jax").block_until_ready(made)


def tensor_of_tvm(values: Any, dtype: str) -> Any:
    """tvm-ffi makes no tensors itself: they are always somebody's."""
    try:
        made = array_of_numpy(values, dtype)
    except AttributeError:
        made = mx.array(np.asarray(values, np.float32)).astype(getattr(mx, dtype))
    return module("tvm_ffi").from_dlpack(made)


def array_of_arrow(values: Any, dtype: str) -> Any:
    return module("pyarrow").array(array_of_numpy(values, dtype))


def tensor_of_arrow(values: Any, dtype: str) -> Any:
    return module("pyarrow").Tensor.from_numpy(array_of_numpy(values, dtype))


def array_of_mlx(values: Any, dtype: str) -> Any:
    mlx = module("mlx.core")
    made = mlx.array(np.asarray(values).tolist()).astype(getattr(mlx, dtype))
    mlx.eval(made)
    return made


def values_of_tvm(x: Any) -> Any:
    """Read from memory by the header alone."""
    code = header(x).dtype[0]
    if code not in range(3) and code not in (5, 6):  # what NumPy does not know
        return mx.from_dlpack(x).astype(mx.float32).tolist()
    return np.from_dlpack(x).tolist()


def write_by_address(where: int, value: float) -> None:
    ctypes.c_float.from_address(where).value = value


def set_first(x: Any) -> None:
    x[0] = 77


NUMPY = Library(
    name="numpy",
    module="numpy",
    call="numpy.from_dlpack(x)",
    take=lambda x: np.from_dlpack(x),
    make=array_of_numpy,
    address=lambda x: int(x.ctypes.data),
    values=lambda x: x.tolist(),
    cannot_give=frozenset({*BFLOAT, *STORAGE}),
    cannot_take=frozenset({*BFLOAT, *STORAGE}),
    writes=set_first,
)
TORCH = Library(
    name="torch",
    module="torch",
    call="torch.from_dlpack(x)",
    take=lambda x: module("torch").from_dlpack(x),
    make=tensor_of_torch,
    address=lambda x: int(x.data_ptr()),
    values=lambda x: x.tolist(),
    cannot_give=frozenset({"float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", *PADDED, *PACKED}),
    cannot_take=frozenset({"float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", *PADDED, *PACKED}),
    refuses=frozenset({"reversed"}),
    lacks=frozenset({"reversed"}),
    writes=set_first,
)
JAX = Library(
    name="jax",
    module="jax",
    call="jax.numpy.from_dlpack(x)",
    take=lambda x: module("jax.numpy").from_dlpack(x),
    make=array_of_jax,
    address=lambda x: int(x.unsafe_buffer_pointer()),
    values=lambda x: x.tolist(),
    cannot_give=frozenset({"float6_e2m3fn", "float6_e3m2fn", *PACKED}),
    cannot_take=frozenset({*PADDED, *PACKED}),
    gives={"float4_e2m1fn": "float4_e2m1fn_packed"},
    refuses=frozenset({"strided", "reversed"}),
    copies=frozenset({"offset", "0-d", "one row"}),
    lacks=frozenset({"offset", "transposed", "strided", "reversed", "0-d", "one row"}),
)
TVM = Library(
    name="tvm-ffi",
    module="tvm_ffi",
    call="tvm_ffi.from_dlpack(x)",
    take=lambda x: module("tvm_ffi").from_dlpack(x),
    make=tensor_of_tvm,
    address=lambda x: int(x.data_ptr()),
    values=values_of_tvm,
    cannot_give=frozenset(PADDED),
    cannot_take=frozenset(PADDED),
    writes=lambda x: write_by_address(x.data_ptr(), 77),
    wrap=lambda x: module("tvm_ffi").from_dlpack(x),
)
ARROW = Library(
    name="pyarrow.Array",
    module="pyarrow",
    call="pyarrow.Array.from_dlpack(x)",
    take=lambda x: module("pyarrow").Array.from_dlpack(x),
    make=array_of_arrow,
    address=lambda x: int(x.buffers()[1].address + x.offset * x.type.bit_width // 8),
    values=lambda x: x.to_pylist(),
    cannot_give=frozenset({"bool_", "complex64", *BFLOAT, *STORAGE}),
    cannot_take=frozenset({"bool_", "complex64", *BFLOAT, *STORAGE}),
    refuses=frozenset({"reversed"}),
    lacks=frozenset({"reversed"}),
    ndim=1,
)
ARROW_TENSOR = Library(
    name="pyarrow.Tensor",
    module="pyarrow",
    call="pyarrow.Tensor.from_dlpack(x)",
    take=lambda x: module("pyarrow").Tensor.from_dlpack(x),
    make=tensor_of_arrow,
    address=lambda x: int(x.to_numpy().ctypes.data),
    values=lambda x: x.to_numpy().tolist(),
    cannot_give=frozenset({"complex64", *BFLOAT, *STORAGE}),
    cannot_take=frozenset({"bool_", "complex64", *BFLOAT, *STORAGE}),
    refuses=frozenset({"reversed"}),
    lacks=frozenset({"reversed"}),
    gives={"bool_": "uint8"},
    wrap=lambda x: module("pyarrow").Tensor.from_numpy(x),
    writes=lambda x: set_first(x.to_numpy()),
)
MLX = Library(
    name="mlx",
    module="mlx",
    call="mlx.core.from_dlpack(x)",
    take=lambda x: module("mlx.core").from_dlpack(x),
    make=array_of_mlx,
    address=address,
    values=lambda x: x.tolist(),
    cannot_give=frozenset(STORAGE),
    cannot_take=frozenset(STORAGE),
    converts={"float64": "float32"},
    refuses=frozenset({"reversed"}),
    copies=frozenset(LAYOUTS),
)
LIBRARIES = [NUMPY, TORCH, JAX, TVM, ARROW, ARROW_TENSOR, MLX]
