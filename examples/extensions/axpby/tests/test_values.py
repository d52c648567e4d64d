"""Values: every dtype, shape and layout, with the bits of the composed expression."""

import threading

import numpy as np
import pytest
from helpers import ALPHA, BETA, FLOATS, INTEGERS, bits, composed, same, values
from ultramarine_axpby import axpby

import ultramarine as um

SHAPES = [
    ((), ()),
    ((1,), ()),
    ((7,), (7,)),
    ((3, 4), (3, 4)),
    ((3, 1), (4,)),
    ((2, 1, 5), (3, 1)),
    ((0, 3), (1, 3)),
    ((4, 0), ()),
    ((1031, 33), (1031, 33)),
    ((2, 3, 4, 5), (3, 1, 5)),
]

LAYOUTS = {
    "whole": lambda a: a,
    "transposed": lambda a: a.T,
    "every second": lambda a: a[:, ::2],
    "backwards": lambda a: a[::-1, ::-1],
    "rows with gaps": lambda a: a[:, :37],
    "shifted": lambda a: a[3:, 1:],
    "one row": lambda a: um.broadcast_to(a[5], a.shape),
    "one column": lambda a: um.broadcast_to(a[:, 5:6], a.shape),
    "three axes": lambda a: um.transpose(a.reshape(5, 8, 40), (2, 0, 1)).reshape(40, 40),
}


def skip_without(device, dtype):
    """float64 is not for every accelerator."""
    if device == "gpu" and dtype == "float64":
        try:
            um.eval(um.zeros((1,), dtype=um.float64) + 1)
        except (RuntimeError, ValueError) as error:
            pytest.skip(str(error))


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_bits_are_those_of_the_composed_expression(device, dtype, shapes):
    skip_without(device, dtype)
    x, y = values(shapes[0], dtype), values(shapes[1], dtype, 1)
    same(axpby(x, y, ALPHA, BETA), composed(x, y))


@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("first", LAYOUTS)
def test_any_strides(device, first, second):
    x, y = (
        LAYOUTS[first](values((40, 40), "float32")),
        LAYOUTS[second](values((40, 40), "float32", 1)),
    )
    x, y = x[:37, :20], y[:37, :20]
    same(axpby(x, y, ALPHA, BETA), composed(x, y))


@pytest.mark.parametrize("dtype", FLOATS)
def test_any_strides_of_any_dtype(device, dtype):
    skip_without(device, dtype)
    x, y = values((60, 40), dtype).T[::-1], values((40, 1), dtype, 1)
    same(axpby(x, y, ALPHA, BETA), composed(x, y))


@pytest.mark.parametrize("dtype", FLOATS)
def test_large_arrays_are_written_past_the_caches(dtype):
    with um.stream(um.cpu):
        x, y = values((3001, 3001), dtype), values((3001, 3001), dtype, 1)
        same(axpby(x, y, ALPHA, BETA), composed(x, y))
        # Rows that begin anywhere, and that have gaps.
        x, y = x[1:, 3:], y[:-1, :-3]
        same(axpby(x, y, ALPHA, BETA), composed(x, y))


@pytest.mark.parametrize("dtype", FLOATS)
def test_values_are_near_the_exact_ones(dtype):
    x, y = values((50, 7), dtype), values((50, 7), dtype, 1)
    wide = np.complex128 if dtype == "complex64" else np.float64
    with np.errstate(invalid="ignore"):
        want = ALPHA * bits(x).astype(wide) + BETA * bits(y).astype(wide)
    sizes = ALPHA * abs(bits(x)).astype(np.float64) - BETA * abs(bits(y)).astype(np.float64)
    digits = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}.get(dtype, 2.0**-23)
    got, limit = (
        bits(axpby(x, y, ALPHA, BETA)).astype(wide),
        65504.0 if dtype == "float16" else np.inf,
    )
    close = np.isfinite(want) & (sizes < limit)
    assert close.sum() > 300
    assert (abs(got[close] - want[close]) <= 4 * digits * sizes[close] + 1e-7).all()


@pytest.mark.parametrize("other", FLOATS + INTEGERS)
@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_dtypes_promote(dtype, other):
    with um.stream(um.cpu):
        x, y = values((5, 3), dtype), values((3,), other, 1)
        got = axpby(x, y, ALPHA, BETA)
        assert um.issubdtype(got.dtype, um.inexact)
        if dtype in INTEGERS and other in INTEGERS:
            assert got.dtype == um.float32
        same(got, composed(x, y))


def test_the_guides_script():
    x, y = um.ones((3, 4)), um.ones((3, 4))
    z = axpby(x, y, 4.0, 2.0, stream=um.cpu)
    assert (z.shape, z.dtype) == ((3, 4), um.float32)
    assert um.all(z == 6.0).item()


def test_it_runs_on_the_named_device():
    x = um.ones((3, 4))
    for stream in [um.cpu, um.Device(um.cpu, 0), um.new_stream(um.cpu), um.default_stream(um.cpu)]:
        same(axpby(x, x, 4.0, 2.0, stream=stream), um.full((3, 4), 6.0))
    same(axpby(x, x, 4.0, 2.0, stream=um.new_thread_local_stream(um.cpu)), um.full((3, 4), 6.0))


def test_other_arrays_and_numbers_are_taken():
    numpy, number = np.arange(6, dtype=np.float32).reshape(2, 3), 2.0
    same(axpby(numpy, number, 2.0, 1.0), um.array(numpy) * 2.0 + 2.0)
    same(axpby([1.0, 2.0], um.array([3.0, 4.0]), 1, True), um.array([4.0, 6.0]))


def test_operands_stay_and_unused_memory_is_taken():
    x, y = values((64, 64), "float32"), values((64, 64), "float32", 1)
    before = bits(x).copy(), bits(y).copy()
    um.eval(axpby(x, y, ALPHA, BETA))
    np.testing.assert_array_equal(bits(x), before[0])
    np.testing.assert_array_equal(bits(y), before[1])
    # Here both operands are nobody else's.
    same(axpby(x * 1, y * 1, ALPHA, BETA), composed(x, y))
    same(axpby(x * 1, y, ALPHA, BETA), composed(x, y))
    same(axpby(x, y * 1, ALPHA, BETA), composed(x, y))
    both = x * 1
    same(axpby(both, both, ALPHA, BETA), composed(x, x))


def test_threads_of_the_program_do_not_disturb_each_other():
    x, y = values((300, 300), "float32"), values((300, 300), "float32", 1)
    want = composed(x, y)
    um.eval(want)
    failed = []

    def work():
        try:
            for _ in range(20):
                same(axpby(x, y, ALPHA, BETA), want)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_errors_say_what_is_wrong():
    x = um.ones((3, 4))
    with pytest.raises(ValueError, match=r"\(3, 4\) and \(5,\)"):
        axpby(x, um.ones((5,)), 1.0, 1.0)
    with pytest.raises(ValueError, match=r"\[axpby\] y may be of bool.*float8_e4m3fn"):
        axpby(x, x.astype(um.float8_e4m3fn), 1.0, 1.0)
    with pytest.raises(TypeError):
        axpby(x, x, "alpha", 1.0)
    with pytest.raises(TypeError):
        axpby(x, x, 1.0)
    with pytest.raises(TypeError):
        axpby(x, x, 1.0, 1.0, um.cpu)
    with pytest.raises((TypeError, ValueError)):
        axpby(x, object(), 1.0, 1.0)
    with pytest.raises(TypeError):
        axpby(x, x, 1.0, 1.0, stream="cpu")
