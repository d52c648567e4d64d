"""Types of tensors in GGUF files, to the bit: as the package `gguf` decodes them, and as mlx packs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from support.gguf_files import BLOCKS, PLAIN, block, decode, random_bytes, raw, same_bits, write
from support.harness import mlx, um

# Types that mlx gives as words, scales and biases: bits.
COMMON = {Type.Q4_0: 4, Type.Q4_1: 4, Type.Q8_0: 8}
# Others that are words in one of our modes: bits, group size, mode.
LOSSLESS = {
    **{kind: (bits, 32, "affine") for kind, bits in COMMON.items()},
    Type.Q5_0: (5, 32, "affine"),
    Type.Q5_1: (5, 32, "affine"),
    Type.Q4_K: (4, 32, "affine"),
    Type.Q5_K: (5, 32, "affine"),
    Type.MXFP4: (4, 32, "mxfp4"),
    Type.NVFP4: (4, 16, "nvfp4"),
}
IDS = {"ids": lambda kind: kind.name}


def one(path: Path, kind: Type, rows: int = 5, blocks: int = 3) -> np.ndarray:
    """Writes the tensor `x.weight`; returns what `gguf` decodes it to."""
    shape = (rows, blocks * block(kind)[0])
    write(
        path,
        {
            "first": (Type.F32, np.ones(3, np.float32)),
            "x.weight": (kind, random_bytes(kind, shape)),
        },
    )
    return decode(*raw(path)["x.weight"])


@pytest.mark.parametrize("kind", BLOCKS, **IDS)
def test_blocks(tmp_path: Path, kind: Type) -> None:
    wanted = one(tmp_path / "x.gguf", kind)
    found = um.load(str(tmp_path / "x.gguf"), packing="never", dtype=um.float32)
    assert found.keys() == {"first", "x.weight"}
    same_bits(np.array(found["x.weight"]), wanted)


@pytest.mark.parametrize("kind", BLOCKS, **IDS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_blocks_are_rounded_once(tmp_path: Path, kind: Type, dtype: str) -> None:
    wanted = mlx.array(one(tmp_path / "x.gguf", kind)).astype(getattr(mlx, dtype))
    found = um.load(str(tmp_path / "x.gguf"), packing="never", dtype=getattr(um, dtype))["x.weight"]
    assert found.dtype == getattr(um, dtype)
    same_bits(np.array(found.astype(um.float32)), np.array(wanted.astype(mlx.float32)))


@pytest.mark.parametrize("kind", [Type.Q6_K, Type.IQ3_XXS, Type.Q4_1], **IDS)
def test_tensors_of_several_pieces(tmp_path: Path, kind: Type) -> None:
    """More than the 4 MiB that a thread reads at a time, and no multiple of them."""
    wanted = one(tmp_path / "x.gguf", kind, 523, 12 * 256 // block(kind)[0])
    assert wanted.nbytes > 6 << 20
    found = um.load(str(tmp_path / "x.gguf"), packing="never", dtype=um.float32)["x.weight"]
    same_bits(np.array(found), wanted)
    with open(tmp_path / "x.gguf", "rb") as file:
        found = um.load(file, packing="never", dtype=um.float32)["x.weight"]
    same_bits(np.array(found), wanted)


def test_q8_k(tmp_path: Path) -> None:
    """The package does not decode it."""
    blocks = random_bytes(Type.Q8_K, (2, 512)).reshape(4, 292)
    blocks[:, :4] = np.array([1.5, -2, 0.1, 3], np.float32).view(np.uint8).reshape(4, 4)
    write(tmp_path / "x.gguf", {"x": (Type.Q8_K, blocks.reshape(2, 584))})
    wanted = blocks[:, :4].copy().view(np.float32) * blocks[:, 4:260].view(np.int8)
    found = um.load(str(tmp_path / "x.gguf"), dtype=um.float32)["x"]
    same_bits(np.array(found), wanted.reshape(2, 512))


def test_q8_1_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "x.gguf", {"x": (Type.Q8_1, random_bytes(Type.Q8_1, (1, 32)))})
    with pytest.raises(RuntimeError, match="tensor 'x' has type 9, Q8_1"):
        um.load(str(tmp_path / "x.gguf"))


@pytest.mark.parametrize("kind", COMMON, **IDS)
def test_packed_as_in_mlx(tmp_path: Path, kind: Type) -> None:
    one(tmp_path / "x.gguf", kind)
    found, wanted = um.load(str(tmp_path / "x.gguf")), mlx.load(str(tmp_path / "x.gguf"))
    assert found.keys() == wanted.keys() == {"first", "x.weight", "x.scales", "x.biases"}
    for name, array in wanted.items():
        same_bits(np.array(found[name]), np.array(array))


@pytest.mark.parametrize("name", ["x", "plain", "abcdefgh", "a.weight.b", "é.weight"])
@pytest.mark.parametrize("shape", [(64,), (2, 3, 32), (0, 32)])
def test_names_and_shapes_of_packed_tensors(
    tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    path = str(write(tmp_path / "x.gguf", {name: (Type.Q4_0, random_bytes(Type.Q4_0, shape))}))
    found, wanted = um.load(path), mlx.load(path)
    assert {k: v.shape for k, v in found.items()} == {k: v.shape for k, v in wanted.items()}


@pytest.mark.parametrize("kind", [Type.Q2_K, Type.Q4_K, Type.Q6_K], **IDS)
def test_decoded_as_in_mlx(tmp_path: Path, kind: Type) -> None:
    """mlx decodes these alone, to float16."""
    one(tmp_path / "x.gguf", kind)
    found, wanted = um.load(str(tmp_path / "x.gguf")), mlx.load(str(tmp_path / "x.gguf"))
    assert found.keys() == wanted.keys() and found["x.weight"].dtype == um.float16
    # It rounds otherwise, and gives the odd groups of Q4_K the scales of the even ones.
    a, b = (np.array(x["x.weight"]).astype(np.float32) for x in (found, wanted))
    if kind is Type.Q4_K:
        a, b = (x.reshape(-1, 2, 32)[:, 0] for x in (a, b))
    finite = np.isfinite(a) & np.isfinite(b)
    assert finite.mean() > 0.4
    np.testing.assert_allclose(a[finite], b[finite], rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("kind", LOSSLESS, **IDS)
def test_packed_without_loss(tmp_path: Path, kind: Type) -> None:
    bits, group, mode = LOSSLESS[kind]
    wanted = one(tmp_path / "x.gguf", kind)
    found = um.load(str(tmp_path / "x.gguf"), packing="lossless")
    words, scales = found["x.weight"], found["x.scales"]
    biases = found["x.biases"] if mode == "affine" else None
    assert words.dtype == um.uint32 and words.nbytes * 8 == bits * wanted.size
    if scales.dtype == um.float16:
        # Exact in float32, where float16 may overflow.
        scales, biases = scales.astype(um.float32), biases.astype(um.float32)
    dtype = um.float32
    numbers = um.dequantize(
        words, scales, biases, group_size=group, bits=bits, mode=mode, dtype=dtype
    )
    # Biases and scales that are infinite, NaN or beyond float16.
    finite = np.isfinite(np.array(numbers)) & np.isfinite(wanted)
    assert finite.mean() > 0.4
    same_bits(np.array(numbers)[finite] + 0, wanted[finite] + 0)


@pytest.mark.parametrize("packing", ["common", "never"])
def test_others_are_decoded(tmp_path: Path, packing: str) -> None:
    one(tmp_path / "x.gguf", Type.Q4_K)
    assert um.load(str(tmp_path / "x.gguf"), packing=packing).keys() == {"first", "x.weight"}


@pytest.mark.parametrize("kind", PLAIN, **IDS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (0, 5), (5, 0), (1,) * 7])
def test_plain_types(tmp_path: Path, kind: Type, shape: tuple[int, ...]) -> None:
    size = block(kind)[1]
    bits = random_bytes(kind, (int(np.prod(shape)),)).view(f"u{size}").reshape(shape)
    if kind is not Type.BF16:
        tensor = bits.view(PLAIN[kind])
    elif shape:
        tensor = bits.view(np.uint8)
    else:
        pytest.skip("the package writes no bfloat16 without axes")
    path = write(tmp_path / "x.gguf", {"x": (kind, tensor)})
    found = um.load(str(path))["x"]
    assert (found.dtype, found.shape) == (getattr(um, PLAIN[kind]), shape)
    found = np.array(found.reshape(-1).view(um.uint8)).view(bits.dtype)
    np.testing.assert_array_equal(found, bits.reshape(-1))


def test_arguments(tmp_path: Path) -> None:
    one(tmp_path / "x.gguf", Type.Q6_K)
    path = str(tmp_path / "x.gguf")
    with pytest.raises(ValueError, match=r"Unknown packing 'always'\. Use 'never', 'common'"):
        um.load(path, packing="always")
    with pytest.raises(ValueError, match="Blocks cannot become int8"):
        um.load(path, dtype=um.int8)
    um.save(str(tmp_path / "x.npy"), um.ones(3))
    for argument in ({"packing": "never"}, {"dtype": um.float32}):
        with pytest.raises(ValueError, match="`packing` and `dtype` apply to GGUF files only"):
            um.load(str(tmp_path / "x.npy"), **argument)
