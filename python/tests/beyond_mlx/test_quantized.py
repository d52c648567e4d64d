"""Numbers of few bits against NumPy, to the bit in every dtype, and back; what mlx gets wrong.

mlx's arithmetic is that of `support/quantization.py`, which says where we differ from it on purpose.
"""

from typing import Any

import numpy as np
import pytest
from support import quantization as reference
from support.harness import EPS, to_numpy, um
from support.packed import made, packed, wide
from support.quantization import BITS, FLOATING, GROUPS, SIZES

DTYPES = ["float16", "bfloat16", "float32", "float64"]

BANK = reference.bank(0)
# Each row has its own distribution.
ROWS = np.concatenate(list(BANK.values()))


def first_difference(got: np.ndarray, want: np.ndarray) -> str:
    """Where bits differ, by the distribution of the row; "" for nowhere. NaN is NaN."""
    if got.dtype == np.float16:
        got = got.astype(np.float32)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    bits = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[got.itemsize]
    differ = got.view(bits) != want.view(bits)
    if got.dtype.kind == "f":
        differ &= ~(np.isnan(got) & np.isnan(want))
    if not differ.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(differ)[0])
    name = list(BANK)[at[0] // (len(ROWS) // len(BANK))]
    return f"{name}{at}: {got[at]!r}, not {want[at]!r} ({differ.sum()})"


# --- to the bit ---


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bits", BITS)
def test_affine_to_the_bit(bits: int, dtype: str) -> None:
    w = reference.rounded(ROWS, dtype)
    x = made(w, dtype)
    for group in GROUPS:
        want = reference.quantize(w, dtype, group, bits)
        got = um.quantize(x, group, bits)
        assert got[1].dtype == got[2].dtype == x.dtype
        for part, a, b in zip(("words", "scales", "biases"), got, want):
            assert b is not None
            assert not (bad := first_difference(to_numpy(a), b)), f"{part} of {group}: {bad}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", FLOATING)
def test_floats_to_the_bit(mode: str, dtype: str) -> None:
    group, bits = SIZES[mode]
    w = reference.rounded(ROWS, dtype)
    if dtype == "float64":
        w = w.astype(np.float64)
    x = made(w, dtype)
    globals_: list[float | None] = [None]
    if mode == "nvfp4":
        globals_ += [1.0, 3.7, 20.123, 2688.0, 1e5, 1e-6]
    for own in globals_:
        words, scales, _ = reference.quantize(w, dtype, group, bits, mode, own)
        given = None if own is None else um.array(own)
        got = um.quantize(x, mode=mode, global_scale=given)
        assert [a.dtype for a in got] == [um.uint32, um.uint8]
        assert not (bad := first_difference(np.array(got[1]), scales)), f"scales of {own}: {bad}"
        mine, theirs = (reference.unpack(a, bits) for a in (np.array(got[0]), words))
        if bits == 8:
            # The sign of NaN is any.
            odd = np.abs(w.reshape(len(w), -1, group)).max(-1)
            odd = np.repeat(~np.isfinite(odd.astype(np.float32)), group, -1)
            mine, theirs = (np.where(odd, a & 0x7F, a) for a in (mine, theirs))
        assert not (bad := first_difference(mine, theirs)), f"codes of {own}: {bad}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_scales_at_their_steps(dtype: str) -> None:
    """Groups at, above and below each power of 2: the least power that does not saturate."""
    eps = max(EPS[dtype], EPS["float32"])
    for mode, largest in (("mxfp4", 6.0), ("mxfp8", 448.0)):
        at = np.arange(-100.0, 100.0) if dtype != "float16" else np.arange(-10.0, 7.0)
        top = largest * np.exp2(at)
        for factor, step in ((1.0, 0), (1 + 2 * eps, 1), (1 - eps, 0)):
            w = np.zeros((len(top), 32))
            w[:, 3] = -top * factor
            words, scales = um.quantize(made(w, dtype), mode=mode)
            assert np.array_equal(np.array(scales)[:, 0], at + step + 127)
            back = wide(um.dequantize(words, scales, mode=mode, dtype=um.float32))
            assert (np.abs(back).max(-1) >= top * (0.5 if step else 1)).all()


def test_what_mlx_gets_wrong() -> None:
    """One huge element of nvfp4 is the largest number, not 0; the scales of tiny groups do not wrap to huge ones."""
    w = np.ones((2, 32), np.float32)
    w[0, 3] = 3e38
    w[0, 4] = -3e38
    values = um.dequantize(*um.quantize(um.array(w), mode="nvfp4"), mode="nvfp4")
    assert values[0, 2:5].tolist() == [0.0, 2688.0, -2688.0]
    for mode in ("mxfp4", "mxfp8"):
        words, scales = um.quantize(um.array(w[1:] * 2.0**-132), mode=mode)
        assert scales.tolist() == [[0]]
        assert um.abs(um.dequantize(words, scales, mode=mode, dtype=um.float32)).max() < 1e-38


@pytest.mark.parametrize("shape", [(4, 64), (2, 3, 4, 128), (1, 2048), (1, 16), (3, 48)])
def test_ranks(shape: tuple[int, ...]) -> None:
    """Any number of groups, also where mlx wants 32 elements of 4 bits; strided, too."""
    r = np.random.default_rng(1)
    w = r.standard_normal(shape).astype(np.float32)
    layouts = {
        "dense": um.array(w),
        "transposed": um.swapaxes(um.array(np.swapaxes(w, -1, -2).copy()), -1, -2),
        "reversed": um.array(w[..., ::-1].copy())[..., ::-1],
        "stepped": um.repeat(um.array(w), 2, axis=-1)[..., ::2],
    }
    for mode, (group, bits) in SIZES.items():
        if shape[-1] % group:
            continue
        want = reference.quantize(w.reshape(-1, shape[-1]), "float32", group, bits, mode)
        for name, x in layouts.items():
            for a, b in zip(um.quantize(x, mode=mode), want):
                assert b is not None
                assert a.shape == (*shape[:-1], b.shape[-1]), name
                assert np.array_equal(np.array(a).reshape(b.shape), b), name


