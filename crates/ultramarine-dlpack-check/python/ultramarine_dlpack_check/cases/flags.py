"""Flags: READ_ONLY, IS_COPIED, and those that do not exist yet."""

from __future__ import annotations

from ultramarine_dlpack_check.case import (
    HEADER,
    OURS,
    PYTHON,
    NotApplicable,
    case,
    expect,
    expect_equal,
    expect_refusal,
)
from ultramarine_dlpack_check.fabricate import FLOAT32, IS_COPIED, READ_ONLY, pack
from ultramarine_dlpack_check.target import GRID, ROW, Target, address


@case("flags/read-only is not written", "READ_ONLY memory is not written in place.", HEADER)
def read_only_is_not_written(t: Target) -> None:
    memory, tensor = t.kept(ROW, flags=READ_ONLY)
    array = t.import_(tensor)
    try:
        t.adapter.write(array, 0, 99.0)
        t.values(array)
    except Exception:
        pass
    expect(memory.read() == pack(ROW, FLOAT32), "the memory changed")


@case("flags/read-only is said", "The library says that the array cannot be written.", HEADER)
def read_only_is_said(t: Target) -> None:
    array = t.import_(t.tensor(flags=READ_ONLY))
    said = t.adapter.writeable(array)
    if said is None:
        raise NotApplicable("it has no way to say so")
    expect_equal(said, False, "writeable")


@case("flags/read-only in place", "READ_ONLY memory is taken without a copy.", OURS)
def read_only_in_place(t: Target) -> None:
    tensor = t.tensor(flags=READ_ONLY)
    t.accepts(tensor, GRID, same_memory=tensor.address)


@case(
    "flags/read-only travels on",
    "An export of an array of READ_ONLY memory is READ_ONLY, unless it is a copy.",
    HEADER,
)
def read_only_travels(t: Target) -> None:
    tensor = t.tensor(flags=READ_ONLY)
    out = t.newest(t.import_(tensor)).info()
    if address(out) == tensor.address:
        expect(out["flags"] & READ_ONLY, f"flags {out['flags']}")


@case(
    "flags/read-only through legacy",
    "An unversioned tensor cannot say READ_ONLY: BufferError, or a copy.",
    PYTHON,
)
def read_only_legacy(t: Target) -> None:
    tensor = t.tensor(flags=READ_ONLY)
    array = t.import_(tensor)
    try:
        out = t.export(array)
    except BufferError:
        return
    expect(address(out.info()) != tensor.address, "the memory itself was exported without a flag")


@case("flags/read-only through legacy raises", "BufferError, not a silent copy.", OURS)
def read_only_legacy_raises(t: Target) -> None:
    array = t.import_(t.tensor(flags=READ_ONLY))
    expect_refusal(lambda: t.export(array), "read-only as legacy", BufferError)


@case("flags/read-only views", "Views of a READ_ONLY array are READ_ONLY.", HEADER)
def read_only_views(t: Target) -> None:
    tensor = t.tensor(shape=(6,), flags=READ_ONLY)
    array = t.import_(tensor)
    if t.pointer(array) != tensor.address:
        raise NotApplicable("it copies")
    out = t.newest(t.part(array, slice(2, None))).info()
    if tensor.address <= address(out) < tensor.address + 24:
        expect(out["flags"] & READ_ONLY, f"flags {out['flags']} of a view")


@case("flags/read-only work", "Work with a READ_ONLY array does not write to it.", HEADER)
def read_only_work(t: Target) -> None:
    memory, tensor = t.kept(ROW * 200, flags=READ_ONLY)
    array = t.import_(tensor)
    work = t.adapter.heavy(array)
    del array
    expect_equal(t.values(work)[:2], [0.0, 0.0], "values")
    expect(memory.read() == pack(ROW * 200, FLOAT32), "the memory changed")


@case("flags/is-copied", "A tensor that was copied for the consumer is taken.", HEADER)
def is_copied(t: Target) -> None:
    t.accepts(t.tensor(flags=IS_COPIED), GRID)


@case("flags/is-copied in place", "A tensor that was copied already is not copied again.", OURS)
def is_copied_in_place(t: Target) -> None:
    tensor = t.tensor(flags=IS_COPIED)
    t.accepts(tensor, GRID, same_memory=tensor.address)


@case("flags/is-copied is not passed on", "An export that shares memory is no copy.", HEADER)
def is_copied_not_passed_on(t: Target) -> None:
    tensor = t.tensor(flags=IS_COPIED)
    array = t.import_(tensor)
    out = t.newest(array).info()
    if address(out) == t.pointer(array):
        expect_equal(out["flags"] & IS_COPIED, 0, "IS_COPIED")


@case("flags/unknown ones", "Flags that are not known are ignored.", OURS)
def unknown_flags(t: Target) -> None:
    t.accepts(t.tensor(flags=1 << 40 | 1 << 63), GRID)
