"""Kernels in source form: operations of your own on devices, without building anything; and parts of layers.

The guide to kernels is docs/kernels.md.
"""

from ultramarine import _core

__all__ = [
    "CustomKernel",
    "ForeignKernel",
    "cross_entropy",
    "cuda_kernel",
    "foreign_kernel",
    "gated_delta_update",
    "kernel",
    "layer_norm",
    "metal_kernel",
    "precompiled_cuda_kernel",
    "precompiled_kernel",
    "rms_norm",
    "rope",
    "scaled_dot_product_attention",
]

CustomKernel = _core._fast.CustomKernel
ForeignKernel = _core._fast.ForeignKernel
cross_entropy = _core._fast.cross_entropy
cuda_kernel = _core._fast.cuda_kernel
foreign_kernel = _core._fast.foreign_kernel
gated_delta_update = _core._fast.gated_delta_update
kernel = _core._fast.kernel
layer_norm = _core._fast.layer_norm
metal_kernel = _core._fast.metal_kernel
precompiled_kernel = _core._fast.precompiled_kernel
precompiled_cuda_kernel = precompiled_kernel  # as MLX calls it
rms_norm = _core._fast.rms_norm
rope = _core._fast.rope
scaled_dot_product_attention = _core._fast.scaled_dot_product_attention
