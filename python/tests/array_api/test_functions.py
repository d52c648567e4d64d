"""`ultramarine.array_api` against the standard: names and signatures against a table of it, dtypes
against its rules, results against NumPy, whose main namespace fulfils it."""

from __future__ import annotations

import inspect
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from support import array_api_table as standard
from support.array_api_data import KINDS, OF, SHAPES, data, ours, same

import ultramarine as um
import ultramarine.array_api as xp


def parameters(text: Any) -> str:
    """A signature without annotations."""
    signature = inspect.signature(text)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(plain))


@pytest.mark.parametrize(
    ("module", "table"),
    [
        (xp, standard.FUNCTIONS),
        (xp.linalg, standard.LINALG),
        (xp.fft, standard.FFT),
        (xp.__array_namespace_info__(), standard.INFO),
    ],
    ids=["main", "linalg", "fft", "info"],
)
def test_signatures(module: Any, table: str) -> None:
    rows = standard.rows(table)
    assert len(rows) > 3
    for name, signature in rows.items():
        function = getattr(module, name)
        assert parameters(function) == signature, name
        assert function.__doc__, name
        if hasattr(module, "__all__"):
            assert name in module.__all__


def test_names() -> None:
    assert xp.__array_api_version__ == "2025.12"
    for name in standard.CONSTANTS:
        want = getattr(np, name)
        got = getattr(xp, name)
        assert got is None if want is None else (got == want or math.isnan(want))
    for name in standard.DTYPES:
        assert getattr(xp, name) == getattr(um, name if name != "bool" else "bool_")
    assert not hasattr(xp, "complex128")
    for name in standard.ATTRIBUTES + standard.METHODS:
        assert hasattr(um.array, name), name
    beyond = set(xp.__all__) - set(standard.rows(standard.FUNCTIONS)) - set(standard.DTYPES)
    assert beyond - set(standard.CONSTANTS) == {"__array_api_version__", "fft", "linalg"}


def test_namespace_of_an_array() -> None:
    x = um.array([1.0])
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="no version"):
        x.__array_namespace__(api_version="2020.01")
    assert um.__array_namespace_info__().capabilities()["boolean indexing"] is True


# --- results ------------------------------------------------------------------------------

