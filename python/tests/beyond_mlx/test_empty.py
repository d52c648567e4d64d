"""Arrays that are empty, of elements or of values: reductions of those without elements (against
NumPy: mlx may never return from them), and `empty`, which is uninitialised."""

import numpy as np
import pytest
from support.harness import LAYOUTS, given

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


def test_empty() -> None:
    for shape in ((), 3, (2, 0), [2, 3]):
        x = mx.empty(shape)
        assert x.shape == mx.zeros(shape).shape and x.dtype == mx.float32
    assert mx.empty((2, 3), mx.int8).dtype == mx.int8
    y = mx.empty_like(mx.ones((2, 3), mx.float16))
    assert (y.shape, y.dtype) == ((2, 3), mx.float16)
    assert mx.empty_like(y, mx.int32).dtype == mx.int32
    # A bool that is neither is no bool.
    assert set(np.array(mx.empty(4096, mx.bool_)).view(np.uint8)) <= {0, 1}
    for wrong in (-1, (2, -3)):
        with pytest.raises(ValueError, match=r"\[empty\] Negative"):
            mx.empty(wrong)
    for large in ((2**31, 2**31, 2**31), (2**62, 4)):
        with pytest.raises((ValueError, OverflowError, MemoryError)):
            mx.empty(large)


def test_empty_is_not_cleared() -> None:
    """Memory that was freed a moment ago comes back as it was."""
    seen = set()
    for i in range(20):
        x = mx.full((1000,), i + 1.0)
        mx.eval(x)
        del x
        seen.add(float(np.asarray(mx.empty(1000))[500]))
    assert seen != {0.0}
