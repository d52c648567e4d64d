"""npy, npz and safetensors: across both libraries, and files that lie."""

import io
import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.compare import assert_close
from support.harness import ALL, LAYOUTS, given, mlx, rng, um

SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 3), (37, 67)]
LIBRARIES = [(um, mlx), (mlx, um), (um, um)]
IDS = ["ours to mlx", "mlx to ours", "ours to ours"]


def same(data: Any, read: Any, reader: Any) -> None:
    assert isinstance(read, reader.array)
    assert_close(read, data.make(mlx))


@pytest.mark.parametrize("writer, reader", LIBRARIES, ids=IDS)
@pytest.mark.parametrize("dtype", ALL)
def test_npy(tmp_path: Path, dtype: str, writer: Any, reader: Any) -> None:
    for i, shape in enumerate(SHAPES):
        for layout in LAYOUTS if shape else LAYOUTS[:1]:
            data = given(dtype, shape, layout, key=i)
            path = tmp_path / "a.npy"
            try:
                mlx.save(str(tmp_path / "probe.npy"), data.make(mlx))
                mlx.load(str(tmp_path / "probe.npy"))
            except Exception as error:
                with pytest.raises(type(error)):
                    um.save(str(path), data.make(um))
                    um.load(str(path))
                continue
            writer.save(str(path), data.make(writer))
            same(data, reader.load(str(path)), reader)
            if dtype not in ("bfloat16",):
                assert (np.load(path) == np.array(data.make(um))).all()


@pytest.mark.parametrize("writer, reader", LIBRARIES, ids=IDS)
@pytest.mark.parametrize("save", ["savez", "savez_compressed"])
def test_npz(tmp_path: Path, save: str, writer: Any, reader: Any) -> None:
    data = {f"{d}": given(d, (4, 5)) for d in ALL if d not in ("bfloat16",)}
    path = str(tmp_path / "a.npz")
    first = given("float32", (3,))
    getattr(writer, save)(path, first.make(writer), **{k: v.make(writer) for k, v in data.items()})
    read = reader.load(path)
    assert set(read) == {"arr_0", *data}
    same(first, read["arr_0"], reader)
    for name, want in data.items():
        same(want, read[name], reader)
    with np.load(path) as plain:
        assert set(plain.files) == {"arr_0", *data}


@pytest.mark.parametrize("writer, reader", LIBRARIES, ids=IDS)
def test_safetensors(tmp_path: Path, writer: Any, reader: Any) -> None:
    data = {
        f"{d} {s} {lay.name}": given(d, s, lay)
        for d in ALL
        if d not in ("float64", "complex64")
        for s in SHAPES
        for lay in LAYOUTS[:: 1 if s else 99]
    }
    path = str(tmp_path / "a.safetensors")
    meta = {"author": "nobody", "text": 'quotes " and \\ and ü'}
    writer.save_safetensors(path, {k: v.make(writer) for k, v in data.items()}, meta)
    read, metadata = reader.load(path, return_metadata=True)
    assert metadata == meta
    assert set(read) == set(data)
    for name, want in data.items():
        same(want, read[name], reader)


def test_paths_and_file_objects(tmp_path: Path) -> None:
    x = um.arange(6).reshape(2, 3)
    um.save(tmp_path / "plain", x)  # the ending is added
    assert um.load(tmp_path / "plain.npy").tolist() == x.tolist()
    with open(tmp_path / "b.npy", "wb") as file:
        um.save(file, x)
    with open(tmp_path / "b.npy", "rb") as file:
        assert um.load(file).tolist() == x.tolist()
    buffer = io.BytesIO()
    um.save_safetensors(buffer, {"x": x})
    buffer.seek(0)
    assert um.load(buffer, format="safetensors")["x"].tolist() == x.tolist()


def test_numpy_writes_what_we_read(tmp_path: Path) -> None:
    for dtype in ("bool", "int8", "uint16", "int64", "float16", "float32", "complex64"):
        for data in (np.arange(24).reshape(2, 3, 4).astype(dtype), np.zeros((), dtype)):
            for order in (data, np.asfortranarray(data)):
                np.save(tmp_path / "a.npy", order)
                assert (np.array(um.load(str(tmp_path / "a.npy"))) == data).all()