# name: kinds, domain, units in the last place
UNARY = {
    "abs": ("numeric", "any", 2), "acos": ("floating", "unit", 16),
    "acosh": ("floating", "above one", 16), "asin": ("floating", "unit", 16),
    "asinh": ("floating", "any", 16), "atan": ("floating", "unit", 16),
    "atanh": ("floating", "unit", 16), "bitwise_invert": ("bits", "any", 0),
    "ceil": ("real", "any", 0), "conj": ("numeric", "any", 0), "cos": ("floating", "any", 16),
    "cosh": ("floating", "any", 16), "exp": ("floating", "any", 16),
    "expm1": ("floating", "any", 16), "floor": ("real", "any", 0), "imag": ("complex", "any", 0),
    "isfinite": ("numeric", "any", 0), "isinf": ("numeric", "any", 0),
    "isnan": ("numeric", "any", 0), "log": ("floating", "above one", 16),
    "log10": ("floating", "above one", 16), "log1p": ("floating", "unit", 16),
    "log2": ("floating", "above one", 16), "logical_not": ("bool", "any", 0),
    "negative": ("numeric", "any", 0), "positive": ("numeric", "any", 0),
    "real": ("numeric", "any", 0), "reciprocal": ("floating", "above one", 4),
    "round": ("numeric", "any", 0), "sign": ("numeric", "any", 4),
    "signbit": ("real floating", "any", 0), "sin": ("floating", "any", 16),
    "sinh": ("floating", "any", 16), "sqrt": ("floating", "above one", 8),
    "square": ("numeric", "small", 4), "tan": ("floating", "unit", 16),
    "tanh": ("floating", "any", 16), "trunc": ("real", "any", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    kinds, domain, ulps = UNARY[name]
    for dtype in standard.DTYPES:
        if dtype not in OF[kinds]:
            with pytest.raises(TypeError, match=name):
                getattr(xp, name)(xp.ones((2,), dtype=getattr(xp, dtype)))
            continue
        for shape in SHAPES:
            x = data(dtype, shape, domain)
            want = getattr(np, name)(x)
            if np.dtype(dtype).kind in "iu" and want.dtype != x.dtype and want.dtype != bool:
                want = want.astype(dtype)
            same(getattr(xp, name)(ours(x)), want, ulps)


BINARY = {
    "add": ("numeric", "any", 2), "atan2": ("real floating", "any", 16),
    "bitwise_and": ("bits", "any", 0), "bitwise_left_shift": ("integral", "small", 0),
    "bitwise_or": ("bits", "any", 0), "bitwise_right_shift": ("integral", "small", 0),
    "bitwise_xor": ("bits", "any", 0), "copysign": ("real floating", "any", 0),
    "divide": ("floating", "nonzero", 8), "equal": ("any", "small", 0),
    "floor_divide": ("real", "nonzero", 0), "greater": ("real", "small", 0),
    "greater_equal": ("real", "small", 0), "hypot": ("real floating", "any", 4),
    "less": ("real", "small", 0), "less_equal": ("real", "small", 0),
    "logaddexp": ("real floating", "any", 16), "logical_and": ("bool", "any", 0),
    "logical_or": ("bool", "any", 0), "logical_xor": ("bool", "any", 0),
    "maximum": ("real", "any", 0), "minimum": ("real", "any", 0),
    "multiply": ("numeric", "small", 4), "nextafter": ("real floating", "any", 0),
    "not_equal": ("any", "small", 0), "pow": ("numeric", "small", 64),
    "remainder": ("real", "nonzero", 0), "subtract": ("numeric", "any", 2),
}  # fmt: skip
PAIRS = [((), ()), ((5,), (5,)), ((3, 1), (1, 4)), ((2, 3, 4), (4,)), ((0, 3), (1, 3)), ((), (4,))]


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    kinds, domain, ulps = BINARY[name]
    function, reference = getattr(xp, name), getattr(np, name)
    for dtype in standard.DTYPES:
        if dtype not in OF[kinds]:
            x = xp.ones((2,), dtype=getattr(xp, dtype))
            with pytest.raises(TypeError, match=name):
                function(x, x)
            continue
        for one, other in PAIRS:
            a, b = data(dtype, one, domain, 1), data(dtype, other, domain, 2)
            if name == "pow" and dtype in OF["floating"]:
                a = np.asarray(np.abs(a) + 0.5, dtype)
            with np.errstate(all="ignore"):
                same(function(ours(a), ours(b)), reference(a, b), ulps)
        # Python numbers take the array's dtype.
        number: Any = True if dtype == "bool" else 2 if dtype in OF["integral"] else 1.5
        a = data(dtype, (4,), domain, 3)
        same(function(ours(a), number), reference(a, np.asarray(number, dtype)), ulps)
        b = np.where(a == 0, np.asarray(1, dtype), a) if domain == "nonzero" else a
        same(function(number, ours(b)), reference(np.asarray(number, dtype), b), ulps)


def test_special_numbers() -> None:
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 3e38, 1e-45]
    for dtype in ("float32", "float64"):
        a = np.array([x for x in special for _ in special], dtype)
        b = np.array(special * len(special), dtype)
        for name in ("hypot", "copysign", "nextafter", "maximum", "minimum", "logaddexp"):
            with np.errstate(all="ignore"):
                want = getattr(np, name)(a, b)
            same(
                getattr(xp, name)(ours(a), ours(b)),
                want,
                4 if name in ("hypot", "logaddexp") else 0,
            )
        same(xp.signbit(ours(a)), np.signbit(a))


def test_promotion() -> None:
    for one, other in product(standard.DTYPES, repeat=2):
        kinds = {next(k for k, names in KINDS.items() if n in names) for n in (one, other)}
        numbers = kinds <= {"int", "uint"} or kinds <= {"float", "complex"} or len(kinds) == 1
        undefined = not numbers or (kinds == {"int", "uint"} and "uint64" in (one, other))
        if kinds == {"float", "complex"} and "float64" in (one, other):
            undefined = True  # complex128
        a, b = (xp.ones((2,), dtype=getattr(xp, n)) for n in (one, other))
        if undefined:
            with pytest.raises(TypeError):
                xp.result_type(a, b)
            with pytest.raises(TypeError):
                xp.equal(a, b)
            assert not xp.can_cast(a, b.dtype) or one == other
            continue
        want = np.result_type(one, other).name
        assert xp.result_type(a, b.dtype) == getattr(xp, want)
        assert xp.can_cast(a.dtype, getattr(xp, want))
        same(xp.equal(a, b), np.ones(2, bool))
        if want != "bool":
            same(xp.add(a, b), np.full(2, 2, want))
        same(xp.concat([a, b]), np.ones(4, want))
        same(xp.where(a == 1, a, b), np.ones(2, want))


def test_numbers_beside_arrays() -> None:
    for dtype, number in [
        ("int8", 1.5),
        ("int32", 1j),
        ("bool", 1),
        ("float32", True),
        ("uint8", True),
    ]:
        with pytest.raises(TypeError, match="defined"):
            xp.equal(xp.ones((2,), dtype=getattr(xp, dtype)), number)
    with pytest.raises(OverflowError):
        xp.add(xp.ones((2,), dtype=xp.int8), 300)
    with pytest.raises(TypeError):
        xp.add(1, 2)
    with pytest.raises(TypeError):
        xp.add(np.ones(2), xp.ones((2,)))
    assert xp.add(xp.ones((2,)), 1j).dtype == xp.complex64
    assert xp.result_type(xp.float32, 1, 2.0) == xp.float32
    with pytest.raises(ValueError, match="Expected an array"):
        xp.result_type(1, 2)


def axes_of(ndim: int) -> list[Any]:
    return [None, *range(-ndim, ndim), *([(0, -1), ()] if ndim > 1 else [])]


REDUCTIONS = {
    "all": ("any", 0), "any": ("any", 0), "count_nonzero": ("any", 0), "max": ("real", 0),
    "min": ("real", 0), "mean": ("floating", 16), "prod": ("numeric", 64), "sum": ("numeric", 16),
    "std": ("real floating", 32), "var": ("real floating", 32),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    kinds, ulps = REDUCTIONS[name]
    for dtype in standard.DTYPES:
        if dtype not in OF[kinds]:
            if not (dtype == "bool" and name in ("prod", "sum")):
                with pytest.raises(TypeError, match=name):
                    getattr(xp, name)(xp.ones((2,), dtype=getattr(xp, dtype)))
            continue
        for shape in [(), (5,), (3, 4), (2, 3, 4)]:
            x = data(dtype, shape, "small")
            for axis, keepdims in product(axes_of(len(shape)), [False, True]):
                want = getattr(np, name)(x, axis=axis, keepdims=keepdims)
                if name in ("sum", "prod") and dtype in OF["integral"]:
                    least = "int32" if dtype[0] == "i" else "uint32"
                    want = np.asarray(want).astype(np.result_type(dtype, least))
                got = getattr(xp, name)(ours(x), axis=axis, keepdims=keepdims)
                same(got, want, ulps, indices=name == "count_nonzero")
    with pytest.raises(IndexError):
        getattr(xp, name)(xp.ones((2, 2), dtype=getattr(xp, OF[kinds][-1])), axis=2)


def test_reductions_with_options() -> None:
    x = data("float32", (4, 5))
    for correction in (0, 1, 0.5, 4):
        for name in ("var", "std"):
            want = getattr(np, name)(x, axis=0, ddof=correction) if correction < 4 else None
            got = getattr(xp, name)(ours(x), axis=0, correction=correction)
            same(got, np.full(5, np.nan, "float32") if want is None else want, 32)
    small = np.array([200, 100], "uint8")
    same(xp.sum(ours(small), dtype=xp.int64), np.asarray(300, "int64"))
    same(xp.prod(ours(small), dtype=xp.float32), np.asarray(20000, "float32"))
    same(xp.sum(xp.zeros((0,))), np.asarray(0, "float32"))


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_cumulative(name: str) -> None:
    for dtype in OF["numeric"]:
        for shape in [(0,), (5,), (3, 4)]:
            x = data(dtype, shape, "small")
            for axis, initial in product(range(-len(shape), len(shape)), [False, True]):
                want = getattr(np, name)(x, axis=axis, include_initial=initial)
                if dtype in OF["integral"]:
                    least = "int32" if dtype[0] == "i" else "uint32"
                    want = want.astype(np.result_type(dtype, least))
                got = getattr(xp, name)(ours(x), axis=axis, include_initial=initial)
                same(got, want, 64)
    with pytest.raises(ValueError, match="axis"):
        getattr(xp, name)(xp.ones((2, 2)))
    same(
        getattr(xp, name)(xp.ones((2,)), dtype=xp.int8),
        np.array([1, 2] if "sum" in name else [1, 1], "int8"),
    )


def test_diff() -> None:
    x = data("int32", (4, 6))
    for n, axis in product(range(4), (0, 1, -1)):
        same(xp.diff(ours(x), axis=axis, n=n), np.diff(x, n, axis))
    e = data("int32", (4, 1))
    same(xp.diff(ours(x), prepend=ours(e), append=ours(x)), np.diff(x, prepend=e, append=x))
    with pytest.raises(TypeError):
        xp.diff(xp.ones((3,), dtype=xp.bool))


# --- creation and dtypes ------------------------------------------------------------------


def test_creation() -> None:
    same(xp.arange(5), np.arange(5, dtype="int32"))
    same(xp.arange(1.0, 2, 0.25), np.arange(1.0, 2, 0.25, dtype="float32"))
    same(xp.arange(5, 0, -2, dtype=xp.int8), np.arange(5, 0, -2, dtype="int8"))
    same(xp.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype="float32"), 2)
    same(xp.linspace(0, 1, 5, endpoint=False), np.linspace(0, 1, 5, False, dtype="float32"), 2)
    same(xp.linspace(0, 1 + 1j, 5), np.linspace(0, 1 + 1j, 5).astype("complex64"), 2)
    same(xp.linspace(0, 1, 0), np.zeros(0, "float32"))
    same(xp.eye(3, 4, k=1), np.eye(3, 4, k=1, dtype="float32"))
    for value, dtype in [
        (True, "bool"),
        (3, "int32"),
        (2**40, "int64"),
        (1.5, "float32"),
        (1j, "complex64"),
    ]:
        same(xp.full((2, 3), value), np.full((2, 3), value, dtype))
        same(xp.asarray(value), np.asarray(value, dtype))
        same(xp.asarray([[value], [value]]), np.asarray([[value], [value]], dtype))
    same(xp.full(3, 7, dtype=xp.uint8), np.full(3, 7, "uint8"))
    with pytest.raises(OverflowError):
        xp.full(3, 300, dtype=xp.uint8)
    x = xp.ones((2, 3), dtype=xp.int16)
    for name, value in [("zeros", 0), ("ones", 1)]:
        same(getattr(xp, name)((2, 3)), np.full((2, 3), value, "float32"))
        same(getattr(xp, name)(4, dtype=xp.int64), np.full(4, value, "int64"))
        same(getattr(xp, f"{name}_like")(x), np.full((2, 3), value, "int16"))
    same(xp.full_like(x, 7), np.full((2, 3), 7, "int16"))
    same(xp.full_like(x, 7, dtype=xp.float32), np.full((2, 3), 7, "float32"))
    assert xp.empty((2, 3)).dtype == xp.float32
    assert xp.empty_like(x).shape == (2, 3)
    assert xp.empty_like(x).dtype == xp.int16
    with pytest.raises(TypeError):
        xp.linspace(0, 1, 3, dtype=xp.int32)


def test_memory() -> None:
    held = np.arange(4.0)
    x = xp.asarray(held)
    assert x.dtype == xp.float64
    assert np.shares_memory(np.asarray(x), held)
    assert not np.shares_memory(np.asarray(xp.asarray(held, copy=True)), held)
    assert np.shares_memory(np.asarray(xp.from_dlpack(held)), held)
    with pytest.raises(ValueError, match="copy"):
        xp.asarray(held, dtype=xp.float32, copy=False)
    same(xp.from_dlpack(held, copy=True), held)
    assert xp.astype(x, xp.float64, copy=False) is x
    assert xp.astype(x, xp.float64) is not x


@pytest.mark.parametrize("name", standard.DTYPES)
def test_dtypes(name: str) -> None:
    dtype = getattr(xp, name)
    kinds = {
        "bool": "bool", "i": "signed integer", "u": "unsigned integer", "f": "real floating",
        "c": "complex floating",
    }  # fmt: skip
    for kind in [*kinds.values(), "integral", "numeric"]:
        assert xp.isdtype(dtype, kind) == np.isdtype(np.dtype(name), kind)
    assert xp.isdtype(dtype, dtype)
    assert xp.isdtype(dtype, ("bool", dtype))
    with pytest.raises(ValueError):
        xp.isdtype(dtype, "number")
    kind = np.dtype(name).kind
    for other in standard.DTYPES:
        x = data(name, (3, 2), "small")
        if kind == "c" and np.dtype(other).kind not in "cb":
            with pytest.raises(TypeError, match="real"):
                xp.astype(ours(x), getattr(xp, other))
        else:
            same(xp.astype(ours(x), getattr(xp, other)), x.astype(other))
    if kind in "fc":
        got, want = xp.finfo(dtype), np.finfo(name)
        assert [got.bits, got.eps, got.max, got.min, got.smallest_normal] == [
            want.bits, float(want.eps), float(want.max), float(want.min), float(want.smallest_normal)
        ]  # fmt: skip
        assert xp.finfo(xp.ones((1,), dtype=dtype)).dtype == got.dtype
    else:
        with pytest.raises(TypeError):
            xp.finfo(dtype)
    if kind in "iu":
        got, want = xp.iinfo(dtype), np.iinfo(name)
        assert [got.bits, got.max, got.min] == [want.bits, want.max, want.min]
        assert got.dtype == dtype
    else:
        with pytest.raises(TypeError):
            xp.iinfo(dtype)


def test_inspection() -> None:
    info = xp.__array_namespace_info__()
    assert list(info.dtypes()) == standard.DTYPES
    assert list(info.dtypes(kind="bool")) == ["bool"]
    assert set(info.dtypes(kind=("integral", "bool"))) == set(OF["bits"])
    assert info.default_device() in info.devices()
    for device in info.devices():
        assert xp.zeros((1,), device=device).device == device
        assert set(info.dtypes(device=device)) <= set(standard.DTYPES)
    assert xp.asarray([1.0]).dtype == info.default_dtypes()["real floating"]
    assert xp.asarray([1]).dtype == info.default_dtypes()["integral"]
    assert xp.argmax(xp.asarray([1])).dtype == info.default_dtypes()["indexing"]
    most = info.capabilities()["max dimensions"]
    if most is not None:
        assert xp.ones((1,) * most).ndim == most
        with pytest.raises(ValueError):
            xp.ones((1,) * (most + 1))
    with pytest.raises(ValueError):
        info.dtypes(kind="words")


# --- products -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", OF["numeric"])
def test_products(dtype: str) -> None:
    pairs = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
             ((2, 1, 2, 3), (4, 3, 2)), ((2, 0), (0, 3)), ((0, 2), (2, 3))]  # fmt: skip
    for one, other in pairs:
        a, b = data(dtype, one, "small", 1), data(dtype, other, "small", 2)
        same(xp.matmul(ours(a), ours(b)), np.matmul(a, b), 8)
    a, b = data(dtype, (2, 3, 4), "small", 1), data(dtype, (4, 3, 5), "small", 2)
    for axes in (0, 1, ((2, 1), (0, 1)), ((-2,), (1,))):
        same(xp.tensordot(ours(a), ours(b), axes=axes), np.tensordot(a, b, axes), 16)
    c = data(dtype, (3, 1), "small", 3)
    same(xp.vecdot(ours(a), ours(c), axis=-2), np.vecdot(a, c, axis=-2), 16)
    with pytest.raises(ValueError):
        xp.matmul(ours(a), ours(a))


