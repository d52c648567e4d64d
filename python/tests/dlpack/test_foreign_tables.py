"""Tables of the C exchange API of other libraries. They are mocks; torch and tvm-ffi are met in their own tests."""

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import ultramarine as mx

from .c_api import (
    NAME,
    Allocator,
    Fabricated,
    FromObject,
    Stream,
    Table,
    ToObject,
    address_of,
    new_capsule,
)
from .c_api import nothing_left as nothing_left

# Tables of others.


class Foreign:
    """A type with a table; what the table says is up to the test. (A mock.)"""

    def __init__(self) -> None:
        self.fabricated = Fabricated()
        self.asked: list[str] = []

    def __dlpack__(self, **words: Any) -> Any:
        self.asked.append("__dlpack__")
        Fabricated.alive.pop(id(self.fabricated), None)
        return np.arange(7.0).__dlpack__(**words)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    @staticmethod
    def from_object(x: "Foreign", out: Any) -> int:
        x.asked.append("table")
        out[0] = ctypes.pointer(x.fabricated.managed)
        return 0


EXPORT = FromObject(Foreign.from_object)
OURS = Table.from_address(mx.array.__c_dlpack_exchange_api__)


def table_of(**words: Any) -> Table:
    whole = {
        "major": 1,
        "minor": 3,
        "allocate": OURS.allocate,
        "from_object": EXPORT,
        "to_object": OURS.to_object,
        "stream": OURS.stream,
    }
    return Table(**(whole | words))


def foreign(t: Table, word: str = "__dlpack_c_exchange_api__") -> type[Foreign]:
    address = ctypes.addressof(t)
    value = address if word.startswith("__c_") else new_capsule(address, NAME, None)
    return type("Other", (Foreign,), {word: value, "kept": t})


@pytest.mark.parametrize("word", ["__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"])
def test_a_table_is_used(word: str) -> None:
    kind = foreign(table_of(), word)
    for _ in range(3):
        f = kind()
        x = mx.from_dlpack(f)
        assert f.asked == ["table"]
        assert address_of(x) == ctypes.addressof(f.fabricated.numbers)
        del x
        assert f.fabricated.deleted == 1


def test_a_table_and_copies() -> None:
    kind = foreign(table_of())
    f = kind()
    x = mx.from_dlpack(f, copy=True)
    assert address_of(x) != ctypes.addressof(f.fabricated.numbers)
    assert f.fabricated.deleted == 1
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    f = kind()
    x = mx.from_dlpack(f, copy=False)
    assert address_of(x) == ctypes.addressof(f.fabricated.numbers)


def test_a_subclass_has_its_parents_table() -> None:
    kind = foreign(table_of())
    sub = type("Sub", (kind,), {})
    f = sub()
    assert mx.from_dlpack(f).shape == (2, 3)
    assert f.asked == ["table"]


def test_older_tables_are_found() -> None:
    old = table_of()
    f = foreign(table_of(major=2, older=ctypes.addressof(old)))()
    f.kept_too = old
    mx.from_dlpack(f)
    assert f.asked == ["table"]


@pytest.mark.parametrize("wrong", [
    {"major": 2},
    {"allocate": Allocator()},
    {"from_object": FromObject()},
    {"to_object": ToObject()},
    {"stream": Stream()},
], ids=lambda w: next(iter(w)))  # fmt: skip
def test_tables_that_are_not_understood(wrong: dict[str, Any]) -> None:
    f = foreign(table_of(**wrong))()
    assert mx.from_dlpack(f).shape == (7,)
    assert f.asked == ["__dlpack__"]


@pytest.mark.parametrize("value", [None, 3.5, "x", 0, object()], ids=str)
def test_attributes_that_are_no_tables(value: Any) -> None:
    for word in ("__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"):
        f = type("Other", (Foreign,), {word: value})()
        assert mx.from_dlpack(f).shape == (7,)
        assert f.asked == ["__dlpack__"]


def test_capsules_of_another_name_are_no_tables() -> None:
    other = ctypes.create_string_buffer(b"another")
    t = table_of()
    value = new_capsule(ctypes.addressof(t), other, None)
    f = type("Other", (Foreign,), {"__dlpack_c_exchange_api__": value})()
    assert mx.from_dlpack(f).shape == (7,)


@pytest.mark.parametrize("wrong", [{"major": 2}, {"ndim": -1}, {"bits": 31}], ids=str)
def test_a_table_that_gives_what_is_wrong(wrong: dict[str, Any]) -> None:
    f = foreign(table_of())()
    Fabricated.alive.pop(id(f.fabricated))
    f.fabricated = Fabricated(**wrong)
    with pytest.raises(mx.InterchangeError):
        mx.from_dlpack(f)
    assert f.fabricated.deleted == 1


def test_a_table_that_fails() -> None:
    """`__dlpack__` explains why, or does it."""

    def fails(x: Foreign, out: Any) -> int:
        x.asked.append("failed")
        return -1

    t = table_of(from_object=FromObject(fails))
    f = foreign(t)()
    assert mx.from_dlpack(f).shape == (7,)
    assert f.asked == ["failed", "__dlpack__"]


def test_types_with_tables_go() -> None:
    """Few types are remembered, so one that is not used any more goes in the end."""
    t = table_of()
    gone = []
    for _ in range(40):
        kind = foreign(t)
        mx.from_dlpack(kind())
        gone.append(weakref.ref(kind))
    del kind
    gc.collect()
    assert sum(g() is None for g in gone) >= 20
