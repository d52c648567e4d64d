"""Damaged files: what a reader of files from strangers answers with an error or a right result.

A test of a format is a call of `survives` with a whole file and a function that reads one.
"""

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from support.harness import FULL, um

# Number of damaged files for each format.
COUNT = 5000 if FULL else 200

# Errors that a reader is allowed to raise. A panic is not one of them.
ERRORS = (
    RuntimeError,
    ValueError,
    TypeError,
    MemoryError,
    OSError,
    KeyError,
    IndexError,
    OverflowError,
)

# Numbers that replace sizes, counts and offsets.
LIES = [
    0, 1, 2, 7, 255, 256, 65535, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**48, 2**62,
    2**63 - 1, 2**63, 2**64 - 8, 2**64 - 1,
]  # fmt: skip
NUMBER = re.compile(rb"\d+")


def _flip(data: bytearray, random: Random) -> None:
    for _ in range(random.randint(1, 4)):
        data[_place(data, random)] ^= 1 << random.randrange(8)


def _overwrite(data: bytearray, random: Random) -> None:
    at = _place(data, random)
    data[at : at + random.randint(1, 8)] = random.randbytes(random.randint(1, 8))


def _lie(data: bytearray, random: Random) -> None:
    """A binary number, little-endian, of 2, 4 or 8 bytes."""
    code = random.choice("HIQ")
    size = struct.calcsize(code)
    at = _place(data, random)
    at -= random.choice([0, at % size])
    number = random.choice([*LIES, len(data), len(data) - at]) & (256**size - 1)
    data[at : at + size] = struct.pack(f"<{code}", number)


def _lie_in_text(data: bytearray, random: Random) -> None:
    """A number that is written as text."""
    found = list(NUMBER.finditer(data, 0, 1 << 16))
    if not found:
        return _lie(data, random)
    place = random.choice(found)
    old = int(place[0][:18])
    number = random.choice([*LIES, old + 1, old - 1, old * 2, -old])
    text = str(number).encode()
    if random.random() < 0.5:
        # Keep the length, so that everything else stays in place.
        text = text[: len(place[0])].rjust(len(place[0]), b"0")
    data[place.start() : place.end()] = text
    return None


def _cut(data: bytearray, random: Random) -> None:
    del data[random.randrange(len(data)) :]


def _remove(data: bytearray, random: Random) -> None:
    at = _place(data, random)
    del data[at : at + random.choice([1, 2, 4, 8, 64, 1024])]


def _insert(data: bytearray, random: Random) -> None:
    at = _place(data, random)
    data[at:at] = random.choice([b"\0" * 8, b"../../x", random.randbytes(random.randint(1, 64))])


def _repeat(data: bytearray, random: Random) -> None:
    """A part stands twice: in another's place, or before itself."""
    size = random.choice([1, 4, 8, 16, 64, 512])
    source, at = _place(data, random), _place(data, random)
    part = data[source : source + size]
    data[at : at + random.choice([0, len(part)])] = part


def _append(data: bytearray, random: Random) -> None:
    data += random.randbytes(random.choice([1, 7, 4096]))


def _place(data: bytearray, random: Random) -> int:
    """A position, rather in a header, which is at the beginning or (zip) at the end."""
    size = len(data)
    if not size:
        return 0
    near = min(size, random.choice([64, 1024, size, size]))
    at = random.randrange(near)
    return at if random.random() < 0.75 else size - 1 - at


KINDS = [
    _flip,
    _overwrite,
    _lie,
    _lie,
    _lie_in_text,
    _lie_in_text,
    _cut,
    _remove,
    _insert,
    _repeat,
    _append,
]


def mutations(data: bytes, seed: int, count: int = COUNT) -> Iterator[bytes]:
    """Damaged forms of a file: the same ones for the same seed."""
    for number in range(count):
        random = Random(f"{seed} {number}")
        damaged = bytearray(data)
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            if damaged:
                random.choice(KINDS)(damaged, random)
        yield bytes(damaged)


def cuts(data: bytes, step: int = 1024) -> Iterator[bytes]:
    """The file cut at each multiple of `step` bytes, and one byte before its end."""
    for length in (*range(0, len(data), step), len(data) - 1):
        yield data[:length]


def _arrays(loaded: Any) -> list[Any]:
    if isinstance(loaded, um.array):
        return [loaded]
    if isinstance(loaded, dict):
        loaded = list(loaded.values())
    if isinstance(loaded, list | tuple):
        return [array for part in loaded for array in _arrays(part)]
    return []


def survives(
    path: Path,
    files: Iterator[bytes],
    read: Callable[[str], Any] = um.load,
    room: int = 64 << 20,
    check: Callable[[Any], None] = lambda loaded: None,
) -> dict[str, int]:
    """Writes each file to `path` and reads it: each gives arrays, which can be computed, or an error that names the file.

    Arrays take at most `room` bytes in all. `check` sees what was read. Returns how many were read and refused.
    """
    outcomes = {"read": 0, "refused": 0}
    for number, data in enumerate(files):
        path.write_bytes(data)
        um.reset_peak_memory()
        before = um.get_active_memory()
        loaded = None
        try:
            loaded = read(str(path))
            um.eval(_arrays(loaded))
        except ERRORS as error:
            outcomes["refused"] += 1
            text = str(error)
            assert path.name in text, f"file {number}: the error names no file: {text}"
            assert "panicked" not in text, f"file {number}: {text}"
        else:
            outcomes["read"] += 1
            check(loaded)
        taken = um.get_peak_memory() - before
        assert taken <= room, f"file {number} of {len(data)} bytes took {taken} bytes"
        del loaded
    # The library must still work.
    assert (um.arange(3) + 1).tolist() == [1, 2, 3]
    return outcomes
