"""Products of gathered matrices, masked blocks and segments in the dtypes that mlx has not, against float64; what mlx gets wrong."""

import numpy as np
import pytest
from support.harness import um

rng = np.random.default_rng(7)
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-13}


def given(dtype: str, *shape: int) -> tuple[um.array, np.ndarray]:
    """Normals in a dtype, and the same in float64."""
    x = um.from_dlpack(rng.standard_normal(shape)).astype(getattr(um, dtype))
    return x, np.array(x.astype(um.float64))


def close(got: um.array, want: np.ndarray, dtype: str) -> None:
    assert got.dtype == getattr(um, dtype) and got.shape == want.shape
    error = np.abs(np.array(got.astype(um.float64)) - want).max(initial=0)
    assert error <= TOLERANCE[dtype] * max(1.0, np.abs(want).max(initial=0))


def spread(mask: np.ndarray, size: int, shape: tuple[int, ...]) -> np.ndarray:
    """A mask of blocks as one of elements."""
    wide = np.repeat(np.repeat(mask, size, -2), size, -1)
    return wide[..., : shape[-2], : shape[-1]]


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_values(dtype: str) -> None:
    (a, x), (b, y) = given(dtype, 2, 3, 5, 40), given(dtype, 4, 40, 7)
    left, right = np.array([[5], [0]]), np.array([3, 3, 1])
    want = x.reshape(6, 5, 40)[left] @ y[right]
    close(um.gather_mm(a, b, um.array(left), um.array(right)), want, dtype)

    (a, x), (b, y) = given(dtype, 2, 70, 100), given(dtype, 100, 33)
    kept = [rng.random(s) > 0.4 for s in [(2, 3, 2), (3, 4), (4, 2)]]
    parts = [
        spread(kept[0], 32, (70, 33)),
        spread(kept[1], 32, (70, 100)),
        spread(kept[2], 32, (100, 33)),
    ]
    want = np.where(parts[0], np.where(parts[1], x, 0) @ np.where(parts[2], y, 0), 0)
    close(um.block_masked_mm(a, b, 32, *map(um.array, kept)), want, dtype)

    (a, x), (b, y) = given(dtype, 6, 50), given(dtype, 50, 3)
    pairs = np.array([[[0, 10], [10, 50]], [[7, 7], [20, 5]]])
    want = np.stack([x[:, i:j] @ y[i:j] for i, j in pairs.reshape(4, 2)]).reshape(2, 2, 6, 3)
    close(um.segmented_mm(a, b, um.array(pairs)), want, dtype)

    x, want = given(dtype, 3, 64)
    for _ in range(2):  # The orthonormal transform of a power of 2 undoes itself.
        x = um.hadamard_transform(x)
    close(x, want, dtype)


def test_what_is_left_out_is_zero() -> None:
    """Also where it is not finite: in blocks that are masked, and outside of segments."""
    a, b = um.full((64, 64), float("nan")), um.full((64, 64), float("inf"))
    none = um.zeros((2, 2), um.bool_)
    assert um.all(um.block_masked_mm(a, b, 32, None, none, none) == 0)
    assert um.all(um.block_masked_mm(a, b, 32, none) == 0)
    x = um.array([[1.0, float("nan")]])
    y = um.array([[2.0], [float("inf")]])
    assert um.segmented_mm(x, y, um.array([[0, 1], [3, 9]])).tolist() == [[[2.0]], [[0.0]]]


