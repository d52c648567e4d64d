"""mlx: it copies what it takes and shares what it gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.capsules import address, header

import ultramarine as mx

mlx: Any = pytest.importorskip("mlx.core", reason="mlx is not installed")


def test_it_copies_what_it_takes() -> None:
    x = mx.array([1.0, 2.0, 3.0])
    there = mlx.from_dlpack(x)
    mlx.eval(there)
    np.from_dlpack(x)[0] = 9
    assert there.tolist() == [1, 2, 3]
    assert address(there) != address(x)


def test_it_shares_what_it_gives() -> None:
    there = mlx.array([1.0, 2.0, 3.0])
    x = mx.from_dlpack(there)
    assert address(x) == address(there) == np.array(there, copy=False).ctypes.data
    assert header(there).version is None  # it knows no versions


def test_its_lazy_arrays_are_evaluated() -> None:
    there = mlx.arange(4) * 2 + 1
    assert mx.from_dlpack(there).tolist() == [1, 3, 5, 7]


def test_its_views() -> None:
    there = mlx.arange(12).reshape(3, 4)
    mlx.eval(there)
    for view in (there.T, there[::-1], there[:, ::2], there[1:, 2:]):
        assert mx.from_dlpack(view).tolist() == view.tolist()


def test_doubles() -> None:
    """mlx makes float32 of float64; here it stays."""
    x = mx.array(np.array([0.1, 0.2])).astype(mx.float64)
    assert mlx.from_dlpack(x).dtype == mlx.float32
    with mlx.stream(mlx.cpu):
        assert mx.from_dlpack(mlx.array([0.1]).astype(mlx.float64)).dtype == mx.float64


def test_array_takes_either() -> None:
    there = mlx.array([1.0, 2.0])
    x = mx.array([1.0, 2.0])
    assert mx.array(there).tolist() == [1, 2]
    assert mlx.array(x).tolist() == [1, 2]
    assert (x + mx.array(there)).tolist() == [2, 4]
