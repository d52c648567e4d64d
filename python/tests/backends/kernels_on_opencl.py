"""Kernels in OpenCL C, on the device of the plugin in PLUGIN: run by test_kernels.py. They are watched by the
validation layer."""

from __future__ import annotations

import os
import re
from functools import partial

import numpy as np
import pytest
from support import device_kernels
from support.device_kernels import GPU, run
from support.paths import DOCS

import ultramarine as mx
from ultramarine import backends

backends.load(os.environ["PLUGIN"])

DTYPES = "bool_ uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64"

make = partial(device_kernels.make, "opencl-c")


def test_the_example_of_the_guide() -> None:
    a = mx.random.normal(shape=(4, 16))
    kernel = make("uint i = thread_position_in_grid.x; y[i] = exp(x[i]);")
    b = run(kernel, a)
    assert b.shape == (4, 16) and b.device == GPU
    np.testing.assert_allclose(np.array(b), np.exp(np.array(a)), rtol=1e-5)
    assert (b + 1).device == GPU, "what follows runs there, too"


@pytest.mark.parametrize("contiguous", [True, False])
def test_layouts(contiguous: bool) -> None:
    if contiguous:
        body = "size_t i = get_global_id(0); y[i] = x[i];"
    else:
        body = (
            "size_t i = get_global_id(0); y[i] = x[um_elem_to_loc(i, x_shape, x_strides, x_ndim)];"
        )
    kernel = make(body, ensure_row_contiguous=contiguous)
    x = mx.arange(24, dtype=mx.float32).reshape(2, 3, 4)
    for view in (
        x,
        x.T,
        x[1],
        x[:, ::2, 1:],
        x[::-1],
        mx.broadcast_to(x[:, :1], (2, 3, 4)),
        x[0, 0, 0],
        x[:, :0],
    ):
        want = np.array(view)
        np.testing.assert_array_equal(np.array(run(kernel, view)), want)
        there = mx.copy(view, device=GPU)
        np.testing.assert_array_equal(np.array(run(kernel, there)), want)


@pytest.mark.parametrize("name", DTYPES.split())
def test_dtypes(name: str) -> None:
    dtype = getattr(mx, name)
    kernel = make("size_t i = get_global_id(0); um_store(T, y, i, um_load(T, x, i));")
    x = mx.array([0.0, 1.0, 2.5, 100.0]).astype(dtype)
    got = run(kernel, x, template=[("T", dtype)], output_dtypes=[dtype])
    assert got.dtype == dtype and mx.array_equal(got, x).item()


def test_template_arguments() -> None:
    kernel = make("y[get_global_id(0)] = N + (FLAG ? 0.5f : 0.0f) + sizeof(T);", inputs="")
    for n, flag, dtype, want in ((3, True, mx.int64, 11.5), (-3, False, mx.uint8, -2.0)):
        got = run(kernel, shape=(2,), template=[("N", n), ("FLAG", flag), ("T", dtype)])
        assert got.tolist() == [want] * 2


def test_outputs_first_values_and_atomics() -> None:
    kernel = make(
        "uint i = thread_position_in_grid.x; a[i] = i; b[i] = i % 2;", inputs="", outputs="a b"
    )
    a, b = kernel(
        inputs=[],
        grid=(5, 1, 1),
        threadgroup=(3, 1, 1),
        output_shapes=[(5,), (1, 5)],
        output_dtypes=[mx.int32, mx.bool_],
        stream=GPU,
    )
    assert a.tolist() == [0, 1, 2, 3, 4] and b.tolist() == [[False, True, False, True, False]]
    kernel = make("if (get_global_id(0) == 0) y[0] = 9;", inputs="")
    assert run(kernel, shape=(3,), init_value=1.5).tolist() == [9.0, 1.5, 1.5]
    kernel = make("um_atomic_add(um_float32, y, (int)x[get_global_id(0)], 1);", atomic_outputs=True)
    x = mx.array([0, 1, 1, 3] * 100)
    got = run(kernel, x, output_shapes=[(4,)], init_value=0)
    assert got.tolist() == [100.0, 200.0, 0.0, 100.0]


def test_numbers_as_inputs() -> None:
    kernel = make("y[0] = a[0] + b[0];", inputs="a b")
    assert run(kernel, 1.5, 2).item() == 3.5
    assert run(kernel, np.float32(1.5), mx.array(2, mx.int8)).item() == 3.5


def test_nothing_to_do() -> None:
    kernel = make("y[get_global_id(0)] = x[get_global_id(0)];")
    assert run(kernel, mx.zeros((0, 3))).shape == (0, 3)
    assert run(kernel, mx.zeros((2,)), grid=(0, 1, 1), init_value=4).tolist() == [4.0, 4.0]


def test_verbose_prints_the_source(capsys: pytest.CaptureFixture[str]) -> None:
    run(make("y[0] = x_ndim;"), mx.zeros((2, 2)), verbose=True)
    printed = capsys.readouterr().out
    assert (
        "__kernel void um_kernel_mine(\n    __global const um_float32 *x,\n    const int x_ndim,\n"
        in printed
    )
    assert '#line 1 "mine"\ny[0] = x_ndim;\n}' in printed


