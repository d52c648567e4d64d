"""The C exchange API that a library offers: every slot of its table."""

from __future__ import annotations

import gc
import sys
from functools import partial
from typing import Any

from ultramarine_dlpack_check import lab
from ultramarine_dlpack_check.case import (
    EXCHANGE,
    OURS,
    NotApplicable,
    case,
    expect,
    expect_equal,
    expect_refusal,
)
from ultramarine_dlpack_check.fabricate import FLOAT32, READ_ONLY, pack
from ultramarine_dlpack_check.target import GRID, ROW, Target, address, gathered

NAME = "__dlpack_c_exchange_api__"
OLD_NAME = "__c_dlpack_exchange_api__"
BORROW = "dltensor_from_py_object_no_sync"


def table_of(t: Target) -> lab.Table:
    found = getattr(t.adapter.array_type(), NAME, None)
    if found is None:
        raise NotApplicable("no exchange API")
    return lab.table(found)


@case("exchange/attribute", "The type has a capsule named dlpack_exchange_api.", EXCHANGE)
def attribute(t: Target) -> None:
    found = getattr(t.adapter.array_type(), NAME, None)
    if found is None:
        raise NotApplicable("no exchange API")
    expect(not isinstance(found, int), "an integer, which DLPack 1.2 had")
    lab.table(found)


@case("exchange/offered", "There is one.", OURS)
def offered(t: Target) -> None:
    expect(hasattr(t.adapter.array_type(), NAME), f"no {NAME}")


@case("exchange/of the type", "The attribute is the type's, and its subclasses'.", EXCHANGE)
def of_the_type(t: Target) -> None:
    table = table_of(t)
    array = t.make()
    expect_equal(lab.table(getattr(type(array), NAME)).address, table.address, "table")


@case("exchange/always the same", "One table for the life of the process.", EXCHANGE)
def always_the_same(t: Target) -> None:
    first = table_of(t).address
    gc.collect()
    expect_equal({table_of(t).address for _ in range(10)}, {first}, "addresses")


@case("exchange/same object", "The same capsule each time.", OURS)
def same_object(t: Target) -> None:
    table_of(t)
    kind = t.adapter.array_type()
    expect(getattr(kind, NAME) is getattr(kind, NAME), "another capsule")


@case("exchange/name of 1.2", "The older name leads to the table too.", OURS)
def old_name(t: Target) -> None:
    found = getattr(t.adapter.array_type(), OLD_NAME, None)
    expect(found is not None, f"no {OLD_NAME}")
    expect_equal(lab.table(found).address, table_of(t).address, "table")


@case("exchange/version", "Major version 1.", EXCHANGE)
def version(t: Target) -> None:
    expect_equal(table_of(t).version[0], 1, "major version")


@case("exchange/slots", "No required slot is NULL.", EXCHANGE)
def slots(t: Target) -> None:
    missing = [s for s, there in table_of(t).slots().items() if not there and s != BORROW]
    expect_equal(missing, [], "slots that are NULL")


@case("exchange/previous tables", "Older tables are older, and end.", EXCHANGE)
def previous(t: Target) -> None:
    table: lab.Table | None = table_of(t)
    for _ in range(20):
        if table is None:
            return
        older = table.previous
        if older is not None:
            expect(older.version < table.version, f"{older.version} behind {table.version}")
        table = older
    expect(False, "the chain does not end")


@case("exchange/export", "from_py_object gives the array's tensor, versioned, in place.", EXCHANGE)
def export(t: Target) -> None:
    table, array = table_of(t), t.make(GRID)
    out = table.from_object(array)
    info = out.info()
    came = (info["version"][0], info["shape"], info["strides"], info["dtype"], info["device"])
    expect_equal(came, (1, [2, 3], [3, 1], (2, 32, 1), (1, 0)), "fields")
    expect_equal(address(info), t.pointer(array), "address")
    del array
    gc.collect()
    expect_equal(gathered(out), pack(ROW, FLOAT32), "bytes after the array is gone")


@case("exchange/export of work", "What is not computed yet is computed.", EXCHANGE)
def export_of_work(t: Target) -> None:
    table = table_of(t)
    expect_equal(gathered(table.from_object(t.adapter.heavy(t.make()))), bytes(24), "bytes")


