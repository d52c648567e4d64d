"""What we do otherwise than mlx on purpose; differences.py names the cases left out there."""

import math

import numpy as np
import pytest
from support.harness import rng

import ultramarine as mx


@pytest.mark.parametrize("dtype", ["i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_other_byte_order(dtype: str) -> None:
    data = np.arange(-3, 9).reshape(3, 4).astype(f">{dtype}")
    for part in (data, data.T, data[::2, ::-1]):
        assert (np.array(mx.array(part)) == part).all()


def test_full_has_the_dtype_asked_for() -> None:
    made = mx.full((2,), 3.7, mx.int16)
    assert (made.dtype, made.tolist()) == (mx.int16, [3, 3])


def test_dtypes_are_unequal_to_anything_else() -> None:
    for other in (None, "float32", 10, mx.floating):
        assert (mx.float32 == other) is False
        assert mx.float32 != other


@pytest.mark.parametrize("index", [None, ...])
def test_assignment_keeps_the_dtype(index: None) -> None:
    x = mx.array([[1, 2], [3, 4]])
    x[index] = 1.5
    assert (x.dtype, x.tolist()) == (mx.int32, [[1, 1], [1, 1]])
    x[index] = mx.array([[[2.5, 3.5]]])
    assert (x.dtype, x.tolist()) == (mx.int32, [[2, 3], [2, 3]])
    y = x.at[index].add(mx.array([[0.5, 1.0]]))
    assert (y.dtype, y.tolist()) == (mx.int32, [[2, 4], [2, 4]])


def numbers(*shape: int) -> np.ndarray:
    return rng("deviations", shape).standard_normal(shape).astype(np.float32)


def test_derivative_of_addmm() -> None:
    c, a, b = numbers(3, 4, 4)
    dc, da, db = numbers(3, 4, 4) * 0.5
    _, (product,) = mx.jvp(
        lambda c, a, b: mx.addmm(c, a, b, 0.5, 2.0),
        [mx.array(v) for v in (c, a, b)],
        [mx.array(v) for v in (dc, da, db)],
    )
    assert np.allclose(np.array(product), 0.5 * (da @ b + a @ db) + 2 * dc, atol=1e-5)


def test_second_derivative_of_max() -> None:
    x = mx.array([1.0, 3.0, 2.0])

    def slope(x: mx.array) -> mx.array:
        return mx.jvp(lambda x: mx.max(x) ** 2, [x], [mx.ones(3)])[1][0]

    assert slope(x).item() == 6
    assert mx.grad(slope)(x).tolist() == [0, 2, 0]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_vmap_of_assignment(axis: int) -> None:
    x, y = numbers(3, 3, 3), mx.array(numbers(3, 3))

    def assigned(x: mx.array) -> mx.array:
        x = x * 1
        x[1:] = y[:2] * 2
        return x * x

    made = np.array(mx.vmap(assigned, in_axes=axis)(mx.array(x)))
    one_by_one = [np.array(assigned(mx.array(part))) for part in np.moveaxis(x, axis, 0)]
    assert np.allclose(made, np.stack(one_by_one))


def test_refused() -> None:
    x = mx.ones(4)
    with pytest.raises(ValueError):
        mx.vjp(lambda x: x, [x], [x, x])
    with pytest.raises(ValueError):
        mx.as_strided(x, (2, 2), (1,))


def test_truth_of_complex_numbers() -> None:
    flags = mx.array([True, False])
    assert mx.multiply(flags, np.complex64(1j)).tolist() == [True, False]


def test_object_without_dimensions() -> None:
    assert (mx.array([1, 2]) + np.array(3, dtype=object)).tolist() == [4, 5]


def test_arange_rounds_once() -> None:
    assert (np.array(mx.arange(0, 1, 0.1)) == (np.arange(10) * 0.1).astype(np.float32)).all()


@pytest.mark.parametrize("dtype", [mx.uint8, mx.uint32, mx.int32, mx.int64])
def test_integers_rounded_to_decimals_stay(dtype: mx.Dtype) -> None:
    x = mx.array([0, 25, mx.iinfo(dtype).max], dtype)
    assert (mx.round(x, 2).tolist(), mx.round(x, 2).dtype) == (x.tolist(), dtype)


def test_rounding_float64() -> None:
    x = np.array([-2.6, 2.674, 1234.5678])
    for decimals in (1, 2):
        made = np.array(mx.round(mx.array(x, mx.float64), decimals))
        assert np.allclose(made, np.round(x, decimals), rtol=1e-15, atol=0)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.uint64, np.int32])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), ()])
def test_softmax_and_logsumexp_of_integers_are_floats(dtype: type, axis: object) -> None:
    data = np.array([[3, 0, 7], [1, 200, 2]]).astype(dtype)
    wide = data.astype(np.float64)
    all_axes = (0, 1) if axis is None else axis
    e = np.exp(wide - wide.max(axis=all_axes, keepdims=True))
    total = e.sum(axis=all_axes, keepdims=True)
    softmax = mx.softmax(mx.array(data), axis=axis)
    assert softmax.dtype == mx.float32
    assert np.allclose(np.array(softmax), e / total, atol=1e-6)
    sums = mx.logsumexp(mx.array(data), axis=axis, keepdims=True)
    assert sums.dtype == mx.float32
    assert np.allclose(np.array(sums), np.log(total) + wide.max(axis=all_axes, keepdims=True))
    assert mx.softmax(mx.zeros((0, 3), mx.int32), axis=1).dtype == mx.float32


@pytest.mark.parametrize("dtype, count", [(mx.float16, 5000), (mx.bfloat16, 900)])
def test_running_sums_of_16_bits_go_on(dtype: mx.Dtype, count: int) -> None:
    made = mx.cumsum(mx.ones(count, dtype))
    assert made.dtype == dtype
    assert mx.array_equal(made, mx.arange(1, count + 1).astype(dtype)).item()


@pytest.mark.parametrize("axis", [0, (0,), [-1]])
def test_shifts_along_one_axis_add_up(axis: object) -> None:
    assert mx.roll(mx.arange(6), (1, 2), axis).tolist() == [3, 4, 5, 0, 1, 2]


def test_statistics_of_float16_do_not_overflow() -> None:
    x = mx.array(np.tile(np.float16([300, -300]), 500))
    assert mx.mean(mx.abs(x)).item() == mx.std(x).item() == 300
    assert mx.linalg.norm(x).item() == np.float16(300 * math.sqrt(1000))
    assert mx.logsumexp(mx.zeros((100_000, 2), mx.float16), axis=0).tolist() == [11.515625] * 2
    assert mx.median(mx.array([6e4, 6e4], mx.float16)).item() == np.float16(6e4)
