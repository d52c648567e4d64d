"""`ultramarine.array_api` against NumPy: shapes, sorting, searching, sets."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from support import array_api_table as standard
from support.array_api_data import KINDS, OF, data, ours, same

import ultramarine.array_api as xp

A = data("float32", (2, 3, 4))
ONE = data("int16", (1, 3, 1))

# The same call in both namespaces, on these arrays.
SHAPED: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("broadcast_arrays", (A, ONE), {}),
    ("broadcast_to", (ONE, (2, 3, 4)), {}),
    ("concat", ([A, A],), {}),
    ("concat", ([A, A],), {"axis": -1}),
    ("concat", ([A, A[0]],), {"axis": None}),
    *(("expand_dims", (A, axis), {}) for axis in (0, -1, 3, (0, 2), (-1, 1))),
    *(("flip", (A,), {"axis": axis}) for axis in (None, 0, -1, (0, 2))),
    ("moveaxis", (A, 0, -1), {}),
    ("moveaxis", (A, (0, 1), (2, 0)), {}),
    ("permute_dims", (A, (2, 0, 1)), {}),
    ("permute_dims", (A, (-1, -3, 1)), {}),
    ("repeat", (A, 2), {}),
    ("repeat", (A, 3), {"axis": 1}),
    ("repeat", (A, np.array([0, 2, 1])), {"axis": 1}),
    ("repeat", (A[0, 0], np.array([1, 0, 3, 2])), {}),
    ("repeat", (A[0, 0], np.array([2])), {}),
    ("reshape", (A, (4, -1)), {}),
    ("reshape", (A, (24,)), {"copy": True}),
    ("reshape", (A, (24,)), {"copy": False}),
    ("roll", (A, 5), {}),
    ("roll", (A, -1), {"axis": 1}),
    ("roll", (A, (1, 2)), {"axis": (0, -1)}),
    ("roll", (A, 1), {"axis": (0, 2)}),
    ("squeeze", (ONE, 0), {}),
    ("squeeze", (ONE, (0, -1)), {}),
    ("stack", ([A, A],), {"axis": -1}),
    ("tile", (A, (2,)), {}),
    ("tile", (A, (2, 1, 3, 1)), {}),
    ("unstack", (A,), {"axis": 1}),
    ("matrix_transpose", (A,), {}),
    ("tril", (A,), {"k": 1}),
    ("triu", (A,), {"k": -1}),
    ("tril", (A > 0,), {}),
    ("triu", (A > 0,), {}),
    ("meshgrid", (A[0, 0], ONE[0, :, 0].astype("float32")), {}),
    ("meshgrid", (A[0, 0], A[0, 1]), {"indexing": "ij"}),
    ("take", (A, np.array([2, 0, 0])), {"axis": 1}),
    ("take", (A[0, 0], np.array([2, 0])), {}),
    ("take_along_axis", (A, np.array([[[2], [0], [1]]] * 2)), {}),
    ("sort", (A,), {"axis": 0}),
    ("where", (A > 0, A, -A), {}),
    ("where", (A > 0, A, 0.5), {}),
    ("clip", (A, -1.0, 2.0), {}),
    ("clip", (A, 0, None), {}),
    ("clip", (A, A[0], None), {}),
    ("isin", (ONE, np.array([1, 2, 3], "int16")), {}),
    ("isin", (ONE, np.array([1, 2, 3], "int16")), {"invert": True}),
    ("isin", (ONE, np.array([], "int16")), {}),
]


@pytest.mark.parametrize(
    ("name", "args", "options"), SHAPED, ids=[f"{n}-{i}" for i, (n, *_) in enumerate(SHAPED)]
)
def test_shapes(name: str, args: Any, options: Any) -> None:
    want = getattr(np, name)(*args, **options)
    got = getattr(xp, name)(*(ours(a) for a in args), **options)
    same(got, tuple(want) if isinstance(want, list) else want)


def test_broadcast_shapes() -> None:
    assert xp.broadcast_shapes() == ()
    assert xp.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    with pytest.raises(ValueError):
        xp.broadcast_shapes((2,), (3,))


def test_errors_of_shapes() -> None:
    x = xp.ones((2, 3))
    for call in (
        lambda: xp.squeeze(x, 0),
        lambda: xp.moveaxis(x, (0, 1), 0),
        lambda: xp.permute_dims(x, (0, 0)),
        lambda: xp.permute_dims(x, (0,)),
        lambda: xp.reshape(xp.reshape(xp.arange(6), (2, 3)).T, (6,), copy=False),
        lambda: xp.repeat(x, -1),
        lambda: xp.take(x, xp.asarray([0])),
        lambda: xp.tril(xp.ones((3,))),
        lambda: xp.stack([]),
        lambda: xp.meshgrid(x, indexing="zz"),
        lambda: xp.broadcast_to(x, (4, 3)),
    ):
        with pytest.raises(ValueError):
            call()
    for call in (
        lambda: xp.expand_dims(x, 3),
        lambda: xp.flip(x, axis=2),
        lambda: xp.concat([x, x], axis=2),
        lambda: xp.stack([x, x], axis=3),
        lambda: xp.roll(x, 1, axis=2),
        lambda: xp.unstack(x, axis=2),
        lambda: xp.sort(x, axis=2),
    ):
        with pytest.raises(IndexError):
            call()


def test_sorting_and_searching() -> None:
    for dtype in OF["real"]:
        for shape in [(0,), (7,), (4, 5)]:
            x = data(dtype, shape, "small")
            for axis in range(-len(shape), len(shape)):
                same(xp.argsort(ours(x), axis=axis), np.argsort(x, axis, stable=True), indices=True)
                same(xp.sort(ours(x), axis=axis, descending=True), np.flip(np.sort(x, axis), axis))
                n = shape[axis]
                down = n - 1 - np.flip(np.argsort(np.flip(x, axis), axis, stable=True), axis)
                same(xp.argsort(ours(x), axis=axis, descending=True), down, indices=True)
            if x.size:
                for name, axis, keep in product(["argmax", "argmin"], [None, -1], [False, True]):
                    want = getattr(np, name)(x, axis=axis, keepdims=keep)
                    got = getattr(xp, name)(ours(x), axis=axis, keepdims=keep)
                    same(got, want, indices=True)
            same(xp.nonzero(ours(x)), np.nonzero(x), indices=True)
        row = data(dtype, (9,), "small")
        order = np.argsort(row, stable=True)
        values = data(dtype, (3, 2), "small", 2)
        for side in ("left", "right"):
            got = xp.searchsorted(ours(row), ours(values), side=side, sorter=ours(order))
            same(got, np.searchsorted(row, values, side, order), indices=True)
            got = xp.searchsorted(ours(row[order]), 3, side=side)
            same(got, np.searchsorted(row[order], 3, side), indices=True)
    with pytest.raises(ValueError, match="dimension"):
        xp.nonzero(xp.asarray(1))
    for name in ("sort", "argsort", "argmax"):
        with pytest.raises(TypeError):
            getattr(xp, name)(xp.ones((2,), dtype=xp.complex64))


@pytest.mark.parametrize("dtype", standard.DTYPES)
def test_unique(dtype: str) -> None:
    for shape in [(), (0,), (9,), (3, 4)]:
        x = data(dtype, shape, "small")
        found, want = xp.unique_all(ours(x)), np.unique_all(x)
        same(found.values, want.values)
        for name in ("indices", "inverse_indices", "counts"):
            same(getattr(found, name), getattr(want, name), indices=True)
        same(xp.unique_values(ours(x)), want.values)
        same(xp.unique_counts(ours(x)).counts, want.counts, indices=True)
        same(xp.unique_inverse(ours(x)).inverse_indices, want.inverse_indices, indices=True)
    if dtype in KINDS["float"]:
        nan = xp.asarray([math.nan, 1.0, math.nan], dtype=getattr(xp, dtype))
        assert xp.unique_counts(nan).counts.tolist() == [1, 1, 1]
