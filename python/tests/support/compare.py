"""Compares results with expected ones: arrays of either library or of NumPy, numbers, and trees of these.

Comparisons between Ultramarine and mlx that collect all differences of a test are in `harness.Tally`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from support.harness import EPS, name_of, to_numpy


def leaves(got: Any, want: Any, where: str) -> list[tuple[Any, Any, str]]:
    """Pairs of arrays or numbers of two trees, which must have the same structure."""
    if isinstance(want, dict):
        assert isinstance(got, dict) and got.keys() == want.keys(), where
        pairs = [(got[k], w, f"{where}[{k!r}]") for k, w in want.items()]
    elif isinstance(want, (list, tuple)):
        assert isinstance(got, (list, tuple)) and len(got) == len(want), where
        pairs = [(g, w, f"{where}[{i}]") for i, (g, w) in enumerate(zip(got, want))]
    else:
        return [(got, want, where)]
    return [leaf for pair in pairs for leaf in leaves(*pair)]


def plain(x: Any) -> np.ndarray:
    """An array or a number as NumPy."""
    return to_numpy(x) if hasattr(x, "dtype") else np.asarray(x)


def dtype_of(x: Any) -> str:
    """The name of the dtype, which is `bool` in NumPy and `bool_` elsewhere."""
    return name_of(x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype).rstrip("_")


def assert_close(
    got: Any,
    want: Any,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    ulps: float = 0.0,
    scale: float = 1.0,
    nan: bool = True,
    dtype: bool = True,
    where: str = "result",
) -> None:
    """Asserts equal structure, shapes and dtypes, and `|got - want| <= atol + rtol * |want|`.

    `ulps` adds as many units in the last place of `scale`, in the dtype of `want`. Without bounds values must
    be equal. NaN equals NaN, or with `nan=False` nothing; `dtype=False` compares values of different dtypes.
    """
    for g, w, at in leaves(got, want, where):
        if dtype:
            assert dtype_of(g) == dtype_of(w), at
        left, right = plain(g), plain(w)
        assert left.shape == right.shape, at
        bound = atol + (ulps * EPS[dtype_of(w)] * scale if ulps else 0.0)
        if rtol or bound:
            np.testing.assert_allclose(left, right, rtol, bound, equal_nan=nan, err_msg=at)
        else:
            np.testing.assert_array_equal(left, right, err_msg=at)
            assert nan or not (right != right).any(), at


def assert_identical(got: Any, want: Any) -> None:
    """Asserts equal structure, shapes and dtypes, and values that are bitwise identical."""
    for g, w, at in leaves(got, want, "result"):
        assert (dtype_of(g), g.shape) == (dtype_of(w), w.shape), at
        assert plain(g).tobytes() == plain(w).tobytes(), at
