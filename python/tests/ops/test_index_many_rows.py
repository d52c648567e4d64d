"""Gathers and scatters of so many rows that devices take their ways for large ones, compared with numpy: sums are sorted by
target and made of chunks, the last of equal indices wins, and a result is the same in every run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import rng, to_numpy, um

# Rows that are written, rows there are, and their length. Some rows are hit by many, others by none.
SIZES = [(1, 5, 8), (300, 7, 3), (3000, 50, 1), (5000, 70_000, 2), (2500, 300, 16), (9000, 4, 1)]
DTYPES = ["bool_", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "complex64"]


def indices(r: np.random.Generator, rows: int, n: int) -> Any:
    chosen = r.integers(-rows, rows, n)
    chosen[5 : n // 2 : 3] = 3 % rows
    return chosen.astype(np.int32)


def numbers(r: np.random.Generator, dtype: str, *shape: int) -> Any:
    """Zeros and ones."""
    drawn = r.integers(0, 2, shape)
    kinds = {"bool_": np.bool_, "complex64": np.complex128}
    kind = kinds.get(dtype, np.float64 if "float" in dtype else getattr(np, dtype, None))
    return drawn.astype(kind) * (1 + 1j) if dtype == "complex64" else drawn.astype(kind)


@pytest.mark.parametrize(("n", "rows", "length"), SIZES)
def test_rows(n: int, rows: int, length: int) -> None:
    r = rng("rows", n)
    table = r.standard_normal((rows, length)).astype(np.float32)
    at, updates = indices(r, rows, n), r.standard_normal((n, length)).astype(np.float32)
    x, i, u = um.array(table), um.array(at), um.array(updates)
    np.testing.assert_array_equal(np.array(um.take(x, i, axis=0)), table[at])
    np.testing.assert_array_equal(np.array(um.take(x.T, i, axis=1)), table.T[:, at])
    want: Any = table.astype(np.float64)
    np.add.at(want, at, updates)
    sums = np.array(x.at[i].add(u))
    np.testing.assert_allclose(sums, want, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(sums, np.array(x.at[i].add(u)))
    for name, function in (("maximum", np.maximum), ("minimum", np.minimum)):
        want = table.copy()
        function.at(want, at, updates)
        np.testing.assert_array_equal(np.array(getattr(x.at[i], name)(u)), want)
    for row, update in zip(at, updates, strict=True):
        table[row] = update
    x[i] = u
    np.testing.assert_array_equal(np.array(x), table)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    r = rng("dtypes")
    # Sums stay below 256, which bfloat16 still counts to.
    at = r.integers(-60, 60, 3000)
    i = um.array(at)
    table, updates = numbers(r, dtype, 60, 24), numbers(r, dtype, 3000, 24)
    x, u = (um.array(a).astype(getattr(um, dtype)) for a in (table, updates))
    add = np.logical_or if dtype == "bool_" else np.add
    want = table.copy()
    add.at(want, at, updates)
    np.testing.assert_array_equal(to_numpy(x.at[i].add(u)), want)
    want = table[:, ::-2].copy()
    add.at(want, at, updates[:, ::2])
    np.testing.assert_array_equal(to_numpy(x[:, ::-2].at[i].add(u[:, ::2])), want)
    np.testing.assert_array_equal(to_numpy(um.take(x[:, ::-2], i, axis=0)), table[:, ::-2][at])
    for row, update in zip(at, updates, strict=True):
        table[row] = update
    x[i] = u
    np.testing.assert_array_equal(to_numpy(x), table)


def test_several_arrays() -> None:
    r = rng("several arrays")
    table = r.standard_normal((5, 6, 7, 4)).astype(np.float32)
    at = [r.integers(-n, n, s) for n, s in ((5, (3, 4)), (6, (3, 1)), (7, (1, 4)), (4, (3, 4)))]
    x, i = um.array(table), [um.array(a.astype(np.int32)) for a in at]
    np.testing.assert_array_equal(np.array(x[tuple(i[:3])]), table[tuple(at[:3])])
    np.testing.assert_array_equal(np.array(x[tuple(i)]), table[tuple(at)])
    want = table.copy()
    middle: Any = (slice(None), at[1], slice(None), at[3])
    np.add.at(want, middle, 1)
    np.testing.assert_allclose(np.array(x.at[:, i[1], :, i[3]].add(1.0)), want, rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "axis", "n"),
    [((4000,), 0, 3000), ((3, 2500), 1, 2200), ((2500, 3), 0, 2200), ((50, 60), 1, 20)],
)
def test_along_an_axis(shape: tuple[int, ...], axis: int, n: int) -> None:
    r = rng("along an axis")
    table = r.standard_normal(shape).astype(np.float32)
    lanes = tuple(n if d == axis else size for d, size in enumerate(shape))
    at = r.integers(0, shape[axis], lanes).astype(np.int32)
    updates = r.standard_normal(lanes).astype(np.float32)
    x, i, u = um.array(table), um.array(at), um.array(updates)
    want = np.take_along_axis(table, at, axis)
    np.testing.assert_array_equal(np.array(um.take_along_axis(x, i, axis)), want)
    everywhere = list(np.indices(lanes))
    everywhere[axis] = at
    sums = np.zeros(shape)
    np.add.at(sums, tuple(everywhere), updates)
    gradient = um.grad(lambda t: (um.take_along_axis(t, i, axis) * u).sum())(x)
    np.testing.assert_allclose(np.array(gradient), sums, rtol=1e-3, atol=1e-4)
    for place in np.ndindex(*lanes):
        table[(*place[:axis], at[place], *place[axis + 1 :])] = updates[place]
    np.testing.assert_array_equal(np.array(um.put_along_axis(x, i, u, axis)), table)


def test_few_updates_of_many_targets() -> None:
    r = rng("few updates")
    at, updates = r.integers(0, 3_000_000, 5000), np.arange(5000, dtype=np.float32)
    at[100:200] = 7
    want = np.zeros(3_000_000, np.float32)
    for place, update in zip(at, updates, strict=True):
        want[place] = update
    x = um.zeros(3_000_000)
    x[um.array(at)] = um.array(updates)
    np.testing.assert_array_equal(np.array(x), want)
