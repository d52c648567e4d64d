"""Convolutions over shapes, groups, strides, dilations, padding, layouts and dtypes, against mlx;
float64 values, and what mlx lacks or gets wrong, against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import (
    ALL,
    FLOATS,
    LAYOUTS,
    Tally,
    given,
    in_single,
    rng,
    to_numpy,
    um,
    values,
)

LIMIT = 150


def shapes(r: np.random.Generator, n: int, groups: int, empty: bool = False) -> list[tuple]:
    """Random shapes of an input and a weight of n spatial axes."""
    channels, filters = (int(v) for v in r.integers(1, 6, 2))
    x = [int(v) for v in r.integers(0 if empty else 1, 8, n)]
    w = [int(v) for v in r.integers(1, 4, n)]
    batch = int(r.integers(0 if empty else 1, 4))
    return [(batch, *x, groups * channels), (groups * filters, *w, channels)]


def lists(r: np.random.Generator, n: int, low: int, high: int) -> list[int]:
    return [int(v) for v in r.integers(low, high, n)]


def room(x: tuple, w: tuple, low: list, high: list, kernel: list, inner: list) -> list[int]:
    """Difference of the sizes of padded input and kernel."""
    sizes = zip(x[1:-1], w[1:-1], low, high, kernel, inner)
    return [1 + i * (n - 1) + a + b - 1 - d * (k - 1) for n, k, a, b, d, i in sizes]


# float64, which mlx computes in float32 or not at all, is compared with torch below.
@pytest.mark.parametrize("dtype", [d for d in FLOATS if d != "float64"])
def test_general(tally: Tally, dtype: str) -> None:
    r = rng("conv", dtype)
    for i in range(LIMIT):
        n = int(r.integers(1, 4))
        groups = 1 if n == 3 else int(r.choice([1, 1, 2, 3]))
        x, w = shapes(r, n, groups)
        inner = lists(r, n, 1, 3)
        low, high = lists(r, n, 0, 3), lists(r, n, 0, 3)
        if max(inner) == 1:
            low, high = lists(r, n, -1, 3), lists(r, n, -1, 3)
        kernel = lists(r, n, 1, 3)
        if min(room(x, w, low, high, kernel, inner)) < 0:
            continue
        how: dict[str, Any] = {
            "stride": lists(r, n, 1, 3),
            "padding": (low, high),
            "kernel_dilation": kernel,
            "input_dilation": inner,
            "groups": groups,
            "flip": bool(r.integers(2)),
        }
        p, q = (LAYOUTS[int(v)] for v in r.integers(0, len(LAYOUTS), 2))
        tally.same(
            f"{i} {x} {p.name} {w} {q.name} {how}",
            lambda mx, x, w, how=how: mx.conv_general(x, w, **how),
            given(dtype, x, p, key=i),
            given(dtype, w, q, key=-i),
            ulps=16,
            scale="largest",
        )


@pytest.mark.parametrize("name", ["conv", "conv_transpose"])
def test_forms(tally: Tally, name: str) -> None:
    r = rng(name)
    for i in range(3 * LIMIT):
        n = 1 + i % 3
        groups = 1 if n == 3 else int(r.choice([1, 1, 2, 3]))
        x, w = shapes(r, n, groups, empty=i % 5 == 0)
        kernel = lists(r, n, 1, 3)
        how: dict[str, Any] = {"stride": lists(r, n, 1, 3), "dilation": kernel}
        padding = lists(r, n, 0, 3)
        if name == "conv_transpose":
            reach = [d * (k - 1) for d, k in zip(kernel, w[1:-1])]
            padding = [min(p, m) for p, m in zip(padding, reach)]
            how["output_padding"] = lists(r, n, 0, 2)
        elif min(room(x, w, padding, padding, kernel, [1] * n)) < 0:
            continue
        how |= {"padding": padding, "groups": groups}
        if n == 1:
            how = {k: v[0] if isinstance(v, list) else v for k, v in how.items()}
        elif i % 2:
            how = {k: tuple(v) if isinstance(v, list) else v for k, v in how.items()}
        tally.same(
            f"{i} {x} {w} {how}",
            lambda mx, x, w, n=n, how=how: getattr(mx, f"{name}{n}d")(x, w, **how),
            given("float32", x, key=i),
            given("float32", w, key=-i),
            ulps=16,
            scale="largest",
        )


def test_larger(tally: Tally) -> None:
    """Shapes that are cut into blocks."""
    for x, w, how in [
        ((2, 20, 21, 64), (48, 3, 3, 64), {"padding": 1}),
        ((2, 20, 21, 64), (130, 1, 1, 64), {}),
        ((2, 20, 21, 64), (64, 3, 3, 1), {"padding": 1, "groups": 64, "stride": 2}),
        ((1, 40, 40, 3), (32, 7, 7, 3), {"padding": 3, "stride": 2}),
        ((1, 4000, 1), (1, 301, 1), {"padding": 150}),
        ((1, 9, 9, 300), (40, 3, 3, 300), {"kernel_dilation": 2, "padding": 2}),
        ((1, 9, 9, 30), (40, 3, 3, 30), {"input_dilation": 3, "padding": 2}),
    ]:
        tally.same(
            f"{x} {w} {how}",
            lambda mx, x, w, how=how: mx.conv_general(x, w, **how),
            given("float32", x),
            given("float32", w),
            ulps=64,
            scale="largest",
        )


def test_convolve(tally: Tally) -> None:
    for dtype in ALL:
        for n, m in [(5, 3), (3, 5), (4, 4), (5, 2), (1, 1), (0, 3), (3, 0), (70, 31)]:
            for mode in ["full", "valid", "same", "other"]:
                a, v = given(dtype, (n,), key="a"), given(dtype, (m,), key="v")
                tally.same(
                    f"{dtype} {n} {m} {mode}",
                    lambda mx, a, v, mode=mode: mx.convolve(a, v, mode=mode),
                    a,
                    v,
                    ulps=in_single(64),
                    scale="largest",
                )


X, W = (1, 5, 5, 4), (4, 3, 3, 4)
LINE, KERNEL = (1, 5, 4), (4, 3, 4)

# Shapes of operands, and the call.
REFUSED: list[tuple[str, tuple, tuple, Any]] = [
    ("rank 2", (5, 4), (4, 4), lambda mx, x, w: mx.conv1d(x, w)),
    ("rank 0", (), KERNEL, lambda mx, x, w: mx.conv1d(x, w)),
    ("rank 6", (1,) * 6, (1,) * 6, lambda mx, x, w: mx.conv_general(x, w)),
    ("ranks that differ", X, KERNEL, lambda mx, x, w: mx.conv2d(x, w)),
    ("conv1d of two axes", X, W, lambda mx, x, w: mx.conv1d(x, w)),
    ("conv2d of one axis", LINE, KERNEL, lambda mx, x, w: mx.conv2d(x, w)),
    ("conv3d of two axes", X, W, lambda mx, x, w: mx.conv3d(x, w)),
    ("conv_transpose2d of one axis", LINE, KERNEL, lambda mx, x, w: mx.conv_transpose2d(x, w)),
    ("channels", LINE, (4, 3, 3), lambda mx, x, w: mx.conv1d(x, w)),
    ("groups -1", LINE, (4, 3, 2), lambda mx, x, w: mx.conv1d(x, w, groups=-1)),
    ("groups 3", LINE, (4, 3, 2), lambda mx, x, w: mx.conv1d(x, w, groups=3)),
    ("filters of groups", LINE, (3, 3, 2), lambda mx, x, w: mx.conv1d(x, w, groups=2)),
    ("channels of groups", LINE, KERNEL, lambda mx, x, w: mx.conv1d(x, w, groups=2)),
    ("stride 0", LINE, KERNEL, lambda mx, x, w: mx.conv1d(x, w, stride=0)),
    ("stride -1", LINE, KERNEL, lambda mx, x, w: mx.conv1d(x, w, stride=-1)),
    ("dilation 0", LINE, KERNEL, lambda mx, x, w: mx.conv1d(x, w, dilation=0)),
    ("stride 0 transposed", LINE, KERNEL, lambda mx, x, w: mx.conv_transpose1d(x, w, stride=0)),
    ("input dilation 0", LINE, KERNEL, lambda mx, x, w: mx.conv_general(x, w, input_dilation=0)),
    ("large kernel", (1, 2, 4), KERNEL, lambda mx, x, w: mx.conv1d(x, w)),
    ("dilated kernel", LINE, KERNEL, lambda mx, x, w: mx.conv1d(x, w, dilation=3)),
    ("two strides", LINE, KERNEL, lambda mx, x, w: mx.conv_general(x, w, stride=[1, 2])),
    ("one for all", X, W, lambda mx, x, w: mx.conv_general(x, w, stride=[2], padding=[1])),
    ("none", X, W, lambda mx, x, w: mx.conv_general(x, w, stride=[], padding=[])),
    ("pairs", X, W, lambda mx, x, w: mx.conv_general(x, w, padding=((1, 2), (0, 1)))),
    ("two numbers", X, W, lambda mx, x, w: mx.conv_general(x, w, padding=(1, 2))),
    ("paddings", LINE, KERNEL, lambda mx, x, w: mx.conv_general(x, w, padding=([1, 1], [1]))),
    ("three", X, W, lambda mx, x, w: mx.conv2d(x, w, stride=(1, 2, 3))),
    ("a list", X, W, lambda mx, x, w: mx.conv2d(x, w, stride=[1, 2])),
    ("a float", X, W, lambda mx, x, w: mx.conv2d(x, w, stride=1.0)),
    ("a tuple", LINE, KERNEL, lambda mx, x, w: mx.conv1d(x, w, stride=(1,))),
    ("too large", LINE, KERNEL, lambda mx, x, w: mx.conv1d(x, w, stride=1 << 40)),
    ("text", LINE, KERNEL, lambda mx, x, w: mx.conv1d(x, w, stride="1")),
    ("None", LINE, KERNEL, lambda mx, x, w: mx.conv1d(x, w, stride=None)),
    ("a list of lists", LINE, KERNEL, lambda mx, x, w: mx.conv1d([[[1.0]]], w)),
    ("by name", LINE, KERNEL, lambda mx, x, w: mx.conv1d(input=x, weight=w)),
    ("mode None", (4,), (2,), lambda mx, x, w: mx.convolve(x, w, None)),
    ("matrices", (4, 1), (2,), lambda mx, x, w: mx.convolve(x, w)),
]


def test_calls(tally: Tally) -> None:
    for name, x, w, call in REFUSED:
        tally.same(name, call, given("float32", x), given("float32", w), ulps=16, scale="largest")
    for a in ALL:
        for b in ALL:
            x, w = given(a, LINE, key="x"), given(b, KERNEL, key="w")
            call = lambda mx, x, w: mx.conv1d(x, w)
            tally.same(f"{a} with {b}", call, x, w, ulps=in_single(64), scale="largest")


def test_derivatives(tally: Tally) -> None:
    r = rng("derivatives")
    for i in range(60):
        n = int(r.integers(1, 3))
        x, w = shapes(r, n, 1)
        how: dict[str, Any] = {"padding": lists(r, n, 0, 3), "stride": lists(r, n, 1, 3)}
        how["kernel_dilation"] = lists(r, n, 1, 3)
        low = how["padding"]
        if min(room(x, w, low, low, how["kernel_dilation"], [1] * n)) < 0:
            continue

        def case(mx: Any, x: Any, w: Any, how: dict[str, Any] = how) -> Any:
            def f(x: Any, w: Any) -> Any:
                y = mx.conv_general(x, w, **how)
                return (y * mx.cos(y)).sum()

            return mx.grad(f, argnums=(0, 1))(x, w)

        inputs = given("float32", x, key=i), given("float32", w, key=-i)
        tally.same(f"{i} {x} {w} {how}", case, *inputs, ulps=256, scale="largest")


# --- against torch ------------------------------------------------------------------------


def planes(a: np.ndarray) -> np.ndarray:
    """Channels in torch's place."""
    return np.moveaxis(a, -1, 1)