@case("exchange/export of a view", "Strides and offset are the view's.", EXCHANGE)
def export_of_a_view(t: Target) -> None:
    table = table_of(t)
    view = t.adapter.transposed(t.make(GRID))
    wanted = pack([1.0, 4.0, 2.0, 5.0, 3.0, 6.0], FLOAT32)
    expect_equal(gathered(table.from_object(view)), wanted, "bytes")


@case("exchange/export of an import", "The same memory, which lives until the last.", EXCHANGE)
def export_of_an_import(t: Target) -> None:
    table, tensor = table_of(t), t.tensor()
    array = t.import_(tensor)
    out = table.from_object(array)
    del array
    gc.collect()
    expect_equal(gathered(out), pack(ROW, FLOAT32), "bytes")
    if address(out.info()) == tensor.address:
        expect_equal(tensor.deleted, 0, "runs of the deleter while the export lives")


@case("exchange/export of read-only memory", "The flag is set.", EXCHANGE)
def export_read_only(t: Target) -> None:
    table, tensor = table_of(t), t.tensor(flags=READ_ONLY)
    out = table.from_object(t.import_(tensor)).info()
    if address(out) == tensor.address:
        expect(out["flags"] & READ_ONLY, f"flags {out['flags']}")


@case("exchange/export deleted on a native thread", "As any deleter.", EXCHANGE)
def export_native_thread(t: Target) -> None:
    table, array = table_of(t), t.make()
    table.from_object(array).delete_on_thread()
    expect_equal(t.values(array), ROW, "values")


@case("exchange/export of something else", "-1 with an exception for other objects.", OURS)
def export_of_something_else(t: Target) -> None:
    table = table_of(t)
    for odd in [None, 3.5, object(), [1.0]]:
        expect_refusal(partial(table.from_object, odd), repr(odd))


@case("exchange/subclass", "Objects of subclasses are exported too.", OURS)
def subclass(t: Target) -> None:
    table, kind = table_of(t), t.adapter.array_type()
    try:
        derived: Any = type("Derived", (kind,), {})
    except TypeError:
        raise NotApplicable("the type cannot be subclassed") from None
    expect_equal(lab.table(getattr(derived, NAME)).address, table.address, "table")


@case("exchange/import", "to_py_object makes an array of a tensor, in place.", EXCHANGE)
def import_(t: Target) -> None:
    table, tensor = table_of(t), t.tensor(legacy=False)
    array = table.to_object(tensor)
    expect_equal(type(array), t.adapter.array_type(), "type")
    expect_equal(t.values(array), GRID, "values")
    expect_equal(t.pointer(array), tensor.address, "address (it was copied)")
    expect_equal(tensor.deleted, 0, "runs of the deleter while the array lives")


@case("exchange/import, read-only", "The flag counts.", EXCHANGE)
def import_read_only(t: Target) -> None:
    table = table_of(t)
    memory, tensor = t.kept(ROW, flags=READ_ONLY, legacy=False)
    array = table.to_object(tensor)
    try:
        t.adapter.write(array, 0, 99.0)
        t.values(array)
    except Exception:
        pass
    expect(memory.read() == pack(ROW, FLOAT32), "the memory changed")


def _refused() -> None:
    odd: list[tuple[str, dict[str, Any], bool]] = [
        ("major version 2", {"version": (2, 0), "guard": "header"}, False),
        ("unknown type", {"dtype": (99, 32, 1)}, True),
        ("negative size", {"shape": (2, -3)}, True),
        ("unknown device", {"device": (99, 0)}, True),
        ("data NULL", {"data": None}, True),
    ]
    for name, fields, ours in odd:

        def check(t: Target, fields: dict[str, Any] = fields) -> None:
            table, tensor = table_of(t), t.tensor(legacy=False, **fields)
            expect_refusal(lambda: table.to_object(tensor), "the tensor")
            gc.collect()
            expect_equal(tensor.deleted, 1, "runs of the deleter: the tensor was given away")

        rule = "to_py_object owns what it refuses: -1, an exception, and the deleter runs."
        case(f"exchange/import refused: {name}", rule, EXCHANGE, optional=ours)(check)


_refused()


