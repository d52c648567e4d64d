"""`searchsorted`, `unique` and reading by masks: against mlx, and where mlx lacks them NumPy."""

from itertools import product

import numpy as np
import pytest
from support.harness import (
    ALL,
    FLOATS,
    INTS,
    LAYOUTS,
    REALS,
    Tally,
    exactly,
    given,
    to_numpy,
    values,
)

import ultramarine as um


def in_order(mx, x):
    return mx.sort(x)


@pytest.mark.parametrize("dtype", REALS)
def test_searchsorted(tally: Tally, dtype: str) -> None:
    for n, shape, side in product(
        [0, 1, 2, 3, 7, 8, 64, 1000], [(), (0,), (5,), (3, 4)], ["left", "right"]
    ):
        a = given(dtype, (n,), specials=dtype in FLOATS, domain="few" if n < 9 else "any")
        v = given(dtype, shape, specials=dtype in FLOATS, domain="few", key=1)
        tally.same(
            f"{n} {shape} {side}",
            lambda mx, a, v, side=side: mx.searchsorted(in_order(mx, a), v, side),
            a,
            v,
        )
    for layout in LAYOUTS:
        v = given(dtype, (6, 4), layout)
        a = given(dtype, (50,), layout)
        tally.same(f"{layout.name}", lambda mx, a, v: mx.searchsorted(in_order(mx, a), v), a, v)


def test_searchsorted_of_mixed_dtypes(tally: Tally) -> None:
    for one, other in product(["bool_", "int8", "uint8", "int32", "float16", "float32"], repeat=2):
        a, v = given(one, (20,), domain="few"), given(other, (20,), domain="few", key=2)
        tally.same(f"{one} {other}", lambda mx, a, v: mx.searchsorted(in_order(mx, a), v), a, v)


def test_searchsorted_errors(tally: Tally) -> None:
    row, table = exactly([1, 2, 3], "int32"), exactly([[1, 2]], "int32")
    tally.same("side", lambda mx, a: mx.searchsorted(a, a, "middle"), row)
    tally.same("2-d", lambda mx, a: mx.searchsorted(a, a), table)
    tally.same("0-d", lambda mx, a: mx.searchsorted(a[0], a), row)
    tally.same("number", lambda mx, a: mx.searchsorted(a, 1), row)
    tally.same("list", lambda mx, a: mx.searchsorted([1, 2], a), row)
    tally.same("None", lambda mx, a: mx.searchsorted(a, a, None), row)


def test_searchsorted_transforms(tally: Tally) -> None:
    a, v = exactly([1.0, 2.0, 4.0], "float32"), exactly([[0.5, 2.0], [3.0, 9.0]], "float32")
    search = lambda mx: mx.searchsorted
    tally.same("vmap", lambda mx, a, v: mx.vmap(search(mx), in_axes=(None, 1))(a, v), a, v)
    tally.same(
        "grad",
        lambda mx, a, v: mx.grad(lambda a, v: (v * mx.searchsorted(a, v)).sum(), (0, 1))(a, v),
        a,
        v,
    )


def test_searchsorted_mapped_over_the_sequence() -> None:
    a, v = um.array([[1, 2, 3], [4, 5, 6]]), um.array([2, 5])
    assert um.vmap(um.searchsorted)(a, v).tolist() == [1, 1]


