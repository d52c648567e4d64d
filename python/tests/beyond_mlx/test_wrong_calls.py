"""Wrong calls for which mlx is no model: it reads undefined memory, hangs or kills the process."""

from typing import Any

import numpy as np
import pytest

import ultramarine as mx

# call, exception types that say what is wrong, words of the text
CALLS: list[tuple[str, Any, tuple[type[Exception], ...], str]] = [
    ("index out of bounds", lambda: mx.ones(5)[5], (IndexError,), "5"),
    ("negative index out of bounds", lambda: mx.ones(5)[-6], (IndexError,), "-6"),
    ("second index out of bounds", lambda: mx.ones((2, 3))[0, 3], (IndexError,), "3"),
    ("assign out of bounds", lambda: mx.ones(5).__setitem__(5, 1), (IndexError,), "5"),
    ("at out of bounds", lambda: mx.ones(5).at[9].add(1), (IndexError,), "9"),
    ("take out of bounds", lambda: mx.take(mx.ones(5), 7), (IndexError, ValueError), "7"),
    ("step of zero", lambda: mx.ones(5)[::0], (ValueError,), "step"),
    ("datetime", lambda: mx.array(np.datetime64(1, "s")), (TypeError, ValueError), "datetime"),
    ("strings", lambda: mx.array(np.array(["a"])), (TypeError, ValueError), ""),
    ("objects", lambda: mx.array(np.array([None])), (TypeError, ValueError), ""),
    ("too large", lambda: mx.eval(mx.zeros((2**30, 2**30))), (MemoryError, RuntimeError, ValueError), ""),
    ("size overflows", lambda: mx.broadcast_to(mx.ones(1), (2**40, 2**40)), (ValueError, OverflowError), ""),
    ("as_strided outside", lambda: mx.eval(mx.as_strided(mx.ones(4), (9, 9), (9, 9)) + 1), (ValueError,), ""),
    ("as_strided before", lambda: mx.eval(mx.as_strided(mx.ones(4), (3,), (-1,)) + 1), (ValueError,), ""),
]  # fmt: skip


@pytest.mark.parametrize("name, call, types, word", CALLS, ids=[c[0] for c in CALLS])
def test_raises(name: str, call: Any, types: tuple[type[Exception], ...], word: str) -> None:
    with pytest.raises(types) as caught:
        call()
    assert word in str(caught.value)
    assert (mx.arange(3) * 2).tolist() == [0, 2, 4]


def test_extremes_of_integer_division() -> None:
    """The one quotient that does not fit: it wraps, and nothing dies."""
    for dtype, low in ((mx.int8, -(2**7)), (mx.int16, -(2**15)), (mx.int32, -(2**31))):
        x, y = mx.array([low], dtype), mx.array([-1], dtype)
        assert (x // y).tolist() == [low]
        assert (x % y).tolist() == [0]


def test_gather_indices_out_of_range_stay_in_memory() -> None:
    """Index arrays are data: a wrong one may give any value or an error, never a crash."""
    x = mx.arange(10)
    for wrong in (10, -11, 2**31 - 1, -(2**31)):
        try:
            mx.eval(x[mx.array([wrong])])
        except (IndexError, ValueError):
            pass
    y = mx.arange(10)
    try:
        y[mx.array([1000000])] = 5
        mx.eval(y)
    except (IndexError, ValueError):
        pass
    assert x.tolist() == list(range(10))


def test_reversed_numpy_arrays_are_read() -> None:
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for part in (data[::-1], data[:, ::-2], data[..., ::-1], data[::-1, ::-1, ::-1]):
        assert (np.array(mx.array(part)) == part).all()


def test_numpy_arrays_of_the_other_byte_order() -> None:
    data = np.arange(6, dtype=">f4").reshape(2, 3)
    assert mx.array(data).tolist() == data.tolist()


def test_empty_has_shape_and_dtype() -> None:
    x = mx.empty((2, 3), mx.int16)
    assert (x.shape, x.dtype) == ((2, 3), mx.int16)
    y = mx.empty_like(mx.zeros((4,), mx.bfloat16))
    assert (y.shape, y.dtype) == ((4,), mx.bfloat16)
    mx.eval(x, y)


def test_asarray_and_from_dlpack_keep_float64() -> None:
    data = np.array([1 / 3, 2**60 + 0.0])
    assert mx.asarray(data).dtype == mx.float64
    assert mx.asarray(data).tolist() == data.tolist()
    assert mx.array(data).dtype == mx.float32