def test_values_in_float64() -> None:
    torch = pytest.importorskip("torch")
    r = rng("torch")
    for i in range(LIMIT):
        n = 1 + i % 3
        groups = int(r.choice([1, 2, 3]))
        xs, ws = shapes(r, n, groups)
        x, w = values("float64", xs, "any", i), values("float64", ws, "any", -i)
        how: dict[str, Any] = {"stride": lists(r, n, 1, 3), "padding": lists(r, n, 0, 3)}
        how["dilation"] = lists(r, n, 1, 3)
        if min(room(xs, ws, how["padding"], how["padding"], how["dilation"], [1] * n)) < 0:
            continue
        a, b = (torch.tensor(planes(v).copy(), requires_grad=True) for v in (x, w))
        want = getattr(torch.nn.functional, f"conv{n}d")(a, b, groups=groups, **how)
        if n == 1:
            how = {k: v[0] for k, v in how.items()}

        def f(x: Any, w: Any, n: int = n, how: Any = how, groups: int = groups) -> Any:
            return getattr(um, f"conv{n}d")(x, w, groups=groups, **how)

        ours = [um.array(v, dtype=um.float64) for v in (x, w)]
        got = to_numpy(f(*ours))
        np.testing.assert_allclose(got, np.moveaxis(want.detach().numpy(), 1, -1), atol=1e-12)
        ct = values("float64", got.shape, "any", "ct", i)
        want.backward(torch.tensor(planes(ct).copy()))
        _, back = um.vjp(f, ours, [um.array(ct, dtype=um.float64)])
        for g, t in zip(back, (a, b)):
            np.testing.assert_allclose(to_numpy(g), np.moveaxis(t.grad.numpy(), 1, -1), atol=1e-11)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_transposed_in_float64(n: int) -> None:
    """With any padding, where mlx cuts elements off before it dilates."""
    torch = pytest.importorskip("torch")
    r = rng("transposed", n)
    for i in range(LIMIT):
        stride, dilation = lists(r, n, 1, 4), lists(r, n, 1, 3)
        more = [int(r.integers(0, max(s, d))) for s, d in zip(stride, dilation)]
        padding = lists(r, n, 0, 4)
        (batch, *size, c), (o, *taps, _) = shapes(r, n, 1)
        x = values("float64", (batch, *size, c), "any", i)
        w = values("float64", (o, *taps, c), "any", -i)
        out = [
            (a - 1) * s - 2 * p + d * (k - 1) + e + 1
            for a, s, p, d, k, e in zip(size, stride, padding, dilation, taps, more)
        ]
        if min(out) < 1:
            continue
        # torch's weight is (c, o, ...).
        want = getattr(torch.nn.functional, f"conv_transpose{n}d")(
            torch.tensor(planes(x).copy()),
            torch.tensor(np.moveaxis(w, -1, 0).copy()),
            stride=stride,
            padding=padding,
            output_padding=more,
            dilation=dilation,
        )
        how: dict[str, Any] = {"stride": stride, "padding": padding, "output_padding": more}
        how["dilation"] = dilation
        if n == 1:
            how = {k: v[0] for k, v in how.items()}
        ours = [um.array(v, dtype=um.float64) for v in (x, w)]
        got = to_numpy(getattr(um, f"conv_transpose{n}d")(*ours, **how))
        np.testing.assert_allclose(got, np.moveaxis(want.numpy(), 1, -1), atol=1e-12)


