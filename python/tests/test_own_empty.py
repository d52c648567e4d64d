"""Reductions of arrays without elements, against NumPy: mlx may never return from them."""

import numpy as np
import pytest
from harness import LAYOUTS, given

import ultramarine as mx

SHAPES = [(0,), (3, 0), (0, 3), (3, 0, 2)]


@pytest.mark.parametrize("op", ["sum", "prod", "all", "any", "mean", "var"])
def test_neutral_elements(op: str) -> None:
    for shape in SHAPES:
        for layout in LAYOUTS:
            x = given("float32", shape, layout).make(mx)
            plain = np.zeros(shape, np.float32)
            for axis in [None, *range(len(shape)), tuple(range(len(shape)))]:
                for keep in (False, True):
                    got = np.array(getattr(mx, op)(x, axis=axis, keepdims=keep))
                    with np.errstate(invalid="ignore", divide="ignore"):
                        want = reference(op, plain, axis, keep)
                    assert got.shape == want.shape
                    assert ((got == want) | ((got != got) & (want != want))).all()


def reference(op: str, plain: np.ndarray, axis: object, keep: bool) -> np.ndarray:
    if op in ("mean", "var"):  # without elements both are 0 / 0
        count = np.sum(np.ones_like(plain), axis=axis, keepdims=keep)
        return np.asarray(np.zeros_like(count) / count)
    return np.asarray(getattr(np, op)(plain, axis=axis, keepdims=keep))


def test_trace_of_an_empty_diagonal() -> None:
    if hasattr(mx, "trace"):
        assert mx.trace(mx.zeros((3, 0, 2))).tolist() == [0, 0]
