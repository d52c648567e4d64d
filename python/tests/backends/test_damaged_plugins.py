"""Plugins with damaged headers and notes: each is refused, or loads, and never takes the process down."""

import os
import signal
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from support.mutations import COUNT, LIES
from support.plugins import make

import ultramarine as mx
from ultramarine import backends

# Seconds until a load counts as hung.
PATIENCE = 20
NOTE = 4


def regions(data: bytes) -> list[tuple[int, int]]:
    """Begin and length of what the loader reads: the header, the program headers, the notes."""
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    found = [(0, 64), (table, size * count)]
    for i in range(count):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", data, table + size * i)
        if kind == NOTE:
            found.append((offset, length))
    return found


def damaged(data: bytes, numbers: range) -> Iterator[bytes]:
    """Forms of a library with other numbers in these places: the same ones for the same number."""
    places = regions(data)
    for number in numbers:
        random = Random(f"plugin {number}")
        out = bytearray(data)
        for _ in range(random.choice([1, 1, 2, 3])):
            begin, length = random.choice(places)
            at = begin + random.randrange(length)
            match random.choice(["flip", "byte", "lie", "lie"]):
                case "flip":
                    out[at] ^= 1 << random.randrange(8)
                case "byte":
                    out[at] = random.randrange(256)
                case _:
                    width = random.choice([2, 4, 8])
                    at = begin + (at - begin) // width * width
                    lie = random.choice([*LIES, len(data), random.randrange(len(data))])
                    out[at : at + width] = (lie % 256**width).to_bytes(width, "little")
        if random.random() < 0.1:
            del out[random.randrange(len(out)) :]
        yield bytes(out)


def load(path: Path) -> str:
    """The outcome of a load, in a process of its own: a name, or the signal that ended it."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            signal.alarm(PATIENCE)
            try:
                backends.load(str(path))
                code = 0
            except (OSError, RuntimeError) as error:
                named = path.name in str(error) and "panicked" not in str(error)
                code = 1 if named else 2
            # All goes on.
            if (mx.arange(3) + 1).tolist() != [1, 2, 3]:
                code = 4
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return ["loaded", "refused", "an error without the file's name", "another error", "broken"][
        os.WEXITSTATUS(status)
    ]


# Each has a process of its own: a part is what one test may take.
@pytest.mark.parametrize("part", range(5))
def test_damaged_headers_and_notes(tmp_path: Path, part: int) -> None:
    good = make(tmp_path)
    assert load(good) == "loaded"
    data = good.read_bytes()
    outcomes: Counter[str] = Counter()
    wrong = []
    path = tmp_path / "bad" / good.name
    path.parent.mkdir()
    numbers = range(part, COUNT, 5)
    for number, bad in zip(numbers, damaged(data, numbers)):
        path.unlink(missing_ok=True)
        path.write_bytes(bad)
        outcome = load(path)
        outcomes[outcome] += 1
        if outcome not in ("loaded", "refused"):
            wrong.append(f"file {number}: {outcome}")
    assert not wrong, f"{outcomes}\n" + "\n".join(wrong[:20])
    assert outcomes["refused"] > len(numbers) / 3, outcomes