# --- what is only ours ---------------------------------------------------------------------


def test_padding_is_of_the_dilated_input() -> None:
    """Negative padding leaves out what lies in the dilated input, as in XLA."""
    x, w = um.array([1.0, 2.0, 3.0]).reshape(1, 3, 1), um.ones((1, 1, 1))
    y = um.conv_general(x, w, input_dilation=2, padding=([-1], [-1]))
    assert y.reshape(-1).tolist() == [0.0, 2.0, 0.0]


def test_complex_weight() -> None:
    x, w = um.ones((1, 3, 1)), um.array([1.0, 2j]).reshape(1, 2, 1)
    assert um.conv1d(x, w).reshape(-1).tolist() == [1 + 2j, 1 + 2j]


def test_kernel_larger_than_input() -> None:
    """It is an error for every stride."""
    for stride in (1, 2, 3):
        with pytest.raises(ValueError, match="cannot be smaller"):
            um.conv1d(um.ones((1, 2, 1)), um.ones((1, 3, 1)), stride=stride)


def test_empty_channels_filters_and_groups() -> None:
    assert um.conv1d(um.ones((1, 5, 0)), um.ones((3, 3, 0))).tolist() == [[[0.0] * 3] * 3]
    assert um.conv1d(um.ones((1, 5, 2)), um.ones((0, 3, 2))).shape == (1, 3, 0)
    with pytest.raises(ValueError, match="groups"):
        um.conv1d(um.ones((1, 5, 2)), um.ones((3, 3, 2)), groups=0)


