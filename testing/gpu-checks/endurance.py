"""A training loop of many steps: device memory has to stay as it is after the first thousand.

python3 testing/gpu-checks/endurance.py [STEPS]
"""

from __future__ import annotations

import sys
import time

import ultramarine as mx


def loss(w: list[mx.array], x: mx.array, y: mx.array) -> mx.array:
    hidden = mx.maximum(x @ w[0] + w[1], 0)
    logits = hidden @ w[2] + w[3]
    return mx.mean(mx.logsumexp(logits, axis=-1) - mx.sum(logits * y, axis=-1))


def main() -> int:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    mx.set_default_device(mx.gpu)
    mx.random.seed(0)
    w = [
        mx.random.normal((64, 128)) * 0.1,
        mx.zeros((128,)),
        mx.random.normal((128, 10)) * 0.1,
        mx.zeros((10,)),
    ]
    x = mx.random.normal((256, 64))
    labels = mx.argmax(x[:, :10], axis=-1)
    y = (labels[:, None] == mx.arange(10)).astype(mx.float32)
    mx.eval(w, x, y)
    step = mx.value_and_grad(loss)
    first, after, begun = None, 0, time.monotonic()
    value = None
    for i in range(steps):
        value, gradients = step(w, x, y)
        w = [p - 0.05 * g for p, g in zip(w, gradients, strict=True)]
        mx.eval(w, value)
        if i == 0:
            first = value.item()
        if i == min(1000, steps // 10):
            mx.synchronize()
            after = mx.get_active_memory(), mx.get_active_memory() + mx.get_cache_memory()
            mx.reset_peak_memory()
    mx.synchronize()
    active, whole = mx.get_active_memory(), mx.get_active_memory() + mx.get_cache_memory()
    took = time.monotonic() - begun
    print(
        f"{steps} steps, {1e6 * took / steps:.1f} us each; loss {first:.4f} -> {value.item():.4f}"
    )
    print(
        f"active {after[0]} -> {active} bytes, with cache {after[1]} -> {whole}, peak {mx.get_peak_memory()}"
    )
    flat = active <= after[0] + (1 << 20) and whole <= after[1] + (64 << 20)
    learnt = value.item() < 0.5 * first
    print(
        "memory is flat" if flat else "MEMORY GROWS",
        "and it learnt" if learnt else "and it LEARNT NOTHING",
    )
    return 0 if flat and learnt else 1


if __name__ == "__main__":
    sys.exit(main())
