"""Kernels in WGSL, on the device of the plugin in PLUGIN: run by test_kernels.py. They are watched by the validation
layer."""

from __future__ import annotations

import os
from functools import partial

import numpy as np
import pytest
from support import device_kernels
from support.device_kernels import GPU, run

import ultramarine as mx
from ultramarine import backends

backends.load(os.environ["PLUGIN"])

# An element of each dtype, to compute with, from words of the array `x`.
WORDS = {
    "float32": "x[i]",
    "int32": "f32(x[i])",
    "uint32": "f32(x[i])",
    "float16": "um_float16_of(x[i / 2u], i)",
    "bfloat16": "um_bfloat16_of(x[i / 2u], i)",
    "bool_": "f32(um_uint8_of(x[i / 4u], i))",
    "uint8": "f32(um_uint8_of(x[i / 4u], i))",
    "int8": "f32(um_int8_of(x[i / 4u], i))",
    "uint16": "f32(um_uint16_of(x[i / 2u], i))",
    "int16": "f32(um_int16_of(x[i / 2u], i))",
    "uint64": "f32((u64(x[i].y) << 32u) | u64(x[i].x))",
    "int64": "f32(i64((u64(x[i].y) << 32u) | u64(x[i].x)))",
    "complex64": "um_real(um_multiply(x[i], um_complex(1.0, 0.0)))",
}

make = partial(device_kernels.make, "wgsl")


def test_the_example_of_the_guide() -> None:
    a = mx.random.normal(shape=(4, 16))
    kernel = make("let i = thread_position_in_grid.x; y[i] = x[i] * x[i];")
    b = run(kernel, a)
    assert b.shape == (4, 16) and b.device == GPU
    np.testing.assert_array_equal(np.array(b), np.array(a) * np.array(a))
    assert (b + 1).device == GPU, "what follows runs there, too"


@pytest.mark.parametrize("contiguous", [True, False])
def test_layouts(contiguous: bool) -> None:
    at = "i" if contiguous else "um_loc_x(i)"
    kernel = make(
        f"let i = thread_position_in_grid.x; y[i] = x[{at}];", ensure_row_contiguous=contiguous
    )
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
        # Bindings begin at multiples of 16 bytes at least.
        x.reshape(24)[1:],
        x.reshape(24)[4:],
    ):
        want = np.array(view)
        np.testing.assert_array_equal(np.array(run(kernel, view)), want)
        there = mx.copy(view, device=GPU)
        np.testing.assert_array_equal(np.array(run(kernel, there)), want)


def test_parts_of_an_array_on_the_device() -> None:
    kernel = make("let i = thread_position_in_grid.x; y[i] = x[i] + 1.0;")
    x = mx.arange(300, dtype=mx.float32)
    there = mx.copy(x, device=GPU)
    mx.eval(there)
    for first in (1, 3, 4, 5, 64, 255):
        assert run(kernel, there[first:]).tolist() == (x[first:] + 1).tolist()


@pytest.mark.parametrize("name", WORDS)
def test_dtypes(name: str) -> None:
    x = mx.array([0.0, 1.0, 2.5, 100.0, 7.0, 0.0, 3.0]).astype(getattr(mx, name))
    if name in ("int8", "int16", "int32", "int64", "float16", "bfloat16"):
        x = x * mx.array(-1, x.dtype)
    kernel = make(f"let i = thread_position_in_grid.x; y[i] = {WORDS[name]};")
    want = np.array(x.astype(mx.float32))
    np.testing.assert_array_equal(np.array(run(kernel, x)), want)
    there = mx.copy(x, device=GPU)
    np.testing.assert_array_equal(np.array(run(kernel, there[3:])), want[3:])


def test_outputs_of_halves_are_pairs() -> None:
    for dtype in ("float16", "bfloat16"):
        body = f"let i = thread_position_in_grid.x; y[i] = um_{dtype}_pair(f32(2u * i), f32(2u * i) + 1.0);"
        got = run(
            make(body, inputs=""), shape=(5,), grid=(3, 1, 1), output_dtypes=[getattr(mx, dtype)]
        )
        assert got.tolist() == [0, 1, 2, 3, 4]


