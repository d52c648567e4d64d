"""The argument `copy` of both sides, and `dl_device`, against addresses and flags."""

from __future__ import annotations

from functools import partial
from typing import Any

from ultramarine_dlpack_check import lab
from ultramarine_dlpack_check.case import (
    ARRAY_API,
    OURS,
    NotApplicable,
    case,
    expect,
    expect_equal,
    expect_refusal,
)
from ultramarine_dlpack_check.fabricate import (
    FLOAT32,
    IS_COPIED,
    READ_ONLY,
    Producer,
    pack,
)
from ultramarine_dlpack_check.target import GRID, ROW, Target, address, gathered


def copying(t: Target, tensor: lab.Tensor) -> Producer:
    """A producer that copies when it is asked to, as it has to."""

    def give(copy: bool | None = None, **_: Any) -> Any:
        flags: dict[str, Any] = {"flags": IS_COPIED} if t.asks_versions else {}
        return (t.tensor(**flags) if copy else tensor).capsule()

    return Producer(give)


@case("copy/True imports a copy", "from_dlpack(x, copy=True) has memory of its own.", ARRAY_API)
def import_true(t: Target) -> None:
    tensor = t.tensor()
    array = t.take(copying(t, tensor), copy=True)
    expect_equal(t.values(array), GRID, "values")
    expect(t.pointer(array) != tensor.address, "the memory is the producer's")


@case(
    "copy/True of a producer without the argument",
    "If the producer refuses copy, the consumer copies itself (or raises).",
    ARRAY_API,
)
def import_true_by_itself(t: Target) -> None:
    tensor = t.tensor(legacy=True)
    producer = Producer(tensor, keywords=False)
    try:
        array = t.take(producer, copy=True)
    except (BufferError, ValueError, TypeError):
        return
    expect(t.pointer(array) != tensor.address, "the memory is the producer's")


@case("copy/True of read-only memory", "The copy can be written: it is the array's own.", OURS)
def import_true_read_only(t: Target) -> None:
    tensor = t.tensor(flags=READ_ONLY)
    array = t.take(Producer(lambda **_: tensor.capsule()), copy=True)
    out = t.newest(array).info()
    expect(address(out) != tensor.address, "the memory is the producer's")
    expect_equal(out["flags"] & READ_ONLY, 0, "READ_ONLY of the copy")


@case("copy/False accepted", "Plain memory needs no copy: it is taken.", OURS)
def import_false_accepted(t: Target) -> None:
    tensor = t.tensor()
    expect_equal(t.pointer(t.import_(tensor, copy=False)), tensor.address, "address")


@case(
    "copy/False imports in place", "from_dlpack(x, copy=False) never copies: it raises.", ARRAY_API
)
def import_false(t: Target) -> None:
    tensor = t.tensor()
    try:
        array = t.import_(tensor, copy=False)
    except (BufferError, ValueError):
        return
    expect_equal(t.pointer(array), tensor.address, "address")


@case(
    "copy/False where a copy is needed",
    "from_dlpack(x, copy=False) raises if it would copy: BufferError or ValueError.",
    ARRAY_API,
)
def import_false_raises(t: Target) -> None:
    def make() -> Any:
        data = b"\0" + pack(ROW, FLOAT32)
        tensor = t.tensor(data=data, shape=(6,), byte_offset=1)
        array = t.import_(tensor, copy=False)
        expect_equal(t.pointer(array), tensor.address + 1, "address (it was copied)")
        return array

    try:
        array = make()
    except (BufferError, ValueError):
        return
    expect_equal(t.values(array), ROW, "values of what was taken misaligned")


@case("copy/None imports in place", "Memory is shared where that can be.", OURS)
def import_none(t: Target) -> None:
    tensor = t.tensor()
    array = t.import_(tensor, copy=None)
    expect_equal(t.pointer(array), tensor.address, "address")


@case("copy/True exports a copy", "__dlpack__(copy=True): other memory, and IS_COPIED.", ARRAY_API)
def export_true(t: Target) -> None:
    array = t.make()
    out = t.export(array, copy=True, max_version=(1, 3)).info()
    expect(address(out) != t.pointer(array), "the memory is the array's")
    if out["version"] is not None:
        expect(out["flags"] & IS_COPIED, f"flags {out['flags']}: not IS_COPIED")


@case("copy/True exports a copy in legacy", "Other memory, also without a version.", ARRAY_API)
def export_true_legacy(t: Target) -> None:
    array = t.make()
    try:
        out = t.export(array, copy=True)
    except BufferError as error:
        raise NotApplicable(f"refused: {error}") from None
    expect(address(out.info()) != t.pointer(array), "the memory is the array's")
    expect_equal(out.read(24), pack(ROW, FLOAT32), "bytes")


@case("copy/a copy is free", "Writes to a copy do not show in the array.", ARRAY_API)
def copy_is_free(t: Target) -> None:
    array = t.make()
    out = t.export(array, copy=True, max_version=(1, 3))
    expect_equal(out.info()["flags"] & READ_ONLY, 0, "READ_ONLY of a copy")
    out.write(b"\xff" * 24)
    expect_equal(t.values(array), ROW, "values of the array")


@case("copy/True of a view", "A copy has the values of the view.", ARRAY_API)
def copy_of_a_view(t: Target) -> None:
    array = t.adapter.transposed(t.make(GRID))
    out = t.export(array, copy=True, max_version=(1, 3))
    expect_equal(gathered(out), pack([1.0, 4.0, 2.0, 5.0, 3.0, 6.0], FLOAT32), "bytes")


def _in_place() -> None:
    for copy in (False, None):

        def check(t: Target, copy: bool | None = copy) -> None:
            array = t.make()
            out = t.export(array, copy=copy, max_version=(1, 3)).info()
            expect_equal(address(out), t.pointer(array), "address")
            expect_equal(out["flags"] & IS_COPIED, 0, "IS_COPIED")

        rule = "The array's memory itself, not flagged as a copy."
        case(f"copy/{copy} exports in place", rule, ARRAY_API)(check)


_in_place()


@case(
    "copy/dl_device of the array", "dl_device=(1, 0) for an array on the CPU: as it is.", ARRAY_API
)
def own_device(t: Target) -> None:
    array = t.make()
    out = t.export(array, dl_device=(1, 0), max_version=(1, 3)).info()
    expect_equal(out["device"], (1, 0), "device")
    expect_equal(address(out), t.pointer(array), "address")


@case(
    "copy/dl_device that is not there",
    "An export to a device that cannot be served is a BufferError.",
    ARRAY_API,
)
def other_device(t: Target) -> None:
    array = t.make()
    for device in [(99, 0), (4, 77), (2, 99)]:
        what = f"dl_device={device}"
        expect_refusal(
            partial(t.capsule, array, dl_device=device, max_version=(1, 3)), what, BufferError
        )


@case(
    "copy/dl_device that is not there is a ValueError too",
    "One exception that both standards' words fit.",
    OURS,
)
def other_device_kinds(t: Target) -> None:
    array = t.make()
    work = lambda: t.capsule(array, dl_device=(99, 0), max_version=(1, 3))
    expect_refusal(work, "dl_device=(99, 0)", BufferError, ValueError, TypeError)


@case("copy/other device without a copy", "dl_device elsewhere with copy=False raises.", ARRAY_API)
def other_device_no_copy(t: Target) -> None:
    array = t.make()
    work = lambda: t.capsule(array, dl_device=(2, 0), copy=False, max_version=(1, 3))
    expect_refusal(work, "dl_device=(2, 0), copy=False", BufferError)
