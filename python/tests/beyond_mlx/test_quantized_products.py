"""Products with matrices of few bits against float64, in the dtypes and shapes that mlx has not, and in those it gets wrong."""

from typing import Any

import numpy as np
import pytest
from support import quantization as reference
from support.harness import to_numpy, um
from support.packed import FORMATS, Format, Packed, assert_product, made, name_of, packed, wide
from support.quantization import FLOATING, SIZES

DTYPES = ["float16", "bfloat16", "float32", "float64"]


def product(x: um.array, w: Packed, transpose: bool) -> um.array:
    return um.quantized_matmul(x, *w.parts, transpose=transpose, **w.options)


def layouts_of(x: um.array) -> dict[str, um.array]:
    """The same array in memory of other orders."""
    turned = um.contiguous(um.swapaxes(x, -1, -2)) if x.ndim > 1 else None
    return {
        "reversed": um.contiguous(x[..., ::-1])[..., ::-1],
        "stepped": um.repeat(x, 2, axis=-1)[..., ::2],
        **({} if turned is None else {"transposed": um.swapaxes(turned, -1, -2)}),
    }


# Shapes of x without its last axis, and batches of w.
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()),
    ((1,), ()),
    ((5,), ()),
    ((33,), ()),
    ((2, 3), ()),
    ((2, 1, 3), (4,)),
    ((), (3,)),
    ((2,), (3,)),
    ((3, 2), (1,)),
    ((2,), (1, 1)),
    ((0,), ()),
    ((2, 0), ()),
    ((3,), (0,)),
]


@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("format", FORMATS, ids=name_of)
@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype: str, format: Format, transpose: bool) -> None:
    r = np.random.default_rng(4)
    for rows, batch in SHAPES:
        for n in (7, 128) if transpose else (128, 256):
            k = 256 if transpose else 11
            w = packed(r, dtype, format, *batch, *((n, k) if transpose else (k, n)))
            x = made(r.standard_normal((*rows, k)), dtype)
            value, size = w.oriented(transpose)
            want, terms = wide(x) @ value, np.abs(wide(x)) @ size
            assert_product(product(x, w, transpose), want, terms, dtype, f"{rows} {batch} {n}")
    # The last ones, laid out otherwise.
    w, x = packed(r, dtype, format, 128, 128), made(r.standard_normal((3, 128)), dtype)
    value, size = w.oriented(transpose)
    want, terms = wide(x) @ value, np.abs(wide(x)) @ size
    for name, other in layouts_of(x).items():
        assert_product(product(other, w, transpose), want, terms, dtype, name)
    for name, words in layouts_of(w.words).items():
        for also, scales in layouts_of(w.scales).items():
            turned = Packed(format, words, scales, w.biases)
            assert_product(product(x, turned, transpose), want, terms, dtype, f"{name}, {also}")


def test_products_without_elements() -> None:
    """mlx divides by zero."""
    for transpose, shape, x, result in [
        (True, (0, 64), (3, 64), (3, 0)),
        (True, (5, 0), (3, 0), (3, 5)),
        (False, (0, 64), (3, 0), (3, 64)),
        (False, (5, 0), (3, 5), (3, 0)),
    ]:
        q = um.quantize(um.zeros(shape))
        got = um.quantized_matmul(um.zeros(x), *q, transpose=transpose)
        assert got.tolist() == np.zeros(result).tolist() and got.shape == result
        got = um.gather_qmm(um.zeros((2, *x)), *q, transpose=transpose)
        assert got.shape == (2, *result)


