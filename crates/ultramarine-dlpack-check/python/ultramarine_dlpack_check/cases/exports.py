"""What a library exports: versions, fields, views."""

from __future__ import annotations

from functools import partial
from typing import Any

from ultramarine_dlpack_check import lab
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
from ultramarine_dlpack_check.fabricate import FLOAT32, IS_COPIED, READ_ONLY, pack
from ultramarine_dlpack_check.target import GRID, ROW, Target, address, gathered


@case("export/no arguments", "__dlpack__() gives an unversioned tensor.", PYTHON)
def no_arguments(t: Target) -> None:
    array = t.make()
    capsule = t.capsule(array)
    expect_equal(lab.inspect(capsule)["name"], "dltensor", "name of the capsule")
    out = lab.take(capsule)
    expect_equal(address(out.info()), t.pointer(array), "address")
    expect_equal(gathered(out), pack(ROW, FLOAT32), "bytes")


def _versions() -> None:
    for version in [None, (0, 8)]:

        def old(t: Target, version: tuple[int, int] | None = version) -> None:
            said = lab.inspect(t.capsule(t.make(), max_version=version))
            expect_equal(said["name"], "dltensor", "name of the capsule")

        rule = "Who knows no version 1 gets an unversioned tensor."
        case(f"export/max_version {version}", rule, PYTHON)(old)

    for version in [(1, 0), (1, 3), (1, 99), (2, 0), (100, 3)]:

        def new(t: Target, version: tuple[int, int] = version) -> None:
            array = t.make()
            capsule = t.capsule(array, max_version=version)
            name = lab.inspect(capsule)["name"]
            expect(name in ("dltensor", "dltensor_versioned"), f"a capsule named {name}")
            out = lab.take(capsule)
            if name == "dltensor_versioned":
                expect_equal(out.info()["version"][0], 1, "major version")
            expect_equal(address(out.info()), t.pointer(array), "address")

        def newest(t: Target, version: tuple[int, int] = version) -> None:
            said = lab.inspect(t.capsule(t.make(), max_version=version))
            expect_equal((said["name"], said["version"]), ("dltensor_versioned", (1, 3)), "came")

        rule = "A version that the library has, at most of major version 1."
        case(f"export/max_version {version}", rule, ARRAY_API)(new)
        case(f"export/max_version {version} gives 1.3", "Versioned, 1.3.", OURS)(newest)


_versions()


@case("export/versions are offered", "Who knows version 1 gets a versioned tensor.", OURS)
def versions_offered(t: Target) -> None:
    said = lab.inspect(t.capsule(t.make(), max_version=(1, 3)))
    expect_equal(said["name"], "dltensor_versioned", "name of the capsule")


@case("export/bad max_version", "What is no pair of integers raises TypeError or ValueError.", OURS)
def bad_max_version(t: Target) -> None:
    array = t.make()
    for bad in ["13", 3, (1,), (1, 2, 3), (1.5, 0), ("1", "3"), object()]:
        try:
            t.capsule(array, max_version=bad)
        except (TypeError, ValueError):
            continue
        expect(False, f"max_version={bad!r} was accepted")


@case("export/unknown keyword", "Arguments that do not exist raise TypeError.", PYTHON)
def unknown_keyword(t: Target) -> None:
    array = t.make()
    if not hasattr(array, "__dlpack__"):
        raise NotApplicable("no __dlpack__")
    expect_refusal(lambda: array.__dlpack__(nonsense=1), "nonsense=1", TypeError)


@case(
    "export/stream on the CPU",
    "There are no streams on the CPU: stream=1 raises.",
    ARRAY_API,
    optional=True,
)
def stream_on_cpu(t: Target) -> None:
    array = t.make()
    expect_refusal(lambda: t.capsule(array, stream=1), "stream=1")


@case("export/stream on the CPU is a ValueError", "The exception is a ValueError.", OURS)
def stream_value_error(t: Target) -> None:
    array = t.make()
    for stream in (1, 0, -1, 2):
        expect_refusal(partial(t.capsule, array, stream=stream), f"stream={stream}", ValueError)


@case("export/stream None", "stream=None is for any device.", ARRAY_API)
def stream_none(t: Target) -> None:
    t.capsule(t.make(), stream=None)


@case("export/device", "__dlpack_device__() is a pair: the CPU is 1, and its number 0.", ARRAY_API)
def device(t: Target) -> None:
    array = t.make()
    method = getattr(array, "__dlpack_device__", None)
    expect(method is not None, "no __dlpack_device__")
    came = array.__dlpack_device__()
    expect(isinstance(came, tuple) and len(came) == 2, f"came {came!r}")
    expect_equal((int(came[0]), int(came[1])), (1, 0), "device")
    expect_equal(t.newest(array).info()["device"], (1, 0), "device of the tensor")


@case("export/device is integers", "A tuple of plain integers.", OURS)
def device_integers(t: Target) -> None:
    came = t.make().__dlpack_device__()
    expect_equal([type(n) for n in came], [int, int], "types")


@case("export/fields", "Shape, strides, type and device of an array as it is.", HEADER)
def fields(t: Target) -> None:
    out = t.newest(t.make(GRID)).info()
    came = (out["ndim"], out["shape"], out["strides"], out["dtype"], out["device"])
    expect_equal(came, (2, [2, 3], [3, 1], (2, 32, 1), (1, 0)), "fields")


