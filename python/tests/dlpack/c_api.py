"""The structs and the table of the C exchange API, for ctypes, and tensors made by hand."""

import ctypes
import gc
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

import ultramarine as mx

P, I32, I64, U32, U64 = (
    ctypes.c_void_p,
    ctypes.c_int32,
    ctypes.c_int64,
    ctypes.c_uint32,
    ctypes.c_uint64,
)


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", P),
        ("device_type", I32),
        ("device_id", I32),
        ("ndim", I32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(I64)),
        ("strides", ctypes.POINTER(I64)),
        ("byte_offset", U64),
    ]


class Managed(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ("major", U32),
    ("minor", U32),
    ("context", P),
    ("deleter", Deleter),
    ("flags", U64),
    ("tensor", Tensor),
]

SetError = ctypes.CFUNCTYPE(None, P, ctypes.c_char_p, ctypes.c_char_p)
Allocator = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(Tensor), ctypes.POINTER(ctypes.POINTER(Managed)), P, SetError
)
FromObject = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Managed))
)
ToObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(P))
Lend = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
Stream = ctypes.PYFUNCTYPE(ctypes.c_int, I32, I32, ctypes.POINTER(P))


class Table(ctypes.Structure):
    _fields_ = [
        ("major", U32),
        ("minor", U32),
        ("older", P),
        ("allocate", Allocator),
        ("from_object", FromObject),
        ("to_object", ToObject),
        ("lend", Lend),
        ("stream", Stream),
    ]


capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = P, [ctypes.py_object, ctypes.c_char_p]
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [P, ctypes.c_char_p, P]
NAME = ctypes.create_string_buffer(b"dlpack_exchange_api")


def array() -> mx.array:
    x = mx.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mx.eval(x)
    return x


def address_of(x: mx.array) -> int:
    return np.from_dlpack(x).ctypes.data


def export(table: Table, x: Any) -> Any:
    out = ctypes.POINTER(Managed)()
    assert table.from_object(x, ctypes.byref(out)) == 0
    return out


def made(table: Table, tensor: Any) -> Any:
    out = P()
    assert table.to_object(tensor, ctypes.byref(out)) == 0
    x = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(x))
    return x


class Fabricated:
    """A tensor whose fields can be anything; counts its deleter's calls. (A mock.)"""

    alive: ClassVar[dict[int, "Fabricated"]] = {}

    def __init__(self, **wrong: Any) -> None:
        self.deleted = 0
        self.numbers = (ctypes.c_float * 6)(*range(6))
        self.shape, self.strides = (I64 * 2)(2, 3), (I64 * 2)(3, 1)
        self.deleter = Deleter(self.delete)
        self.managed = Managed(major=1, minor=3, deleter=self.deleter)
        self.managed.tensor = Tensor(
            data=ctypes.addressof(self.numbers),
            device_type=1,
            ndim=2,
            code=2,
            bits=32,
            lanes=1,
            shape=self.shape,
            strides=self.strides,
        )
        for name, value in wrong.items():
            owner = self.managed if hasattr(self.managed, name) else self.managed.tensor
            setattr(owner, name, value)
        Fabricated.alive[id(self)] = self

    def delete(self, _: Any) -> None:
        self.deleted += 1
        Fabricated.alive.pop(id(self), None)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    gc.collect()
    assert not Fabricated.alive
