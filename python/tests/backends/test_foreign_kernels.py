"""`fast.foreign_kernel`: functions that write into arrays, as operations. Those of other libraries on a GPU are in
interchange/test_kernel_authors.py."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import ultramarine as mx


@mx.fast.foreign_kernel
def combined(x: mx.array, y: mx.array, total: mx.array, product: mx.array) -> None:
    a, b = np.from_dlpack(x), np.from_dlpack(y)
    np.add(a, b, out=np.from_dlpack(total))
    np.multiply(a, b, out=np.from_dlpack(product), casting="unsafe")


def call(x: mx.array, y: mx.array) -> list[mx.array]:
    return combined(
        inputs=[x, y],
        output_shapes=[x.shape, x.shape],
        output_dtypes=[mx.float32, mx.float64],
        stream=mx.cpu,
    )


def test_several_outputs_among_other_operations() -> None:
    x = mx.arange(12, dtype=mx.float32).reshape(3, 4)
    total, product = call(x * 2, x.T.reshape(3, 4) + 1)
    assert (total + 1).tolist() == (x * 2 + x.T.reshape(3, 4) + 2).tolist()
    assert product.dtype == mx.float64
    assert product.tolist() == (x * 2 * (x.T.reshape(3, 4) + 1)).tolist()


def test_in_compile() -> None:
    @mx.compile
    def f(x: mx.array) -> mx.array:
        total, product = call(x + 1, x)
        return mx.sqrt(total) + product.astype(mx.float32)

    for i in range(4):
        x = mx.arange(5, dtype=mx.float32) + i
        want = np.sqrt(2 * np.array(x) + 1) + np.array(x) * (np.array(x) + 1)
        np.testing.assert_allclose(np.array(f(x)), want, rtol=1e-6)


def test_one_function_is_one_operation() -> None:
    calls = []

    def write(x: mx.array, out: mx.array) -> None:
        calls.append(x.shape)
        np.from_dlpack(out)[...] = np.from_dlpack(x) + 1

    kernel = mx.fast.foreign_kernel(write, name="mine")
    assert kernel.name == "mine" and repr(kernel) == "<ultramarine.fast.ForeignKernel 'mine'>"
    one = lambda x: kernel(
        inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], stream=mx.cpu
    )[0]
    f = mx.compile(lambda x: one(x) + one(x))
    assert f(mx.array([1.0, 2.0])).tolist() == [4, 6]
    assert calls == [(2,)]


def test_strides_and_the_initial_value() -> None:
    seen = []

    def write(x: mx.array, out: mx.array) -> None:
        seen.append(np.from_dlpack(x).strides)
        assert np.from_dlpack(out).tolist() == [7, 7]

    x = mx.arange(4, dtype=mx.float32)[::2]
    for rows in (True, False):
        kernel = mx.fast.foreign_kernel(write, ensure_row_contiguous=rows)
        outputs = kernel(
            inputs=[x],
            output_shapes=[(2,)],
            output_dtypes=[mx.int32],
            init_value=7,
            stream=mx.cpu,
        )
        assert outputs[0].tolist() == [7, 7]
    assert seen == [(4,), (8,)]


def test_exceptions_come_with_the_value() -> None:
    def write(out: mx.array) -> None:
        raise KeyError("of the library")

    kernel = mx.fast.foreign_kernel(write)
    (y,) = kernel(inputs=[], output_shapes=[(2,)], output_dtypes=[mx.float32], stream=mx.cpu)
    z = y + 1
    with pytest.raises(KeyError, match="of the library"):
        mx.eval(z)
    with pytest.raises(KeyError, match="of the library"):
        mx.eval(y)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="expected a function"):
        mx.fast.foreign_kernel(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one output"):
        combined(inputs=[], output_shapes=[], output_dtypes=[])
    with pytest.raises(ValueError, match="1 shapes and 0 dtypes"):
        combined(inputs=[], output_shapes=[(1,)], output_dtypes=[])
    x = mx.ones(3)
    for rule in (
        lambda: mx.grad(lambda x: call(x, x)[0].sum())(x),
        lambda: mx.vmap(lambda x: call(x, x)[0])(mx.ones((2, 3))),
    ):
        with pytest.raises(ValueError, match="Wrap its call in custom_function"):
            rule()


def test_many_threads() -> None:
    def work(i: int) -> None:
        for j in range(50):
            x = mx.full((100,), float(i + j))
            total, product = call(x, x)
            assert mx.sum(total).item() == 200 * (i + j)
            assert mx.sum(product).item() == 100 * (i + j) ** 2

    failed: list[BaseException] = []

    def guarded(i: int) -> None:
        try:
            work(i)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed and not any(thread.is_alive() for thread in threads)
