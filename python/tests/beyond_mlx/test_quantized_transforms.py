"""Derivatives, batches and compiled functions of numbers of few bits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import quantization as reference
from support.harness import um
from support.packed import FORMATS, Format, made, name_of, packed, wide
from support.quantization import FLOATING

DTYPES = ["float16", "bfloat16", "float32", "float64"]


def calls(format: Format, transpose: bool) -> dict[str, Callable[..., um.array]]:
    """Products as functions of x, words, scales and biases."""
    mode, group, bits = format
    options: dict[str, Any] = {"group_size": group, "bits": bits, "mode": mode}
    options["transpose"] = transpose
    lhs, rhs = um.array([[0], [3], [0]]), um.array([2, 2])
    return {
        "quantized_matmul": lambda x, w, s, b=None: um.quantized_matmul(x[0], w, s, b, **options),
        "in order": lambda x, w, s, b=None: um.gather_qmm(
            x[:1], w, s, b, None, um.array([1, 0, 1]), **options
        ),
        "gather_qmm": lambda x, w, s, b=None: um.gather_qmm(x, w, s, b, lhs, rhs, **options),
    }


@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("format", FORMATS, ids=name_of)
def test_gradients(format: Format, transpose: bool) -> None:
    """By x, scales and biases, against those of products of values, in float64 and float32."""
    mode, group, bits = format
    r = np.random.default_rng(10)
    for dtype, tolerance in (("float64", 1e-12), ("float32", 2e-5), ("bfloat16", 2e-2)):
        n, k = (3, 128) if transpose else (128, 3)
        w = packed(r, dtype, format, 3, *((n, k) if transpose else (k, n)))
        x = made(r.standard_normal((4, 2, k)), dtype)
        codes = um.array(reference.unpack(np.array(w.words), bits).astype(np.float64), um.float64)
        inputs = [a.astype(um.float64) for a in (x, w.scales, w.biases) if a is not None]

        def values(s: um.array, b: um.array) -> um.array:
            each = lambda a: um.repeat(a, group, axis=-1)
            if mode == "affine":
                made_of = codes * each(s) + each(b)
            else:
                made_of = um.array(w.value, um.float64)
            return um.swapaxes(made_of, -1, -2) if transpose else made_of

        def plain(name: str, x: um.array, *parts: um.array) -> um.array:
            second = values(*parts) if mode == "affine" else values(x, x)
            if name == "quantized_matmul":
                return x[0] @ second
            if name == "in order":
                return x[:1] @ second[um.array([1, 0, 1])]
            return x[um.array([[0], [3], [0]])] @ second[um.array([2, 2])]

        for name, f in calls(format, transpose).items():
            of = [x, *((w.scales, w.biases) if mode == "affine" else ())]
            packed_f = (
                (lambda x, *parts: f(x, w.words, *parts))
                if mode == "affine"
                else (lambda x: f(x, w.words, w.scales))
            )
            wanted = inputs[: len(of)]
            ct = made(r.standard_normal(packed_f(*of).shape), dtype)
            got = um.vjp(packed_f, of, [ct])[1]
            want = um.vjp(lambda *a: plain(name, *a), wanted, [ct.astype(um.float64)])[1]
            for a, b, operand in zip(got, want, of):
                assert (a.dtype, a.shape) == (operand.dtype, operand.shape)
                scale = max(1.0, float(um.abs(b).max()))
                assert np.abs(wide(a) - wide(b)).max() <= tolerance * scale, (name, dtype)
            tangents = [made(r.standard_normal(a.shape), dtype) for a in of]
            moved = um.jvp(packed_f, of, tangents)[1][0]
            true = um.jvp(
                lambda *a: plain(name, *a), wanted, [t.astype(um.float64) for t in tangents]
            )[1][0]
            scale = max(1.0, float(um.abs(true).max()))
            assert np.abs(wide(moved) - wide(true)).max() <= tolerance * scale, (name, dtype)


def test_gradients_of_dequantize() -> None:
    r = np.random.default_rng(11)
    w = packed(r, "float64", ("affine", 32, 3), 2, 64)
    codes = reference.unpack(np.array(w.words), 3).reshape(2, 2, 32)
    ct = r.standard_normal((2, 64))
    f = lambda s, b: um.dequantize(w.words, s, b, 32, 3)
    got = um.vjp(f, [w.scales, w.biases], [made(ct, "float64")])[1]
    assert np.allclose(np.array(got[0]), (ct.reshape(2, 2, 32) * codes).sum(-1), atol=1e-12)
    assert np.allclose(np.array(got[1]), ct.reshape(2, 2, 32).sum(-1), atol=1e-12)


@pytest.mark.parametrize("mode", FLOATING)
def test_rounded_factors_have_gradients(mode: str) -> None:
    """Those of the product of the rounded factors: rounding itself counts as if it were none."""
    r = np.random.default_rng(12)
    x, w = (made(r.standard_normal(s), "float32") for s in ((3, 64), (32, 64)))
    back = lambda a: um.dequantize(*um.quantize(a, mode=mode), mode=mode, dtype=um.float32)
    ct = made(r.standard_normal((3, 32)), "float32")
    by_x, by_w = um.vjp(lambda x, w: um.qqmm(x, w, mode=mode), [x, w], [ct])[1]
    assert um.allclose(by_x, ct @ back(w), atol=1e-4)
    assert um.allclose(by_w, ct.T @ back(x), atol=1e-4)
    q: Any = um.quantize(w, mode=mode)
    by_x = um.vjp(lambda x: um.qqmm(x, *q, mode=mode), [x], [ct])[1][0]
    assert um.allclose(by_x, ct @ back(w), atol=1e-4)
    tangent = made(r.standard_normal((3, 64)), "float32")
    moved = um.jvp(lambda x: um.qqmm(x, w, mode=mode), [x], [tangent])[1][0]
    assert um.allclose(moved, tangent @ back(w).T, atol=1e-4)
    experts, chosen = um.stack([w, w * 2]), um.array([1, 1, 0])
    of = lambda x, w: um.gather_qqmm(x[:, None], w, rhs_indices=chosen, mode=mode)[:, 0]
    by_x, by_w = um.vjp(of, [x, experts], [ct])[1]
    factor = um.array([2.0, 2.0, 1.0]).reshape(3, 1)
    assert um.allclose(by_x, (ct * factor) @ back(w), atol=1e-3)
    want = um.stack([ct[2:].T @ back(x)[2:], ct[:2].T @ back(x)[:2]])
    assert um.allclose(by_w, want, atol=1e-3)
    mapped = um.vmap(lambda x: um.grad(lambda x: um.qqmm(x, w, mode=mode).sum())(x))(x)
    assert um.allclose(mapped, um.ones((3, 32)) @ back(w), atol=1e-3)


# --- other transforms ---


@pytest.mark.parametrize(
    "format", [("affine", 32, 3), ("mxfp8", 32, 8), ("nvfp4", 16, 4)], ids=name_of
)
def test_batches_are_loops(format: Format) -> None:
    """Over each operand alone and over all, where the axis is first and where it is last."""
    r = np.random.default_rng(13)
    mode, group, bits = format
    options: dict[str, Any] = {"group_size": group, "bits": bits, "mode": mode}
    w = packed(r, "float32", format, 2, 3, 5, 64)
    x = made(r.standard_normal((2, 4, 2, 64)), "float32")
    rhs = um.array([[0, 2, 2], [1, 0, 2]])
    wanted: list[um.array] = [x, w.words, w.scales, rhs]
    if w.biases is not None:
        wanted.insert(3, w.biases)

    def product(x: um.array, words: um.array, scales: um.array, *rest: um.array) -> um.array:
        biases = rest[0] if len(rest) > 1 else None
        lhs = um.array([1, 3, 0])
        return um.gather_qmm(x, words, scales, biases, lhs, rest[-1], **options)

    def matrix(x: um.array, words: um.array, scales: um.array, *rest: um.array) -> um.array:
        biases = rest[0] if len(rest) > 1 else None
        return um.quantized_matmul(
            x[0], words[0], scales[0], None if biases is None else biases[0], **options
        )

    def floats(x: um.array, words: um.array, scales: um.array, *rest: um.array) -> um.array:
        biases = rest[0] if len(rest) > 1 else None
        return um.dequantize(words, scales, biases, dtype=um.float32, **options)

    n = len(wanted)
    patterns = [(0,) * n, *(tuple(0 if i == k else None for i in range(n)) for k in range(n))]
    for f in (product, matrix, floats):
        for axes in patterns:
            for last in (False, True):
                inputs = [a if axis is not None else a[0] for a, axis in zip(wanted, axes)]
                if last:
                    inputs = [
                        um.moveaxis(a, 0, -1) if axis == 0 else a for a, axis in zip(inputs, axes)
                    ]
                in_axes = tuple((-1 if last else 0) if a == 0 else None for a in axes)
                got = um.vmap(f, in_axes=in_axes)(*inputs)
                single = lambda i: [a[i if axis == 0 else 0] for a, axis in zip(wanted, axes)]
                want = um.stack([f(*single(i)) for i in range(2)])
                assert um.allclose(got, want, rtol=1e-5, atol=1e-5), (f.__name__, axes)


def test_batches_with_global_scales() -> None:
    r = np.random.default_rng(14)
    w = packed(r, "float32", ("nvfp4", 16, 4), 2, 3, 32)
    own = um.array([2.0, 300.0])
    f = lambda words, scales, g: um.dequantize(words, scales, mode="nvfp4", global_scale=g)
    each = um.stack([f(w.words[i], w.scales[i], own[i]) for i in range(2)])
    assert um.allclose(um.vmap(f)(w.words, w.scales, own), each)
    shared = um.stack([f(w.words[i], w.scales[i], own[1]) for i in range(2)])
    assert um.allclose(um.vmap(f, in_axes=(0, 0, None))(w.words, w.scales, own[1]), shared)
    alone = um.stack([f(w.words[0], w.scales[0], own[i]) for i in range(2)])
    assert um.allclose(um.vmap(f, in_axes=(None, None, 0))(w.words[0], w.scales[0], own), alone)
    x = made(r.standard_normal((2, 4, 32)), "float32")
    g = lambda x, o: um.gather_qmm(x, *w.parts, mode="nvfp4", global_scale=o)
    both = um.array([[2.0, 300.0], [4.0, 5.0]])
    want = um.stack([g(x[i][None], both[i]) for i in range(2)])
    assert um.allclose(um.vmap(g)(x[:, None], both), want, rtol=1e-5)
    q = lambda w, o: um.quantize(w, mode="nvfp4", global_scale=o)
    for got, want in zip(um.vmap(q)(x, own), zip(*(q(x[i], own[i]) for i in range(2)))):
        assert um.array_equal(got, um.stack(list(want)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("format", FORMATS, ids=name_of)
def test_compiled_to_the_bit(format: Format, dtype: str) -> None:
    mode, group, bits = format
    options: dict[str, Any] = {"group_size": group, "bits": bits, "mode": mode}
    r = np.random.default_rng(15)
    w = um.array(r.standard_normal((6, 128)).astype(np.float32)).astype(getattr(um, dtype))
    quantize = lambda w: um.quantize(w, **options)
    back = lambda *q: um.dequantize(*q, dtype=getattr(um, dtype), **options)
    q: Any = quantize(w)
    for a, b in zip(um.compile(quantize)(w), q):
        assert um.array_equal(a, b)
    assert um.array_equal(um.compile(back)(*q), back(*q))
    # Elementwise operations before and behind.
    both = um.compile(lambda w: back(*quantize(w * 0.5 + 1)) * 2 + 1)
    assert um.array_equal(both(w), back(*quantize(w * 0.5 + 1)) * 2 + 1)


@pytest.mark.parametrize("format", FORMATS, ids=name_of)
def test_compiled_for_other_sizes(format: Format) -> None:
    mode, group, bits = format
    r = np.random.default_rng(16)
    options: dict[str, Any] = {"group_size": group, "bits": bits, "mode": mode}
    w = um.array(r.standard_normal((6, 128)).astype(np.float32))
    quantize = lambda w: um.quantize(w, **options)
    q: Any = quantize(w)
    back = lambda *q: um.dequantize(*q, **options)
    f = lambda x: um.quantized_matmul(x, *q, **options)
    compiled = um.compile(f, shapeless=True)
    for shape in ((3, 128), (1, 128), (7, 128)):
        x = made(r.standard_normal(shape), "float32")
        assert um.allclose(compiled(x), f(x), rtol=1e-5, atol=1e-5)
    compiled = um.compile(f, shapeless=True)
    for shape in ((2, 3, 128), (1, 5, 128)):
        x = made(r.standard_normal(shape), "float32")
        assert um.allclose(compiled(x), f(x), rtol=1e-5, atol=1e-5)
    rows = um.compile(lambda w: back(*quantize(w)), shapeless=True)
    for shape in ((6, 128), (2, 128), (9, 128)):
        w = made(r.standard_normal(shape), "float32")
        assert um.array_equal(rows(w), back(*quantize(w)))
    rows = um.compile(lambda w: back(*quantize(w)), shapeless=True)
    for shape in ((2, 3, 128), (1, 5, 128), (4, 1, 128)):
        w = made(r.standard_normal(shape), "float32")
        assert um.array_equal(rows(w), back(*quantize(w)))