@case("export/strides are there", "Since DLPack 1.2 strides are never NULL.", HEADER)
def strides_are_there(t: Target) -> None:
    out = t.newest(t.make()).info()
    if out["version"] is None or out["version"] < (1, 2):
        raise NotApplicable(f"its version is {out['version']}")
    expect(out["strides"] is not None, "strides are NULL")


@case("export/deleter", "Without a deleter the memory would never be let go.", HEADER)
def deleter(t: Target) -> None:
    expect(t.newest(t.make()).info()["deleter"], "the deleter is NULL")


@case("export/no dimensions", "A scalar array.", HEADER)
def no_dimensions(t: Target) -> None:
    out = t.newest(t.make(7.0))
    expect_equal(out.info()["ndim"], 0, "ndim")
    expect_equal(out.read(4), pack([7.0], FLOAT32), "bytes")


@case("export/no elements", "A tensor without elements has NULL for data.", HEADER, optional=True)
def no_elements(t: Target) -> None:
    out = t.newest(t.make([])).info()
    expect_equal(out["shape"], [0], "shape")
    expect_equal((out["data"], out["byte_offset"]), (0, 0), "data and offset")


@case("export/base is aligned", "data is a multiple of 256, with byte_offset beside it.", OURS)
def base_is_aligned(t: Target) -> None:
    array = t.make(ROW * 100)
    for view in (array, array[3:]):
        out = t.newest(view).info()
        expect_equal(out["data"] % 256, 0, "data modulo 256")
        expect_equal(address(out), t.pointer(view), "address")


def _views() -> None:
    grid: list[list[float]] = [[float(10 * r + c) for c in range(4)] for r in range(3)]
    views: list[tuple[str, Any, list[float]]] = [
        ("rows", lambda a: a[1:], [*grid[1], *grid[2]]),
        ("columns", lambda a: a[:, 1:3], [v for row in grid for v in row[1:3]]),
        ("steps", lambda a: a[:, ::2], [v for row in grid for v in row[::2]]),
        ("one row", lambda a: a[1], grid[1]),
        ("reversed", lambda a: a[:, ::-1], [v for row in grid for v in row[::-1]]),
        ("a new axis", lambda a: a[None, 1:], [*grid[1], *grid[2]]),
    ]
    for name, view, wanted in views:

        def check(t: Target, view: Any = view, wanted: list[float] = wanted) -> None:
            array = t.make(grid)
            try:
                part = view(array)
            except Exception as error:
                raise NotApplicable(f"no such view: {type(error).__name__}") from None
            expect_equal(gathered(t.newest(part)), pack(wanted, FLOAT32), "bytes")

        case(f"export/view: {name}", "Strides and offset lead to the view's elements.", HEADER)(
            check
        )


_views()


@case("export/view: transposed", "Strides lead to the view's elements.", HEADER)
def view_transposed(t: Target) -> None:
    array = t.adapter.transposed(t.make(GRID))
    wanted = pack([1.0, 4.0, 2.0, 5.0, 3.0, 6.0], FLOAT32)
    expect_equal(gathered(t.newest(array)), wanted, "bytes")


@case("export/lazy", "What is not computed yet is computed for the export.", ARRAY_API)
def lazy(t: Target) -> None:
    work = t.adapter.heavy(t.make())
    expect_equal(gathered(t.newest(work)), pack([0.0] * 6, FLOAT32), "bytes")


@case("export/writes are seen", "Memory that is shared and not read-only is shared.", HEADER)
def writes_are_seen(t: Target) -> None:
    array = t.make()
    out = t.newest(array)
    if out.info()["flags"] & (READ_ONLY | IS_COPIED):
        raise NotApplicable("read-only or a copy")
    out.write(pack([42.0], FLOAT32))
    expect_equal(t.values(array)[0], 42.0, "first value after a write")


@case(
    "export/of an import",
    "An import is exported again: the same memory, if it was not copied.",
    HEADER,
)
def of_an_import(t: Target) -> None:
    tensor = t.tensor(shape=(3, 2), strides=(1, 3))
    array = t.import_(tensor)
    at = t.pointer(array)
    out = t.newest(array)
    wanted = pack([1.0, 4.0, 2.0, 5.0, 3.0, 6.0], FLOAT32)
    expect_equal(gathered(out), wanted, "bytes")
    del array
    if address(out.info()) == tensor.address:
        expect_equal(tensor.deleted, 0, "runs of the deleter while the export lives")
    expect_equal(gathered(out), wanted, "bytes after the array is gone")
    expect(at, "no address")


@case("export/of an import, in place", "The same memory.", OURS)
def of_an_import_in_place(t: Target) -> None:
    tensor = t.tensor(shape=(3, 2), strides=(1, 3))
    out = t.newest(t.import_(tensor)).info()
    expect_equal(address(out), tensor.address, "address")
    expect_equal(out["strides"], [1, 3], "strides")


@case("export/slices of an import", "Views of imports lead into the producer's memory.", HEADER)
def slices_of_an_import(t: Target) -> None:
    array = t.import_(t.tensor(shape=(6,)))
    part = t.part(array, slice(1, None, 2))
    expect_equal(gathered(t.newest(part)), pack([2.0, 4.0, 6.0], FLOAT32), "bytes")


@case("export/several at once", "Each export is a tensor of its own, of the same memory.", HEADER)
def several(t: Target) -> None:
    array = t.make()
    outs = [t.newest(array) for _ in range(5)]
    expect_equal(len({address(o.info()) for o in outs}), 1, "addresses")
    for out in outs[::2]:
        out.delete()
    for out in outs[1::2]:
        expect_equal(gathered(out), pack(ROW, FLOAT32), "bytes after others are gone")