def test_errors_of_the_compiler() -> None:
    kernel = make("float a = x[0];\nfloat b = missing(a);\ny[0] = b;")
    out = run(kernel, mx.array([1.0]))
    with pytest.raises(RuntimeError) as failed:
        mx.eval(out)
    text = str(failed.value)
    assert "[mine] The kernel does not compile as opencl-c on gpu:0 (backend opencl)" in text
    assert (
        "mine:2:" in text
        and "> 2 | float b = missing(a);" in text
        and "  1 | float a = x[0];" in text
    )
    # In Python's indented strings, too.
    kernel = make(
        """
        y[0] = 1;
        y[1] = 2
        y[2] = 3;
    """
    )
    with pytest.raises(RuntimeError, match=r"mine:3:"):
        mx.eval(run(kernel, mx.array([1.0])))


def test_wrong_calls() -> None:
    kernel = make("y[0] = x[0];")
    x = mx.array([1.0])
    for wrong, kind in (
        ({"output_shapes": []}, ValueError),
        ({"output_shapes": [(1,), (1,)], "output_dtypes": [mx.float32] * 2}, ValueError),
        ({"output_shapes": [(-1,)]}, ValueError),
        ({"output_shapes": [3]}, TypeError),
        ({"output_dtypes": ["float32"]}, TypeError),
        ({"grid": (1, 1)}, TypeError),
        ({"grid": (1.0, 1, 1)}, TypeError),
        ({"grid": (-1, 1, 1)}, ValueError),
        ({"threadgroup": (0, 1, 1)}, ValueError),
        ({"grid": "abc"}, TypeError),
        ({"template": [("x", 1)]}, ValueError),
        ({"template": [("N", 1.5)]}, ValueError),
        ({"template": [("N", 2**40)]}, ValueError),
        ({"template": {"N": 1}}, TypeError),
        ({"template": [("N", 1, 2)]}, TypeError),
        ({"template": [(1, 2)]}, TypeError),
        ({"template": 3}, TypeError),
        ({"init_value": "x"}, TypeError),
    ):
        with pytest.raises(kind):
            run(kernel, x, **wrong)
            pytest.fail(str(wrong))
    with pytest.raises(ValueError, match="Expected `inputs` to have size 1 but got size 2"):
        run(kernel, x, x)
    with pytest.raises(ValueError):
        run(kernel, "x", shape=())
    with pytest.raises(TypeError):
        kernel(
            inputs=3,
            grid=(1, 1, 1),
            threadgroup=(1, 1, 1),
            output_shapes=[()],
            output_dtypes=[mx.float32],
        )  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        kernel([x])  # type: ignore[call-arg,misc]


def test_languages_are_reported() -> None:
    other = mx.fast.cuda_kernel("c", ["x"], ["y"], "y[0] = 1;")
    with pytest.raises(
        RuntimeError,
        match=r"is in cuda-c, but gpu:0 \(backend opencl\) takes: opencl-c",
    ):
        run(other, mx.array([1.0]))


def test_groups_that_the_device_does_not_take() -> None:
    kernel = make("y[0] = 1;", inputs="")
    with pytest.raises(ValueError, match="threads, but gpu:0"):
        mx.eval(run(kernel, shape=(1,), grid=(1 << 20, 1, 1), threadgroup=(1 << 20, 1, 1)))


def test_gradients_by_a_custom_function() -> None:
    forward = make("uint i = thread_position_in_grid.x; y[i] = exp(x[i]);")
    backward = make(
        "uint i = thread_position_in_grid.x; d[i] = y[i] * c[i];", inputs="y c", outputs="d"
    )

    @mx.custom_function
    def exp(x: mx.array) -> mx.array:
        return run(forward, x)

    @exp.vjp
    def exp_vjp(x: mx.array, cotangent: mx.array, output: mx.array) -> mx.array:
        return run(backward, output, cotangent)

    x = mx.array([0.0, 0.5, 1.0])
    got = mx.grad(lambda x: (exp(x) ** 2).sum())(x)
    np.testing.assert_allclose(np.array(got), 2 * np.exp(2 * np.array(x)), rtol=1e-5)
    with pytest.raises(
        ValueError,
        match=r"\[vjp\] The kernel mine has no vjp rule. Wrap its call in custom_function",
    ):
        mx.grad(lambda x: run(forward, x).sum())(x)
    with pytest.raises(ValueError, match=r"\[jvp\] The kernel mine has no jvp rule"):
        mx.jvp(lambda x: run(forward, x), [x], [x])
    with pytest.raises(ValueError, match=r"\[vmap\] The kernel mine has no vmap rule"):
        mx.vmap(lambda x: run(forward, x))(mx.zeros((2, 3)))


def test_where_it_runs() -> None:
    kernel = make("uint i = thread_position_in_grid.x; y[i] = x[i] + 1;")
    there = mx.copy(mx.zeros((3,)), device=GPU)
    (out,) = kernel(
        inputs=[there],
        grid=(3, 1, 1),
        threadgroup=(3, 1, 1),
        output_shapes=[(3,)],
        output_dtypes=[mx.float32],
    )
    assert out.device == GPU and (out * 2).tolist() == [2.0, 2.0, 2.0]
    with mx.stream(mx.new_stream(GPU)):
        for _ in range(20):
            out = run(kernel, out, stream=None)
    assert out.tolist() == [21.0] * 3


def test_the_guide() -> None:
    """The page's examples, in one namespace, from top to bottom."""
    page = DOCS / "kernels.md"
    text = page.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 3
    names: dict[str, object] = {}
    with mx.stream(GPU):
        for block in blocks:
            line = text.count("\n", 0, block.start(1))
            exec(compile("\n" * line + block[1], str(page), "exec"), names)
