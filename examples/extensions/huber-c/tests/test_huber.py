"""Values, derivatives and errors of the installed package."""

import pytest
from ultramarine_huber import huber

import ultramarine as mx


def test_values_and_derivatives() -> None:
    x = mx.array([-2.0, -0.5, 0.0, 3.0])
    assert huber(x, 1.0).tolist() == [1.5, 0.125, 0.0, 2.5]
    assert huber(x[::-2], 1.0).tolist() == [2.5, 0.125]
    assert mx.grad(lambda x: huber(x, 1.0).sum())(x).tolist() == [-1.0, -0.5, 0.0, 1.0]
    assert mx.vmap(lambda x: huber(x, 1.0))(x.reshape(2, 2)).tolist() == [[1.5, 0.125], [0.0, 2.5]]


def test_errors() -> None:
    with pytest.raises(ValueError, match="float32 and float64"):
        huber(mx.array(1.0, dtype=mx.float16))
