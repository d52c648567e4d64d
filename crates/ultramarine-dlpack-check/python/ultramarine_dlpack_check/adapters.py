"""How to make and to look at a library's arrays, beyond what the array API says.

An adapter for another library is a subclass of `Adapter` with a line in `ADAPTERS`; a library that
has none gets `Adapter` itself, which guesses.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ultramarine_dlpack_check import lab
from ultramarine_dlpack_check.case import NotApplicable
from ultramarine_dlpack_check.fabricate import BY_NAME, Kind, nested, offsets, row_major


def flattened(values: Any) -> list[Any]:
    """Nested lists as one."""
    if not isinstance(values, list):
        return [values]
    return [leaf for part in values for leaf in flattened(part)]


def shape_of(values: Any) -> list[int]:
    """Sizes of nested lists."""
    if not isinstance(values, list):
        return []
    return [len(values)] + (shape_of(values[0]) if values else [])


class Adapter:
    """A library that follows the array API."""

    # Whether its arrays are in the host's memory.
    host = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.module: Any = importlib.import_module(name)
        self.prepare()

    def prepare(self) -> None:
        """Once, after the import."""

    @property
    def version(self) -> str:
        top = importlib.import_module(self.name.partition(".")[0])
        return str(getattr(top, "__version__", "")) or installed(self.name)

    @property
    def from_dlpack(self) -> Callable[..., Any] | None:
        """The library's function; None if it takes nothing."""
        found: Callable[..., Any] | None = getattr(self.module, "from_dlpack", None)
        return found

    @property
    def asarray(self) -> Callable[..., Any] | None:
        found: Callable[..., Any] | None = getattr(self.module, "asarray", None)
        return found

    def dtype(self, name: str) -> Any:
        found = getattr(self.module, name, None)
        if found is None and name == "bool":
            found = getattr(self.module, "bool_", None)
        if found is None:
            raise NotApplicable(f"no dtype {name}")
        return found

    def make(self, values: Any, dtype: str) -> Any:
        """An array of nested lists, in memory of the library's own."""
        make = getattr(self.module, "array", None) or self.asarray
        if make is None:
            raise NotApplicable("no way known to make an array")
        return make(values, dtype=self.dtype(dtype))

    def tolist(self, array: Any) -> Any:
        """Nested lists."""
        convert = getattr(array, "tolist", None)
        return convert() if convert is not None else exported_list(array)

    def pointer(self, array: Any) -> int:
        """Address of the first element: as an export says, unless there is a better way."""
        return exported_pointer(array)

    def writeable(self, array: Any) -> bool | None:
        """Whether the library lets it be written in place; None if it does not say."""
        return None

    def write(self, array: Any, index: int, value: Any) -> None:
        """Writes an element in place; raises where the library does not let it."""
        array[index] = value

    def transposed(self, array: Any) -> Any:
        return array.T

    def heavy(self, array: Any) -> Any:
        """Work with the array that takes a while; lazy libraries begin it, and are not waited
        for. The result is all zeros."""
        zero = array * 0
        for _ in range(20):
            zero = zero * 2 + zero
        return zero

    def array_type(self) -> type:
        return type(self.make([1.0], "float32"))


class NumPy(Adapter):
    def pointer(self, array: Any) -> int:
        return int(array.ctypes.data)

    def writeable(self, array: Any) -> bool | None:
        return bool(array.flags.writeable)


class Torch(Adapter):
    def make(self, values: Any, dtype: str) -> Any:
        return self.module.tensor(values, dtype=self.dtype(dtype))

    def pointer(self, array: Any) -> int:
        return int(array.data_ptr())


class Jax(Adapter):
    def prepare(self) -> None:
        # Else 64 bits are 32, which is a choice of its own and no matter of DLPack.
        self.module.config.update("jax_enable_x64", True)
        self.module = importlib.import_module("jax.numpy")

    def pointer(self, array: Any) -> int:
        return int(array.unsafe_buffer_pointer())


class Mlx(Adapter):
    def prepare(self) -> None:
        self.module.set_default_device(self.module.cpu)

    def dtype(self, name: str) -> Any:
        return super().dtype("bool_" if name == "bool" else name)