def test_template_arguments() -> None:
    kernel = make(
        "y[thread_position_in_grid.x] = f32(N) + f32(T(2.5)) + select(0.0, 0.5, FLAG);", ""
    )
    for n, flag, dtype, want in ((3, True, mx.int32, 5.5), (-3, False, mx.float32, -0.5)):
        got = run(kernel, shape=(2,), template=[("N", n), ("FLAG", flag), ("T", dtype)])
        assert got.tolist() == [want] * 2


def test_outputs_first_values_and_atomics() -> None:
    kernel = make(
        "let i = thread_position_in_grid.x; a[i] = i32(i); b[i] = f32(i % 2u);", "", "a b"
    )
    a, b = kernel(
        inputs=[],
        grid=(5, 1, 1),
        threadgroup=(3, 1, 1),
        output_shapes=[(5,), (1, 5)],
        output_dtypes=[mx.int32, mx.float32],
        stream=GPU,
    )
    assert a.tolist() == [0, 1, 2, 3, 4] and b.tolist() == [[0, 1, 0, 1, 0]]
    kernel = make("if (thread_position_in_grid.x == 0u) { y[0] = 9.0; }", "")
    assert run(kernel, shape=(3,), init_value=1.5).tolist() == [9.0, 1.5, 1.5]
    kernel = make("atomicAdd(&y[x[thread_position_in_grid.x]], 1u);", atomic_outputs=True)
    x = mx.array([0, 1, 1, 3] * 100)
    got = run(kernel, x, output_shapes=[(4,)], output_dtypes=[mx.uint32], init_value=0)
    assert got.tolist() == [100, 200, 0, 100]


def test_threads_and_shared_memory() -> None:
    kernel = make(
        """
        let i = thread_index_in_threadgroup;
        seen[i] += x[thread_position_in_grid.x];
        workgroupBarrier();
        if (i == 0u) {
            var sum = 0.0;
            for (var k = 0u; k < threads_per_threadgroup.x; k += 1u) { sum += seen[k]; }
            y[threadgroup_position_in_grid.x] = sum + f32(threads_per_grid.x);
        }
        """,
        header="var<workgroup> seen: array<f32, 8>;",
    )
    x = mx.arange(32, dtype=mx.float32)
    got = run(kernel, x, threadgroup=(8, 1, 1), output_shapes=[(4,)])
    assert got.tolist() == [32 + 28 + 64 * i for i in range(4)]


def test_numbers_are_what_wgsl_says() -> None:
    kernel = make("y[0] = f32(x[0] / x[1]) + f32(x[0] % x[1]);")
    assert run(kernel, mx.array([7, 0], mx.int32), shape=()).item() == 7.0
    kernel = make("y[0] = select(0.0, 1.0, x[0] != x[0]);")
    assert run(kernel, mx.array([float("nan")]), shape=()).item() == 1.0


def test_nothing_to_do() -> None:
    kernel = make("let i = thread_position_in_grid.x; y[i] = x[i];")
    assert run(kernel, mx.zeros((0, 3))).shape == (0, 3)
    assert run(kernel, mx.zeros((2,)), grid=(0, 1, 1), init_value=4).tolist() == [4.0, 4.0]
    kernel = make("y[thread_position_in_grid.x] = 3.0;")
    assert run(kernel, mx.zeros((0,)), shape=(2,)).tolist() == [3.0, 3.0], (
        "an input without elements"
    )


def test_errors_of_the_compiler() -> None:
    out = run(make("let a = x[0];\nlet b = missing(a);\ny[0] = b;"), mx.array([1.0]))
    with pytest.raises(RuntimeError) as failed:
        mx.eval(out)
    text = str(failed.value)
    assert "[mine] The kernel does not compile as wgsl on gpu:0 (backend vulkan)" in text
    assert "wgsl:2:9" in text and "2 │ let b = missing(a);" in text
    assert "> 2 | let b = missing(a);" in text and "  1 | let a = x[0];" in text


