"""The C exchange API: every function of the package's table, through ctypes."""

import ctypes
import sys
from typing import Any

import numpy as np
import pytest

import ultramarine as mx

from .c_api import (
    I64,
    Fabricated,
    Managed,
    P,
    SetError,
    Table,
    Tensor,
    address_of,
    array,
    capsule_pointer,
    export,
    made,
)
from .c_api import nothing_left as nothing_left


@pytest.fixture
def table() -> Table:
    address = capsule_pointer(mx.array.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    return Table.from_address(address or 0)


# Our table.


def test_the_attributes(table: Table) -> None:
    class Sub(mx.array):
        pass

    capsule = mx.array.__dlpack_c_exchange_api__
    assert capsule is mx.array.__dlpack_c_exchange_api__
    assert Sub.__dlpack_c_exchange_api__ is capsule
    assert array().__dlpack_c_exchange_api__ is capsule
    address = ctypes.addressof(table)
    assert mx.array.__c_dlpack_exchange_api__ == address
    assert type(mx.array.__c_dlpack_exchange_api__) is int
    assert (table.major, table.minor, table.older) == (1, 3, None)
    for slot in ("allocate", "from_object", "to_object", "lend", "stream"):
        assert ctypes.cast(getattr(table, slot), P).value, slot


def test_from_object(table: Table) -> None:
    x = array()
    m = export(table, x).contents
    t = m.tensor
    assert (m.major, m.minor, m.flags) == (1, 3, 0)
    assert (t.device_type, t.device_id, t.ndim) == (1, 0, 2)
    assert (t.code, t.bits, t.lanes) == (2, 32, 1)
    assert (t.shape[:2], t.strides[:2]) == ([2, 3], [3, 1])
    assert t.data + t.byte_offset == address_of(x)
    m.deleter(ctypes.byref(m))


def test_from_object_of_what_is_lazy_or_a_view_or_a_subclass(table: Table) -> None:
    class Sub(mx.array):
        pass

    lazy = mx.arange(6).reshape(2, 3).T * 2
    for x in (lazy, array().T, Sub([1.0, 2.0])):
        m = export(table, x)
        t = m.contents.tensor
        assert t.shape[: t.ndim] == list(x.shape)
        y = made(table, m)
        assert type(y) is mx.array
        assert y.tolist() == x.tolist()
        assert address_of(y) == address_of(x)


def test_from_object_says_what_is_read_only(table: Table) -> None:
    source = np.arange(3.0)
    source.flags.writeable = False
    m = export(table, mx.from_dlpack(source)).contents
    assert m.flags == 1
    m.deleter(ctypes.byref(m))


@pytest.mark.parametrize("thing", [None, 3, "x", [1.0], np.arange(3.0), mx.array], ids=repr)
def test_what_is_no_array(table: Table, thing: Any) -> None:
    out = ctypes.POINTER(Managed)()
    with pytest.raises(TypeError, match="expected an array"):
        table.from_object(thing, ctypes.byref(out))
    assert not out
    with pytest.raises(TypeError, match="expected an array"):
        table.lend(thing, ctypes.byref(Tensor()))


def test_failures_of_lazy_work(table: Table) -> None:
    """Failed work raises, and no tensor is exported."""
    out = ctypes.POINTER(Managed)()
    x = mx.zeros((1 << 40,), mx.float64) + 1.0
    with pytest.raises((MemoryError, RuntimeError)):
        table.from_object(x, ctypes.byref(out))
    with pytest.raises((MemoryError, RuntimeError)):
        table.lend(x, ctypes.byref(Tensor()))
    assert not out


def test_to_object(table: Table) -> None:
    f = Fabricated()
    x = made(table, ctypes.pointer(f.managed))
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert address_of(x) == ctypes.addressof(f.numbers)
    assert f.deleted == 0
    del x
    assert f.deleted == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"major": 2},
        {"major": 0},
        {"ndim": -1},
        {"ndim": 100},
        {"data": None},
        {"bits": 31},
        {"lanes": 4},
        {"code": 99},
        {"code": 3, "bits": 64},
        {"device_type": 99},
        {"device_type": 2},
        {"device_id": 1},
    ],
    ids=str,
)
def test_to_object_of_what_is_wrong(table: Table, wrong: dict[str, Any]) -> None:
    f = Fabricated(**wrong)
    out = P()
    with pytest.raises(BufferError):
        table.to_object(ctypes.pointer(f.managed), ctypes.byref(out))
    assert f.deleted == 1
    assert not out.value


def test_to_object_of_nothing(table: Table) -> None:
    with pytest.raises(BufferError, match="NULL"):
        table.to_object(None, ctypes.byref(P()))


