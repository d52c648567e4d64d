"""Numbers of few bits."""

from __future__ import annotations

from typing import Any

from .case import Case, case, flat, real, whole

# Words of integers, which are drawn below 2^31, and scales that are no NaN.
WORDS = {"high": 2**31 - 1}
CODES = {"low": 100, "high": 120}


def packed(um: Any, words: Any) -> Any:
    return words.astype(um.uint32)


CASES: list[Case] = [
    flat("to_fp8", lambda um, x: um.to_fp8(x), real(3)),
    flat(
        "from_fp8",
        lambda um, x: um.from_fp8(x.astype(um.uint8), um.float32),
        whole(3, high=120),
    ),
    flat("quantize", lambda um, w: um.quantize(w, 32, 3), real(2, 64)),
    flat("quantize, floats", lambda um, w: um.quantize(w, mode="mxfp8"), real(2, 64), single=True),
    flat("quantize, a global scale", lambda um, w, g: um.quantize(w, mode="nvfp4", global_scale=g), real(2, 32), real(1, low=1.0, high=2.0), single=True),
    case("dequantize", lambda um, w, s, b: um.dequantize(packed(um, w), s, b, 32, 3), whole(2, 6, **WORDS), real(2, 2), real(2, 2)),
    case("dequantize, other bits", lambda um, w, s, b: um.dequantize(packed(um, w), s, b, 16, 7), whole(2, 7, **WORDS), real(2, 2), real(2, 2)),
    flat("dequantize, floats", lambda um, w, s: um.dequantize(packed(um, w), s.astype(um.uint8), mode="mxfp4", dtype=um.float32), whole(2, 8, **WORDS), whole(2, 2, **CODES)),
    flat("dequantize, a global scale", lambda um, w, s, g: um.dequantize(packed(um, w), s.astype(um.uint8), mode="nvfp4", global_scale=g), whole(2, 4, **WORDS), whole(2, 2, **CODES), real(1, low=1.0, high=2.0), single=True),
    case("quantized_matmul", lambda um, x, w, s, b: um.quantized_matmul(x, packed(um, w), s, b, True, 32, 4), real(2, 64), whole(3, 8, **WORDS), real(3, 2), real(3, 2)),
    case("quantized_matmul, not transposed", lambda um, x, w, s, b: um.quantized_matmul(x, packed(um, w), s, b, False, 32, 1), real(2, 3), whole(3, 2, **WORDS), real(3, 2), real(3, 2)),
    case("quantized_matmul, in batches", lambda um, x, w, s, b: um.quantized_matmul(x, packed(um, w), s, b, True, 32, 3), real(2, 1, 2, 32), whole(3, 2, 3, **WORDS), real(3, 2, 1), real(3, 2, 1)),
    case("quantized_matmul, with a vector", lambda um, x, w, s, b: um.quantized_matmul(x, packed(um, w), s, b, True, 32, 2), real(32), whole(2, 2, **WORDS), real(2, 1), real(2, 1)),
    case("quantized_matmul, floats", lambda um, x, w, s: um.quantized_matmul(x, packed(um, w), s.astype(um.uint8), mode="mxfp4"), real(2, 32), whole(3, 4, **WORDS), whole(3, 1, **CODES)),
    case("gather_qmm", lambda um, x, w, s, b, i, j: um.gather_qmm(x, packed(um, w), s, b, i, j, True, 32, 4), real(2, 2, 32), whole(3, 2, 4, **WORDS), real(3, 2, 1), real(3, 2, 1), whole(4, high=2), whole(4, high=3)),
    case("gather_qmm, not transposed", lambda um, x, w, s, b, i, j: um.gather_qmm(x, packed(um, w), s, b, i, j, False, 32, 2), real(2, 2, 2), whole(3, 2, 2, **WORDS), real(3, 2, 1), real(3, 2, 1), whole(4, low=-2, high=2), whole(4, low=-3, high=3)),
    case("gather_qmm, in order", lambda um, x, w, s, b, j: um.gather_qmm(x, packed(um, w), s, b, None, j, True, 32, 4), real(2, 2, 32), whole(3, 2, 4, **WORDS), real(3, 2, 1), real(3, 2, 1), whole(2, high=3)),
    case("gather_qmm, floats", lambda um, x, w, s, i: um.gather_qmm(x, packed(um, w), s.astype(um.uint8), None, i, None, False, mode="nvfp4"), real(2, 2, 2), whole(3, 2, 2, **WORDS), whole(3, 2, 1, **CODES), whole(3, high=2)),
    # Rounding has no derivative but that of beyond_mlx/test_quantized_transforms.py.
    flat("qqmm", lambda um, x, w: um.qqmm(x, w), real(2, 32), real(3, 32), single=True),
    flat("qqmm, of words", lambda um, x, w, s: um.qqmm(x, packed(um, w), s.astype(um.uint8), mode="mxfp4"), real(2, 32), whole(3, 4, **WORDS), whole(3, 1, **CODES), single=True),
    flat("gather_qqmm", lambda um, x, w, i, j: um.gather_qqmm(x, w, None, i, j), real(2, 2, 32), real(3, 2, 32), whole(4, high=2), whole(4, high=3), single=True),
]  # fmt: skip

EXEMPT: dict[str, str] = {}
