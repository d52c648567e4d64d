"""Memory that is kept, and for how long."""

import gc
import weakref

import numpy as np
import pytest
from support.memory import resident

import ultramarine as mx

MIB = 1 << 20


def test_training_keeps_its_size() -> None:
    """10,000 steps: what the second half adds to the resident size is nearly nothing."""
    x = mx.random.normal((32, 20))
    y = mx.random.normal((32, 1))
    params = {"w": mx.zeros((20, 1)), "b": mx.zeros((1,))}

    def loss(p: dict[str, mx.array]) -> mx.array:
        return mx.mean(mx.square(x @ p["w"] + p["b"] - y))

    step = mx.value_and_grad(loss)
    sizes = []
    for i in range(10_000):
        value, grads = step(params)
        params = {k: p - 0.01 * grads[k] for k, p in params.items()}
        mx.eval(params, value)
        if i in (4999, 9999):
            gc.collect()
            sizes.append((resident(), mx.get_active_memory()))
    (early, early_active), (late, late_active) = sizes
    assert late - early < 4 * MIB
    assert late_active == early_active


def test_a_chain_peaks_at_three_buffers() -> None:
    """100 elementwise operations over 64 MiB."""
    x = mx.ones((16 * MIB,), mx.float32)
    mx.eval(x)
    start = mx.get_active_memory()
    mx.reset_peak_memory()
    y = x
    for i in range(50):
        y = y * 0.999 + float(i)
    mx.eval(y)
    peak = mx.get_peak_memory() - (start - x.nbytes)
    assert peak <= 3 * 64 * MIB + MIB
    want = np.float32(1)
    for i in range(50):
        want = np.float32(want * np.float32(0.999)) + np.float32(i)
    assert abs(y[12345].item() - want) < 1e-3 * want


def test_intermediates_are_freed() -> None:
    gc.collect()
    before = mx.get_active_memory()
    x = mx.ones((4 * MIB,))
    z = (mx.exp(x) @ mx.log(x + 1)) + 1
    mx.eval(z)
    del x
    gc.collect()
    assert mx.get_active_memory() - before < MIB
    del z


def test_counters_and_cache() -> None:
    mx.clear_cache()
    assert mx.get_cache_memory() == 0
    before = mx.get_active_memory()
    x = mx.ones((8 * MIB,), mx.uint8)
    mx.eval(x)
    assert 8 * MIB <= mx.get_active_memory() - before < 9 * MIB
    assert mx.get_peak_memory() >= mx.get_active_memory()
    del x
    assert mx.get_active_memory() - before < MIB
    assert mx.get_cache_memory() >= 8 * MIB
    mx.clear_cache()
    assert mx.get_cache_memory() == 0
    old = mx.set_cache_limit(0)
    try:
        y = mx.ones((8 * MIB,), mx.uint8)
        mx.eval(y)
        del y
        assert mx.get_cache_memory() == 0
    finally:
        mx.set_cache_limit(old)


def test_a_numpy_view_keeps_the_memory() -> None:
    x = mx.arange(1000, dtype=mx.float32) * 2
    view = np.array(x, copy=False)
    del x
    gc.collect()
    for _ in range(100):
        mx.eval(mx.zeros((1000,)))  # would take the block were it free
    assert (view == np.arange(1000, dtype=np.float32) * 2).all()


def test_a_slice_keeps_only_what_it_needs_alive() -> None:
    x = mx.arange(1000) + 0
    part = x[10:20]
    mx.eval(x, part)
    del x
    assert part.tolist() == list(range(10, 20))


def test_weak_references_and_cycles() -> None:
    x = mx.ones(3)
    ref = weakref.ref(x)
    assert ref() is x
    del x
    gc.collect()
    assert ref() is None


def test_functions_in_a_cycle_are_collected() -> None:
    """A transformed function that holds itself through its closure does not leak its arrays."""
    gc.collect()
    before = mx.get_active_memory()
    for _ in range(20):
        big = mx.ones((MIB,))
        mx.eval(big)
        holder: list = []
        holder.append(mx.grad(lambda x, holder=holder, big=big: (x * big).sum()))
        mx.eval(holder[0](big))
        del holder, big
    gc.collect()
    assert mx.get_active_memory() - before < 8 * MIB


IMPOSSIBLE = {
    "tri": lambda: mx.tri(10**7, 10**9),
    "eye": lambda: mx.eye(10**8, 10**8),
    "identity": lambda: mx.identity(10**8),
    "tril": lambda: mx.tril(mx.broadcast_to(mx.array(1.0), (10**6, 10**8))),
    "outer": lambda: mx.outer(mx.arange(10**8), mx.arange(10**8)),
    "a broadcast sum": lambda: mx.arange(10**8)[:, None] + mx.arange(10**8)[None] * 2,
    "hanning": lambda: mx.hanning(10**8)[:, None] * mx.arange(10**9),
    "in the middle": lambda: mx.exp(mx.outer(mx.arange(10**8), mx.arange(10**8)))[:2, :2],
    "zeros": lambda: mx.zeros((10**8, 10**8)),
    "random": lambda: mx.random.normal((10**8, 10**8)),
    "kron": lambda: mx.kron(mx.ones(10**8), mx.arange(10**8)),
    "meshgrid": lambda: mx.meshgrid(mx.arange(10**8), mx.arange(10**8))[0] + 1,
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_sizes_are_refused_first(name: str) -> None:
    """Before anything is computed that only they need."""
    mx.clear_cache()
    mx.reset_peak_memory()
    before = mx.get_peak_memory()
    with pytest.raises(MemoryError, match=r"^\[\w+\] .*bytes"):
        mx.eval(IMPOSSIBLE[name]())
    assert mx.get_peak_memory() - before < MIB


def test_what_an_impossible_result_needs_is_still_to_be_had() -> None:
    x = mx.arange(1 << 18, dtype=mx.float32) + 1
    y = x * 2
    row = mx.broadcast_to(mx.array(3.0), (1 << 30,))
    with pytest.raises(MemoryError):
        mx.eval(y[:, None] * (row * 2)[None], y.sum())
    assert y[:3].tolist() == [2, 4, 6]
    assert (y * 2)[0].item() == 4
    # Large operands of what is small are no results.
    assert mx.sum(mx.broadcast_to(mx.array(1.0), (1 << 10, 1 << 10)) * 2).item() == 1 << 21
