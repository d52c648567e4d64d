"""What a capsule of DLPack holds, read through ctypes: nobody's library is trusted with it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

READ_ONLY = 1
IS_COPIED = 2
SUBBYTE_PADDED = 4


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Legacy(ctypes.Structure):
    _fields_ = (
        ("tensor", DLTensor),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


@dataclass(frozen=True)
class Seen:
    """The header of a capsule's tensor, copied."""

    version: tuple[int, int] | None
    flags: int
    data: int
    device: tuple[int, int]
    dtype: tuple[int, int, int]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    byte_offset: int

    @property
    def address(self) -> int:
        """Where the first element is."""
        return self.data + self.byte_offset


def look(capsule: Any) -> Seen:
    """Reads a capsule that nobody used yet, and leaves it as it is."""
    version: tuple[int, int] | None = None
    flags = 0
    if _is_valid(capsule, b"dltensor_versioned"):
        whole = Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        version, flags, tensor = (whole.major, whole.minor), whole.flags, whole.tensor
    elif _is_valid(capsule, b"dltensor"):
        tensor = Legacy.from_address(_pointer(capsule, b"dltensor")).tensor
    else:
        raise ValueError(f"{capsule!r} holds no tensor")
    ndim = tensor.ndim
    return Seen(
        version=version,
        flags=flags,
        data=tensor.data or 0,
        device=(tensor.device_type, tensor.device_id),
        dtype=(tensor.code, tensor.bits, tensor.lanes),
        shape=tuple(tensor.shape[:ndim]) if ndim else (),
        strides=tuple(tensor.strides[:ndim]) if ndim and tensor.strides else None,
        byte_offset=tensor.byte_offset,
    )


def header(producer: Any) -> Seen:
    """What a producer exports."""
    try:
        return look(producer.__dlpack__(max_version=(1, 3)))
    except TypeError:
        return look(producer.__dlpack__())


def address(producer: Any) -> int:
    """Where a producer's first element is."""
    return header(producer).address


class ExchangeTable(ctypes.Structure):
    """DLPack's table of functions for libraries in C."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("older", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p),
        ("lend", ctypes.c_void_p),
        (
            "current_work_stream",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
            ),
        ),
    )


def work_stream(cls: type, device_type: int = 2, device_id: int = 0) -> int:
    """The stream on which a library works on a device (2: CUDA), by the table of its array class."""
    capsule = cls.__dlpack_c_exchange_api__  # type: ignore[attr-defined]
    table = ExchangeTable.from_address(_pointer(capsule, b"dlpack_exchange_api"))
    stream = ctypes.c_void_p()
    assert table.current_work_stream(device_type, device_id, ctypes.byref(stream)) == 0
    return stream.value or 0
