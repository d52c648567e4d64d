"""GGUF files by the package `gguf`, and what it reads in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

# Block types that the package can decode.
BLOCKS = [kind for kind in Type if kind in gguf.quants._type_traits and kind is not Type.BF16]
PLAIN = {
    Type.F16: "float16", Type.BF16: "bfloat16", Type.F32: "float32", Type.F64: "float64",
    Type.I8: "int8", Type.I16: "int16", Type.I32: "int32", Type.I64: "int64",
}  # fmt: skip


def block(kind: Type) -> tuple[int, int]:
    """Elements and bytes of a block."""
    return gguf.GGML_QUANT_SIZES[kind]


def random_bytes(kind: Type, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Random bytes of a tensor: all numbers are among them, infinite scales, too."""
    elements, size = block(kind)
    raw = (*shape[:-1], shape[-1] // elements * size)
    return np.random.default_rng((seed, kind)).integers(0, 256, raw, np.uint8)


def write(
    path: Path, tensors: Mapping[str, tuple[Type, np.ndarray]], metadata: Any = lambda writer: None
) -> Path:
    """Writes tensors: the type of each, and its bytes, or its numbers in a dtype of NumPy's."""
    writer = gguf.GGUFWriter(path, "llama")
    metadata(writer)
    for name, (kind, data) in tensors.items():
        raw = None if data.dtype != np.uint8 else kind
        writer.add_tensor(name, data, raw_dtype=raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def raw(path: Path) -> dict[str, tuple[Type, np.ndarray]]:
    """The tensors of a file as the package reads them: numbers, or the bytes of blocks."""
    return {x.name: (x.tensor_type, np.array(x.data)) for x in gguf.GGUFReader(path).tensors}


def decode(kind: Type, data: np.ndarray) -> np.ndarray:
    """Numbers of a tensor, as the package decodes them."""
    if kind not in BLOCKS and kind is not Type.BF16:
        return data
    with np.errstate(all="ignore"):
        return gguf.quants.dequantize(data, kind)


def same_bits(found: np.ndarray, wanted: np.ndarray) -> None:
    """Equal bits, but for those of NaN."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype.kind == "f":
        nan = np.isnan(wanted)
        assert np.array_equal(np.isnan(found), nan)
        found, wanted = np.where(nan, 0, found), np.where(nan, 0, wanted)
        assert found.dtype == wanted.dtype
    bits = np.dtype(f"u{found.dtype.itemsize}")
    np.testing.assert_array_equal(found.view(bits), wanted.view(bits))