@pytest.mark.parametrize("x_dtype", [*DTYPES, "int32", "bool_"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_promoted_dtypes(dtype: str, x_dtype: str) -> None:
    """x, scales and biases are promoted; of other modes the result has the dtype of x."""
    r = np.random.default_rng(5)
    w = packed(r, dtype, ("affine", 64, 4), 6, 64)
    x = um.array(r.integers(0, 2, (3, 64))).astype(getattr(um, x_dtype))
    both = str((x[0, 0] * w.scales[0, 0]).dtype).rsplit(".", 1)[-1]
    value, size = w.oriented(True)
    # Scales that are cast are exact.
    assert_product(product(x, w, True), wide(x) @ value, np.abs(wide(x)) @ size, both)
    q = packed(r, dtype, ("mxfp4", 32, 4), 6, 64)
    if x_dtype in DTYPES:
        value, size = q.oriented(True)
        assert_product(product(x, q, True), wide(x) @ value, np.abs(wide(x)) @ size, x_dtype)


def gathered(
    x: np.ndarray, w: np.ndarray, lhs: np.ndarray | None, rhs: np.ndarray | None
) -> np.ndarray:
    """Products of chosen matrices; indices from the end, and held to the range."""

    def chosen(a: np.ndarray, indices: np.ndarray | None) -> np.ndarray:
        count = int(np.prod(a.shape[:-2]))
        flat = a.reshape(count, *a.shape[-2:])
        if indices is None:
            return a
        at = np.where(indices < 0, indices.astype(float) + count, indices.astype(float))
        return flat[np.clip(at, 0, count - 1).astype(int)]

    return chosen(x, lhs) @ chosen(w, rhs)


@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("format", FORMATS, ids=name_of)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gathered_products(dtype: str, format: Format, transpose: bool) -> None:
    r = np.random.default_rng(6)
    n, k = (6, 128) if transpose else (128, 6)
    # Of which 2688th parts are exact.
    own = [[2688, 672, 8064], [1344, 0, -5376]] if format[0] == "nvfp4" else None
    w = packed(r, dtype, format, 2, 3, *((n, k) if transpose else (k, n)), global_scale=own)
    x = made(r.standard_normal((4, 1, 5, k)), dtype)
    value, size = w.oriented(transpose)
    index = lambda *a: np.array(a, np.int64)
    for lhs, rhs in [
        (None, None),  # The batches, broadcast.
        (index([0], [3]), index(5, 5, 0)),
        (index(-1, 1), index(0, -6)),
        (index(9, -20), index(2**31, -(2**31) - 5)),
        (index(2, 2, 2, 0), index(1, 1, 4, 1)),
        (np.array(2), np.array(4)),
        (np.zeros((0,), np.int64), np.zeros((3, 1), np.int64)),
    ]:
        a = x if lhs is not None else x[:2]
        want = gathered(wide(a), value, lhs, rhs)
        terms = gathered(np.abs(wide(a)), size, lhs, rhs)
        given = [None if i is None else um.array(i, dtype=um.int64) for i in (lhs, rhs)]
        got = um.gather_qmm(
            a, *w.parts, *given, transpose=transpose, global_scale=w.global_scale, **w.options
        )
        assert_product(got, want, terms, dtype, f"{lhs} {rhs}")
    # One side in order; other dtypes of indices.
    for kind in ("uint8", "uint32", "uint64", "int8"):
        chosen = um.array([5, 0, 5, 2], dtype=getattr(um, kind))
        got = um.gather_qmm(
            x[:, 0], *w.parts, None, chosen, transpose, global_scale=w.global_scale, **w.options
        )
        flat_value, flat_size = (a.reshape(6, *a.shape[-2:])[[5, 0, 5, 2]] for a in (value, size))
        want, terms = wide(x)[:, 0] @ flat_value, np.abs(wide(x)[:, 0]) @ flat_size
        assert_product(got, want, terms, dtype, kind)


def test_indices_beyond_int32_are_out_of_bounds() -> None:
    """They are held to the range, as those of take; they do not wrap."""
    w = packed(np.random.default_rng(7), "float32", ("affine", 64, 4), 3, 2, 64)
    x = um.ones((1, 64))
    of = lambda i, kind: um.gather_qmm(x, *w.parts, None, um.array([i], dtype=kind))[0]
    for at, kind, held in [
        (2**32, um.int64, 2),
        (-(2**32), um.int64, 0),
        (2**32 - 1, um.uint32, 2),
        (2**63 + 1, um.uint64, 2),
        (200, um.uint8, 2),
        (-3, um.int8, 0),
    ]:
        assert um.array_equal(of(at, kind), of(held, um.int32)), at


# --- of rounded factors ---


@pytest.mark.parametrize("mode", FLOATING)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_products_of_rounded_factors(dtype: str, mode: str) -> None:
    """x is rounded in its dtype; mlx's CPU has one row and no global scales, and ignores these."""
    r = np.random.default_rng(8)
    group, bits = SIZES[mode]
    for own in [None, 4.0] if mode == "nvfp4" else [None]:
        scale = None if own is None else um.array(own, dtype=um.float32)
        for shape in [(64,), (1, 64), (5, 64), (2, 3, 64), (0, 64)]:
            x = made(r.standard_normal(shape), dtype)
            w = made(r.standard_normal((7, 64)), "float32")
            factors = []
            for a, kind in ((x, dtype), (w, "float32")):
                flat = to_numpy(a).reshape(-1, 64)
                parts = reference.quantize(flat, kind, group, bits, mode, own)
                value = reference.terms(*parts, group, bits, mode, own)[0]
                factors.append(value.reshape(a.shape))
            want, terms = factors[0] @ factors[1].T, np.abs(factors[0]) @ np.abs(factors[1].T)
            given: dict[str, Any] = {"mode": mode, "global_scale_x": scale, "global_scale_w": scale}
            q: Any = um.quantize(w, mode=mode, global_scale=scale)
            for got in (um.qqmm(x, *q, **given), um.qqmm(x, w, **given)):
                # A product with a global scale is no number of the dtype: x is rounded again.
                assert_product(got, want, terms * (1 if own is None else 1.5), dtype, str(shape))
            if len(shape) < 2:
                continue
            experts = um.stack([w, 2 * w, -w])
            q = um.quantize(experts, mode=mode, global_scale=scale)
            chosen = um.array([[2], [0]])
            for got in (
                um.gather_qqmm(x, *q, rhs_indices=chosen, lhs_indices=um.array([0]), **given),
                um.gather_qqmm(x, experts, rhs_indices=chosen, lhs_indices=um.array([0]), **given),
            ):
                if 0 in shape:
                    assert got.size == 0
                    continue
                one = [a.reshape(-1, *shape[-2:-1], 7)[0] for a in (want, terms)]
                signs = np.array([-1, 1]).reshape(2, 1, 1, 1)
                assert_product(
                    got,
                    signs * one[0],
                    np.broadcast_to(1.5 * one[1], signs.shape[:2] + one[1].shape),
                    dtype,
                )


def test_global_scales_of_experts() -> None:
    """One for all, or one for each."""
    r = np.random.default_rng(9)
    w = packed(r, "float32", ("nvfp4", 16, 4), 3, 4, 32)
    x = made(r.standard_normal((3, 2, 32)), "float32")
    plain = um.gather_qmm(x, *w.parts, mode="nvfp4")
    for own in ([2688.0], [2688.0, 1344.0, 0.0]):
        got = um.gather_qmm(x, *w.parts, mode="nvfp4", global_scale=um.array(own))
        want = plain * (um.array(own) / 2688).reshape(-1, 1, 1)
        assert um.allclose(got, want, rtol=1e-5, atol=1e-5)
