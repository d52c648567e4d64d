"""Kernels in source form have no rules of their own."""

from __future__ import annotations

WHY = "a user's kernel: custom_function gives it rules; test_fast_kernel.py"

EXEMPT = {
    "fast.CustomKernel": WHY,
    "fast.kernel": WHY,
    "fast.metal_kernel": WHY,
    "fast.cuda_kernel": WHY,
    "fast.precompiled_cuda_kernel": "an error always",
}
