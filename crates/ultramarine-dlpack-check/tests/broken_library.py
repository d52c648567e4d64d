"""A mock library that shows the suite failing: it is right but for the defect that the environment
variable BROKEN_LIBRARY names."""

from __future__ import annotations

import atexit
import ctypes
import math
import os
from typing import Any

from ultramarine_dlpack_check import lab
from ultramarine_dlpack_check.fabricate import KINDS, Kind, nested, offsets, pack, row_major

DEFECTS = {
    # As a consumer
    "takes any major version",
    "runs deleters twice",
    "runs no deleters",
    "leaves capsules unused",
    "ignores strides",
    "ignores byte_offset",
    "ignores READ_ONLY",
    "copies always",
    "copies never",
    "asks with keywords only",
    "asks for no version",
    "asks for a stream",
    "hides exceptions of producers",
    "takes negative sizes",
    "takes any type code",
    "takes any device",
    "needs strides",
    "reads one element too many",
    "writes one element too many",
    "loses memory",
    "hangs without elements",
    "changes types",
    # As a producer
    "gives versions unasked",
    "gives no versions",
    "gives no strides",
    "gives wrong strides",
    "does not keep its memory",
    "gives copies without the flag",
    "gives no copies",
    "gives copies unasked",
    "ignores dl_device",
    "takes unknown keywords",
    "forgets READ_ONLY",
    "clears exceptions",
    "leaks references",
    "says another device",
    "aborts at exit",
    "has a table that lies",
}
DEFECT = os.environ.get("BROKEN_LIBRARY", "")
if DEFECT and DEFECT not in DEFECTS:
    raise ImportError(f"no such defect: {DEFECT}")

READ_ONLY, IS_COPIED = 1, 2
LOST: list[Any] = []


def broken(name: str) -> bool:
    if name not in DEFECTS:
        raise ValueError(name)
    return name == DEFECT


if broken("aborts at exit"):
    atexit.register(os.abort)

for _kind in KINDS:
    globals()[_kind.name] = _kind
float32: Kind = KINDS[8 + 1]


