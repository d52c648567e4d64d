"""The library under test, as cases see it."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from typing import Any

from ultramarine_dlpack_check import lab
from ultramarine_dlpack_check.adapters import Adapter
from ultramarine_dlpack_check.case import Failed, NotApplicable, described, expect, expect_equal
from ultramarine_dlpack_check.fabricate import (
    CPU,
    FLOAT32,
    Kind,
    Producer,
    nested,
    offsets,
    pack,
    row_major,
)

# What Python says when a function has no such argument.
UNKNOWN_ARGUMENT = ("unexpected keyword", "keyword argument", "invalid keyword", "takes no")
# How long a library may take to run a deleter that it puts off.
PATIENCE = 5.0

ROW = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
GRID = nested(ROW, [2, 3])


def without_argument(error: TypeError, name: str) -> bool:
    """Whether a TypeError says that there is no such argument."""
    text = str(error)
    return any(u in text for u in UNKNOWN_ARGUMENT) and ("__dlpack__" in text or name in text)


class Target:
    """Fabricates tensors for the library, calls it, and keeps account of every tensor."""

    def __init__(self, adapter: Adapter, loops: int) -> None:
        self.adapter = adapter
        self.loops = loops
        self.asks_versions = self.probe()
        self.tensors: list[tuple[lab.Tensor, bool]] = []

    def probe(self) -> bool:
        """Whether the library asks producers for versioned tensors."""
        producer = Producer(lambda **_: None)
        try:
            self.take(producer)
        except NotApplicable:
            return True
        except Exception:
            pass
        versions: list[Any] = [a["max_version"] for a in producer.asked if a.get("max_version")]
        return any(v[0] >= 1 for v in versions)

    # Fabricated tensors

    def tensor(
        self,
        values: Sequence[Any] = ROW,
        shape: Sequence[int] | None = (2, 3),
        strides: Sequence[int] | None = (),
        kind: Kind = FLOAT32,
        *,
        data: bytes | lab.Memory | int | None = b"",
        deleter: bool = True,
        legacy: bool | None = None,
        **fields: Any,
    ) -> lab.Tensor:
        """A tensor of values; its deleter must have run once when the case is over. Strides are
        row-major unless told. It is versioned, unless the library asks for no versions: then a
        producer may only give it an unversioned one."""
        if legacy is None:
            legacy = not self.asks_versions
            if legacy and {"version", "flags"} & set(fields):
                raise NotApplicable("it asks for unversioned tensors only")
        if data == b"":
            data = pack(values, kind)
        if strides is not None and len(strides) == 0 and shape is not None:
            strides = row_major(shape)
        made = lab.Tensor(
            data,
            shape,
            strides,
            **{"dtype": kind.dtype, "deleter": deleter, "legacy": legacy, **fields},
        )
        self.tensors.append((made, deleter))
        return made

    def kept(self, values: Sequence[float], **fields: Any) -> tuple[lab.Memory, lab.Tensor]:
        """A tensor of numbers in a row, and its memory, which can be looked at also after the
        deleter ran (that of other tensors is overwritten then)."""
        memory = lab.Memory(4 * len(values))
        memory.write(pack(values, FLOAT32))
        return memory, self.tensor(data=memory, shape=(len(values),), **fields)

    def settle(self) -> None:
        """The rule above all others: each deleter ran exactly once, nobody wrote out of bounds."""
        end = time.monotonic() + PATIENCE
        while True:
            gc.collect()
            owed = [t for t, deleter in self.tensors if deleter and t.given and not t.deleted]
            if not owed or time.monotonic() > end:
                break
            time.sleep(0.01)
        tensors, self.tensors = self.tensors, []
        for tensor, deleter in tensors:
            if deleter:
                expect_equal(tensor.deleted, int(tensor.given), "runs of a tensor's deleter")
            expect(tensor.intact, "memory around a tensor was written")

    # The library as a consumer

    def take(self, producer: object, **keywords: Any) -> Any:
        """The library's array of a producer."""
        call = self.adapter.from_dlpack
        if call is None:
            raise NotApplicable("no from_dlpack")
        try:
            return call(producer, **keywords)
        except TypeError as error:
            for name in keywords:
                if without_argument(error, name):
                    raise NotApplicable(f"from_dlpack has no argument {name}") from None
            raise

    def import_(self, tensor: lab.Tensor, **keywords: Any) -> Any:
        """The library's array of a tensor."""
        return self.take(Producer(tensor), **keywords)

    def accepts(
        self,
        tensor: lab.Tensor,
        wanted: object,
        *,
        or_refuses: bool = False,
        same_memory: int | None = None,
        **producer: Any,
    ) -> Any:
        """The array of a tensor, which has the values; None if it may be refused, and is."""
        try:
            array = self.take(Producer(tensor, **producer))
        except NotApplicable:
            raise
        except Exception as error:
            if or_refuses:
                return None
            raise Failed(f"refused: {described(error)}") from None
        expect_equal(self.values(array), wanted, "values")
        if same_memory is not None:
            expect_equal(self.pointer(array), same_memory, "address (it was copied)")
        if tensor.deleted:
            # It was copied: then the bytes that were let go are not missed.
            expect_equal(self.values(array), wanted, "values after the deleter ran")
        return array

    def values(self, array: object) -> Any:
        """Nested lists."""
        return self.adapter.tolist(array)

    def part(self, array: Any, index: slice) -> Any:
        """A slice."""
        if not hasattr(type(array), "__getitem__"):
            raise NotApplicable("no slices")
        return array[index]

    def pointer(self, array: object) -> int:
        """Address of the first element."""
        return self.adapter.pointer(array)

    # The library as a producer

    def make(self, values: Any = ROW, dtype: str = "float32") -> Any:
        """An array of the library's own."""
        return self.adapter.make(values, dtype)

    def capsule(self, array: Any, **asked: Any) -> Any:
        """What its `__dlpack__` gives."""
        method = getattr(array, "__dlpack__", None)
        if method is None:
            raise NotApplicable("no __dlpack__")
        try:
            return method(**asked)
        except TypeError as error:
            for name in asked:
                if without_argument(error, name):
                    raise NotApplicable(f"__dlpack__ has no argument {name}") from None
            raise

    def export(self, array: Any, **asked: Any) -> lab.Taken:
        """The tensor that it exports."""
        return lab.take(self.capsule(array, **asked))

    def newest(self, array: Any) -> lab.Taken:
        """The tensor that it exports, of the newest version that it has."""
        try:
            return self.export(array, max_version=(1, 3))
        except NotApplicable:
            return self.export(array)


def address(info: lab.Info) -> int:
    """Of the first element."""
    return int(info["data"] + info["byte_offset"])


def gathered(taken: lab.Taken) -> bytes:
    """The elements of a tensor of whole bytes, row by row, wherever its strides lead."""
    info = taken.info()
    size = info["dtype"][1] * info["dtype"][2] // 8
    shape = info["shape"] or []
    strides = info["strides"] or row_major(shape)
    return b"".join(taken.read(size, at * size) for at in offsets(shape, strides))


__all__ = ["CPU", "ROW", "Target", "address", "gathered", "nested"]
