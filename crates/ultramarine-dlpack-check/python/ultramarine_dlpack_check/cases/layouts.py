"""Valid tensors: versions, shapes, strides, offsets. Values always; addresses where they count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ultramarine_dlpack_check.case import (
    ARRAY_API,
    HEADER,
    OURS,
    PYTHON,
    NotApplicable,
    case,
    expect,
    expect_equal,
    expect_refusal,
)
from ultramarine_dlpack_check.fabricate import FLOAT32, INT32, Producer, pack
from ultramarine_dlpack_check.target import GRID, ROW, Target


@case("valid/legacy", "An unversioned capsule (dltensor) is taken.", PYTHON)
def legacy(t: Target) -> None:
    t.accepts(t.tensor(legacy=True), GRID)


def _versions() -> None:
    for minor in (0, 1, 2, 3, 99):

        def check(t: Target, minor: int = minor) -> None:
            t.accepts(t.tensor(version=(1, minor)), GRID)

        rule = f"A tensor of version 1.{minor} is taken: minor versions keep the layout."
        case(f"valid/version 1.{minor}", rule, HEADER)(check)


_versions()


@case("valid/zero copy", "Memory of the host that is aligned is taken in place.", OURS)
def zero_copy(t: Target) -> None:
    tensor = t.tensor(ROW * 100, (600,))
    t.accepts(tensor, ROW * 100, same_memory=tensor.address)


@case(
    "valid/zero copy of legacy",
    "An unversioned tensor says nothing of being read-only: it is taken in place.",
    OURS,
)
def zero_copy_legacy(t: Target) -> None:
    tensor = t.tensor(legacy=True)
    t.accepts(tensor, GRID, same_memory=tensor.address)


@case(
    "valid/keywords refused",
    "A producer of before 2023 refuses max_version with TypeError; it is asked again without.",
    ARRAY_API,
)
def keywords_refused(t: Target) -> None:
    t.accepts(t.tensor(legacy=True), GRID, keywords=False)


@case(
    "valid/max_version is asked for",
    "A consumer says which version it knows, as a pair whose first number is 1.",
    ARRAY_API,
    optional=True,
)
def max_version_is_asked(t: Target) -> None:
    producer = Producer(t.tensor())
    t.take(producer)
    asked: Any = producer.asked[0].get("max_version")
    expect(asked is not None, "max_version was not asked for")
    expect_equal(next(iter(asked)), 1, "major version asked for")


@case("valid/asks for 1.3", "The newest version is asked for: (1, 3).", OURS)
def asks_for_newest(t: Target) -> None:
    producer = Producer(t.tensor())
    t.take(producer)
    expect_equal(producer.asked[0].get("max_version"), (1, 3), "max_version")


@case("valid/no stream for the CPU", "A producer on the CPU is asked for no stream.", ARRAY_API)
def no_stream(t: Target) -> None:
    producer = Producer(t.tensor())
    t.take(producer)
    expect_equal(producer.asked[-1].get("stream"), None, "stream")


@case("valid/bare capsule", "A capsule can be given in place of a producer.", OURS)
def bare_capsule(t: Target) -> None:
    tensor = t.tensor()
    expect_equal(t.values(t.take(tensor.capsule())), GRID, "values")


@case("valid/asarray takes producers", "asarray(x) takes an object with __dlpack__.", OURS)
def asarray(t: Target) -> None:
    if t.adapter.asarray is None:
        raise NotApplicable("no asarray")
    tensor = t.tensor()
    array = t.adapter.asarray(Producer(tensor))
    expect_equal(t.values(array), GRID, "values")
    expect_equal(t.pointer(array), tensor.address, "address (it was copied)")


@case("valid/asarray without a copy", "asarray(x, copy=False) raises where a cast copies.", OURS)
def asarray_no_copy(t: Target) -> None:
    call = t.adapter.asarray
    if call is None:
        raise NotApplicable("no asarray")
    producer = Producer(t.tensor())
    other = t.adapter.dtype("float16")
    expect_refusal(lambda: call(producer, dtype=other, copy=False), "a cast", ValueError)


# name, rule, source, arguments of `Target.tensor`, values that have to come, whether a
# refusal is allowed.
LAYOUTS: list[tuple[str, str, str, dict[str, Any], Any, bool]] = [
    (
        "no dimensions, NULL shape",
        "With ndim 0 shape and strides can be NULL.",
        HEADER,
        {"values": [7.0], "shape": None, "strides": None},
        7.0,
        False,
    ),
    (
        "no dimensions, with pointers",
        "With ndim 0 shape and strides need not be NULL.",
        HEADER,
        {"values": [7.0], "shape": (), "strides": ()},
        7.0,
        False,
    ),
    (
        "size 0, NULL data",
        "A tensor without elements has NULL for data.",
        HEADER,
        {"data": None, "shape": (0, 3)},
        [],
        False,
    ),
    (
        "size 0, data not NULL",
        "A tensor without elements should have no data, but may.",
        HEADER,
        {"values": [1.0], "shape": (0, 3)},
        [],
        False,
    ),
    (
        "size 0 inside",
        "Any dimension may be of size 0.",
        HEADER,
        {"data": None, "shape": (2, 0)},
        [[], []],
        False,
    ),
    (
        "size 1, stride 999",
        "The stride of a dimension of size 1 is never used.",
        HEADER,
        {"values": ROW[:3], "shape": (1, 3), "strides": (999, 1)},
        [ROW[:3]],
        False,
    ),
    (
        "strides NULL in legacy",
        "Before DLPack 1.2 strides that are NULL mean row-major.",
        HEADER,
        {"strides": None, "legacy": True},
        GRID,
        False,
    ),
    (
        "strides NULL in 1.0",
        "Before DLPack 1.2 strides that are NULL mean row-major.",
        HEADER,
        {"strides": None, "version": (1, 0)},
        GRID,
        False,
    ),
    (
        "strides NULL in 1.3",
        "Strides that are NULL are seen with newer versions too: row-major, or refused.",
        HEADER,
        {"strides": None},
        GRID,
        True,
    ),
    (
        "transposed",
        "Strides may be those of a transposed tensor.",
        HEADER,
        {"shape": (3, 2), "strides": (1, 3)},
        [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]],
        False,
    ),
    (
        "gaps",
        "There may be memory between elements.",
        HEADER,
        {"shape": (3,), "strides": (2,)},
        [1.0, 3.0, 5.0],
        False,
    ),
    (
        "stride 0",
        "Elements may share memory: taken, or refused, but never read wrongly.",
        HEADER,
        {"shape": (2, 3), "strides": (0, 1)},
        [ROW[:3], ROW[:3]],
        True,
    ),
    (
        "negative stride",
        "A tensor may be reversed: taken, or refused, but never read wrongly.",
        HEADER,
        {"shape": (6,), "strides": (-1,), "byte_offset": 20},
        ROW[::-1],
        True,
    ),
    (
        "byte_offset",
        "The first element is at data + byte_offset.",
        HEADER,
        {"shape": (4,), "byte_offset": 8},
        ROW[2:],
        False,
    ),
    (
        "byte_offset in legacy",
        "The first element is at data + byte_offset.",
        HEADER,
        {"shape": (4,), "byte_offset": 8, "legacy": True},
        ROW[2:],
        False,
    ),
    (
        "misaligned",
        "Elements at an odd address: taken (or copied), or refused, but never read wrongly.",
        HEADER,
        {"data": b"\0" + pack(ROW, FLOAT32), "shape": (6,), "byte_offset": 1},
        ROW,
        True,
    ),
    (
        "aligned to its size only",
        "Base pointers are often not aligned to 256 bytes; consumers do not rely on it.",
        HEADER,
        {"data": b"\0" * 4 + pack(ROW, FLOAT32), "shape": (6,), "byte_offset": 4},
        ROW,
        False,
    ),
    (
        "eight dimensions",
        "Small tensors may have many dimensions.",
        HEADER,
        {"values": [3.0], "shape": (1,) * 8},
        [[[[[[[[3.0]]]]]]]],
        False,
    ),
    (
        "pinned memory",
        "Memory that CUDA pinned is the host's: taken, or refused.",
        HEADER,
        {"device": (3, 0)},
        GRID,
        True,
    ),
    (
        "managed memory",
        "Memory that CUDA manages: taken, or refused.",
        HEADER,
        {"device": (13, 0)},
        GRID,
        True,
    ),
]


def _layouts() -> None:
    for name, rule, source, fields, wanted, may_refuse in LAYOUTS:

        def check(
            t: Target,
            fields: dict[str, Any] = fields,
            wanted: Any = wanted,
            may_refuse: bool = may_refuse,
        ) -> None:
            device = fields.get("device", (1, 0))
            t.accepts(t.tensor(**fields), wanted, or_refuses=may_refuse, device=device)

        case(f"valid/{name}", rule, source)(check)


_layouts()

# Where `LAYOUTS` leaves a choice, ours: name, arguments, values, offset of the first element.
IN_PLACE: list[tuple[str, dict[str, Any], Any, int]] = [
    ("transposed", {"shape": (3, 2), "strides": (1, 3)}, [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]], 0),
    ("stride 0", {"shape": (2, 3), "strides": (0, 1)}, [ROW[:3], ROW[:3]], 0),
    ("negative stride", {"shape": (6,), "strides": (-1,), "byte_offset": 20}, ROW[::-1], 20),
    ("byte_offset", {"shape": (4,), "byte_offset": 8}, ROW[2:], 8),
    ("strides NULL in 1.3", {"strides": None}, GRID, 0),
    ("pinned memory", {"device": (3, 0)}, GRID, 0),
    ("managed memory", {"device": (13, 0)}, GRID, 0),
]


def _in_place() -> None:
    for name, fields, wanted, offset in IN_PLACE:

        def check(
            t: Target, fields: dict[str, Any] = fields, wanted: Any = wanted, offset: int = offset
        ) -> None:
            tensor, device = t.tensor(**fields), fields.get("device", (1, 0))
            t.accepts(tensor, wanted, same_memory=tensor.address + offset, device=device)

        case(f"in place/{name}", "Such tensors are taken, without a copy.", OURS)(check)


_in_place()


@case("valid/size 0, absurd strides", "Strides of a tensor without elements are ignored.", OURS)
def absurd_strides(t: Target) -> None:
    for strides in [(-(2**62), 2**62), (2**63 - 1, 2**63 - 1)]:
        t.accepts(t.tensor(data=None, shape=(0, 3), strides=strides), [])


@case("valid/NULL deleter", "A deleter may be NULL: there is nothing to run.", HEADER)
def null_deleter(t: Target) -> None:
    for legacy in (False, True) if t.asks_versions else (True,):
        tensor = t.tensor(deleter=False, legacy=legacy)
        array = t.accepts(tensor, GRID)
        del array


@case(
    "valid/reads no further",
    "Nothing behind the last element is read: there may be none.",
    HEADER,
)
def reads_no_further(t: Target) -> None:
    shapes: Sequence[tuple[dict[str, Any], Any]] = [
        ({"values": ROW[:3], "shape": (3,)}, ROW[:3]),
        ({"values": ROW[:5], "shape": (3,), "strides": (2,)}, ROW[:5:2]),
        ({"values": ROW[:3], "shape": (3,), "strides": (-1,), "byte_offset": 8}, ROW[2::-1]),
    ]
    for fields, wanted in shapes:
        t.accepts(t.tensor(guard="data", **fields), wanted, or_refuses="strides" in fields)


@case("valid/misaligned with copy=True", "Misaligned memory is copied where that is wanted.", OURS)
def misaligned_copied(t: Target) -> None:
    tensor = t.tensor(data=b"\0" + pack(ROW, FLOAT32), shape=(6,), byte_offset=1)
    expect_equal(t.values(t.import_(tensor, copy=True)), ROW, "values")


@case("valid/misaligned with copy=False", "Misaligned memory is not taken in place.", OURS)
def misaligned_refused(t: Target) -> None:
    tensor = t.tensor(data=b"\0" + pack(ROW, FLOAT32), shape=(6,), byte_offset=1)
    what = "misaligned memory"
    expect_refusal(lambda: t.import_(tensor, copy=False), what, BufferError, ValueError)


@case(
    "valid/later writes are seen",
    "Memory that was taken in place is shared: writes of its owner show.",
    HEADER,
)
def writes_are_seen(t: Target) -> None:
    tensor = t.tensor([1, 2, 3], (3,), kind=INT32)
    array = t.import_(tensor)
    if t.pointer(array) != tensor.address:
        raise NotApplicable("it copies")
    tensor.write(pack([9], INT32), 4)
    expect_equal(t.values(array), [1, 9, 3], "values after a write")


@case("valid/own arrays", "An array of the library's own is taken in place.", OURS)
def own_arrays(t: Target) -> None:
    own = t.make()
    again = t.take(own)
    expect_equal(t.values(again), ROW, "values")
    expect_equal(t.pointer(again), t.pointer(own), "address (it was copied)")
