"""Kernels in source form on gpu:0, for tests of a backend that takes a language."""

from __future__ import annotations

from typing import Any

import numpy as np

import ultramarine as mx

GPU = mx.Device(mx.gpu, 0)


def make(
    language: str, body: str, inputs: str = "x", outputs: str = "y", **how: Any
) -> mx.fast.CustomKernel:
    return mx.fast.kernel("mine", inputs.split(), outputs.split(), source={language: body}, **how)


def run(kernel: mx.fast.CustomKernel, *inputs: Any, **how: Any) -> mx.array:
    shape = how.pop("shape", getattr(inputs[0], "shape", ()) if inputs else ())
    n = int(np.prod(shape))
    usual: dict[str, Any] = {
        "grid": (n, 1, 1),
        "threadgroup": (64, 1, 1),
        "output_shapes": [shape],
        "output_dtypes": [mx.float32],
        "stream": GPU,
    }
    (out,) = kernel(inputs=list(inputs), **{**usual, **how})
    return out
