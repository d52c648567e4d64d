"""Softmax, norms, rotary positions, attention, gated delta and cross entropy. Kernels in source form have no rules of their own."""

from __future__ import annotations

from typing import Any

from .case import Case, case, real, truth, whole


def rope(um: Any, x: Any, *freqs: Any, **how: Any) -> Any:
    how = {"traditional": False, "base": None if freqs else 50.0, "scale": 0.5, "offset": 3} | how
    return um.fast.rope(x, 4, **how, freqs=freqs[0] if freqs else None)


def attention(um: Any, q: Any, k: Any, v: Any, mask: Any = None, sinks: Any = None) -> Any:
    return um.fast.scaled_dot_product_attention(q, k, v, scale=0.7, mask=mask, sinks=sinks)


# Two query heads for each of two key heads, and values of another size.
QUERIES, KEYS, VALUES = real(1, 4, 3, 2), real(1, 2, 4, 2), real(1, 2, 4, 3)

CASES: list[Case] = [
    case("softmax", lambda um, x: um.softmax(x, 1), real(2, 3, 2, low=0.3, high=1.5)),
    case("fast.rope", rope, real(2, 3, 4)),
    case("fast.rope, neighbours", lambda um, x: rope(um, x, traditional=True), real(2, 3, 5)),
    case("fast.rope, frequencies", rope, real(2, 1, 3, 4), real(2, low=1.0, high=3.0)),
    case("fast.rms_norm", lambda um, x, w: um.fast.rms_norm(x, w, 1e-2), real(2, 5), real(5)),
    case(
        "fast.rms_norm, without a weight", lambda um, x: um.fast.rms_norm(x, None, 1e-2), real(2, 5)
    ),
    case(
        "fast.layer_norm",
        lambda um, x, w, b: um.fast.layer_norm(x, w, b, 1e-2),
        real(2, 5),
        real(5),
        real(5),
    ),
    case(
        "fast.layer_norm, without a weight",
        lambda um, x, b: um.fast.layer_norm(x, None, b, 1e-2),
        real(2, 5),
        real(5),
    ),
    case("fast.scaled_dot_product_attention", attention, QUERIES, KEYS, VALUES),
    case(
        "fast.scaled_dot_product_attention, causal",
        lambda um, q, k, v: attention(um, q, k, v, "causal"),
        QUERIES,
        KEYS,
        VALUES,
    ),
    case(
        "fast.scaled_dot_product_attention, more queries than keys",
        lambda um, q, k, v: attention(um, q, k, v, "causal"),
        real(1, 1, 4, 2),
        real(1, 1, 2, 2),
        real(1, 1, 2, 2),
    ),
    case(
        "fast.scaled_dot_product_attention, a mask",
        attention,
        QUERIES,
        KEYS,
        VALUES,
        truth(3, 4),
    ),
    case(
        "fast.scaled_dot_product_attention, numbers and sinks",
        attention,
        QUERIES,
        KEYS,
        VALUES,
        real(4, 1, 4),
        real(4),
    ),
    case(
        "fast.gated_delta_update",
        lambda um, *x: um.fast.gated_delta_update(*x),
        real(1, 3, 1, 2),
        real(1, 3, 1, 2, low=-0.6, high=0.6),
        real(1, 3, 2, 2),
        real(1, 3, 2, low=0.2, high=0.9),
        real(1, 3, 2, low=0.2, high=0.9),
        real(1, 2, 2, 2),
    ),
    case(
        "fast.gated_delta_update, a mask",
        lambda um, *x: um.fast.gated_delta_update(*x[:5], None, x[5]),
        real(1, 3, 1, 2),
        real(1, 3, 1, 2, low=-0.6, high=0.6),
        real(1, 3, 1, 2),
        real(1, 3, 1, low=0.2, high=0.9),
        real(1, 3, 1, low=0.2, high=0.9),
        truth(1, 3),
    ),
    case(
        "fast.cross_entropy",
        lambda um, x, y: um.fast.cross_entropy(x, y),
        real(2, 3, 5),
        whole(2, 3, high=5),
        single=True,
    ),
]

WHY = "a user's kernel: custom_function gives it rules; backends/test_kernels.py"

EXEMPT = {
    "fast.CustomKernel": WHY,
    "fast.kernel": WHY,
    "fast.metal_kernel": WHY,
    "fast.cuda_kernel": WHY,
    "fast.precompiled_cuda_kernel": WHY,
    "fast.precompiled_kernel": WHY,
    "fast.foreign_kernel": WHY,
    "fast.ForeignKernel": WHY,
}
