"""A cache that grows by a row each step: what a step writes is the row, wherever the offset comes from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ultramarine as mx

pytestmark = pytest.mark.ops

SHAPE = (1, 4, 256, 16)
ROW = 4 * 4 * 16  # bytes
STEPS = 100


def by_array(cache: mx.array, row: mx.array, i: int) -> mx.array:
    return mx.slice_update(cache, row, mx.array([i]), (2,))


def by_all_starts(cache: mx.array, row: mx.array, i: int) -> mx.array:
    return mx.slice_update(cache, row, mx.array([0, 0, i, 0]), (0, 1, 2, 3))


def by_number(cache: mx.array, row: mx.array, i: int) -> mx.array:
    cache[..., i : i + 1, :] = row
    return cache


def added(cache: mx.array, row: mx.array, i: int) -> mx.array:
    return cache.at[..., i : i + 1, :].add(row)


compiled = mx.compile(lambda cache, row, at: mx.slice_update(cache, row, at, (2,)))
shapeless = mx.compile(lambda cache, row, at: mx.slice_update(cache, row, at, (2,)), shapeless=True)


def by_compiled(cache: mx.array, row: mx.array, i: int) -> mx.array:
    return compiled(cache, row, mx.array([i]))


def by_shapeless(cache: mx.array, row: mx.array, i: int) -> mx.array:
    return shapeless(cache, row, mx.array([i]))


# Bytes beside the row: a sum is made before it is written.
@pytest.mark.parametrize(
    ("step", "beside"),
    [
        (by_array, 0),
        (by_all_starts, 0),
        (by_compiled, 0),
        (by_shapeless, 0),
        (by_number, 0),
        (added, ROW),
    ],
)
def test_a_step_writes_its_row(step: Callable[..., mx.array], beside: int) -> None:
    row = mx.array(np.arange(64, dtype=np.float32).reshape(1, 4, 1, 16)) + 0
    cache = mx.zeros(SHAPE) + 0
    # Kernels may be compiled beside the first steps.
    for i in range(3):
        cache = step(cache, row, i)
        mx.eval(cache)
    mx.synchronize()
    mx.backends.reset_stats()
    for i in range(3, STEPS + 3):
        cache = step(cache, row, i)
        mx.eval(cache)
    mx.synchronize()
    stats = mx.backends.stats()
    if step in (by_number, added) and mx.device_info(mx.default_device())["backend"] == "cuda":
        # A device that records commands has the place from memory, for which it is written there.
        beside += 4
    assert stats.bytes_written == STEPS * (ROW + beside)
    assert stats.donations >= STEPS
    want = np.zeros(SHAPE, np.float32)
    want[:, :, : STEPS + 3] = np.array(row)
    assert np.array_equal(np.array(cache), want)


def test_a_cache_that_is_kept_is_copied() -> None:
    kept = mx.zeros(SHAPE) + 1
    mx.eval(kept)
    for step in (by_array, by_number):
        other = mx.array(kept) if step is by_number else kept
        changed = step(other, mx.zeros((1, 4, 1, 16)), 7)
        assert changed.sum().item() == kept.size - 64
        assert kept.sum().item() == kept.size


def test_a_window_is_read_alone() -> None:
    cache = mx.array(np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)) + 0
    mx.eval(cache)
    start = mx.array([9]) + 0
    mx.eval(start)
    mx.synchronize()
    mx.backends.reset_stats()
    part = mx.slice(cache, start, (2,), (1, 4, 2, 16))
    mx.eval(part)
    mx.synchronize()
    assert mx.backends.stats().bytes_written == 2 * ROW
    assert np.array_equal(np.array(part), np.array(cache)[:, :, 9:11])


def test_starts_are_held_to_the_array() -> None:
    x = mx.arange(10)
    for dtype in (mx.int8, mx.int32, mx.int64):
        assert mx.slice(x, mx.array([-3], dtype), (0,), (4,)).tolist() == [0, 1, 2, 3]
        assert mx.slice(x, mx.array([8], dtype), (0,), (4,)).tolist() == [6, 7, 8, 9]
        update = mx.array([50, 51])
        assert mx.slice_update(x, update, mx.array([99], dtype), (0,)).tolist()[-3:] == [7, 50, 51]
        assert mx.slice_update(x, update, mx.array([-99], dtype), (0,)).tolist()[:3] == [50, 51, 2]
    assert mx.slice(x, mx.array([2**64 - 1], mx.uint64), (0,), (2,)).tolist() == [8, 9]


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16])
@pytest.mark.parametrize("traditional", [False, True])
@pytest.mark.parametrize("value_size", [16, 24])
def test_keys_and_values_grow_side_by_side(
    dtype: mx.Dtype, traditional: bool, value_size: int
) -> None:
    """A backend may turn queries and keys, and write keys and values, by one launch each."""
    heads, shared, size, steps = 6, 2, 16, 12
    g = np.random.default_rng(3)
    rows = [
        [
            mx.array(g.normal(size=(1, n, 1, d)).astype(np.float32)).astype(dtype)
            for _ in range(steps)
        ]
        for n, d in ((heads, size), (shared, size), (shared, value_size))
    ]
    keys, values = (mx.zeros((1, shared, 64, d), dtype) + 0 for d in (size, value_size))
    mx.eval(rows)

    def rotated(x: mx.array, i: int) -> mx.array:
        return mx.fast.rope(x, size, traditional=traditional, base=100.0, scale=1.0, offset=i)

    for i in range(steps):
        q, k, v = (row[i] for row in rows)
        at = mx.array([i])
        keys = mx.slice_update(keys, rotated(k, i), at, (2,))
        values = mx.slice_update(values, v, at, (2,))
        turned = rotated(q, i)
        mx.eval(turned, keys, values)
    for i in range(steps):
        # Each alone, in float64 of numpy.
        angles = i * 100.0 ** (-np.arange(0, size, 2) / size)
        for x, got in (
            (rows[1][i], keys[:, :, i]),
            *((rows[0][i], turned[:, :, 0]),) * (i == steps - 1),
        ):
            x64 = np.array(x.astype(mx.float32), np.float64)[:, :, 0]
            a, b = (x64[..., 0::2], x64[..., 1::2]) if traditional else (x64[..., :8], x64[..., 8:])
            pair = a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)
            want = (
                np.stack(pair, -1).reshape(x64.shape) if traditional else np.concatenate(pair, -1)
            )
            np.testing.assert_allclose(
                np.array(got.astype(mx.float32)), want, atol=2e-2 if dtype == mx.bfloat16 else 1e-5
            )
        assert mx.array_equal(values[:, :, i], rows[2][i][:, :, 0])
    assert not values[:, :, steps:].any().item()
