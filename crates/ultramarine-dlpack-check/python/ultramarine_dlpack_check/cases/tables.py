"""Exchange tables of others, which a consumer may use, and must not trust."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ultramarine_dlpack_check import lab
from ultramarine_dlpack_check.case import (
    EXCHANGE,
    OURS,
    Failed,
    NotApplicable,
    case,
    expect,
    expect_equal,
    expect_refusal,
)
from ultramarine_dlpack_check.cases.exchange import NAME, OLD_NAME
from ultramarine_dlpack_check.fabricate import CPU, FLOAT32, pack
from ultramarine_dlpack_check.target import GRID, ROW, Target


class Offers:
    """A producer that has both: the two methods, and on its subclasses a table."""

    def __init__(self, tensor: lab.Tensor) -> None:
        self.tensor = tensor
        self.asked = 0

    def __dlpack__(self, **asked: Any) -> Any:
        self.asked += 1
        if asked.get("max_version") is None:
            # Who asks for no version gets none.
            return lab.Tensor(pack(ROW, FLOAT32), [2, 3], [3, 1], legacy=True).capsule()
        return self.tensor.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


def offering(found: object, name: str = NAME) -> Any:
    """A type with a table."""
    return type("Offering", (Offers,), {name: found})


def taken(t: Target, kind: Any) -> tuple[Offers, dict[str, int]]:
    """An import of an object of the type; which way it came."""
    lab.table_calls()
    source: Offers = kind(t.tensor(legacy=False))
    array = t.take(source)
    expect_equal(t.values(array), GRID, "values")
    return source, lab.table_calls()


def used(calls: dict[str, int]) -> int:
    """Calls of slots that give tensors."""
    return calls["from_object"] + calls["borrow"]


@case("tables/both ways", "By table or by __dlpack__: once, with the right values.", EXCHANGE)
def both_ways(t: Target) -> None:
    source, calls = taken(t, offering(lab.make_table()))
    expect_equal(calls["from_object"] + source.asked, 1, "times that a tensor was asked for")


@case("tables/is used", "A table is used where there is one.", OURS)
def is_used(t: Target) -> None:
    _, calls = taken(t, offering(lab.make_table()))
    expect_equal(calls["from_object"], 1, "calls of the table")


@case("tables/name of 1.2", "Under the name of DLPack 1.2 the table is an integer.", OURS)
def old_name(t: Target) -> None:
    at = lab.table(lab.make_table((1, 2))).address
    _, calls = taken(t, offering(at, OLD_NAME))
    expect_equal(calls["from_object"], 1, "calls of the table")


@case("tables/several times", "Whatever is remembered of a type stays right.", EXCHANGE)
def several_times(t: Target) -> None:
    first, second = offering(lab.make_table()), offering(lab.make_table())
    for kind in (first, second, Offers, first, second, Offers):
        taken(t, kind)


@case("tables/subclass", "A subclass has its base's table.", EXCHANGE)
def subclass(t: Target) -> None:
    taken(t, type("Derived", (offering(lab.make_table()),), {}))


@case("tables/of the instance", "An attribute of the object only does not count.", OURS)
def of_the_instance(t: Target) -> None:
    lab.table_calls()
    source = Offers(t.tensor(legacy=False))
    setattr(source, NAME, lab.make_table())
    expect_equal(t.values(t.take(source)), GRID, "values")
    expect_equal(used(lab.table_calls()), 0, "calls of the table")


@case("tables/minor version 99", "Newer minor versions keep the layout.", EXCHANGE)
def minor_version(t: Target) -> None:
    taken(t, offering(lab.make_table((1, 99))))


@case(
    "tables/major version 2",
    "Nothing behind the header of another major version is touched: __dlpack__ is asked.",
    EXCHANGE,
)
def major_version(t: Target) -> None:
    _, calls = taken(t, offering(lab.make_table((2, 0), guard=True)))
    expect_equal(used(calls), 0, "calls of the table")


@case(
    "tables/major version 2 with an older one",
    "The chain of older tables may be walked: values are right either way.",
    EXCHANGE,
)
def with_an_older_one(t: Target) -> None:
    newer = lab.make_table((3, 0), previous=lab.make_table((2, 0), guard=True), guard=True)
    taken(t, offering(newer))
    newer = lab.make_table((2, 0), previous=lab.make_table(), guard=True)
    taken(t, offering(newer))


@case("tables/the older one is used", "The chain is walked to major version 1.", OURS)
def older_is_used(t: Target) -> None:
    middle = lab.make_table((2, 0), previous=lab.make_table(), guard=True)
    _, calls = taken(t, offering(lab.make_table((3, 0), previous=middle, guard=True)))
    expect_equal(calls["from_object"], 1, "calls of the older table")


def _missing() -> None:
    slots: list[tuple[Sequence[str], bool]] = [
        (["borrow"], False),
        (["from_object"], True),
        (["stream"], True),
        (["allocate", "to_object"], True),
    ]
    for missing, ours in slots:

        def check(t: Target, missing: Sequence[str] = missing) -> None:
            kind = offering(lab.make_table(missing=missing))
            try:
                taken(t, kind)
            except (NotApplicable, Failed):
                raise
            except Exception:
                expect("borrow" not in missing, "the slot may be NULL")

        rule = "A slot that may be NULL." if not ours else "NULL where it must not be: no crash."
        case(f"tables/NULL {' and '.join(missing)}", rule, EXCHANGE, optional=ours)(check)


_missing()


@case(
    "tables/export fails", "A slot's exception is the consumer's, or __dlpack__ is asked.", EXCHANGE
)
def export_fails(t: Target) -> None:
    lab.table_calls()
    source = offering(lab.make_table(failing=["from_object", "borrow"]))(t.tensor(legacy=False))
    try:
        array = t.take(source)
    except NotApplicable:
        raise
    except BufferError as error:
        expect("the lab refuses" in str(error), f"text: {error}")
        return
    expect_equal(t.values(array), GRID, "values")


@case("tables/what is none", "Attributes that hold something else are left alone.", OURS)
def what_is_none(t: Target) -> None:
    # Types may be remembered for ever, and what they hold with them: no tensor that counts.
    other = lab.Tensor(b"\0" * 8, [2], [1]).capsule()
    for odd in [None, "table", object(), other]:
        taken(t, offering(odd))


@case("tables/bad tensors", "What comes by a table is judged as what comes in capsules.", OURS)
def bad_tensors(t: Target) -> None:
    odd: list[dict[str, Any]] = [
        {"shape": (2, -3)},
        {"data": None},
        {"dtype": (99, 32, 1)},
        {"device": (99, 0)},
        {"version": (2, 0), "guard": "header"},
    ]
    for fields in odd:
        source = offering(lab.make_table())(t.tensor(legacy=False, **fields))
        expect_refusal(partial(t.take, source), f"{fields}")


@case("tables/copy=True", "A copy is a copy, whichever way the tensor came.", OURS)
def with_copy(t: Target) -> None:
    tensor = t.tensor(legacy=False)
    array = t.take(offering(lab.make_table())(tensor), copy=True)
    expect_equal(t.values(array), GRID, "values")
    expect(t.pointer(array) != tensor.address, "the memory is the producer's")
