"""Bytes that evaluation reads and writes, counted: fused and not."""

import numpy as np
import pytest
from support.harness import rng

import ultramarine as mx

SIZE = 512 * 512 * 4  # bytes of an operand


@pytest.fixture(params=[True, False], ids=["fused", "unfused"])
def fusing(request):
    before = mx.backends.is_fusing()
    mx.backends.set_fusion(request.param)
    yield request.param
    mx.backends.set_fusion(before)


def test_axpby_is_three_streams_fused_and_seven_unfused(fusing):
    r = rng("traffic")
    a, b = (r.standard_normal((512, 512), dtype=np.float32) for _ in range(2))
    x, y = mx.array(a), mx.array(b)
    mx.eval(x, y)
    before = mx.backends.stats()
    z = 4.0 * x + 2.0 * y
    mx.eval(z)
    after = mx.backends.stats()
    moved = after.bytes_read + after.bytes_written - before.bytes_read - before.bytes_written
    # Unfused: a product reads and writes (four in all), and the sum reads two and writes one. The two
    # constants are scalars, of one element each at the most.
    assert round(moved / SIZE, 4) == (3 if fusing else 7)
    assert after.commands - before.commands == (1 if fusing else 3)
    assert np.array_equal(np.array(z), np.float32(4) * a + np.float32(2) * b)


def test_counts_start_again():
    mx.eval(mx.ones((4,)) + mx.array([1.0, 2, 3, 4]))
    assert mx.backends.stats().commands > 0
    mx.backends.reset_stats()
    assert mx.backends.stats().bytes_written == 0