def test_groups_of_three_axes_and_forward_derivatives() -> None:
    x, w = um.ones((1, 3, 3, 3, 4)), um.ones((6, 2, 2, 2, 2))
    f = lambda x, w: um.conv3d(x, w, groups=2)
    y, t = um.jvp(f, [x, w], [x, w])
    assert y[0].shape == (1, 2, 2, 2, 6) and um.all(y[0] == 16).item() and um.all(t[0] == 32).item()


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("flip", [False, True], ids=["", "flipped"])
@pytest.mark.parametrize("mapped", ["x", "w", "y", "xw", "xy", "wy", "xwy"])
def test_gradients_are_mapped(groups: int, flip: bool, mapped: str) -> None:
    """A mapped axis of any of input, weight and cotangent, for both gradients, against a loop."""
    g = rng("conv gradients", groups, flip, mapped)
    how = {"stride": 2, "padding": ([1, 0], [0, 1]), "kernel_dilation": (1, 2)}
    how |= {"input_dilation": (2, 1), "groups": groups, "flip": flip}
    convolve = lambda x, w: um.conv_general(x, w, **how)
    shapes = {"x": (2, 4, 5, 4), "w": (6, 3, 2, 4 // groups)}
    shapes["y"] = convolve(um.zeros(shapes["x"]), um.zeros(shapes["w"])).shape
    make = lambda name: um.array(g.normal(size=(3,) * (name in mapped) + shapes[name]))
    x, w, y = (make(name).astype(um.float32) for name in "xwy")

    def gradients(x, w, y):
        return um.vjp(convolve, [x, w], [y])[1]

    axes = tuple(0 if name in mapped else None for name in "xwy")
    got = um.vmap(gradients, in_axes=axes)(x, w, y)
    one = lambda a, name, i: a[i] if name in mapped else a
    want = [gradients(one(x, "x", i), one(w, "w", i), one(y, "y", i)) for i in range(3)]
    for i in range(2):
        np.testing.assert_allclose(got[i], um.stack([parts[i] for parts in want]), atol=1e-5)
