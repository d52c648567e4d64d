"""jax: immutable arrays, which it copies when they are not aligned to its taste."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.capsules import address, header
from support.libraries import module

import ultramarine as mx

pytest.importorskip("jax", reason="jax is not installed")
jax: Any = module("jax")
jnp: Any = module("jax.numpy")


def test_both_ways_without_a_copy() -> None:
    x = mx.arange(8, dtype=mx.float32)
    mx.eval(x)
    there = jnp.from_dlpack(x)
    assert there.unsafe_buffer_pointer() == address(x)
    back = mx.from_dlpack(there)
    assert address(back) == address(x)


def test_its_arrays_do_not_change() -> None:
    """jax has no flag in what it exports, so that ours is not marked; but nothing of ours writes there."""
    there = jnp.arange(4.0, dtype=jnp.float32)
    x = mx.from_dlpack(there)
    x[0] = 9
    x += 1
    x = x * 2
    assert x.tolist() == [20, 4, 6, 8]
    assert there.tolist() == [0, 1, 2, 3]


def test_transposed_is_shared() -> None:
    x = mx.arange(6, dtype=mx.float32).reshape(2, 3)
    mx.eval(x)
    there = jnp.from_dlpack(x.T)
    assert there.tolist() == x.T.tolist()
    assert there.unsafe_buffer_pointer() == address(x)


def test_its_alignment() -> None:
    """Memory that does not start at 64 bytes is copied by jax, or refused if it may not."""
    x = mx.arange(32, dtype=mx.float32)
    mx.eval(x)
    assert address(x) % 64 == 0
    assert jnp.from_dlpack(x[16:]).unsafe_buffer_pointer() == address(x) + 64
    assert jnp.from_dlpack(x[1:]).tolist() == list(range(1, 32))
    with pytest.raises(ValueError, match="aligned"):
        jnp.from_dlpack(x[1:], copy=False)
    assert jnp.from_dlpack(x, copy=False).unsafe_buffer_pointer() == address(x)


def test_strides_that_it_refuses() -> None:
    x = mx.arange(6, dtype=mx.float32)
    for view in (x[::-1], x[::2], mx.broadcast_to(x, (2, 6))):
        with pytest.raises(Exception, match="trivial"):
            jnp.from_dlpack(view)
        assert jnp.from_dlpack(mx.contiguous(view)).tolist() == view.tolist()


def test_work_that_is_not_done_yet() -> None:
    """jax runs ahead; its capsule waits for the values."""
    big = jnp.ones((500, 500))
    later = big
    for _ in range(5):
        later = later @ big / 500
    x = mx.from_dlpack(later)
    assert abs(x[3, 7].item() - 1) < 1e-6


def test_compiled_function_on_our_memory() -> None:
    x = mx.arange(8, dtype=mx.float32)
    square = jax.jit(lambda v: v * v)
    assert mx.from_dlpack(square(jnp.from_dlpack(x))).tolist() == [i * i for i in range(8)]


def test_keys_and_tracers_are_refused() -> None:
    with pytest.raises(TypeError, match="PRNGKeyArray"):
        mx.from_dlpack(jax.random.key(0))
    with pytest.raises(Exception, match=r"[Tt]race"):
        jax.jit(lambda v: mx.from_dlpack(v))(jnp.zeros(3))


def test_four_bit_integers_are_its_error() -> None:
    with pytest.raises(Exception, match="S4"):
        mx.from_dlpack(jnp.zeros(4, jnp.int4))


def test_deleted_arrays() -> None:
    """An array that jax deleted has no memory; one that is exported keeps it."""
    there = jnp.arange(4.0, dtype=jnp.float32)
    x = mx.from_dlpack(there)
    there.delete()
    assert x.tolist() == [0, 1, 2, 3]
    with pytest.raises(Exception, match="deleted"):
        mx.from_dlpack(there)


def test_read_only_arrays_cannot_be_given() -> None:
    """jax asks for a capsule without a version, which cannot say that the memory is read-only."""
    held = np.arange(4, dtype=np.float32)
    held.setflags(write=False)
    x = mx.from_dlpack(held)
    with pytest.raises(BufferError, match="read-only"):
        jnp.from_dlpack(x)
    assert jnp.asarray(np.from_dlpack(x)).tolist() == [0, 1, 2, 3]


def test_devices() -> None:
    there = jnp.from_dlpack(mx.zeros(3), device=jax.devices("cpu")[0])
    assert there.tolist() == [0, 0, 0]
    assert header(there).device == (1, 0)