# What a program that reads files from elsewhere would catch.
REFUSALS = (
    RuntimeError, ValueError, OSError, MemoryError, EOFError, OverflowError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip


def refused(path: Path) -> None:
    """Loading raises something that can be caught, and the library goes on working."""
    try:
        read = um.load(str(path))
        um.eval(read)
    except REFUSALS:
        pass
    else:
        assert (read.size if isinstance(read, um.array) else len(read)) == 0, "was accepted"
    assert (um.arange(3) + 1).tolist() == [1, 2, 3]


def npy_with_header(header: str, body: bytes = b"", version: int = 1) -> bytes:
    text = header.encode() + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + body


BAD_NPY = {
    "empty": b"",
    "magic only": b"\x93NUMPY",
    "no header": b"\x93NUMPY\x01\x00",
    "header cut short": b"\x93NUMPY\x01\x00\xff\xff{'descr'",
    "not a dict": npy_with_header("hello", bytes(24)),
    "no descr": npy_with_header("{'fortran_order': False, 'shape': (3,), }", bytes(24)),
    "unknown descr": npy_with_header("{'descr': '<z9', 'fortran_order': False, 'shape': (3,), }", bytes(99)),
    "object descr": npy_with_header("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", bytes(24)),
    "big shape": npy_with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000,), }", bytes(24)),
    "huge shape": npy_with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9), }", bytes(24)),
    "overflowing shape": npy_with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", bytes(24)),
    "endless number": npy_with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "9" * 400 + ",), }", bytes(24)),
    "negative shape": npy_with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", bytes(24)),
    "shape of text": npy_with_header("{'descr': '<f4', 'fortran_order': False, 'shape': ('a',), }", bytes(24)),
    "version 9": npy_with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", bytes(12), 9),
    "long header": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b"{}",
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_NPY)
def test_npy_that_lies(tmp_path: Path, name: str) -> None:
    path = tmp_path / "bad.npy"
    path.write_bytes(BAD_NPY[name])
    refused(path)


def safetensors(header: Any, body: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + body


def tensor(dtype: str, shape: list, offsets: list) -> dict:
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


BAD_SAFETENSORS = {
    "empty": b"",
    "length only": struct.pack("<Q", 10),
    "length too large": safetensors({}, length=2**63),
    "length of all": safetensors({}, length=2**64 - 1),
    "not json": safetensors(b"hello"),
    "not an object": safetensors(b"[1, 2]"),
    "not text": safetensors(b"\xff\xfe\x00"),
    "deep json": safetensors(b'{"a":' * 100000),
    "deep array": safetensors(b"[" * 100000),
    "past the end": safetensors(tensor("F32", [4], [0, 16]), bytes(8)),
    "backwards": safetensors(tensor("F32", [4], [16, 0]), bytes(32)),
    "offsets disagree with shape": safetensors(tensor("F32", [4], [0, 8]), bytes(8)),
    "shape overflows": safetensors(tensor("F32", [2**40, 2**40], [0, 8]), bytes(8)),
    "shape negative": safetensors(tensor("F32", [-2], [0, 8]), bytes(8)),
    "shape fractional": safetensors(tensor("F32", [1.5], [0, 8]), bytes(8)),
    "offsets negative": safetensors(tensor("F32", [2], [-8, 0]), bytes(8)),
    "offsets huge": safetensors(tensor("F32", [2], [2**63, 2**63 + 8]), bytes(8)),
    "one offset": safetensors(tensor("F32", [2], [0]), bytes(8)),
    "unknown dtype": safetensors(tensor("F13", [2], [0, 8]), bytes(8)),
    "dtype of number": safetensors({"x": {"dtype": 1, "shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
    "no shape": safetensors({"x": {"dtype": "F32", "data_offsets": [0, 8]}}, bytes(8)),
    "tensor of text": safetensors({"x": "y"}, bytes(8)),
    "metadata of numbers": safetensors({"__metadata__": 7}, bytes(8)),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_SAFETENSORS)
def test_safetensors_that_lies(tmp_path: Path, name: str) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(BAD_SAFETENSORS[name])
    refused(path)


def whole_files(tmp_path: Path) -> dict[str, bytes]:
    x, y = um.arange(12, dtype=um.float32).reshape(3, 4), um.arange(5)
    um.save(str(tmp_path / "w.npy"), x)
    um.savez(str(tmp_path / "w.npz"), x, y=y)
    um.savez_compressed(str(tmp_path / "c.npz"), x, y=y)
    um.save_safetensors(str(tmp_path / "w.safetensors"), {"x": x, "y": y})
    return {n: (tmp_path / n).read_bytes() for n in ("w.npy", "w.npz", "c.npz", "w.safetensors")}


@pytest.mark.parametrize("name", ["w.npy", "w.npz", "c.npz", "w.safetensors"])
def test_files_cut_short(tmp_path: Path, name: str) -> None:
    whole = whole_files(tmp_path)[name]
    path = tmp_path / f"cut.{name.split('.')[1]}"
    for length in range(0, len(whole), max(1, len(whole) // 100)):
        path.write_bytes(whole[:length])
        refused(path)


@pytest.mark.parametrize("name", ["w.npy", "w.npz", "c.npz", "w.safetensors"])
def test_files_with_wrong_bytes(tmp_path: Path, name: str) -> None:
    """Any bytes may come back or an error: but nothing crashes and no memory is made up."""
    whole = whole_files(tmp_path)[name]
    path = tmp_path / f"wrong.{name.split('.')[1]}"
    random = rng("wrong bytes", name)
    for _ in range(300):
        bad = bytearray(whole)
        for at in random.integers(0, len(bad), random.integers(1, 4)):
            bad[at] = random.integers(0, 256)
        path.write_bytes(bytes(bad))
        try:
            read = um.load(str(path))
            um.eval(read)
            parts = [read] if isinstance(read, um.array) else list(read.values())
            assert sum(p.nbytes for p in parts) <= 100 * len(whole)
        except (*REFUSALS, KeyError, NotImplementedError):  # the last two: zipfile's
            pass
    assert (um.arange(3) + 1).tolist() == [1, 2, 3]