class Ultramarine(Adapter):
    def dtype(self, name: str) -> Any:
        return super().dtype("bool_" if name == "bool" else name)


class TvmFfi(Adapter):
    """Tensors that hold memory and do nothing with it: they are made of NumPy's."""

    def make(self, values: Any, dtype: str) -> Any:
        numpy = importlib.import_module("numpy")
        return self.module.from_dlpack(numpy.array(values, dtype=dtype))

    def tolist(self, array: Any) -> Any:
        return exported_list(array)

    def transposed(self, array: Any) -> Any:
        raise NotApplicable("no views")

    def heavy(self, array: Any) -> Any:
        raise NotApplicable("no operations")

    def write(self, array: Any, index: int, value: Any) -> None:
        raise TypeError("a tvm_ffi.Tensor cannot be written by itself")


class PyArrow(Adapter):
    """Exports arrays of one dimension."""

    def make(self, values: Any, dtype: str) -> Any:
        if not isinstance(values, list) or any(isinstance(v, list) for v in values):
            raise NotApplicable("arrays of one dimension only")
        if dtype.startswith(("complex", "bfloat")):
            raise NotApplicable(f"no dtype {dtype}")
        kind = "bool_" if dtype == "bool" else dtype
        return self.module.array(values, type=getattr(self.module, kind)())

    def tolist(self, array: Any) -> Any:
        return array.to_pylist()

    def pointer(self, array: Any) -> int:
        size = array.type.bit_width // 8
        return int(array.buffers()[1].address + array.offset * size)

    def transposed(self, array: Any) -> Any:
        raise NotApplicable("arrays of one dimension only")

    def heavy(self, array: Any) -> Any:
        raise NotApplicable("no operations")


class CuPy(Adapter):
    host = False

    def pointer(self, array: Any) -> int:
        return int(array.data.ptr)


ADAPTERS: dict[str, type[Adapter]] = {
    "ultramarine": Ultramarine,
    "numpy": NumPy,
    "torch": Torch,
    "jax": Jax,
    "mlx.core": Mlx,
    "tvm_ffi": TvmFfi,
    "pyarrow": PyArrow,
    "cupy": CuPy,
}


def adapter(name: str) -> Adapter:
    """The adapter of a library, which is imported."""
    name = {"mlx": "mlx.core", "jax.numpy": "jax"}.get(name, name)
    return ADAPTERS.get(name, Adapter)(name)


def installed(name: str) -> str:
    """The version of the distribution that has a module."""
    metadata = importlib.import_module("importlib.metadata")
    top = name.partition(".")[0]
    names = metadata.packages_distributions().get(top, [top])
    try:
        return str(metadata.version(names[0]))
    except metadata.PackageNotFoundError:
        return ""


def exported(array: Any) -> lab.Taken:
    """An export, for looking at it."""
    try:
        return lab.take(array.__dlpack__(max_version=(1, 3)))
    except TypeError:
        return lab.take(array.__dlpack__())


def exported_pointer(array: Any) -> int:
    """The address that an export says."""
    taken = exported(array)
    info = taken.info()
    taken.delete()
    return int(info["data"] + info["byte_offset"])


def exported_list(array: Any) -> Any:
    """The values that an export has."""
    taken = exported(array)
    info = taken.info()
    kind = next((k for k in BY_NAME.values() if k.dtype == info["dtype"]), None)
    if kind is None or not kind.format:
        raise NotApplicable(f"values of type {info['dtype']} cannot be looked at")
    shape = info["shape"] or []
    strides = info["strides"] or row_major(shape)
    found = [
        unpacked(taken.read(kind.size, at * kind.size), kind) for at in offsets(shape, strides)
    ]
    taken.delete()
    return nested(found, shape)


def unpacked(data: bytes, kind: Kind) -> Any:
    """An element of its bytes."""
    struct = importlib.import_module("struct")
    parts = struct.unpack(f"={kind.parts}{kind.format}", data)
    return complex(*parts) if kind.parts == 2 else parts[0]