def test_lend(table: Table) -> None:
    for x in (array(), array().T, mx.arange(6).reshape(3, 2) + 1):
        t = Tensor()
        count = sys.getrefcount(x)
        assert table.lend(x, ctypes.byref(t)) == 0
        assert sys.getrefcount(x) == count
        there = np.from_dlpack(x)
        assert t.data + t.byte_offset == there.ctypes.data
        assert t.shape[: t.ndim] == list(x.shape)
        assert [s * x.itemsize for s in t.strides[: t.ndim]] == list(there.strides)
        assert (t.device_type, t.device_id) == (1, 0)


def test_lend_of_what_has_no_elements_or_no_dimensions(table: Table) -> None:
    t = Tensor()
    assert table.lend(mx.zeros((0, 3)), ctypes.byref(t)) == 0
    assert (t.data, t.ndim, t.shape[:2]) == (None, 2, [0, 3])
    x = mx.array(2.5)
    assert table.lend(x, ctypes.byref(t)) == 0
    assert t.ndim == 0
    assert ctypes.c_float.from_address(t.data).value == 2.5


def test_a_lent_tensor_can_be_written(table: Table) -> None:
    x = array()
    t = Tensor()
    assert table.lend(x, ctypes.byref(t)) == 0
    ctypes.c_float.from_address(t.data).value = 42.0
    assert (x + 0).tolist() == [[42, 2, 3], [4, 5, 6]]


def test_what_is_read_only_is_not_lent(table: Table) -> None:
    source = np.arange(3.0)
    source.flags.writeable = False
    with pytest.raises(mx.InterchangeError, match="read-only"):
        table.lend(mx.from_dlpack(source), ctypes.byref(Tensor()))


def test_current_work_stream(table: Table) -> None:
    out = P(1)
    assert table.stream(1, 0, ctypes.byref(out)) == 0
    assert out.value is None
    with pytest.raises(BufferError):
        table.stream(99, 0, ctypes.byref(out))


def asks(table: Table, prototype: Any) -> tuple[Any, list[tuple[int, bytes, bytes]]]:
    errors: list[tuple[int, bytes, bytes]] = []
    report = SetError(lambda context, kind, message: errors.append((context, kind, message)))
    out = ctypes.POINTER(Managed)()
    # A CFUNCTYPE gives up the interpreter's lock for the call.
    code = table.allocate(prototype, ctypes.byref(out), 77, report)
    assert code == (-1 if errors else 0)
    assert bool(out) == (code == 0)
    return out, errors


@pytest.mark.parametrize("sizes", [(), (0,), (5,), (2, 3), (7, 1, 2)], ids=str)
def test_the_allocator(table: Table, sizes: tuple[int, ...]) -> None:
    n = len(sizes)
    shape = (I64 * n)(*sizes)
    # All that does not count is wrong.
    prototype = Tensor(
        data=13, device_type=1, ndim=n, code=2, bits=64, lanes=1, shape=shape, byte_offset=2**60
    )
    out, errors = asks(table, ctypes.pointer(prototype))
    assert errors == []
    m = out.contents
    assert (m.major, m.minor, m.flags) == (1, 3, 0)
    assert m.tensor.shape[:n] == list(sizes)
    assert (m.tensor.code, m.tensor.bits, m.tensor.lanes) == (2, 64, 1)
    elements = int(np.prod(sizes))
    if elements:
        ctypes.memset(m.tensor.data + m.tensor.byte_offset, 0, 8 * elements)
    x = made(table, out)
    assert (x.shape, x.dtype) == (sizes, mx.float64)
    assert not np.from_dlpack(x).any()


def test_the_allocators_errors(table: Table) -> None:
    def ask(**words: Any) -> tuple[bytes, bytes]:
        shape = (I64 * 1)(words.pop("size", 3))
        given = {"device_type": 1, "ndim": 1, "code": 2, "bits": 32, "lanes": 1, "shape": shape}
        _, errors = asks(table, ctypes.pointer(Tensor(**(given | words))))
        ((context, kind, message),) = errors
        assert context == 77
        return kind, message

    assert ask(code=99)[0] == b"BufferError"
    assert ask(device_type=2)[0] == b"BufferError"
    assert ask(ndim=-1)[0] == b"BufferError"
    assert ask(size=-1)[0] == b"BufferError"
    assert ask(size=1 << 45)[0] == b"MemoryError"
    assert ask(shape=None)[0] == b"BufferError"
    _, errors = asks(table, None)
    assert [kind for _, kind, _ in errors] == [b"BufferError"]


def test_no_error_callback(table: Table) -> None:
    out = ctypes.POINTER(Managed)()
    assert table.allocate(None, ctypes.byref(out), None, SetError()) == -1