def test_the_result_is_a_tuple() -> None:
    w = um.ones((2, 64))
    assert [(type(q), len(q)) for q in (um.quantize(w), um.quantize(w, mode="mxfp8"))] == [
        (tuple, 3),
        (tuple, 2),
    ]


# --- back to floats ---


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bits", [*BITS, 7, 9, 16])
def test_affine_back(bits: int, dtype: str) -> None:
    """Scale times element, and the sum with the bias, are rounded; of bits that quantize does not have, too."""
    r = np.random.default_rng(bits)
    for group in (*GROUPS, 16, 96):
        if group * bits * 2 % 32:
            continue
        words = r.integers(0, 2**32, (2, 3, group * bits * 2 // 32), dtype=np.uint32)
        scales, biases = (made(r.standard_normal((2, 3, 2)) / n, dtype) for n in (2**bits, 1))
        value, size = reference.terms(words, wide(scales), wide(biases), group, bits)
        parts = (um.array(words), scales, biases, group, bits)
        got = um.dequantize(*parts)
        assert (got.dtype, got.shape) == (scales.dtype, value.shape)
        eps = EPS[dtype] * (2 if bits > 10 and dtype == "bfloat16" else 1)
        assert (np.abs(wide(got) - value) <= eps * size + 2.0**-24 * (dtype == "float16")).all()
        for other in DTYPES:
            cast = um.dequantize(*parts, dtype=getattr(um, other))
            assert um.array_equal(cast, got.astype(getattr(um, other)))


def test_affine_of_two_dtypes() -> None:
    """The result is what they promote to."""
    words = um.array(np.arange(8, dtype=np.uint32).reshape(1, 8) * 0x12345671)
    for scale, bias, both in [
        ("float16", "bfloat16", "float32"),
        ("float32", "float16", "float32"),
        ("float64", "float32", "float64"),
        ("uint8", "float32", "float32"),
    ]:
        scales = um.array([[100 if scale == "uint8" else 1 / 3]], dtype=getattr(um, scale))
        biases = um.array([[0.1]], dtype=getattr(um, bias))
        got = um.dequantize(words, scales, biases)
        assert got.dtype == getattr(um, both)
        value, size = reference.terms(np.array(words), wide(scales), wide(biases), 64, 4)
        eps = EPS[scale] if scale != "uint8" else EPS[both]
        assert (np.abs(wide(got) - value) <= eps * size).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", FLOATING)
def test_floats_back(mode: str, dtype: str) -> None:
    """Rounded once from the exact value, which is that of every code with every scale."""
    group, bits = SIZES[mode]
    scales = np.arange(256, dtype=np.uint8).reshape(-1, 1)
    if bits == 8:
        scales = np.repeat(scales, 8, -1)
        codes = np.broadcast_to(np.arange(256, dtype=np.uint32), (256, 256))
    else:
        codes = np.broadcast_to(np.arange(group, dtype=np.uint32) % 16, (256, group))
    words = reference.pack(codes, bits)
    value, _ = reference.terms(words, scales, None, group, bits, mode)
    got = um.dequantize(um.array(words), um.array(scales), mode=mode, dtype=getattr(um, dtype))
    assert got.dtype == getattr(um, dtype)
    want = reference.rounded(value, dtype)
    assert np.array_equal(to_numpy(got), want, equal_nan=True)


@pytest.mark.parametrize("dtype", [None, *DTYPES])
def test_a_global_scale(dtype: str | None) -> None:
    """float32 by default; mlx gives that whatever was asked for. It is a float32, and rounded as one."""
    r = np.random.default_rng(2)
    for own in (20.123, [3.5], [[-1.0]]):
        scale = um.array(own, dtype=um.float32)
        w = packed(r, "float32", ("nvfp4", 16, 4), 3, 64)
        value, size = reference.terms(
            np.array(w.words), np.array(w.scales), None, 16, 4, "nvfp4", scale.item()
        )
        given: Any = None if dtype is None else getattr(um, dtype)
        got = um.dequantize(w.words, w.scales, mode="nvfp4", global_scale=scale, dtype=given)
        assert got.dtype == (given or um.float32)
        eps = max(EPS[dtype or "float32"], EPS["float32"])
        assert (np.abs(wide(got) - value) <= 2 * eps * size + 2.0**-24 * (dtype == "float16")).all()


def test_there_and_back() -> None:
    """Errors are within a step of the grid, and packed values come back."""
    r = np.random.default_rng(3)
    w = um.array(r.standard_normal((16, 256)).astype(np.float32))
    for bits in BITS:
        for group in GROUPS:
            q = um.quantize(w, group, bits)
            back = um.dequantize(*q, group, bits)
            step = um.abs(um.repeat(q[1], group, axis=-1))
            assert um.all(um.abs(back - w) <= step * 1.001 + (0 if bits > 1 else 4)).item()
    for mode, error in (("mxfp4", 0.35), ("mxfp8", 0.07), ("nvfp4", 0.35)):
        back = um.dequantize(*um.quantize(w, mode=mode), mode=mode, dtype=um.float32)
        assert um.all(um.abs(back - w) <= error * um.abs(w) + 0.3).item()
        again = um.dequantize(*um.quantize(back, mode=mode), mode=mode, dtype=um.float32)
        assert mode == "nvfp4" or um.array_equal(again, back)