@pytest.mark.parametrize("dtype", INTS + FLOATS)
def test_searchsorted_against_numpy(dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.skip("NumPy has none")
    a, v = np.sort(values(dtype, (300,))), values(dtype, (17, 5), "any", "v")
    for side in ("left", "right"):
        got = um.searchsorted(um.asarray(a), um.asarray(v), side)
        np.testing.assert_array_equal(np.array(got), np.searchsorted(a, v, side))


FLAGS = list(product([False, True], repeat=3))


@pytest.mark.parametrize("dtype", ALL)
def test_unique(tally: Tally, dtype: str) -> None:
    for shape in [(), (1,), (9,), (4, 5), (2, 3, 4), (300,)]:
        for size in (0, 1, 3, 7, 400):
            a = given(dtype, shape, domain="few")
            for flags in FLAGS:
                tally.same(f"{shape} {size} {flags}", lambda mx, a: mx.unique(a, size, *flags), a)
            tally.same(f"{shape} {size} fill", lambda mx, a: mx.unique(a, size, fill_value=1), a)
    if dtype in FLOATS:
        a = given(dtype, (30,), specials=True, domain="few")
        tally.same("specials", lambda mx, a: mx.unique(a, 30, True, True, True), a)
    for layout in LAYOUTS:
        a = given(dtype, (6, 4), layout, domain="few")
        tally.same(f"{layout.name}", lambda mx, a: mx.unique(a, 9, True, True, True), a)
    empty = given(dtype, (0,))
    tally.same("empty", lambda mx, a: mx.unique(a, 0, True, True, True), empty)
    tally.same("empty, no fill", lambda mx, a: mx.unique(a, 2), empty)
    tally.same("empty, fill", lambda mx, a: mx.unique(a, 2, True, True, True, 1), empty)


def test_unique_errors(tally: Tally) -> None:
    a = exactly([2, 1, 2], "uint8")
    tally.same("negative", lambda mx, a: mx.unique(a, -1), a)
    tally.same("no size", lambda mx, a: mx.unique(a), a)
    tally.same("float size", lambda mx, a: mx.unique(a, 2.5), a)
    tally.same("list", lambda mx, a: mx.unique([1, 2], 2), a)
    tally.same("two fills", lambda mx, a: mx.unique(a, 4, fill_value=a[:2]), a)
    tally.same("one fill", lambda mx, a: mx.unique(a, 4, fill_value=a[:1]), a)
    tally.same("text", lambda mx, a: mx.unique(a, 4, fill_value="x"), a)
    tally.same("overflow", lambda mx, a: mx.unique(a, 4, fill_value=300), a)


def test_unique_transforms(tally: Tally) -> None:
    a = exactly([[5.0, 2.0, 2.0, 7.0], [1.0, 1.0, 0.0, 1.0]], "float32")
    tally.same("vmap", lambda mx, a: mx.vmap(lambda x: mx.unique(x, 3, True, True, True))(a), a)
    tally.same(
        "grad", lambda mx, a: mx.grad(lambda x: (mx.unique(x, 9) * mx.arange(9)).sum())(a), a
    )


def test_unique_jvp() -> None:
    x, t = um.array([5.0, 2.0, 2.0]), um.array([1.0, 2.0, 3.0])
    _, (got,) = um.jvp(lambda x: um.unique(x, 2), [x], [t])
    assert got.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("shape", [(0,), (7,), (4, 5), (2, 3, 4), (3, 0)])
@pytest.mark.parametrize("dtype", ["bool_", "int32", "float32", "float64"])
def test_masks(dtype: str, shape: tuple[int, ...]) -> None:
    data = values(dtype, shape)
    for k in range(1, len(shape) + 1):
        mask = values("bool_", shape[:k], "any", k)
        got = um.asarray(data)[um.array(mask)]
        np.testing.assert_array_equal(to_numpy(got), data[mask])
        assert got.shape == data[mask].shape


def test_masks_that_do_not_fit() -> None:
    x = um.arange(6).reshape(2, 3)
    for mask in (um.array([True] * 3), um.zeros((2, 3, 1), dtype=um.bool_)):
        with pytest.raises(ValueError, match="boolean mask"):
            x[mask]
    with pytest.raises(ValueError, match="beside other indices"):
        x[um.array([True, False]), 0]
    assert x[um.array(True)].shape == (1, 2, 3)
    assert x[um.array(False)].shape == (0, 2, 3)


def test_masks_in_transforms() -> None:
    x = um.array([1.0, -2.0, 3.0])
    grad = um.grad(lambda x: (x[um.array([True, False, True])] ** 2).sum())(x)
    assert grad.tolist() == [2.0, 0.0, 6.0]
    # The number of elements would depend on what is traced.
    with pytest.raises(ValueError, match="eval"):
        um.vmap(lambda x: x[x > 0])(x.reshape(1, 3))
