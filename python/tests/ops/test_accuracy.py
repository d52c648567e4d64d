"""Functions of floats against NumPy's longer floats, in units in the last place of their own dtype.

The bounds are ours, of every device: 2 units of 16-bit floats, which are computed in float32 and rounded once, and 4 of
float32 and float64. A row that needs more has its reason beside it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.harness import array, rng, to_numpy, um

FLOATS = ("float16", "bfloat16", "float32", "float64")
LONG = np.longdouble

# Digits behind the leading one, and the exponent of the smallest normal number.
DIGITS = {
    "float16": (10, -14),
    "bfloat16": (7, -126),
    "float32": (23, -126),
    "float64": (52, -1022),
}

Data = np.ndarray


def unit(size: Data, dtype: str) -> Data:
    """One unit in the last place of numbers of this size."""
    digits, least = DIGITS[dtype]
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log2(np.abs(size).astype(np.float64)))
    return np.exp2(np.maximum(exponent, least) - digits)


class Row(NamedTuple):
    """A function, what it should give, and what it is given: (shape, low, high) of each operand."""

    call: Callable[..., Any]
    want: Callable[..., Data]
    operands: list[tuple[tuple[int, ...], float, float]]
    # Units of 16-bit floats, of float32 and of float64.
    half: float = 2
    single: float = 4
    double: float = 4
    # The size that units are of, of the operands: of terms that cancel in the result. By default the result's.
    size: Callable[..., Data] | None = None


N = 3000


def unary(name: str, want: Callable[[Data], Data], low: float, high: float, **more: Any) -> Row:
    return Row(lambda x: getattr(um, name)(x), want, [((N,), low, high)], **more)


erf = np.vectorize(math.erf, otypes=[np.float64])


def logsumexp(x: Data, axis: int | None) -> Data:
    top = x.max(axis, keepdims=True)
    return (np.log(np.exp(x - top).sum(axis, keepdims=True)) + top).squeeze(axis)


def softmax(x: Data, axis: int) -> Data:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def normalised(x: Data, w: Data, b: Data | None = None) -> Data:
    if b is not None:
        x = x - x.mean(-1, keepdims=True)
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + LONG(1e-5)) * w
    return y if b is None else y + b


def largest(*x: Data) -> Data:
    return np.abs(x[0]).max()


WIDE = [((12, 1500), -4.0, 4.0)]
FAR = [((12, 1500), 100.0, 200.0)]

ROWS: dict[str, Row] = {
    "exp": unary("exp", np.exp, -5, 5),
    "expm1": unary("expm1", np.expm1, -3, 3),
    "log": unary("log", np.log, 0.05, 50),
    "log2": unary("log2", np.log2, 0.05, 50),
    "log10": unary("log10", np.log10, 0.05, 50),
    "log1p": unary("log1p", np.log1p, -0.5, 9),
    "sin": unary("sin", np.sin, -3, 3),
    "cos": unary("cos", np.cos, -3, 3),
    "tan": unary("tan", np.tan, -1.5, 1.5),
    "arcsin": unary("arcsin", np.arcsin, -1, 1),
    "arccos": unary("arccos", np.arccos, -1, 1),
    "arctan": unary("arctan", np.arctan, -9, 9),
    "sinh": unary("sinh", np.sinh, -5, 5),
    "cosh": unary("cosh", np.cosh, -5, 5),
    "tanh": unary("tanh", np.tanh, -4, 4),
    "arcsinh": unary("arcsinh", np.arcsinh, -9, 9),
    "arccosh": unary("arccosh", np.arccosh, 1.1, 20),
    "arctanh": unary("arctanh", np.arctanh, -0.95, 0.95),
    "erf": unary("erf", erf, -3, 3),
    "sigmoid": unary("sigmoid", lambda x: 1 / (1 + np.exp(-x)), -9, 9),
    "sqrt": unary("sqrt", np.sqrt, 0, 90),
    "rsqrt": unary("rsqrt", lambda x: 1 / np.sqrt(x), 0.01, 90),
    "reciprocal": unary("reciprocal", lambda x: 1 / x, 0.1, 9),
    "degrees": unary("degrees", lambda x: x * (180 / LONG(math.pi)), -9, 9),
    "radians": unary("radians", lambda x: x * (LONG(math.pi) / 180), -400, 400),
    "cube": Row(lambda x: x**3, lambda x: x**3, [((N,), -4, 4)]),
    "power": Row(um.power, np.power, [((N,), 0.1, 4), ((N,), -4, 4)]),
    "divide": Row(um.divide, np.divide, [((N,), -4, 4), ((N,), 0.1, 4)]),
    "arctan2": Row(um.arctan2, np.arctan2, [((N,), -9, 9), ((N,), -9, 9)]),
    # Crosses zero: the units are of the larger operand.
    "logaddexp": Row(
        um.logaddexp, np.logaddexp, [((N,), -9, 9)] * 2, size=lambda x, y: np.maximum(np.maximum(abs(x), abs(y)), 0.7),
    ),
    "logsumexp": Row(
        lambda x: um.logsumexp(x, axis=1), lambda x: logsumexp(x, 1), WIDE
    ),
    "logsumexp over rows": Row(
        lambda x: um.logsumexp(x, axis=0), lambda x: logsumexp(x, 0), [((1500, 12), -4, 4)]
    ),
    "logsumexp of zeros": Row(
        um.logsumexp, lambda x: logsumexp(x, None), [((100_000,), 0, 0)]
    ),
    "softmax, precise": Row(
        lambda x: um.softmax(x, axis=1, precise=True), lambda x: softmax(x, 1), WIDE,
        # Exponentials of a rounded difference from the largest, which is up to 8, and a sum of 1500 of them.
        single=16, double=16,
    ),
    # Without `precise` the difference from the largest, up to 8, is rounded to the dtype: by a half unit of 8, which
    # is four units of 1 in the exponential.
    "softmax": Row(
        lambda x: um.softmax(x, axis=1), lambda x: softmax(x, 1), WIDE, half=8, single=16, double=16
    ),
    # Sums: the units are of the average term.
    "mean": Row(lambda x: um.mean(x, axis=1), lambda x: x.mean(1), WIDE, size=largest),
    "mean of large": Row(lambda x: um.mean(x, axis=1), lambda x: x.mean(1), FAR),
    "mean of all": Row(um.mean, np.mean, FAR),
    "var": Row(lambda x: um.var(x, axis=1), lambda x: x.var(1), WIDE),
    "var of large": Row(lambda x: um.var(x, axis=1), lambda x: x.var(1), FAR),
    "std": Row(lambda x: um.std(x, axis=1), lambda x: x.std(1), WIDE),
    "std of small": Row(
        lambda x: um.std(x, axis=1), lambda x: x.std(1), [((12, 150), -3e-4, 3e-4)]
    ),
    "std of large": Row(
        lambda x: um.std(x, axis=1), lambda x: x.std(1), [((12, 1500), -2000, 2000)]
    ),
    "norm": Row(lambda x: um.linalg.norm(x, axis=1), lambda x: np.sqrt((x * x).sum(1)), FAR),
    "norm of small": Row(
        lambda x: um.linalg.norm(x, axis=1),
        lambda x: np.sqrt((x * x).sum(1)),
        [((12, 150), -3e-4, 3e-4)],
    ),
    "norm of all": Row(um.linalg.norm, lambda x: np.sqrt((x * x).sum()), [((30, 50), -100, 100)]),
    # Two powers, each of which is two units off on CUDA.
    "norm by 3": Row(
        lambda x: um.linalg.norm(x, ord=3, axis=1), lambda x: np.cbrt((abs(x) ** 3).sum(1)), FAR,
        double=6,
    ),
    "median": Row(lambda x: um.median(x, axis=1), lambda x: np.median(x, 1), WIDE),
    "median of large": Row(
        lambda x: um.median(x, axis=1), lambda x: np.median(x, 1), [((12, 50), 4e4, 6e4)]
    ),
    "cumsum": Row(
        lambda x: um.cumsum(x, axis=1), lambda x: x.cumsum(1), [((12, 1500), 0, 4)],
        # One sum after the other, in float32 as in float64.
        single=64, double=64,
    ),
    "logcumsumexp": Row(
        lambda x: um.logcumsumexp(x, axis=1), lambda x: np.logaddexp.accumulate(x, 1),
        [((12, 1500), 0, 4)],
        single=64, double=64,
    ),
    # Before the weight, and before the bias, results are rounded to the dtype, as in MLX. Distances from the mean have
    # the error of the mean of 500.
    "layer_norm": Row(
        lambda x, w, b: um.fast.layer_norm(x, w, b, 1e-5), normalised,
        [((12, 500), 1, 5), ((500,), 0.5, 2), ((500,), 0.5, 2)],
        single=16, double=16,
        size=lambda x, w, b: abs(normalised(x, w, b)) + abs(b),
    ),
    "rms_norm": Row(
        lambda x, w: um.fast.rms_norm(x, w, 1e-5), normalised,
        [((12, 500), -4, 4), ((500,), 0.5, 2)],
    ),
    # The units are of the sum of the products' sizes.
    "matmul": Row(
        um.matmul, np.matmul, [((8, 300), -2, 2), ((300, 8), -2, 2)],
        size=lambda x, y: abs(x) @ abs(y),
    ),
    "addmm": Row(
        lambda c, x, y: um.addmm(c, x, y, alpha=0.3, beta=0.7),
        lambda c, x, y: LONG(0.7) * c + LONG(0.3) * (x @ y),
        [((8, 8), -50, 50), ((8, 300), -2, 2), ((300, 8), -2, 2)],
        size=lambda c, x, y: abs(c) + abs(x) @ abs(y) / 8,
    ),
}  # fmt: skip


def drawn(row: Row, name: str, dtype: str) -> list[Any]:
    r = rng("accuracy", name, dtype)
    data = (r.uniform(low, high, shape) for shape, low, high in row.operands)
    kind = np.float32 if dtype == "bfloat16" else np.dtype(dtype)
    return [array(um, x.astype(kind), dtype) for x in data]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ROWS)
def test_units(name: str, dtype: str) -> None:
    row = ROWS[name]
    x = drawn(row, name, dtype)
    got = row.call(*x)
    assert got.dtype == getattr(um, dtype)
    data = [to_numpy(a).astype(LONG) for a in x]
    want = np.asarray(row.want(*data))
    size = want if row.size is None else row.size(*data)
    bound = {"float32": row.single, "float64": row.double}.get(dtype, row.half)
    ours = to_numpy(got).astype(LONG)
    limit = {"float16": 65520.0, "bfloat16": 3.3962e38}.get(dtype, math.inf)
    want = np.where(abs(want) >= limit, np.copysign(math.inf, want), want)
    same = ours == want
    units = abs(np.where(same, 0, ours) - np.where(same, 0, want)) / unit(np.asarray(size), dtype)
    worst = np.unravel_index(np.argmax(units), units.shape)
    assert units.max() <= bound, (
        f"{name} of {dtype}{list(map(int, worst))}: {ours[worst]}, not {want[worst]}, "
        f"{float(units.max()):.3} units off"
    )


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "logsumexp": lambda x: um.logsumexp(x, axis=1),
    "softmax": lambda x: um.softmax(x, axis=1, precise=True).square().sum(),
    "mean": lambda x: um.mean(x, axis=1),
    "var": lambda x: um.var(x, axis=1),
    "std": lambda x: um.std(x, axis=1),
    "norm": lambda x: um.linalg.norm(x, axis=1),
    "max": lambda x: um.max(um.maximum(x, 3.5), axis=1),
}


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_halves(name: str, dtype: str) -> None:
    """Against those of float64, in units of the largest."""
    x = array(um, rng("gradients", name).uniform(-4, 4, (4, 500)).astype(np.float32), "float32")
    x = x.astype(getattr(um, dtype))
    slope = um.grad(lambda x: GRADIENTS[name](x).sum())
    got = slope(x)
    assert got.dtype == x.dtype
    want = to_numpy(slope(x.astype(um.float64)))
    error = abs(to_numpy(got).astype(np.float64) - want).max()
    assert error <= 4 * unit(abs(want).max(), dtype), (
        f"{error / unit(abs(want).max(), dtype)} units"
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_fused_equals_unfused(dtype: str) -> None:
    """What is computed in float32 has its casts in the graph: fusion changes no bit."""
    r = rng("fused", dtype)
    x = array(um, r.uniform(-4, 4, (6, 700)).astype(np.float32), "float32").astype(
        getattr(um, dtype)
    )
    before = um.backends.is_fusing()
    found = []
    try:
        for fusing in (True, False):
            um.backends.set_fusion(fusing)
            y = x * 2 + 1
            made = [
                um.logsumexp(y, axis=1), um.softmax(y, axis=0), um.softmax(y, precise=True),
                um.mean(y, axis=0), um.var(y, axis=1), um.std(y), um.median(y, axis=1),
                um.linalg.norm(y, axis=1), um.linalg.norm(y, ord=3, axis=0),
                um.addmm(y[:, :6], y, y.T, alpha=0.3, beta=0.7),
                *um.vjp(lambda v: [um.logsumexp(v, axis=1)], [y], [y[:, 0]])[1],
                *um.vjp(lambda v: [um.var(v, axis=0)], [y], [y[0]])[1],
            ]  # fmt: skip
            found.append([to_numpy(a).tobytes() for a in made])
    finally:
        um.backends.set_fusion(before)
    assert found[0] == found[1]