@case("exchange/borrow", "dltensor_from_py_object lends the array's tensor.", EXCHANGE)
def borrow(t: Target) -> None:
    table, array = table_of(t), t.make(GRID)
    if not table.slots()[BORROW]:
        raise NotApplicable("the slot is NULL, which it may be")
    info = table.borrow(array)
    came = (info["shape"], info["strides"], info["dtype"], info["device"])
    expect_equal(came, ([2, 3], [3, 1], (2, 32, 1), (1, 0)), "fields")
    expect_equal(address(info), t.pointer(array), "address")


@case("exchange/borrow of something else", "-1 with an exception for other objects.", OURS)
def borrow_something_else(t: Target) -> None:
    table = table_of(t)
    if not table.slots()[BORROW]:
        raise NotApplicable("the slot is NULL, which it may be")
    expect_refusal(lambda: table.borrow(3.5), "3.5")


@case("exchange/stream of the CPU", "current_work_stream is NULL for the CPU.", EXCHANGE)
def stream_of_the_cpu(t: Target) -> None:
    expect_equal(table_of(t).stream(1, 0), 0, "stream")


@case("exchange/stream of no device", "-1 with an exception, or NULL.", OURS)
def stream_of_no_device(t: Target) -> None:
    table = table_of(t)
    try:
        came = table.stream(99, 0)
    except AssertionError:
        raise
    except Exception:
        return
    expect_equal(came, 0, "stream")


@case("exchange/allocate", "The allocator makes tensors without the interpreter's lock.", EXCHANGE)
def allocate(t: Target) -> None:
    table = table_of(t)
    for thread in (False, True):
        for shape in ([2, 3], [7], []):
            code, out, errors = table.allocate(shape, thread=thread)
            expect_equal((code, errors), (0, []), "code and errors")
            if out is None:
                raise AssertionError("0 without a tensor")
            info = out.info()
            came = (info["shape"] or [], info["dtype"], info["device"], info["version"][0])
            expect_equal(came, (shape, (2, 32, 1), (1, 0), 1), "fields")
            expect_equal(info["flags"] & READ_ONLY, 0, "READ_ONLY")
            count = 1
            for size in shape:
                count *= size
            out.write(b"\x01" * (4 * count))
            out.delete_on_thread()


@case("exchange/allocate nothing", "A tensor without elements.", EXCHANGE)
def allocate_nothing(t: Target) -> None:
    code, out, errors = table_of(t).allocate([0, 4])
    expect_equal((code, errors, out is None), (0, [], False), "code, errors")


def _allocator_fails() -> None:
    odd: list[tuple[str, dict[str, Any]]] = [
        ("negative size", {"shape": [-2, 3]}),
        ("too large", {"shape": [2**40, 2**20]}),
        ("overflow", {"shape": [2**62, 2**62]}),
        ("unknown type", {"shape": [2], "dtype": (99, 8, 1)}),
        ("unknown device", {"shape": [2], "device": (99, 0)}),
    ]
    for name, asked in odd:

        def check(t: Target, asked: dict[str, Any] = asked) -> None:
            for thread in (False, True):
                code, out, errors = table_of(t).allocate(**asked, thread=thread)
                came = (code, out is None, len(errors))
                expect_equal(came, (-1, True, 1), "code, no tensor, calls of SetError")
                expect(
                    errors[0][0].isidentifier() and errors[0][1],
                    f"SetError was called with {errors[0]}",
                )

        rule = "The allocator fails with -1, no tensor, and exactly one call of SetError."
        case(f"exchange/allocate fails: {name}", rule, EXCHANGE)(check)


_allocator_fails()


@case("exchange/references return", "Calls leave no references behind.", EXCHANGE)
def references(t: Target) -> None:
    table, array = table_of(t), t.make()
    lends = table.slots()[BORROW]

    def work() -> int:
        for _ in range(100):
            table.from_object(array).delete()
            if lends:
                table.borrow(array)
        return sys.getrefcount(array)

    work()
    before = work()
    expect(work() - before < 10, "references to the array grow")


@case("exchange/flat memory", "Many exports by the table leave nothing.", EXCHANGE, seconds=600)
def flat_memory(t: Target) -> None:
    from ultramarine_dlpack_check.cases.lifetime import flat

    table, array = table_of(t), t.make()

    def work() -> None:
        table.from_object(array).delete()
        table.allocate([3])

    flat(t, work)
