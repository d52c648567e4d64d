"""Wrong calls of the functions of numbers of few bits. mlx does not survive some of them."""

from collections.abc import Callable
from typing import Any

import pytest
from support.harness import um

W = um.ones((3, 64))
Q = um.quantize(W)
F = um.quantize(W, mode="mxfp4")
X = um.ones((2, 64))
E = um.quantize(um.ones((3, 5, 64)))
ONE = um.array(1.0)

WRONG: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    # quantize
    (ValueError, "Only real floating types can be .* int32", lambda: um.quantize(W.astype(um.int32))),
    (ValueError, "complex64", lambda: um.quantize(W.astype(um.complex64))),
    (ValueError, "at least 2 dimensions but it has only 1", lambda: um.quantize(W[0])),
    (ValueError, "only 0", lambda: um.quantize(ONE)),
    (ValueError, r"divisible by the .* 64.*\(3, 33\)", lambda: um.quantize(um.ones((3, 33)))),
    (ValueError, "group size 16 is not supported", lambda: um.quantize(W, 16)),
    (ValueError, "bits 7 is not supported", lambda: um.quantize(W, bits=7)),
    (ValueError, "group_size: 0", lambda: um.quantize(W, 0)),
    (ValueError, "bits: 0", lambda: um.quantize(W, bits=0)),
    (ValueError, "group_size: -64", lambda: um.quantize(W, -64)),
    (ValueError, "mxfp4 quantization requires group size 32 but got 16", lambda: um.quantize(W, 16, mode="mxfp4")),
    (ValueError, "nvfp4 quantization requires bits to be 4 but got 8", lambda: um.quantize(W, bits=8, mode="nvfp4")),
    (ValueError, "Invalid quantization mode 'MXFP4'", lambda: um.quantize(W, mode="MXFP4")),
    (ValueError, "only supported for 'nvfp4'", lambda: um.quantize(W, global_scale=ONE)),
    (ValueError, "dtype float32 but got int32", lambda: um.quantize(W, mode="nvfp4", global_scale=um.array(1))),
    (ValueError, r"scalar but got shape \(2,\)", lambda: um.quantize(W, mode="nvfp4", global_scale=um.ones(2))),
    (TypeError, "quantize.*array", lambda: um.quantize([[1.0] * 64])),
    (TypeError, "mode", lambda: um.quantize(W, mode=None)),
    (TypeError, "group_size", lambda: um.quantize(W, 64.0)),
    (TypeError, "w", lambda: um.quantize(w=W)),
    # dequantize
    (ValueError, "should be given as a uint32", lambda: um.dequantize(W, *Q[1:])),
    (ValueError, "at least 2 dimension", lambda: um.dequantize(Q[0][0], *Q[1:])),
    (ValueError, "Biases must be provided", lambda: um.dequantize(*Q[:2])),
    (ValueError, "Biases must be null .*'mxfp4'", lambda: um.dequantize(*F, Q[2], mode="mxfp4")),
    (ValueError, "scales.dtype.. == int32", lambda: um.dequantize(Q[0], *(a.astype(um.int32) for a in Q[1:]))),
    (ValueError, "output dtype == int32", lambda: um.dequantize(*Q, dtype=um.int32)),
    (ValueError, "output dtype == complex64", lambda: um.dequantize(*Q, dtype=um.complex64)),
    (ValueError, "does not match the matrix", lambda: um.dequantize(Q[0], Q[1][:2], Q[2][:2])),
    (ValueError, "does not match the matrix", lambda: um.dequantize(Q[0], Q[1], Q[2][:2])),
    (ValueError, "group_size=48 and bits=4", lambda: um.dequantize(*Q, 48)),
    (ValueError, "bits: 33", lambda: um.dequantize(*Q, bits=33)),
    (ValueError, "group_size: 0", lambda: um.dequantize(*Q, 0)),
    (ValueError, "uint8 but received type float32", lambda: um.dequantize(*Q[:2], mode="mxfp8")),
    (ValueError, "Invalid quantization mode 'x'", lambda: um.dequantize(*Q, mode="x")),
    (ValueError, "only supported for 'nvfp4'", lambda: um.dequantize(*F, mode="mxfp4", global_scale=ONE)),
    # quantized_matmul
    (ValueError, "x.dtype.. == complex64", lambda: um.quantized_matmul(X.astype(um.complex64), *Q)),
    (ValueError, "x.dtype.. == int32", lambda: um.quantized_matmul(X.astype(um.int32), *F, mode="mxfp4")),
    (ValueError, "uint32 but received float32", lambda: um.quantized_matmul(X, W, *Q[1:])),
    (ValueError, "Biases must be provided", lambda: um.quantized_matmul(X, *Q[:2])),
    (ValueError, "Biases must be null", lambda: um.quantized_matmul(X, *F, Q[2], mode="mxfp4")),
    (ValueError, "same batch shape", lambda: um.quantized_matmul(X, Q[0], E[1], E[2])),
    (ValueError, "same batch shape", lambda: um.quantized_matmul(X, Q[0][0], *Q[1:])),
    (ValueError, "have the same shape", lambda: um.quantized_matmul(X, Q[0], Q[1], Q[2][:2])),
    # mlx reads beyond these scales.
    (ValueError, r"incompatible .*\(3, 8\).*\(2, 1\)", lambda: um.quantized_matmul(X, Q[0], Q[1][:2], Q[2][:2])),
    (ValueError, "bits=8", lambda: um.quantized_matmul(X, *Q, bits=8)),
    (ValueError, "bits: 0", lambda: um.quantized_matmul(X, *Q, bits=0)),
    (ValueError, r"shape \(..., 32\) .*\(64, 3\).*transpose=true", lambda: um.quantized_matmul(X[:, :32], *Q)),
    (ValueError, r"\(3, 64\).*transpose=false", lambda: um.quantized_matmul(X, *Q, transpose=False)),
    (ValueError, "groups of 16 and 4 bits", lambda: um.quantized_matmul(X, Q[0], *(um.ones((3, 4)),) * 2, group_size=16)),
    (IndexError, "at least 1 dimension", lambda: um.quantized_matmul(ONE, *Q)),
    (ValueError, r"\(4,\) and \(3,\)", lambda: um.quantized_matmul(um.ones((4, 2, 64)), *E)),
    (TypeError, "transpose", lambda: um.quantized_matmul(X, *Q, transpose=1)),
    # gather_qmm
    (ValueError, r"two dimensions .*\(64,\)", lambda: um.gather_qmm(X[0], *Q)),
    (ValueError, "Indices must be integral", lambda: um.gather_qmm(X, *E, rhs_indices=ONE)),
    (ValueError, "Indices must be integral", lambda: um.gather_qmm(X, *E, lhs_indices=um.array(True))),
    (ValueError, r"\(2,\) and \(3,\)", lambda: um.gather_qmm(X, *E, um.array([0, 0]), um.array([0, 0, 0]))),
    (ValueError, "from an empty batch", lambda: um.gather_qmm(um.ones((0, 2, 64)), *E, um.array([0]), um.array([0]))),
    (ValueError, "only supported for 'nvfp4'", lambda: um.gather_qmm(X, *E, global_scale=ONE)),
    # qqmm
    (ValueError, "first argument dtype == float64", lambda: um.qqmm(X.astype(um.float64), W)),
    (ValueError, "second argument dtype == int32", lambda: um.qqmm(X, W.astype(um.int32))),
    (ValueError, "Scales must be provided", lambda: um.qqmm(X, Q[0])),
    (ValueError, r"\(2, 32\) must match .*\(3, 64\)", lambda: um.qqmm(X[:, :32], W)),
    (ValueError, r"x.ndim.. == 2 and w.ndim.. == 3", lambda: um.qqmm(X, um.ones((2, 3, 64)))),
    (ValueError, "either both", lambda: um.qqmm(X, W, global_scale_x=ONE)),
    (ValueError, "either both", lambda: um.qqmm(X, W, global_scale_w=ONE)),
    (ValueError, "only supported for 'nvfp4'", lambda: um.qqmm(X, W, mode="mxfp8", global_scale_x=ONE, global_scale_w=ONE)),
    (ValueError, "mode 'affine'", lambda: um.qqmm(X, W, mode="affine")),
    (ValueError, "Invalid quantization mode 'x'", lambda: um.qqmm(X, W, mode="x")),
    (ValueError, "uint32 but received float32", lambda: um.qqmm(X, W, F[1], mode="mxfp4")),
    (ValueError, "Scale type must be uint8", lambda: um.qqmm(X, Q[0], Q[1], mode="mxfp4")),
    (ValueError, "incompatible", lambda: um.qqmm(X, F[0], F[1][:1], mode="mxfp4")),
    (IndexError, "at least 1 dimension", lambda: um.qqmm(ONE, W)),
    (IndexError, "at least 1 dimension", lambda: um.qqmm(X, ONE)),
    (ValueError, "2D", lambda: um.qqmm(X, W[0])),
    # gather_qqmm
    (ValueError, "Scales must be provided", lambda: um.gather_qqmm(X, Q[0])),
    (ValueError, "two dimensions", lambda: um.gather_qqmm(X[0], W)),
    (ValueError, "Indices must be integral", lambda: um.gather_qqmm(X, W, rhs_indices=ONE)),
    (ValueError, "either both", lambda: um.gather_qqmm(X, W, global_scale_x=ONE)),
    # derivatives
    (RuntimeError, "no gradient wrt the quantized weights", lambda: um.vjp(lambda w: um.quantized_matmul(X, w, *Q[1:]), [Q[0]], [um.ones((2, 3))])),
    (ValueError, "no gradient wrt scales in mxfp4", lambda: um.vjp(lambda s: um.quantized_matmul(X, F[0], s, mode="mxfp4"), [F[1]], [um.ones((2, 3))])),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(WRONG)))
def test_wrong_calls(at: int) -> None:
    kind, text, call = WRONG[at]
    with pytest.raises(kind, match=text):
        um.eval(call())
