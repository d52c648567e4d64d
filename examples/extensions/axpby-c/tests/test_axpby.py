"""axpby against float64 in NumPy, and its transforms against the composed expression."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ultramarine_axpby_c import axpby

import ultramarine as mx

ALPHA, BETA = 4.0, -2.5
# Half a unit in the last place of the result, and of the products in float32.
ULP = {
    "float16": 2**-10,
    "bfloat16": 2**-7,
    "float32": 2**-22,
    "float64": 2**-51,
    "complex64": 2**-22,
}
RANDOM = np.random.default_rng(5)


def draw(shape: tuple[int, ...], dtype: str) -> mx.array:
    data = RANDOM.standard_normal(shape)
    if dtype == "complex64":
        return mx.array((data + 1j * RANDOM.standard_normal(shape)).astype(np.complex64))
    if dtype == "float32":
        return mx.array(data.astype(np.float32))
    with mx.stream(mx.cpu):
        return mx.asarray(data).astype(getattr(mx, dtype))


def wide(a: mx.array) -> Any:
    """The same numbers in NumPy, in float64 or complex128."""
    with mx.stream(mx.cpu):
        if a.dtype == mx.complex64:
            return np.array(a).astype(np.complex128)
        return np.array(a.astype(mx.float64))


def check(x: mx.array, y: mx.array, alpha: float = ALPHA, beta: float = BETA) -> None:
    out = axpby(x, y, alpha, beta)
    a, b = alpha * wide(x), beta * wide(y)
    ulp = ULP[str(out.dtype).removeprefix("ultramarine.core.").rpartition(".")[2]]
    assert out.shape == np.broadcast_shapes(x.shape, y.shape)
    assert np.all(np.abs(wide(out) - (a + b)) <= ulp * (np.abs(a) + np.abs(b)) + 2.0**-24)


@pytest.mark.parametrize("dtype", list(ULP))
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (7,), (3, 4), (65, 3, 129), (300, 500)])
def test_values(dtype: str, shape: tuple[int, ...]) -> None:
    check(draw(shape, dtype), draw(shape, dtype))


Change = Callable[[mx.array], mx.array]
Pair = Callable[[mx.array, mx.array], mx.array]
LAYOUTS: dict[str, Change] = {
    "transposed": lambda a: a.T,
    "stepped": lambda a: a[::2, 1::3],
    "reversed": lambda a: a[::-1, ::-1],
    "a column": lambda a: a[:, 3],
    "repeated rows": lambda a: mx.broadcast_to(a[0], (5, a.shape[1])),
    "repeated columns": lambda a: mx.broadcast_to(a[:, :1], a.shape),
    "axes moved": lambda a: mx.transpose(a.reshape(20, 5, 2, 15), (2, 3, 0, 1)),
}


@pytest.mark.parametrize("dtype", list(ULP))
@pytest.mark.parametrize("x_layout", list(LAYOUTS))
def test_strides(dtype: str, x_layout: str) -> None:
    a, b = draw((100, 30), dtype), draw((100, 30), dtype)
    mx.eval(a, b)
    x = LAYOUTS[x_layout](a)
    check(x, LAYOUTS[x_layout](b))
    if x.shape == (100, 30):
        check(x, b)
        check(b, x)


@pytest.mark.parametrize(
    "shapes",
    [((3, 4), (4,)), ((3, 1), (1, 4)), ((), (3, 4)), ((2, 1, 5), (3, 1)), ((0, 4), (1, 4))],
)
def test_broadcasting(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, y = (draw(s, "float32") for s in shapes)
    check(x, y)
    check(y, x)
    with pytest.raises(ValueError):
        axpby(mx.ones((3, 4)), mx.ones((3,)), 1.0, 1.0)


def test_large_outputs_are_streamed() -> None:
    """Written past the caches: whole, also at the ends of pieces and where lengths are odd."""
    for dtype, size in [("float32", 5_000_003), ("float16", 9_000_001), ("complex64", 2_300_007)]:
        x, y = draw((size,), dtype), draw((size,), dtype)
        keep = (x + 0, y + 0)  # Nobody's memory may be taken.
        mx.eval(*keep)
        check(x, y)


@pytest.mark.parametrize("dtype", ["bool_", "uint8", "int8", "int32", "int64", "uint64"])
def test_integers_become_float32(dtype: str) -> None:
    x = mx.array([0, 1, 2, 3]).astype(getattr(mx, dtype))
    out = axpby(x, x, 0.5, 1.0)
    assert out.dtype == mx.float32
    assert out.tolist() == [1.5 * float(v) for v in x.tolist()]
    assert axpby(x, mx.ones(4, dtype=mx.float16), 1.0, 1.0).dtype == mx.float16


def test_special_numbers() -> None:
    inf, nan = float("inf"), float("nan")
    given = [0.0, -0.0, inf, -inf, nan, 65504.0, 65519.0, 65520.0, 1e30, 6e-8, 2e-8, 3e-8, 1e-5]
    for dtype in (mx.float16, mx.bfloat16, mx.float32):
        x = mx.array(given, dtype=mx.float32)
        want = (x * 1.0).astype(dtype)
        have = axpby(want, mx.zeros_like(want), 1.0, 0.0)
        # Adding zero makes -0 into 0.
        assert mx.array_equal(have, want + 0, equal_nan=True), (dtype, have, want)


def test_what_it_refuses() -> None:
    x = mx.ones((2,))
    with pytest.raises(ValueError, match="float16, bfloat16, float32"):
        axpby(x.astype(mx.float8_e4m3fn), x.astype(mx.float8_e4m3fn), 1.0, 1.0)
    for arguments in [(x, x, 1.0), (x, x, "a", 1.0), (x, x, 1.0, 1.0, mx.cpu)]:
        with pytest.raises(TypeError):
            axpby(*arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        axpby(x, x, 1.0, 1.0, stream="cpu")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        axpby(x, object(), 1.0, 1.0)


def test_what_it_takes() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert axpby(x, [1, 2, 3], 1.0, 1.0).tolist() == [[1, 3, 5], [4, 6, 8]]
    assert axpby(x=1.0, y=2.0, alpha=3, beta=4).item() == 11
    for stream in (None, mx.cpu, mx.default_stream(mx.cpu), mx.new_stream(mx.cpu)):
        assert axpby(mx.ones(3), mx.ones(3), 2.0, 1.0, stream=stream).tolist() == [3, 3, 3]


def composed(x: mx.array, y: mx.array) -> mx.array:
    return ALPHA * x + BETA * y


def custom(x: mx.array, y: mx.array) -> mx.array:
    return axpby(x, y, ALPHA, BETA)


def same(have: Any, want: Any) -> None:
    for a, b in zip(have, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        # Sums may cancel, and kernels may fuse a product with a sum.
        assert np.all(np.abs(wide(a) - wide(b)) <= 1e-5 * max(1.0, np.abs(wide(b)).max()))


@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4))])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_derivatives(dtype: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, y = (draw(s, dtype) for s in shapes)
    dx, dy = (draw(s, dtype) for s in shapes)
    cotangent = draw(np.broadcast_shapes(*shapes), dtype)
    want = mx.vjp(composed, [x, y], [cotangent])[1]
    for f in (custom, mx.compile(custom)):
        same(mx.vjp(f, [x, y], [cotangent])[1], want)
    same(mx.jvp(custom, [x, y], [dx, dy])[1], mx.jvp(composed, [x, y], [dx, dy])[1])
    # Of one argument alone.
    alone: list[tuple[Change, Change, mx.array, mx.array]] = [
        (lambda a: custom(a, y), lambda a: composed(a, y), x, dx),
        (lambda b: custom(x, b), lambda b: composed(x, b), y, dy),
        (lambda a: custom(a, a), lambda a: composed(a, a), x, dx),
    ]
    for one, other, a, da in alone:
        ones = mx.ones_like(other(a))
        same(mx.jvp(one, [a], [da])[1], mx.jvp(other, [a], [da])[1])
        same(mx.vjp(one, [a], [ones])[1], mx.vjp(other, [a], [ones])[1])


def test_nested_derivatives() -> None:
    x, y = draw((3, 4), "float32"), draw((4,), "float32")

    def loss(f: Pair) -> Pair:
        return lambda x, y: (f(x, f(y, x)) ** 2).sum()

    def twice(f: Pair) -> Change:
        first: Change = mx.grad(lambda x: loss(f)(x, y))
        second: Change = mx.grad(lambda x: first(x).sum())
        return second

    same(mx.grad(loss(custom), (0, 1))(x, y), mx.grad(loss(composed), (0, 1))(x, y))
    same([twice(custom)(x)], [twice(composed)(x)])


@pytest.mark.parametrize("axes", [(0, 0), (1, 1), (0, 1), (2, 0), (0, None), (None, 2), (-1, -1)])
@pytest.mark.parametrize("out", [0, 1])
def test_vmap(axes: tuple[int | None, int | None], out: int) -> None:
    x, y = (draw((3, 3) if a is None else (3, 3, 3), "float32") for a in axes)

    def both(f: Pair) -> list[mx.array]:
        gradient = mx.grad(lambda a, b: (f(a, b) ** 2).sum())
        return [
            mx.vmap(f, in_axes=axes, out_axes=out)(x, y),
            mx.vmap(gradient, in_axes=axes)(x, y),
        ]

    same(both(custom), both(composed))


def test_memory_of_an_operand_is_taken() -> None:
    """x is needed by nobody else, so that the result has its memory."""
    n = 1 << 20
    x, y = mx.ones((n,)), mx.ones((n,))
    mx.eval(x, y)
    before = mx.get_active_memory()
    x = axpby(mx.exp(x), y, 2.0, 1.0)
    mx.reset_peak_memory()
    mx.eval(x)
    assert mx.get_peak_memory() - before <= n * 4 + 4096
    assert abs(x[0].item() - 6.4365637) < 1e-5


def test_mlx_guide() -> None:
    """The correctness script of MLX's guide to extensions."""
    a, b = mx.ones((3, 4)), mx.ones((3, 4))
    c = axpby(a, b, 4.0, 2.0, stream=mx.cpu)
    assert c.shape == (3, 4) and c.dtype == mx.float32
    assert mx.all(c == 6.0).item()


def test_its_own_kernels_run(device: mx.Device) -> None:
    """Not the composed form, and nothing on the CPU."""
    mx.backends.reset_op_counts()
    for dtype in ("float16", "bfloat16", "float32", "complex64"):
        x = mx.ones((5, 7)).astype(getattr(mx, dtype))
        mx.eval(axpby(x, x.T.reshape(5, 7), 1.0, 2.0))
    (row,) = [r for r in mx.backends.op_counts() if r.op == "axpby_c"]
    assert row.device == device
    assert (row.native, row.decomposed, row.cpu) == (4, 0, 0)
