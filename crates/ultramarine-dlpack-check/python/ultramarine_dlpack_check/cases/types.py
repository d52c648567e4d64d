"""Types of elements, both ways."""

from __future__ import annotations

from typing import Any

from ultramarine_dlpack_check import lab
from ultramarine_dlpack_check.case import (
    ARRAY_API,
    HEADER,
    OURS,
    Failed,
    NotApplicable,
    case,
    described,
    expect_equal,
)
from ultramarine_dlpack_check.fabricate import KINDS, PADDED, SMALL_FLOATS, Kind, pack
from ultramarine_dlpack_check.target import Target, gathered

SAMPLES: dict[str, list[Any]] = {
    "int": [-3, 0, 5, 100],
    "uint": [3, 0, 5, 200],
    "float": [-1.5, 0.0, 2.25, 1024.0],
    "bfloat": [-1.5, 0.0, 2.25, 1024.0],
    "complex": [1 + 2j, -0.5j, 3 + 0j, 0j],
    "bool": [True, False, True, True],
}


def sample(kind: Kind) -> list[Any]:
    return SAMPLES[kind.name.rstrip("0123456789")]


def taken(t: Target, tensor: lab.Tensor, must: bool) -> Any:
    """The array of a tensor; NotApplicable if the library refuses the type and may."""
    try:
        return t.import_(tensor)
    except NotApplicable:
        raise
    except Exception as error:
        if must:
            raise Failed(f"refused: {described(error)}") from None
        raise NotApplicable(f"refused: {described(error)}") from None


def _numbers() -> None:
    for kind in KINDS:

        def both_ways(t: Target, kind: Kind = kind) -> None:
            array = taken(t, t.tensor(sample(kind), (4,), kind=kind), must=False)
            out = t.newest(array)
            expect_equal(out.info()["dtype"], kind.dtype, "type of the export")
            expect_equal(gathered(out), pack(sample(kind), kind), "bytes")

        def accepted(t: Target, kind: Kind = kind) -> None:
            taken(t, t.tensor(sample(kind), (4,), kind=kind), must=True)

        def made(t: Target, kind: Kind = kind) -> None:
            try:
                array = t.make(sample(kind), kind.name)
            except NotApplicable:
                raise
            except Exception as error:
                raise NotApplicable(f"no arrays of {kind.name}: {described(error)}") from None
            try:
                out = t.newest(array)
            except (BufferError, TypeError) as error:
                raise NotApplicable(f"not exported: {described(error)}") from None
            expect_equal(out.info()["dtype"], kind.dtype, "type of the export")
            expect_equal(gathered(out), pack(sample(kind), kind), "bytes")

        rule = f"{kind.name}: refused, or the same numbers and the same type come back."
        case(f"types/{kind.name} there and back", rule, HEADER)(both_ways)
        rule = f"An array of {kind.name} is exported as such."
        case(f"types/{kind.name} exported", rule, HEADER)(made)
        if kind.name == "complex128":
            # The array API has it, but who has no such numbers can only refuse them.
            continue
        rule = f"{kind.name} is taken."
        # bfloat16 and float16 are no types of the array API.
        source = OURS if kind.name in ("bfloat16", "float16") else ARRAY_API
        case(f"types/{kind.name} is taken", rule, source)(accepted)


_numbers()


def _small() -> None:
    for kind in SMALL_FLOATS:
        for padded in [False, True] if kind.bits < 8 else [False]:
            # Eight elements are whole bytes in any packing; five are not.
            for count in [8] if padded or kind.bits == 8 else [8, 5]:
                bits = 8 if padded else kind.bits
                size = -(-count * bits // 8)
                data = bytes((37 * i + 11) & (0x3F if padded else 0xFF) for i in range(size))

                def unchanged(
                    t: Target,
                    kind: Kind = kind,
                    padded: bool = padded,
                    count: int = count,
                    used: int = count * bits // 8,
                    data: bytes = data,
                    must: bool = False,
                ) -> None:
                    flags = PADDED if padded else 0
                    tensor = t.tensor(
                        data=data, shape=(count,), kind=kind, flags=flags, guard="data"
                    )
                    array = taken(t, tensor, must)
                    out = t.newest(array)
                    info = out.info()
                    came = (info["dtype"], info["flags"] & PADDED)
                    expect_equal(came, (kind.dtype, flags), "type and padding of the export")
                    expect_equal(out.read(used), data[:used], "bytes")

                def must_be_taken(t: Target, unchanged: Any = unchanged) -> None:
                    unchanged(t, must=True)

                name = kind.name + (", padded" if padded else "")
                name += "" if bits == 8 else f", {count} packed"
                rule = "Refused, or taken without a change of type or bytes."
                case(f"types/{name}", rule, HEADER)(unchanged)
                rule = "Storage types are taken and given again."
                case(f"types/{name} is taken", rule, OURS)(must_be_taken)


_small()


@case(
    "types/float4 in pairs",
    "Two float4_e2m1fn in a byte as one element of two lanes, as torch gives them: refused, or "
    "the same bytes.",
    OURS,
)
def float4_pairs(t: Target) -> None:
    data = bytes(range(0x10, 0x14))
    kind = Kind("float4_e2m1fn", 17, 4, lanes=2)
    tensor = t.tensor(data=data, shape=(4,), kind=kind, guard="data")
    array = taken(t, tensor, must=False)
    out = t.newest(array)
    expect_equal(out.read(4), data, "bytes")


@case("types/padded says nothing of whole bytes", "The flag counts below 8 bits only.", HEADER)
def padded_whole(t: Target) -> None:
    t.accepts(t.tensor(flags=PADDED), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
