"""Numbers of few bits on any device: words to the bit, and products against float64.

More of them on the CPU: `beyond_mlx/test_quantized.py`.
"""

import numpy as np
import pytest
from support import quantization as reference
from support.harness import EPS, sample, to_numpy, um
from support.packed import FORMATS, Packed, assert_product, made, name_of, packed, wide

DTYPES = ["float16", "bfloat16", "float32", "float64"]
# float32 of every format, and a sample of the others.
OTHERS = [(format, dtype) for format in FORMATS for dtype in DTYPES if dtype != "float32"]
CASES = [*((format, "float32") for format in FORMATS), *sample(OTHERS, 8, "quantized")]


def case_name(of: object) -> str:
    return name_of(of) if isinstance(of, tuple) else str(of)


@pytest.mark.parametrize(("format", "dtype"), CASES, ids=case_name)
def test_there_and_back(format: tuple[str, int, int], dtype: str) -> None:
    mode, group, bits = format
    bank = reference.bank(1, rows=2)
    kinds = [
        "normal",
        "positive",
        "negative",
        "integers",
        "ties of 4 bits",
        "ties of E2M1",
        "offset",
    ]
    w = reference.rounded(np.concatenate([bank[kind] for kind in kinds]), dtype)
    want = reference.quantize(w, dtype, group, bits, mode)
    got = um.quantize(made(w, dtype), group, bits, mode)
    for a, b in zip(got, want):
        assert b is not None and np.array_equal(to_numpy(a), b)
    value, size = reference.terms(*want, group, bits, mode)
    back = um.dequantize(*got, group_size=group, bits=bits, mode=mode, dtype=getattr(um, dtype))
    assert (np.abs(wide(back) - value) <= EPS[dtype] * size + 2.0**-24).all()


@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize(("format", "dtype"), CASES, ids=case_name)
def test_products(format: tuple[str, int, int], dtype: str, transpose: bool) -> None:
    r = np.random.default_rng(1)
    for m, n, k in ((1, 7, 256), (5, 3, 128), (33, 40, 384)):
        if not transpose:
            n, k = -(-n // 128) * 128, k - 1
        w = packed(r, dtype, format, *((n, k) if transpose else (k, n)))
        x = made(r.standard_normal((m, k)), dtype)
        value, size = w.oriented(transpose)
        got = um.quantized_matmul(x, *w.parts, transpose=transpose, **w.options)
        assert_product(got, wide(x) @ value, np.abs(wide(x)) @ size, dtype, f"{m} {n} {k}")


@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize(("format", "dtype"), CASES, ids=case_name)
def test_gathered_products(format: tuple[str, int, int], dtype: str, transpose: bool) -> None:
    r = np.random.default_rng(2)
    for m, count, n, k in ((1, 9, 5, 128), (3, 4, 128, 128), (17, 2, 128, 256)):
        shape = (n, k) if transpose else (k, -(-n // 128) * 128)
        own = [2688.0, 1344.0, 672.0] if format[0] == "nvfp4" else None
        w = packed(r, dtype, format, 3, *shape, global_scale=own)
        x = made(r.standard_normal((count, m, k)), dtype)
        value, size = w.oriented(transpose)
        lhs, rhs = r.integers(-count, count, 7), r.integers(0, 3, 7)
        options = {"transpose": transpose, "global_scale": w.global_scale, **w.options}
        got = um.gather_qmm(x, *w.parts, um.array(lhs), um.array(rhs), **options)
        want, terms = wide(x)[lhs] @ value[rhs], np.abs(wide(x))[lhs] @ size[rhs]
        assert_product(got, want, terms, dtype)
        rhs = np.sort(r.integers(0, 3, count))
        got = um.gather_qmm(x, *w.parts, rhs_indices=um.array(rhs), sorted_indices=True, **options)
        assert_product(got, wide(x) @ value[rhs], np.abs(wide(x)) @ size[rhs], dtype)


@pytest.mark.parametrize("mode", reference.FLOATING)
def test_rounded_factors(mode: str) -> None:
    r = np.random.default_rng(3)
    x, w = (made(r.standard_normal(s), "float32") for s in ((5, 64), (9, 64)))
    back = lambda a: um.dequantize(*um.quantize(a, mode=mode), mode=mode, dtype=um.float32)
    want = wide(back(x)) @ wide(back(w)).T
    terms = np.abs(wide(back(x))) @ np.abs(wide(back(w))).T
    assert_product(um.qqmm(x, w, mode=mode), want, terms, "float32")
    assert_product(um.qqmm(x, *um.quantize(w, mode=mode), mode=mode), want, terms, "float32")


@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize(
    "format", [("affine", 32, 3), ("affine", 64, 4), ("mxfp8", 32, 8)], ids=name_of
)
def test_gradients(format: tuple[str, int, int], transpose: bool) -> None:
    r = np.random.default_rng(4)
    mode, group, bits = format
    n, k = (6, 64) if transpose else (64, 6)
    w: Packed = packed(r, "float32", format, 3, *((n, k) if transpose else (k, n)))
    x = made(r.standard_normal((2, 4, k)), "float32")
    lhs, rhs = np.array([0, 1, 1, 0]), np.array([2, 0, 2, 2])
    ct = made(r.standard_normal((4, 4, n)), "float32")
    f = lambda x, *parts: um.gather_qmm(
        x, w.words, *(parts or w.parts[1:]), um.array(lhs), um.array(rhs), transpose, **w.options
    )
    of = [x, w.scales, w.biases] if w.biases is not None else [x]
    got = um.vjp(f, of, [ct])[1]
    value, _ = w.oriented(transpose)
    by_x, by_w = np.zeros(x.shape), np.zeros(value.shape)
    for i, (a, b) in enumerate(zip(lhs, rhs)):
        by_x[a] += wide(ct)[i] @ value[b].T
        by_w[b] += wide(x)[a].T @ wide(ct)[i]
    assert np.allclose(wide(got[0]), by_x, rtol=1e-4, atol=1e-3)
    if mode == "affine":
        by_w = np.swapaxes(by_w, -1, -2) if transpose else by_w
        by_w = by_w.reshape(*w.scales.shape, group)
        codes = reference.unpack(np.array(w.words), bits).reshape(by_w.shape)
        assert np.allclose(wide(got[1]), (by_w * codes).sum(-1), rtol=1e-4, atol=1e-3)
        assert np.allclose(wide(got[2]), by_w.sum(-1), rtol=1e-4, atol=1e-3)
