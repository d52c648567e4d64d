"""Kernels in source form: operations of your own on devices, without building anything.

The guide is docs/kernels.md.
"""

from ultramarine import _core

__all__ = ["CustomKernel", "cuda_kernel", "kernel", "metal_kernel", "precompiled_cuda_kernel"]

CustomKernel = _core._fast.CustomKernel
cuda_kernel = _core._fast.cuda_kernel
kernel = _core._fast.kernel
metal_kernel = _core._fast.metal_kernel
precompiled_cuda_kernel = _core._fast.precompiled_cuda_kernel
