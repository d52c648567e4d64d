"""Memory that results take: of operands that nobody needs any more, and none for views of constants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.harness import rng

import ultramarine as mx

ROWS, COLUMNS = 512, 1024
COUNT = ROWS * COLUMNS
# Sums over rows, and what the allocator rounds up.
SLACK = 64 << 10


def numbers(dtype: mx.Dtype = mx.float32) -> mx.array:
    data = rng("reused").standard_normal((ROWS, COLUMNS), dtype=np.float32)
    x = mx.array(data).astype(dtype)
    mx.eval(x)
    return x


def taken(f: Callable[[], mx.array]) -> tuple[mx.array, int]:
    """What a function gives, computed, and the most memory that was in use meanwhile beyond what is before."""
    mx.clear_cache()
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    out = f()
    mx.eval(out)
    return out, mx.get_peak_memory() - before


def commands(f: Callable[[], mx.array]) -> tuple[mx.array, int, int]:
    """What a function gives, computed, with the commands that were run and the bytes that these wrote."""
    before = mx.backends.stats()
    out = f()
    mx.eval(out)
    after = mx.backends.stats()
    return out, after.commands - before.commands, after.bytes_written - before.bytes_written


def test_a_broadcast_constant_takes_one_element() -> None:
    for make in (mx.array, lambda v: mx.full((40000, 1), v)):
        one = make(0.0)
        whole, bytes_ = taken(lambda one=one: mx.broadcast_to(one, (40000, 40000)))
        assert bytes_ < 1 << 20
        assert (whole.shape, whole.dtype) == ((40000, 40000), mx.float32)
        assert whole[39999, 12345].item() == 0
        # Its views, and what is made of it.
        part, bytes_ = taken(lambda whole=whole: whole.T[3:, 5:].reshape(-1)[:COUNT])
        assert bytes_ < 1 << 20
        np.testing.assert_array_equal(np.array(part + 1), np.ones(COUNT, np.float32))


def test_broadcast_constants_keep_their_values() -> None:
    for dtype in (mx.bool_, mx.int8, mx.float16, mx.int64, mx.complex64):
        x = mx.broadcast_to(mx.full((1,), 1, dtype=dtype), (3, 4))
        assert np.array(x).tolist() == [[1] * 4] * 3
        assert mx.sum(x.astype(mx.float32)).item() == 12
        x[1] = mx.zeros((4,), dtype)
        assert np.array(x)[:, 0].tolist() == [1, 0, 1]
    assert mx.broadcast_to(mx.array(2.0), (0, 3)).tolist() == []
    y = mx.broadcast_to(mx.array(2.0), (64, 64)) @ mx.ones((64, 2))
    assert y.tolist() == [[128, 128]] * 64
    assert mx.sort(mx.broadcast_to(mx.array(3), (2, 2)))[0, 1].item() == 3


@pytest.mark.parametrize("view", ["slice", "transpose", "reshape", "row"])
@pytest.mark.parametrize("make", [mx.zeros, mx.ones, lambda shape: mx.full(shape, 2.5)])
def test_views_of_a_constant_with_memory_are_views(
    view: str, make: Callable[..., mx.array]
) -> None:
    views: dict[str, Callable[[mx.array], mx.array]] = {
        "slice": lambda a: a[1:, ::2],
        "transpose": lambda a: a.T,
        "reshape": lambda a: a.reshape(-1, ROWS),
        "row": lambda a: a[3],
    }
    whole = make((ROWS, COLUMNS))
    mx.eval(whole)
    out, count, written = commands(lambda: views[view](whole))
    assert (count, written) == (0, 0)
    np.testing.assert_array_equal(np.array(out), np.array(views[view](whole + 0)))


@pytest.mark.parametrize("operation", ["exp", "add", "compare"])
def test_the_memory_of_a_dead_constant_is_reused(operation: str) -> None:
    x = numbers()
    operations: dict[str, Callable[[mx.array], mx.array]] = {
        "exp": mx.exp,
        "add": lambda a: a + x,
        "compare": lambda a: mx.where(x > 0, a, x),
    }
    z = mx.ones((ROWS, COLUMNS))
    mx.eval(z)
    mx.clear_cache()
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    z = operations[operation](z)
    mx.eval(z)
    assert mx.get_peak_memory() - before <= SLACK
    want = operations[operation](mx.array(np.ones((ROWS, COLUMNS), np.float32)))
    np.testing.assert_array_equal(np.array(z), np.array(want))


def test_the_memory_of_a_constant_in_use_is_not() -> None:
    z = mx.zeros((ROWS, COLUMNS))
    row = z[3]
    mx.eval(z, row)
    kept = z
    z = mx.exp(z)
    mx.eval(z)
    assert (kept[5, 5].item(), row[5].item(), z[3, 5].item()) == (0, 0, 1)
    exported = np.asarray(kept)
    del kept
    w = mx.zeros((ROWS, COLUMNS))
    mx.eval(w)
    seen = np.asarray(w)
    w = mx.exp(w) + mx.cos(w)
    mx.eval(w)
    assert not seen.any() and not exported.any() and w[1, 1].item() == 2


def test_softmax_of_a_temporary_takes_its_memory() -> None:
    x = numbers()
    want = mx.softmax(x, axis=-1)
    mx.eval(want)
    out, bytes_ = taken(lambda: mx.softmax(x * 1.0 + 0.0, axis=-1))
    assert bytes_ <= 4 * COUNT + SLACK
    np.testing.assert_array_equal(np.array(out), np.array(want))
    for axis in (0, -1, (0, 1)):
        wide, bytes_ = taken(lambda axis=axis: mx.softmax(mx.tanh(x), axis=axis))
        assert bytes_ <= 4 * COUNT + SLACK
        np.testing.assert_array_equal(
            np.array(wide), np.array(mx.softmax(mx.array(np.array(mx.tanh(x))), axis=axis))
        )


@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16])
def test_precise_softmax_widens_no_array(dtype: mx.Dtype) -> None:
    x = numbers(dtype)
    for axis in (0, -1):
        out, bytes_ = taken(lambda axis=axis: mx.softmax(x, axis=axis, precise=True))
        assert bytes_ <= 2 * COUNT + SLACK
        want = mx.softmax(x.astype(mx.float32), axis=axis).astype(dtype)
        np.testing.assert_array_equal(
            np.array(out.astype(mx.float32)), np.array(want.astype(mx.float32))
        )


def test_casts_of_one_size_take_their_operands_memory() -> None:
    x = numbers()
    square = x @ x.T
    mx.eval(square)
    want = np.array(square).astype(np.int32)
    out, bytes_ = taken(lambda: (x @ x.T).astype(mx.int32))
    assert bytes_ <= 4 * ROWS * ROWS + SLACK
    np.testing.assert_array_equal(np.array(out), want)


def test_a_product_with_one_row_copies_no_matrix() -> None:
    words = mx.array(rng("words").standard_normal((51865, 64), dtype=np.float32))
    h = mx.array(rng("state").standard_normal((1, 64), dtype=np.float32))
    mx.eval(words, h)
    for one in (h, h[0], h.reshape(1, 1, 64)):
        _, bytes_ = taken(lambda one=one: one @ words.T)
        assert bytes_ <= 4 * 51865 + SLACK
