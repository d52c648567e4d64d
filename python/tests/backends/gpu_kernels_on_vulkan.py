"""The Vulkan backend's kernels for GPUs in shapes that take all of them, on the device of the plugin in PLUGIN: run by
test_kernels.py. They are watched by the validation layer."""

from __future__ import annotations

import os

import numpy as np
import pytest

import ultramarine as mx
from ultramarine import backends

os.environ["ULTRAMARINE_VULKAN_KERNELS"] = "gpu"
os.environ["ULTRAMARINE_VULKAN_MATRICES"] = "emulated"
backends.load(os.environ["PLUGIN"])
mx.set_default_device(mx.Device(mx.gpu, 0))

FLOATS = ["float32", "float16", "bfloat16", "float64"]


def whole(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Small integers, whose sums are exact in every dtype here."""
    return rng.integers(-2, 3, shape).astype(np.float64)


def device(x: np.ndarray, dtype: str) -> mx.array:
    return mx.array(x.astype(np.float32)).astype(getattr(mx, dtype))


def host(x: mx.array) -> np.ndarray:
    return np.array(x.astype(mx.float32)).astype(np.float64)


# Batch, rows, columns, elements of a sum.
PRODUCTS = [
    (1, 65, 70, 33),
    (1, 30, 20, 1000),
    (130, 20, 36, 12),
    (2, 1, 300, 260),
    (1, 200, 1, 77),
    (1, 3, 130, 1024),
    (2, 140, 7, 52),
    # Vectors of 8 elements in all directions: halves are multiplied by units.
    (2, 136, 72, 40),
    (1, 24, 16, 1000),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", PRODUCTS)
def test_products(shape: tuple[int, int, int, int], dtype: str) -> None:
    rng = np.random.default_rng(0)
    batch, m, n, k = shape
    for flip_a, flip_b, cut in [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 0), (0, 0, 1), (1, 1, 1)]:
        # A cut begins where no vector does, and its rows are not multiples of vectors apart.
        x = whole(rng, (batch, k, m) if flip_a else (batch, m, k + cut))
        y = whole(rng, (batch, n, k) if flip_b else (batch, k, n + cut))
        a, b = device(x, dtype), device(y, dtype)
        if not flip_a:
            x, a = x[..., cut:], a[..., cut:]
        if not flip_b:
            y, b = y[..., cut:], b[..., cut:]
        if flip_a:
            x, a = x.swapaxes(1, 2), mx.swapaxes(a, 1, 2)
        if flip_b:
            y, b = y.swapaxes(1, 2), mx.swapaxes(b, 1, 2)
        want = x @ y
        got = host(a @ b)
        exact = np.abs(want) < 256
        np.testing.assert_array_equal(got[exact], want[exact])
        np.testing.assert_allclose(got, want, rtol=2**-8)


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray) -> np.ndarray:
    scores = np.where(seen, q @ k.swapaxes(-1, -2), -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(top), 0, top))
    # A row that sees no key weighs all of them equally.
    weights = np.where(seen.any(-1, keepdims=True), weights, 1)
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("float16", (2, 4, 2, 70, 100, 32)), ("bfloat16", (1, 2, 2, 40, 33, 32))],
)
def test_attention(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    batch, heads, key_heads, m, n, size = shape
    # Quarters of small integers: exact in halves.
    q = whole(rng, (batch, heads, m, size)) / 4
    k, v = (whole(rng, (batch, key_heads, n, size)) for _ in range(2))
    a, b, c = (device(x, dtype) for x in (q, k, v))
    k, v = (np.repeat(x, heads // key_heads, axis=1) for x in (k, v))
    some = rng.random((m, n)) < 0.5
    some[3] = False
    last = np.arange(m)[:, None] + n - m >= np.arange(n)
    for mask, seen in [
        (None, np.ones((m, n), bool)),
        ("causal", last),
        (device(np.where(some, 0, -np.inf), dtype), some),
    ]:
        got = host(mx.fast.scaled_dot_product_attention(a, b, c, scale=1.0, mask=mask))
        want = attended(q, k, v, seen)
        np.testing.assert_allclose(got, want, atol=2**-7 if dtype == "float16" else 2**-5)


def test_long_sums() -> None:
    rng = np.random.default_rng(0)
    x, y = whole(rng, (3, 70_001)), whole(rng, (70_001, 2))
    for dtype in ["float32", "complex64"]:
        np.testing.assert_array_equal(host(device(x, dtype) @ device(y, dtype)), x @ y)


# Outputs of a reduction come from rows, columns, all, one of several axes.
REDUCTIONS: list[tuple[tuple[int, ...], int | tuple[int, ...] | None]] = [
    ((70_000,), None),
    ((3, 5003), 1),
    ((5003, 3), 0),
    ((300, 260), 1),
    ((300, 260), 0),
    ((1000, 3), 1),
    ((7, 30, 41), (0, 2)),
    ((7, 30, 41), 1),
    ((64, 1, 1), 0),
]


REDUCED = ["float32", "float16", "int8", "uint16", "int64", "complex64"]
# Each shape with two dtypes, each dtype with three shapes. llvmpipe compiles 20 kernels for a pair; the conformance
# kit has all dtypes by the same kernels, in shapes of its own.
SOME = [(*case, REDUCED[(i + j) % 6]) for i, case in enumerate(REDUCTIONS) for j in (0, 3)]
EVERY = [(*case, dtype) for case in REDUCTIONS for dtype in REDUCED]


@pytest.mark.parametrize(
    ("shape", "axis", "dtype"), EVERY if os.environ.get("ULTRAMARINE_TEST_FULL") else SOME
)
def test_reductions(shape: tuple[int, ...], axis: int | tuple[int, ...] | None, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = whole(rng, shape)
    if dtype == "uint16":
        x = np.abs(x)
    # The only largest and the only smallest element of the whole.
    x.flat[x.size // 2], x.flat[x.size // 3] = 7, 0 if dtype == "uint16" else -7
    a = device(x, dtype)
    for y, b in [(x, a), (x.T, a.T), (x[..., ::-1], a[..., ::-1])]:
        if dtype != "int8":
            want = np.sum(y, axis=axis)
            np.testing.assert_allclose(host(mx.sum(b, axis=axis)), want, rtol=2**-10)
        np.testing.assert_array_equal(host(mx.max(b, axis=axis)), np.max(y, axis=axis))
        np.testing.assert_array_equal(host(mx.any(b, axis=axis)), np.any(y != 0, axis=axis))
        if not isinstance(axis, tuple):
            np.testing.assert_array_equal(host(mx.argmax(b, axis=axis)), np.argmax(y, axis=axis))
            np.testing.assert_array_equal(host(mx.argmin(b, axis=axis)), np.argmin(y, axis=axis))


def test_reductions_of_values() -> None:
    rng = np.random.default_rng(0)
    x = whole(rng, (300, 260))
    fused = mx.compile(lambda a: mx.sum(a * a + 1, axis=0))
    np.testing.assert_array_equal(host(fused(device(x, "float32"))), np.sum(x * x + 1, axis=0))
    whole_sum = mx.compile(lambda a: mx.sum(a * a + 1))
    # One kernel, whose last workgroup merges: its counts are ready for the next one.
    for _ in range(3):
        assert host(whole_sum(device(x, "float32"))) == np.sum(x * x + 1)


MOVED = ["bool_", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


@pytest.mark.parametrize("dtype", [*MOVED, *FLOATS, "complex64"])
def test_elementwise(dtype: str) -> None:
    rng = np.random.default_rng(0)
    signed = dtype not in {"bool_", "uint8", "uint16", "uint32", "uint64"}
    x = rng.integers(-3 if signed else 0, 4 if dtype != "bool_" else 2, (2, 1000))
    x = x.astype(np.float64)
    y = np.abs(x[::-1])
    a, b = device(x, dtype), device(y, dtype)
    # In one piece, that begins at a vector or not; a row that is broadcast, and a number.
    for p, q, c, d in [
        (x, y, a, b),
        (x[:, 4:], y[:, 4:], a[:, 4:], b[:, 4:]),
        (x[0, 4:], y[0, 8:12][:1], a[0, 4:], b[0, 8:12][:1]),
        (x[0, 3:], y[0, 3:], a[0, 3:], b[0, 3:]),
    ]:
        larger = np.maximum(p, q)
        np.testing.assert_array_equal(host(mx.maximum(c, d)), larger)
        np.testing.assert_array_equal(
            host(mx.where(c == d, c, d)), np.broadcast_to(q, larger.shape)
        )
        compiled = mx.compile(lambda c, d: (mx.maximum(c, d), mx.where(c > d, c, d) == d))
        first, second = compiled(c, d)
        np.testing.assert_array_equal(host(first), larger)
        np.testing.assert_array_equal(host(second), p <= q)
        for to in ["uint8", "float16", "float32", "int64"]:
            if signed and to == "uint8":
                continue
            np.testing.assert_array_equal(host(c.astype(getattr(mx, to))), p)
    full = mx.full((1000,), 1, dtype=getattr(mx, dtype))
    np.testing.assert_array_equal(host(full), np.ones(1000))
    if dtype not in {"bool_", "complex64"}:
        counted = mx.arange(0, 120, dtype=getattr(mx, dtype))
        np.testing.assert_array_equal(host(counted), np.arange(120))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint32", "int8", "complex64"])
def test_scatters(dtype: str) -> None:
    rng = np.random.default_rng(0)
    source = np.abs(whole(rng, (50, 6)))
    updates = np.abs(whole(rng, (400, 6)))
    updates[7, 2] = 5
    # Negative ones count from the end; many meet.
    rows = rng.integers(-50, 50, 400)
    a, b, at = device(source, dtype), device(updates, dtype), mx.array(rows.astype(np.int32))
    for name, combine in [("add", np.add), ("maximum", np.maximum), ("minimum", np.minimum)]:
        if name != "add" and dtype == "complex64":
            continue
        want = source.copy()
        combine.at(want, rows, updates)
        np.testing.assert_array_equal(host(getattr(a.at[at], name)(b)), want)
        want = source.copy()
        combine.at(want, (rows, 3), updates[:, 3])
        np.testing.assert_array_equal(host(getattr(a.at[at, 3], name)(b[:, 3])), want)
    # One place has several chunks, others begin and end within them.
    many = np.sort(rng.integers(0, 5, 3000))
    many[500:2000] = 2
    many = many[rng.permutation(3000)]
    marks = (rng.integers(0, 30, (3000, 6)) == 0).astype(np.float64)
    want = source.copy()
    np.add.at(want, many, marks)
    sums = a.at[mx.array(many.astype(np.int32))].add(device(marks, dtype))
    np.testing.assert_array_equal(host(sums), want)
    want = source.copy()
    for row, update in zip(rows, updates, strict=True):
        want[row] = update
    a[at] = b
    np.testing.assert_array_equal(host(a), want)


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_scatters_along_an_axis(axis: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    source, updates = np.abs(whole(rng, (30, 20))), np.abs(whole(rng, (30, 20)))
    where = rng.integers(-20, 20, (30, 20))
    a, b = device(source, dtype), device(updates, dtype)
    at = mx.array(where.astype(np.int32))
    want = source.copy()
    np.put_along_axis(want, where, updates, axis)
    np.testing.assert_array_equal(host(mx.put_along_axis(a, at, b, axis)), want)


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
@pytest.mark.parametrize("shape", [(7,), (100_000,), (3, 5000), (5000, 3), (300, 70), (70, 300)])
def test_scans(shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = np.zeros(shape)
    # Sums stay small, products one or minus one.
    x.flat[:: x.size // 30 + 1] = 1
    signs = np.where(x == 0, 1, -1)
    heights = np.abs(whole(rng, shape)) + np.arange(x.size).reshape(shape) * 50 // x.size
    a, b, c = (device(values, dtype) for values in (x, signs, heights))
    for axis in range(x.ndim):
        sums = np.cumsum(x, axis=axis)
        np.testing.assert_array_equal(host(mx.cumsum(a, axis=axis)), sums)
        np.testing.assert_array_equal(host(mx.cumsum(a, axis=axis, inclusive=False)), sums - x)
        flipped = np.flip(np.cumsum(np.flip(x, axis), axis=axis), axis)
        np.testing.assert_array_equal(host(mx.cumsum(a, axis=axis, reverse=True)), flipped)
        np.testing.assert_array_equal(host(mx.cumprod(b, axis=axis)), np.cumprod(signs, axis=axis))
        if dtype != "complex64":
            highest = np.maximum.accumulate(heights, axis=axis)
            np.testing.assert_array_equal(host(mx.cummax(c, axis=axis)), highest)
    sums = np.cumsum(x.T, axis=0)
    np.testing.assert_array_equal(host(mx.cumsum(a.T, axis=0)), sums)


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64"])
@pytest.mark.parametrize("shape", [(5,), (1024,), (30_000,), (3, 1500), (1500, 3)])
def test_sorts(shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(0)
    # Equal elements are many, and stay in their order.
    x = rng.integers(-50, 50, shape).astype(np.float64)
    for y, a in [(x, device(x, dtype)), (x.T, device(x, dtype).T)]:
        for axis in range(x.ndim):
            np.testing.assert_array_equal(host(mx.sort(a, axis=axis)), np.sort(y, axis=axis))
            order = np.argsort(y, axis=axis, kind="stable")
            np.testing.assert_array_equal(host(mx.argsort(a, axis=axis)), order)


# llvmpipe takes half a minute to compile each.
LONG_SORTS: list[tuple[tuple[int, ...], str]] = [((2, 16_385), "float32")]
if os.environ.get("ULTRAMARINE_TEST_FULL"):
    LONG_SORTS += [((20_001,), dtype) for dtype in ("float32", "uint32", "float16")]
    LONG_SORTS += [((2, 16_385), dtype) for dtype in ("uint32", "float16")]


@pytest.mark.parametrize(("shape", "dtype"), LONG_SORTS)
def test_long_sorts(shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2000, shape).astype(np.float32)
    if dtype != "uint32":
        x -= 1000
        x.flat[::7] = np.nan
        x.flat[::5], x.flat[1::5] = 0.0, -0.0
        x.flat[[2, 9]] = np.inf, -np.inf
    a = device(x, dtype)
    order = np.argsort(x, axis=-1, kind="stable")
    np.testing.assert_array_equal(host(mx.argsort(a, axis=-1)), order)
    # Both zeros are equal, and stay in their order.
    want, got = np.take_along_axis(x, order, -1), host(mx.sort(a, axis=-1))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(
        np.signbit(got) | np.isnan(got), np.signbit(want) | np.isnan(want)
    )


def test_scatters_of_many_places() -> None:
    rng = np.random.default_rng(0)
    places = rng.integers(0, 40, 20_000)
    want = np.zeros(40)
    np.add.at(want, places, 1)
    ones = mx.ones((20_000,))
    sums = mx.zeros((40,)).at[mx.array(places.astype(np.int32))].add(ones)
    np.testing.assert_array_equal(host(sums), want)