def test_gradients_flow() -> None:
    for name in UNARY:
        kinds, _, _ = UNARY[name]
        if kinds not in ("floating", "numeric") or name.startswith("is"):
            continue
        domain = UNARY[name][1]
        x = ours(data("float32", (3,), domain))
        got = um.grad(lambda x: xp.sum(getattr(xp, name)(x)))(x)
        assert np.isfinite(np.asarray(got)).all(), name
    g = um.grad(lambda x: xp.sum(xp.hypot(x, 3.0)))(xp.asarray([4.0, 0.0]))
    np.testing.assert_allclose(np.asarray(g), [0.8, 0.0], rtol=1e-6)


# --- against the strict implementation ----------------------------------------------------


def test_kinds_against_array_api_strict() -> None:
    strict = pytest.importorskip("array_api_strict")
    for name in [*UNARY, *BINARY, *REDUCTIONS]:
        count = 2 if name in BINARY else 1
        for dtype in standard.DTYPES:
            if dtype == "bool" and name in ("sum", "prod"):
                continue
            refused = []
            for space in (strict, xp):
                x = space.ones((2,), dtype=getattr(space, dtype))
                try:
                    getattr(space, name)(*[x] * count)
                    refused.append(False)
                except TypeError:
                    refused.append(True)
            assert refused[0] == refused[1], (name, dtype)


def test_compat_knows_the_arrays() -> None:
    compat = pytest.importorskip("array_api_compat")
    x = um.array([1.0])
    assert compat.array_namespace(x) is xp
    assert compat.array_namespace(x, x, api_version="2024.12") is xp
    assert compat.is_array_api_obj(x)
    assert compat.device(x) == x.device
    assert compat.to_device(x, um.cpu) is x
    assert compat.size(x) == 1
