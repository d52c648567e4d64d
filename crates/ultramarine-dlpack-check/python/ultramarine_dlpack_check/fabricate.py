"""Numbers as bytes, and producers that say what a case wants."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ultramarine_dlpack_check import lab

CPU = (1, 0)
READ_ONLY, IS_COPIED, PADDED = 1, 2, 4


@dataclass(frozen=True)
class Kind:
    """A type of elements: its name here, its code and bits, how struct packs it (complex numbers
    as two parts; without a format the bytes are arbitrary)."""

    name: str
    code: int
    bits: int
    format: str = ""
    parts: int = 1
    lanes: int = 1

    @property
    def dtype(self) -> tuple[int, int, int]:
        return (self.code, self.bits, self.lanes)

    @property
    def size(self) -> int:
        return self.bits * self.lanes // 8


FLOAT32 = Kind("float32", 2, 32, "f")
INT32 = Kind("int32", 0, 32, "i")
# What every array library has by the array API, and what most have beside it.
KINDS = [
    *(Kind(f"int{8 << i}", 0, 8 << i, f) for i, f in enumerate("bhiq")),
    *(Kind(f"uint{8 << i}", 1, 8 << i, f) for i, f in enumerate("BHIQ")),
    *(Kind(f"float{16 << i}", 2, 16 << i, f) for i, f in enumerate("efd")),
    Kind("bfloat16", 4, 16),
    Kind("complex64", 5, 64, "f", 2),
    Kind("complex128", 5, 128, "d", 2),
    Kind("bool", 6, 8, "?"),
]
BY_NAME = {k.name: k for k in KINDS}
# Of less than 16 bits; most libraries have some.
SMALL_FLOATS = [
    Kind("float8_e3m4", 7, 8),
    Kind("float8_e4m3", 8, 8),
    Kind("float8_e4m3b11fnuz", 9, 8),
    Kind("float8_e4m3fn", 10, 8),
    Kind("float8_e4m3fnuz", 11, 8),
    Kind("float8_e5m2", 12, 8),
    Kind("float8_e5m2fnuz", 13, 8),
    Kind("float8_e8m0fnu", 14, 8),
    Kind("float6_e2m3fn", 15, 6),
    Kind("float6_e3m2fn", 16, 6),
    Kind("float4_e2m1fn", 17, 4),
]


def pack(values: Iterable[Any], kind: Kind) -> bytes:
    """Numbers in memory, one after the other."""
    if kind.name == "bfloat16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    flat: list[Any] = []
    for v in values:
        flat += [v.real, v.imag] if kind.parts == 2 else [v]
    return struct.pack(f"={len(flat)}{kind.format}", *flat)


def row_major(shape: Sequence[int]) -> list[int]:
    """Strides in elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def offsets(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Offsets of all elements, in elements, row by row."""
    found = [0]
    for size, stride in zip(shape, strides, strict=True):
        found = [at + i * stride for at in found for i in range(size)]
    return found


def nested(flat: Sequence[Any], shape: Sequence[int]) -> Any:
    """A flat list as lists in lists."""
    if not shape:
        return flat[0]
    step = len(flat) // shape[0] if shape[0] else 0
    return [nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


class Producer:
    """An object with the two methods, which gives what it is told to and notes what it is asked."""

    def __init__(
        self,
        give: lab.Tensor | Callable[..., Any],
        *,
        device: object = CPU,
        name: str | None = None,
        keywords: bool = True,
    ) -> None:
        self.give = give
        self.device = device
        self.name = name
        self.keywords = keywords
        self.asked: list[dict[str, Any]] = []

    def __dlpack__(self, **asked: Any) -> Any:
        self.asked.append(asked)
        if set(asked) - {"stream"} and not self.keywords:
            raise TypeError(f"__dlpack__() got an unexpected keyword argument '{min(asked)}'")
        if isinstance(self.give, lab.Tensor):
            return self.give.capsule(self.name)
        return self.give(**asked)

    def __dlpack_device__(self) -> Any:
        return self.device
