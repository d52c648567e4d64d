"""What must not be taken. Each refusal leaves the deleter to run once: the account that is kept
of every tensor says so."""

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
from ultramarine_dlpack_check.fabricate import Kind, Producer
from ultramarine_dlpack_check.target import Target

BIG = 2**62


def of(code: int, bits: int, lanes: int = 1) -> dict[str, Any]:
    """Arguments for another type of elements."""
    return {"kind": Kind("odd", code, bits, lanes=lanes), "data": bytes(1024), "shape": (4,)}


# name, rule, source, arguments of `Target.tensor`.
TENSORS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("major version 2", "Another layout.", HEADER, {"version": (2, 0), "guard": "header"}),
    ("major version 0", "Another layout.", HEADER, {"version": (0, 9), "guard": "header"}),
    ("ndim negative", "No tensor has -1 dimensions.", OURS, {"ndim": -1}),
    (
        "ndim of thousands",
        "More dimensions than arrays can have.",
        OURS,
        {"values": [1.0], "shape": (1,) * 4000},
    ),
    ("ndim enormous", "More dimensions than there is memory.", OURS, {"ndim": 2**31 - 1}),
    (
        "shape NULL",
        "Dimensions without sizes.",
        OURS,
        {"shape": None, "strides": None, "ndim": 2},
    ),
    ("negative size", "Sizes are not negative.", OURS, {"shape": (2, -3)}),
    ("negative size, twice", "Whose product is not.", OURS, {"shape": (-2, -3)}),
    ("sizes overflow", "More elements than can be counted.", OURS, {"shape": (BIG, 4)}),
    ("sizes overflow to zero", "A product that wraps to 0.", OURS, {"shape": (2**32, 2**32)}),
    ("bytes overflow", "More bytes than an address space.", OURS, {"shape": (BIG // 2,)}),
    (
        "strides overflow",
        "Strides that lead out of the address space.",
        OURS,
        {"shape": (4, 4), "strides": (BIG, 1)},
    ),
    (
        "strides overflow in bytes",
        "Strides that do so when they are counted in bytes.",
        OURS,
        {"shape": (2, 2), "strides": (BIG // 2 + 5, 1)},
    ),
    ("byte_offset overflow", "An offset behind the end.", OURS, {"byte_offset": 2**64 - 4}),
    ("data NULL", "Elements without memory.", OURS, {"data": None}),
    ("data NULL, one element", "Also a single one.", OURS, {"data": None, "shape": ()}),
    ("unknown type code", "A code that DLPack does not have.", OURS, of(99, 32)),
    ("type code 18", "The code behind the last one of 1.3.", OURS, of(18, 8)),
    ("float of 24 bits", "Bits that do not go with the code.", OURS, of(2, 24)),
    ("int of 0 bits", "Bits that do not go with the code.", OURS, of(0, 0)),
    ("int of 128 bits", "Bits that do not go with the code.", OURS, of(0, 128)),
    ("bool of 32 bits", "Bits that do not go with the code.", OURS, of(6, 32)),
    ("bfloat of 32 bits", "Bits that do not go with the code.", OURS, of(4, 32)),
    ("complex of 48 bits", "Bits that do not go with the code.", OURS, of(5, 48)),
    ("float6 of 8 bits", "Consumers must stop if bits are not 6.", HEADER, of(15, 8)),
    ("float4 of 8 bits", "Consumers must stop if bits are not 4.", HEADER, of(17, 8)),
    ("four lanes", "Vectors are no numbers.", OURS, of(2, 32, 4)),
    ("no lanes", "Elements without a number.", OURS, of(2, 32, 0)),
    ("opaque handles", "Their meaning is not known.", OURS, of(3, 64)),
    ("device type 99", "No such device.", OURS, {"device": (99, 0)}),
    ("device type 0", "No such device.", OURS, {"device": (0, 0)}),
    ("Vulkan memory", "A device of which the library has none.", OURS, {"device": (7, 0)}),
    ("Trainium memory", "A device of which the library has none.", OURS, {"device": (18, 0)}),
    ("CPU number 5", "There is one CPU: 0.", OURS, {"device": (1, 5)}),
]


def _tensors() -> None:
    for name, why, source, fields in TENSORS:

        def refused(t: Target, fields: dict[str, Any] = fields) -> None:
            tensor = t.tensor(**fields)
            producer = Producer(tensor, device=fields.get("device", (1, 0)))
            expect_refusal(lambda: t.take(producer), "the tensor")

        def cleanly(t: Target, fields: dict[str, Any] = fields) -> None:
            tensor = t.tensor(**fields)
            capsule = tensor.capsule()
            producer = Producer(lambda **_: capsule, device=fields.get("device", (1, 0)))
            expect_refusal(lambda: t.take(producer), "the tensor", BufferError, ValueError)
            if "version" not in fields or tensor.deleted == 0:
                name = "dltensor_versioned" if t.asks_versions else "dltensor"
                expect_equal(lab.inspect(capsule)["name"], name, "name after")

        case(f"reject/{name}", f"{why} It is refused.", source)(refused)
        rule = (
            "The refusal is a BufferError that is a ValueError too, and the tensor stays in its "
            "capsule, unused."
        )
        case(f"reject cleanly/{name}", rule, OURS)(cleanly)


_tensors()


def _names() -> None:
    for name in ["used_dltensor", "used_dltensor_versioned", "dltensor_v9", "numpy", ""]:

        def check(t: Target, name: str = name) -> None:
            legacy = name.endswith("dltensor")
            producer = Producer(t.tensor(legacy=legacy), name=name)
            expect_refusal(lambda: t.take(producer), f"a capsule named {name!r}")

        shown = f"named {name}" if name else "without a name"
        rule = "Only capsules named dltensor or dltensor_versioned have tensors to take."
        case(f"reject/capsule {shown}", rule, PYTHON)(check)


_names()


@case("reject/capsule used twice", "Who took a tensor renamed its capsule: it is gone.", PYTHON)
def used_twice(t: Target) -> None:
    tensor = t.tensor(flags=0)
    capsule = tensor.capsule()
    first = t.take(Producer(lambda **_: capsule))
    expect_equal(lab.inspect(capsule)["name"], "used_dltensor_versioned", "name after")
    expect_refusal(lambda: t.take(Producer(lambda **_: capsule)), "a used capsule")
    del first


@case("reject/capsule of legacy used twice", "Its used name is used_dltensor.", PYTHON)
def used_twice_legacy(t: Target) -> None:
    capsule = t.tensor(legacy=True).capsule()
    first = t.take(Producer(lambda **_: capsule))
    expect_equal(lab.inspect(capsule)["name"], "used_dltensor", "name after")
    expect_refusal(lambda: t.take(Producer(lambda **_: capsule)), "a used capsule")
    del first


@case("reject/no capsule", "__dlpack__ that returns something else.", PYTHON)
def no_capsule(t: Target) -> None:
    for odd in [None, 42, "dltensor", object(), (1, 2)]:
        expect_refusal(partial(t.take, Producer(lambda o=odd, **_: o)), f"{odd!r} for a capsule")


@case("reject/no producer", "Objects without __dlpack__.", ARRAY_API)
def no_producer(t: Target) -> None:
    for odd in [object(), 42, None]:
        expect_refusal(partial(t.take, odd), f"{odd!r}")


class OnInstance:
    """Has the methods as attributes of the object only."""

    def __init__(self, producer: Producer) -> None:
        self.__dict__["__dlpack__"] = producer.__dlpack__
        self.__dict__["__dlpack_device__"] = producer.__dlpack_device__


@case("reject/methods of the instance only", "Python looks for such methods on the type.", OURS)
def methods_of_the_instance(t: Target) -> None:
    odd = OnInstance(Producer(t.tensor()))
    expect_refusal(lambda: t.take(odd), "methods of the instance")


def _errors() -> None:
    for kind in (BufferError, KeyError, ZeroDivisionError):

        def check(t: Target, kind: type[Exception] = kind) -> None:
            def give(**_: Any) -> Any:
                raise kind("the producer's own words")

            error = expect_refusal(lambda: t.take(Producer(give)), "the exception", kind)
            expect("the producer's own words" in str(error), f"text: {error}")

        rule = "An exception of the producer is the consumer's."
        name = f"reject/producer raises {kind.__name__}"
        case(name, rule, ARRAY_API, optional=kind is not BufferError)(check)


_errors()


@case("reject/TypeError inside of a producer", "Asked again bare, it raises what it raises.", OURS)
def type_error_inside(t: Target) -> None:
    def give(**_: Any) -> Any:
        raise TypeError("the producer's own mistake")

    producer = Producer(give)
    error = expect_refusal(lambda: t.take(producer), "the exception", TypeError)
    expect("own mistake" in str(error), f"text: {error}")
    expect(len(producer.asked) <= 2, f"asked {len(producer.asked)} times")


@case("reject/unknown keywords", "from_dlpack(x, nonsense=1) is a TypeError.", ARRAY_API)
def unknown_keywords(t: Target) -> None:
    call = t.adapter.from_dlpack
    if call is None:
        raise NotApplicable("no from_dlpack")
    tensor = t.tensor()
    expect_refusal(lambda: call(Producer(tensor), nonsense=1), "nonsense=1", TypeError)


@case("reject/device that is garbage", "__dlpack_device__ that lies: refused, or not asked.", OURS)
def garbage_device(t: Target) -> None:
    for odd in [None, "cpu", (1,), ("a", "b"), (2**70, 0)]:
        try:
            array = t.take(Producer(t.tensor(), device=odd))
        except NotApplicable:
            raise
        except Exception:
            continue
        expect_equal(t.values(array), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "values")
