"""npy, npz, safetensors and gguf with damage: an error that names the file, or a right result."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from support.gguf_files import BLOCKS, block, random_bytes, write
from support.harness import um
from support.mutations import cuts, mutations, survives

NAMES = ["plain.npy", "stored.npz", "packed.npz", "plain.safetensors", "plain.gguf", "blocks.gguf"]


def gguf_contents() -> tuple[dict[str, um.array], dict[str, Any]]:
    """Tensors of blocks and others, and metadata of all kinds."""
    numbers = um.arange(640, dtype=um.float32).reshape(10, 64)
    parts = um.quantize(numbers.astype(um.float16), group_size=32, bits=4)
    arrays = dict(zip(["a.weight", "a.scales", "a.biases"], parts, strict=True))
    arrays |= {"../b": numbers, "empty": um.zeros((0, 4)), "number": um.array(3), "z": um.ones(64)}
    metadata = {
        "general.architecture": "llama",
        "general.alignment": um.array(64, dtype=um.uint32),
        "words": ["a", "bc"],
        "lists": [um.arange(3), ["x"], []],
        "rate": um.array(0.5),
    }
    return arrays, metadata


def read(path: str) -> Any:
    """All that a file has, in the form with the most arrays."""
    if not path.endswith(".gguf"):
        return um.load(path)
    return um.load(path, return_metadata=True, packing="lossless", dtype=um.float32)


def whole(tmp_path: Path, name: str) -> bytes:
    """A file with arrays of several dtypes, ranks and sizes."""
    path = str(tmp_path / name)
    arrays = {
        "weight": um.arange(600, dtype=um.float32).reshape(20, 30),
        "mask": um.array([True, False, True]),
        "half.scale": um.ones((3, 1, 2), dtype=um.float16),
        "number": um.array(3),
        "empty": um.zeros((0, 4)),
        "../names/are\u00fc only names": um.arange(500, dtype=um.uint8),
    }
    if name.endswith(".npy"):
        um.save(path, arrays["weight"])
    elif name == "packed.npz":
        um.savez_compressed(path, **arrays)
    elif name.endswith(".npz"):
        um.savez(path, **arrays)
    elif name == "blocks.gguf":
        shapes = {kind: (2, block(kind)[0]) for kind in BLOCKS}
        tensors = {k.name: (k, random_bytes(k, shape)) for k, shape in shapes.items()}
        # Of the size of its last tensor, without padding.
        write(Path(path), tensors | {"last": (Type.F32, np.ones(8, np.float32))})
    elif name.endswith(".gguf"):
        um.save_gguf(path, *gguf_contents())
    else:
        um.save_safetensors(path, arrays, {"format": "mlx"})
    return (tmp_path / name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_mutated_files(tmp_path: Path, name: str) -> None:
    data = whole(tmp_path, name)
    outcomes = survives(tmp_path / f"bad-{name}", mutations(data, seed=1), read)
    # Most damage is seen; of most formats some is not, as that of elements.
    assert outcomes["refused"] > 0.3 * sum(outcomes.values()), outcomes


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_cut(tmp_path: Path, name: str) -> None:
    data = whole(tmp_path, name)
    assert survives(tmp_path / f"cut-{name}", cuts(data, 64), read)["read"] == 0


def safetensors(header: dict, body: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def test_tensors_that_overlap_or_leave_gaps(tmp_path: Path) -> None:
    def two(first: list[int], second: list[int]) -> dict:
        return {
            "a": {"dtype": "F32", "shape": [2], "data_offsets": first},
            "b": {"dtype": "F32", "shape": [2], "data_offsets": second},
        }

    path = tmp_path / "overlap.safetensors"
    bad = [two([0, 8], [4, 12]), two([0, 8], [0, 8]), two([0, 8], [12, 20]), two([8, 16], [16, 24])]
    outcomes = survives(path, (safetensors(header, bytes(24)) for header in bad))
    assert outcomes == {"read": 0, "refused": 4}


def gguf(axes: list[int], code: int = 0, offset: int = 0, metadata: bytes = b"") -> bytes:
    """A file with a tensor, 64 bytes of data, and perhaps a value of metadata."""
    info = struct.pack("<Q1sI", 1, b"x", len(axes)) + struct.pack(f"<{len(axes)}Q", *axes)
    info += struct.pack("<IQ", code, offset)
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, bool(metadata)) + metadata + info
    return header + bytes(-len(header) % 32) + bytes(64)


def value(kind: int, content: bytes) -> bytes:
    return struct.pack("<Q1sI", 1, b"k", kind) + content


def test_gguf_sizes_that_lie(tmp_path: Path) -> None:
    path = tmp_path / "lies.gguf"
    most = 2**64 - 1
    good = [gguf([16]), gguf([4, 4]), gguf([4], offset=32), gguf([0, 5])]
    assert survives(path, good) == {"read": len(good), "refused": 0}
    lists = b"".join(struct.pack("<IQ", 9, 1) for _ in range(100_000))
    bad = [
        *(gguf([n]) for n in (17, 2**31, 2**62, 2**63, most)),
        *(gguf([2**32] * 2), gguf([2**33] * 8), gguf([1] * 9), gguf([most, 2])),
        *(gguf([32], 8, 32), gguf([2**59], 8), gguf([33], 8), gguf([16], 77)),
        *(gguf([4], offset=n) for n in (1, 64, 2**40, 2**63, most - 31)),
        # Lengths of text and of arrays, and arrays in arrays.
        *(gguf([1], metadata=value(8, struct.pack("<Q", n))) for n in (2**20, 2**40, most)),
        *(gguf([1], metadata=value(9, struct.pack("<IQ", k, most))) for k in (0, 7, 8, 9, 12)),
        gguf([1], metadata=value(9, lists)),
        gguf([1], metadata=value(13, b"")),
        # Counts of tensors and values.
        b"GGUF" + struct.pack("<IQQ", 3, most, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 2**40),
        # Names.
        b"GGUF" + struct.pack("<IQQQ", 3, 1, 0, 2**62),
    ]
    assert survives(path, bad, room=1 << 20) == {"read": 0, "refused": len(bad)}


def test_gguf_tensors_that_overlap(tmp_path: Path) -> None:
    def two(first: int, second: int, names: bytes = b"ab", size: int = 8) -> bytes:
        header = b"GGUF" + struct.pack("<IQQ", 3, 2, 0)
        for name, offset in zip(names, (first, second), strict=True):
            header += struct.pack("<QBIQIQ", 1, name, 1, size, 0, offset)
        return header + bytes(-len(header) % 32) + bytes(96)

    path = tmp_path / "overlap.gguf"
    assert survives(path, [two(0, 32), two(64, 0), two(0, 0, size=0)])["refused"] == 0
    bad = [two(0, 0), two(0, 32, size=9), two(64, 64), two(0, 32, b"aa"), two(0, 64, size=17)]
    assert survives(path, bad) == {"read": 0, "refused": len(bad)}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is truncated"),
        (b"PK\3\4" + bytes(60), "Not a GGUF file: it begins with"),
        (b"GGUF" + struct.pack("<IQQ", 0, 0, 0), "version 0 of GGUF, where 2 to 3"),
        (b"GGUF" + struct.pack("<III", 1, 0, 0), "version 1 of GGUF, where 2 to 3"),
        (b"GGUF" + struct.pack("<IQQ", 4, 0, 0), "version 4 of GGUF"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "The file is big-endian. Convert it with"),
    ],
)
def test_files_that_are_no_gguf(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "x.gguf").write_bytes(content)
    with pytest.raises(RuntimeError, match=rf"x\.gguf: .*{text}"):
        um.load(str(tmp_path / "x.gguf"))


@pytest.mark.parametrize("packing", ["common", "lossless", "never"])
def test_gguf_files_that_change(tmp_path: Path, packing: str) -> None:
    path = tmp_path / "x.gguf"
    um.save_gguf(str(path), *gguf_contents())
    read, cut = (um.load(str(path), packing=packing) for _ in range(2))
    assert um.isfinite(read["a.weight"].astype(um.float32)).all()
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(
        RuntimeError, match=r"x\.gguf: tensor 'a.weight' cannot be read: the file was"
    ):
        um.eval(cut["a.weight"])