def test_what_mlx_does_not_survive() -> None:
    a, b = um.ones((2, 4)), um.ones((4, 3))
    ends = um.segmented_mm(a, b, um.array([[0, 20], [-5, 2]]))
    assert ends[:, 0, 0].tolist() == [4.0, 2.0]
    assert um.segmented_mm(um.ones((0, 4)), b, um.array([[0, 4]])).shape == (1, 0, 3)
    with pytest.raises(ValueError, match=r"2, 4.*must match.*5, 3"):
        um.segmented_mm(a, um.ones((5, 3)), um.array([[0, 4]]))
    with pytest.raises(ValueError, match="m in "):
        um.hadamard_transform(um.ones((2, 36)))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_derivatives_of_gathered_products(dtype: str) -> None:
    """By both factors, of items that choose one matrix many times, and from the end."""
    (a, x), (b, y) = given(dtype, 2, 3, 4, 5), given(dtype, 4, 5, 2)
    index = lambda *i: np.array(i)
    for lhs, rhs in [
        (index(5, 0, -1, 5), index(3, 3, 1, -4)),
        (None, index([0, 3, 0], [0, 0, 2])),
        (index([2], [0]), index(1, 1, 2)),
        (index(9, -9), index(-7, 11)),
        (index(0, 1, 2, 3), None),
    ]:
        chosen = [
            np.arange(n).reshape(batch)
            if i is None
            else np.clip(np.where(i < 0, i + n, i), 0, n - 1)
            for i, n, batch in ((lhs, 6, (2, 3)), (rhs, 4, (4,)))
        ]
        of = [None if i is None else um.array(i) for i in (lhs, rhs)]
        left, right = (
            np.broadcast_to(i, np.broadcast_shapes(*(c.shape for c in chosen))).ravel()
            for i in chosen
        )
        f = lambda a, b, of=of: um.gather_mm(a, b, *of)
        out = f(a, b)
        ct, c = given(dtype, *out.shape)
        got = um.vjp(f, [a, b], [ct])[1]
        by_a, by_b = np.zeros((6, 4, 5)), np.zeros((4, 5, 2))
        for i, j, each in zip(left, right, c.reshape(-1, 4, 2)):
            by_a[i] += each @ y[j].T
            by_b[j] += x.reshape(6, 4, 5)[i].T @ each
        close(got[0], by_a.reshape(x.shape), dtype)
        close(got[1], by_b, dtype)
        (da, dx), (db, dy) = given(dtype, *a.shape), given(dtype, *b.shape)
        moved = um.jvp(f, [a, b], [da, db])[1][0]
        want = dx.reshape(6, 4, 5)[left] @ y[right] + x.reshape(6, 4, 5)[left] @ dy[right]
        close(moved, want.reshape(out.shape), dtype)


def test_segments_far_outside() -> None:
    """They are held to the inner dimension, in every dtype; none wraps."""
    a, b = um.ones((1, 5)), um.arange(5.0).reshape(5, 1)
    for kind, low, high in [
        ("int64", -(2**40), 2**40),
        ("uint64", 0, 2**64 - 1),
        ("uint32", 0, 2**32 - 1),
        ("int8", -128, 127),
    ]:
        pairs = um.array([[low, high], [2, high], [high, low]], dtype=getattr(um, kind))
        assert um.segmented_mm(a, b, pairs)[:, 0, 0].tolist() == [10.0, 9.0, 0.0]


@pytest.mark.parametrize("n", [12, 20, 28, 40])
def test_hadamard_matrices(n: int) -> None:
    """They are Hadamard matrices, and the gradient is the product with their transpose."""
    h = np.array(um.hadamard_transform(um.eye(n), scale=1.0)).T
    assert np.array_equal(np.abs(h), np.ones((n, n))) and np.array_equal(h @ h.T, n * np.eye(n))
    ct = um.array(rng.standard_normal(n, dtype=np.float32))
    got = um.vjp(lambda x: um.hadamard_transform(x, 1.0), [um.ones(n)], [ct])[1][0]
    assert np.allclose(np.array(got), h.T @ np.array(ct), atol=1e-5)


def test_fp8_of_float64() -> None:
    x = um.from_dlpack(np.array([1.0, -3.5, 0.02, 1e300, 2.0**-9, 0.0]))
    codes = um.to_fp8(x)
    assert um.array_equal(codes, um.to_fp8(x.astype(um.float32)))
    assert um.from_fp8(codes, um.float64).tolist() == [1.0, -3.5, 0.01953125, 448.0, 2.0**-9, 0.0]