class Array:
    """Numbers in memory that `owner` keeps."""

    def __init__(
        self, owner: Any, address: int, shape: list[int], strides: list[int], kind: Kind, flags: int
    ) -> None:
        self.owner, self.address = owner, address
        self.shape, self.strides, self.kind = shape, strides, kind
        self.flags = flags & READ_ONLY

    def addresses(self) -> list[int]:
        at = offsets(self.shape, self.strides)
        return [self.address + o * self.kind.size for o in at]

    def data(self) -> bytes:
        size = self.kind.size
        return b"".join(ctypes.string_at(a, size) for a in self.addresses())

    def flat(self) -> list[Any]:
        import struct

        data, k = self.data(), self.kind
        if not k.format:
            raise TypeError(f"numbers of {k.name} cannot be read")
        parts = struct.unpack(f"={len(data) // (k.size // k.parts)}{k.format}", data)
        if k.parts == 2:
            return [complex(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
        return list(parts)

    def tolist(self) -> Any:
        return nested(self.flat(), self.shape)

    def writeable(self) -> bool:
        return not self.flags or broken("ignores READ_ONLY")

    def __setitem__(self, index: int, value: Any) -> None:
        if not self.writeable():
            raise ValueError("read-only")
        at = self.address + index * self.strides[0] * self.kind.size
        ctypes.memmove(at, pack([value], self.kind), self.kind.size)

    def view(self, address: int, shape: list[int], strides: list[int]) -> Array:
        return Array(self.owner, address, shape, strides, self.kind, self.flags)

    @property
    def T(self) -> Array:
        return self.view(self.address, self.shape[::-1], self.strides[::-1])

    def __getitem__(self, index: Any) -> Array:
        at, shape, strides, axis = 0, [], [], 0
        for i in index if isinstance(index, tuple) else (index,):
            if i is None:
                shape.append(1)
                strides.append(0)
                continue
            size, stride = self.shape[axis], self.strides[axis]
            axis += 1
            if isinstance(i, int):
                at += i * stride
                continue
            start, stop, step = i.indices(size)
            at += start * stride
            shape.append(len(range(start, stop, step)))
            strides.append(stride * step)
        shape, strides = shape + self.shape[axis:], strides + self.strides[axis:]
        return self.view(self.address + at * self.kind.size, shape, strides)

    def __mul__(self, factor: Any) -> Array:
        return made([v * factor for v in self.flat()], self.shape, self.kind)

    def __add__(self, other: Array) -> Array:
        pairs = zip(self.flat(), other.flat(), strict=True)
        return made([a + b for a, b in pairs], self.shape, self.kind)

    @property
    def tensor(self) -> lab.Tensor:
        return exported(self, versioned=True)

    def __dlpack__(self, **asked: Any) -> Any:
        known = {"stream", "max_version", "dl_device", "copy"}
        odd = set(asked) - known
        if odd and not broken("takes unknown keywords"):
            raise TypeError(f"__dlpack__() got an unexpected keyword argument {odd}")
        if asked.get("stream") is not None:
            raise ValueError("stream")
        device = asked.get("dl_device")
        if device not in (None, (1, 0)) and not broken("ignores dl_device"):
            raise BufferError(f"no device {device}")
        version = asked.get("max_version")
        versioned = version is not None and version[0] > 0
        versioned |= broken("gives versions unasked")
        versioned &= not broken("gives no versions")
        array, flags = self, 0
        if broken("gives copies unasked") or (asked.get("copy") and not broken("gives no copies")):
            array = made_of(self.data(), self.shape, self.kind)
            flags = 0 if broken("gives copies without the flag") else IS_COPIED
        if array.flags and not versioned and not broken("forgets READ_ONLY"):
            raise BufferError("read-only")
        if broken("leaks references"):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        tensor = exported(array, versioned=versioned, flags=flags)
        if broken("clears exceptions"):
            return clearing(tensor)
        return tensor.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0) if broken("says another device") else (1, 0)


if broken("has a table that lies"):
    Array.__dlpack_c_exchange_api__ = lab.make_table(  # type: ignore[attr-defined]
        (2, 0), missing=["stream"]
    )


def clearing(tensor: lab.Tensor) -> Any:
    """A capsule whose destructor clears the exception that is on its way."""
    LOST.append(tensor)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    clear = ctypes.cast(ctypes.pythonapi.PyErr_Clear, ctypes.c_void_p)
    return new(1, b"dltensor_versioned", clear)


def exported(array: Array, *, versioned: bool, flags: int = 0) -> lab.Tensor:
    base = (
        array.owner.address if isinstance(array.owner, lab.Memory) else array.owner.info()["data"]
    )
    strides: list[int] | None = list(array.strides)
    if broken("gives no strides"):
        strides = None
    if broken("gives wrong strides"):
        strides = row_major(array.shape)
    at = array.address if broken("does not keep its memory") else array.owner
    offset = 0 if at is array.address else (array.address - base) % 2**64
    flags |= 0 if broken("forgets READ_ONLY") else array.flags
    return lab.Tensor(
        at,
        array.shape,
        strides,
        dtype=array.kind.dtype,
        byte_offset=offset,
        legacy=not versioned,
        flags=flags,
    )


def made_of(data: bytes, shape: list[int], kind: Kind) -> Array:
    memory = lab.Memory(len(data))
    memory.write(data)
    return Array(memory, memory.address, list(shape), row_major(shape), kind, 0)


def made(flat: list[Any], shape: list[int], kind: Kind) -> Array:
    return made_of(pack(flat, kind), shape, kind)


def array(values: Any, dtype: Kind = float32) -> Array:
    shape: list[int] = []
    flat = [values]
    while flat and isinstance(flat[0], list):
        shape.append(len(flat[0]))
        flat = [v for part in flat for v in part]
    if isinstance(values, list) and not shape:
        shape = [0]
    return made(flat, shape, dtype)


def asked_capsule(x: Any, copy: bool | None) -> Any:
    asked: dict[str, Any] = {} if broken("asks for no version") else {"max_version": (1, 3)}
    if copy is not None:
        asked["copy"] = copy
    if broken("asks for a stream"):
        asked["stream"] = 1
    try:
        return x.__dlpack__(**asked)
    except TypeError:
        if broken("asks with keywords only"):
            raise
        return x.__dlpack__()
    except BufferError:
        if broken("hides exceptions of producers"):
            raise RuntimeError("something went wrong") from None
        raise


def pointer_of(capsule: Any, name: str) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, name.encode()))


