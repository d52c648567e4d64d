"""What we do otherwise than mlx on purpose; differences.py names the cases left out there."""

import numpy as np
import pytest

import ultramarine as mx


@pytest.mark.parametrize("dtype", ["i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_other_byte_order(dtype: str) -> None:
    data = np.arange(-3, 9).reshape(3, 4).astype(f">{dtype}")
    for part in (data, data.T, data[::2, ::-1]):
        assert (np.array(mx.array(part)) == part).all()


def test_full_has_the_dtype_asked_for() -> None:
    made = mx.full((2,), 3.7, mx.int16)
    assert (made.dtype, made.tolist()) == (mx.int16, [3, 3])


def test_dtypes_are_unequal_to_anything_else() -> None:
    for other in (None, "float32", 10, mx.floating):
        assert (mx.float32 == other) is False
        assert mx.float32 != other


@pytest.mark.parametrize("index", [None, ...])
def test_assignment_keeps_the_dtype(index: None) -> None:
    x = mx.array([[1, 2], [3, 4]])
    x[index] = 1.5
    assert (x.dtype, x.tolist()) == (mx.int32, [[1, 1], [1, 1]])
    x[index] = mx.array([[[2.5, 3.5]]])
    assert (x.dtype, x.tolist()) == (mx.int32, [[2, 3], [2, 3]])
    y = x.at[index].add(mx.array([[0.5, 1.0]]))
    assert (y.dtype, y.tolist()) == (mx.int32, [[2, 4], [2, 4]])