@pytest.mark.parametrize(
    ("body", "header", "says"),
    [
        ("y[0] = u32(x[0]);", "", "wgsl:1:"),
        ("y[0] = 1.0", "", "expected"),
        ("x[0] = 1.0;", "", "wgsl:1:"),
        (
            "y[0] = textureLoad(t, vec2(0), 0).x;",
            "@group(0) @binding(9) var t: texture_2d<f32>;",
            "t is outside group 0",
        ),
        (
            "y[0] = u[0].x;",
            "@group(0) @binding(2) var<uniform> u: array<vec4<f32>, 2>;",
            "u is larger than a scalar",
        ),
        (
            "y[0] = more[0];",
            "@group(0) @binding(7) var<storage, read> more: array<f32>;",
            "numbered",
        ),
        (
            "many[0] = 1.0; y[0] = many[0];",
            "var<workgroup> many: array<f32, 100000000>;",
            "var<workgroup> has",
        ),
        ("y[0] = f(1.0);", "fn f(a: f32) -> f32 { return f(a); }", "recursive"),
        ("y[0] = n;", "override n: f32;", "verride"),
    ],
)
def test_sources_that_are_refused(body: str, header: str, says: str) -> None:
    with pytest.raises(RuntimeError, match="does not compile as wgsl") as failed:
        mx.eval(run(make(body, header=header), mx.array([1.0])))
    assert says in str(failed.value)
    assert run(make("y[0] = x[0];"), mx.array([2.0])).tolist() == [2.0], "the next one compiles"


def test_languages_are_reported() -> None:
    other = mx.fast.cuda_kernel("c", ["x"], ["y"], "y[0] = 1;")
    says = r"is in cuda-c, but gpu:0 \(backend vulkan\) takes: wgsl"
    with pytest.raises(RuntimeError, match=says):
        run(other, mx.array([1.0]))


def test_groups_that_the_device_does_not_take() -> None:
    kernel = make("y[0] = 1.0;", "")
    with pytest.raises(ValueError, match="threads, but gpu:0"):
        mx.eval(run(kernel, shape=(1,), grid=(1 << 20, 1, 1), threadgroup=(1 << 20, 1, 1)))
    with pytest.raises(RuntimeError, match="groups: at least 1 along each axis"):
        mx.eval(run(kernel, shape=(1,), grid=(1, (1 << 32) - 1, 1), threadgroup=(1, 1, 1)))


def test_a_scalar_that_no_call_gives() -> None:
    kernel = make("y[0] = u;", header="@group(0) @binding(2) var<uniform> u: f32;")
    with pytest.raises(RuntimeError, match="the kernel has 3 bindings, the launch 2 arguments"):
        mx.eval(run(kernel, mx.array([1.0])))


def test_more_arrays_than_a_kernel_has() -> None:
    names = [f"x{i}" for i in range(200)]
    kernel = make("y[0] = " + " + ".join(f"{name}[0]" for name in names) + ";", " ".join(names))
    with pytest.raises(RuntimeError, match=r"201 arguments, .* at most"):
        mx.eval(run(kernel, *[mx.array([1.0])] * 200))
    kernel = make(
        "y[0] = " + " + ".join(f"{name}[0]" for name in names[:6]) + ";", " ".join(names[:6])
    )
    assert run(kernel, *[mx.array([1.0])] * 6).tolist() == [6.0]


def test_where_it_runs() -> None:
    kernel = make("let i = thread_position_in_grid.x; y[i] = x[i] + 1.0;")
    there = mx.copy(mx.zeros((3,)), device=GPU)
    out = run(kernel, there, stream=None)
    assert out.device == GPU and (out * 2).tolist() == [2.0, 2.0, 2.0]
    with mx.stream(mx.new_stream(GPU)):
        for _ in range(20):
            out = run(kernel, out, stream=None)
    assert out.tolist() == [21.0] * 3