def validated_kind(info: dict[str, Any], x: Any) -> Kind:
    """The type of a tensor that can be taken."""
    if info["ndim"] < 0 or info["ndim"] > 64 or (info["ndim"] and info["shape"] is None):
        raise BufferError("ndim or shape")
    if any(n < 0 for n in info["shape"] or []) and not broken("takes negative sizes"):
        raise BufferError("negative size")
    if math.prod(max(n, 1) for n in info["shape"] or []) > 1 << 30:
        raise BufferError("too large")
    if info["device"] not in [(1, 0), (3, 0)] and not broken("takes any device"):
        raise BufferError(f"device {info['device']}")
    for kind in KINDS:
        if kind.dtype == info["dtype"]:
            return kind
    if broken("takes any type code"):
        return float32
    raise BufferError(f"type {info['dtype']}")


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    capsule = asked_capsule(x, copy)
    info = lab.inspect(capsule)
    if info["name"] not in ("dltensor", "dltensor_versioned"):
        raise BufferError(f"a capsule named {info['name']}")
    versioned = info["version"] is not None
    pointer = pointer_of(capsule, info["name"])
    if versioned and info["version"][0] != 1:
        if not broken("takes any major version"):
            raise BufferError(f"version {info['version']}")
        ctypes.string_at(pointer, 80)
    kind = validated_kind(info, x)
    taken = lab.take(capsule)
    if broken("leaves capsules unused"):
        rename = ctypes.pythonapi.PyCapsule_SetName
        rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
        fresh = ctypes.c_char_p(info["name"].encode())
        LOST.append(fresh)
        rename(capsule, fresh)
    if broken("runs no deleters"):
        LOST.append(taken)
    if broken("runs deleters twice") and info["deleter"]:
        at = pointer + (16 if versioned else 56)
        deleter = ctypes.c_void_p.from_address(at).value
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter or 0)(pointer)
    return wrapped(taken, info, kind, copy)


def wrapped(taken: lab.Taken, info: dict[str, Any], kind: Kind, copy: bool | None) -> Array:
    shape = [max(n, 0) for n in info["shape"] or []]
    if broken("hangs without elements") and 0 in shape:
        import time

        time.sleep(1000)
    strides = info["strides"]
    if strides is None and shape and broken("needs strides"):
        raise BufferError("no strides")
    if strides is None or 0 in shape or broken("ignores strides"):
        strides = row_major(shape)
    offset = 0 if broken("ignores byte_offset") else info["byte_offset"]
    address = info["data"] + offset
    if broken("changes types") and kind.name == "int64":
        kind = next(k for k in KINDS if k.name == "float64")
    array = Array(taken, address, shape, strides, kind, info["flags"])
    if broken("loses memory"):
        LOST.append(bytes(4096))
    if shape and 0 not in shape:
        last = max(array.addresses()) + kind.size
        if broken("reads one element too many"):
            ctypes.string_at(last, kind.size)
        if broken("writes one element too many"):
            ctypes.memset(last, 0, kind.size)
    copied = info["flags"] & IS_COPIED
    if broken("copies always") or (copy and not copied and not broken("copies never")):
        return made_of(array.data(), shape, kind)
    return array


def asarray(x: Any, dtype: Kind | None = None, copy: bool | None = None) -> Array:
    if not hasattr(type(x), "__dlpack__"):
        return array(x, dtype or float32)
    if copy is False and dtype is not None:
        raise ValueError("a cast copies")
    return from_dlpack(x, copy=copy)
