"""npy, npz and safetensors with damage: an error that names the file, or a right result."""

import json
import struct
from pathlib import Path

import pytest
from support.harness import um
from support.mutations import cuts, mutations, survives


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
    else:
        um.save_safetensors(path, arrays, {"format": "mlx"})
    return (tmp_path / name).read_bytes()


@pytest.mark.parametrize("name", ["plain.npy", "stored.npz", "packed.npz", "plain.safetensors"])
def test_mutated_files(tmp_path: Path, name: str) -> None:
    data = whole(tmp_path, name)
    outcomes = survives(tmp_path / f"bad-{name}", mutations(data, seed=1))
    # Most damage is seen; of most formats some is not, as that of elements.
    assert outcomes["refused"] > 0.3 * sum(outcomes.values()), outcomes


@pytest.mark.parametrize("name", ["plain.npy", "stored.npz", "packed.npz", "plain.safetensors"])
def test_files_that_are_cut(tmp_path: Path, name: str) -> None:
    data = whole(tmp_path, name)
    assert survives(tmp_path / f"cut-{name}", cuts(data, 64))["read"] == 0


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
