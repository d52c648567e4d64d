"""Layers and their gradients: attention beside torch's FLASH backend, and convolutions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import ultramarine as mx
from bench.gpu.clock import seconds
from bench.gpu.timing import close, pair, row, theirs, torch


def both(
    name: str,
    forward: tuple[Callable[..., mx.array], Callable[..., Any]],
    operands: list[tuple[mx.array, Any]],
    cotangent: tuple[mx.array, Any],
    rtol: float,
) -> None:
    """Rows of a function's result and of its gradient by all operands: here what both take, less the result alone."""
    mine, other = [x for x, _ in operands], [t for _, t in operands]

    def with_gradient() -> list[mx.array]:
        results, gradients = mx.vjp(forward[0], mine, [cotangent[0]])
        return results + gradients

    def step() -> None:
        mx.async_eval(with_gradient())

    result = gradient = None
    if torch is not None:
        leaves = [t.detach().requires_grad_() for t in other]
        result = forward[1](*leaves)
        gradient = theirs(
            lambda: torch.autograd.grad(result, leaves, cotangent[1], retain_graph=True)
        )
        wanted = torch.autograd.grad(result, leaves, cotangent[1], retain_graph=True)
        for got, want in zip(with_gradient(), [result.detach(), *wanted], strict=True):
            close(name, got, want, rtol)
    alone = seconds(lambda: mx.async_eval(forward[0](*mine)), mx.synchronize)
    whole = seconds(step, mx.synchronize)
    row("layers", name, alone, theirs(lambda: forward[1](*other)))
    row("layers", f"{name}, gradient", whole - alone, gradient)


def attention(b: int, h: int, s: int, d: int, causal: bool = True) -> None:
    flash = contextlib.nullcontext()
    if torch is not None:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        flash = sdpa_kernel(SDPBackend.FLASH_ATTENTION)
    operands = [pair((b, h, s, d), "bfloat16", seed) for seed in range(4)]

    def mine(q: mx.array, k: mx.array, v: mx.array) -> mx.array:
        mask = "causal" if causal else None
        return mx.fast.scaled_dot_product_attention(q, k, v, scale=d**-0.5, mask=mask)

    def other(q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    name = f"attention {b}x{h}x{s}x{d} bfloat16{', causal' if causal else ''}"
    with flash:
        both(name, (mine, other), operands[:3], operands[3], 2e-2)


def convolution(n: int, side: int, channels: int, dtype: str) -> None:
    x, w, ct = (
        pair(shape, dtype, seed)
        for seed, shape in enumerate(
            [(n, side, side, channels), (channels, 3, 3, channels), (n, side, side, channels)]
        )
    )

    def mine(x: mx.array, w: mx.array) -> mx.array:
        return mx.conv2d(x, w, padding=1)

    def other(x: Any, w: Any) -> Any:  # channels last, as here
        y = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), padding=1)
        return y.permute(0, 2, 3, 1)

    name = f"conv2d 3x3, {n}x{side}x{side}x{channels} {dtype}"
    both(name, (mine, other), [x, w], ct, 2e-2 if dtype == "bfloat16" else 1e-4)


def layers() -> None:
    attention(4, 16, 2048, 128)
    attention(8, 16, 4096, 128)
    attention(8, 16, 4096, 128, causal=False)
    if torch is not None:
        torch.backends.cudnn.allow_tf32 = False
    for side, channels in [(56, 64), (28, 128), (14, 512)]:
        convolution(32, side, channels, "bfloat16")
    convolution(32, 56, 64, "float32")
