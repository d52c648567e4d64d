"""Promotion over every pair of dtypes and every kind of scalar; casts; properties of dtypes."""

from typing import Any

import numpy as np
import pytest
from support.harness import (
    ALL,
    FLOATS,
    LAYOUTS,
    SHAPES,
    Tally,
    Units,
    exactly,
    given,
    in_single,
    sample,
)

PAIRED: dict[str, Any] = {
    op: (lambda mx, x, y, op=op: getattr(mx, op)(x, y))
    for op in (
        "add", "multiply", "divide", "floor_divide", "remainder", "power", "maximum", "equal",
        "logaddexp", "arctan2", "bitwise_and", "left_shift", "logical_or", "matmul", "result_type",
    )
} | {
    "where": lambda mx, x, y: mx.where(mx.array([True, False, True]), x, y),
    "concatenate": lambda mx, x, y: mx.concatenate([x, y]),
    "stack": lambda mx, x, y: mx.stack([x, y]),
    "array_equal": lambda mx, x, y: mx.array_equal(x, y),
    "clip": lambda mx, x, y: mx.clip(x, y, None),
    "assign": lambda mx, x, y: (x.__setitem__(slice(1, 3), y[1:3]), x)[1],
    "in place": lambda mx, x, y: x.__iadd__(y),
    "can_cast": lambda mx, x, y: mx.can_cast(x, y.dtype),
    "issubdtype": lambda mx, x, y: mx.issubdtype(x.dtype, y.dtype),
    "isdtype": lambda mx, x, y: mx.isdtype(x.dtype, y.dtype),
    "same": lambda mx, x, y: (x.dtype == y.dtype, x.dtype != y.dtype),
}  # fmt: skip


# Errors of complex logarithms grow with the exponent.
PAIRED_ULPS: dict[str, Units] = {"power": 1024, "logaddexp": in_single(64)}


@pytest.mark.parametrize("op", PAIRED)
def test_pairs(tally: Tally, op: str) -> None:
    for a in ALL:
        for b in ALL:
            x, y = given(a, (3,), domain="above one"), given(b, (3,), domain="above one")
            tally.same(f"{a} {b}", PAIRED[op], x, y, ulps=PAIRED_ULPS.get(op, 64))


SCALARS: list[Any] = [True, False, 0, 3, -3, 300, 2**31, 2**40, 0.5, 1e300, float("inf"), 1 + 2j]
NUMPY_SCALARS: list[Any] = [
    np.bool_(True), np.int8(3), np.uint16(3), np.int64(3), np.float16(0.5), np.float32(0.5),
    np.float64(0.5), np.complex64(1j),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL)
def test_scalars(tally: Tally, dtype: str) -> None:
    x = given(dtype, (3,), domain="above one")
    for s in SCALARS + NUMPY_SCALARS:
        for op in ("add", "multiply", "maximum", "equal", "less", "where"):

            def case(mx, x, s=s, op=op):
                return mx.where(x == x, x, s) if op == "where" else getattr(mx, op)(x, s)

            tally.same(f"{op} {s!r}", case, x, ulps=4)
        tally.same(f"reflected {s!r}", lambda mx, x, s=s: mx.subtract(s, x), x, ulps=4)


EDGES = [0, 1, -1, 0.5, -0.5, 1.5, 2.5, 127, 128, 255, 256, -128, -129, 1e-8, 65504, 65520, 1e6]


@pytest.mark.parametrize("source", ALL)
def test_casts(tally: Tally, source: str) -> None:
    for target in ALL:
        for shape, layout in sample([(s, lay) for s in SHAPES[2:] for lay in LAYOUTS], 6, target):
            x = given(source, shape, layout)
            tally.same(
                f"{target} {shape} {layout.name}",
                lambda mx, x: x.astype(getattr(mx, target)),
                x,
            )
        tally.same(
            f"{target} function",
            lambda mx, x: mx.astype(x, getattr(mx, target)),
            given(source, (3,)),
        )


@pytest.mark.parametrize("source", FLOATS)
def test_casts_of_edges(tally: Tally, source: str) -> None:
    """Values between two of the target's, and at the ends of its range."""
    for target in ALL:
        if target in ("uint32", "uint64") or target == "bool_":
            edges = [e for e in EDGES if e >= 0]
        else:
            edges = EDGES
        for value in edges:
            if target.lstrip("u") in ("int8", "int16") and abs(value) > 30000:
                continue  # out of range: what comes of it is left to the compiler in mlx
            x = exactly([value], source) if source != "float16" or abs(value) < 65504 else None
            if x is not None:
                tally.same(f"{value} {target}", lambda mx, x: x.astype(getattr(mx, target)), x)
        for value in (np.nan, np.inf, -np.inf):
            if target in ("bool_", *FLOATS, "complex64"):
                x = exactly([value], source)
                tally.same(f"{value} {target}", lambda mx, x: x.astype(getattr(mx, target)), x)


@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_rounding_to_halves(tally: Tally, target: str) -> None:
    """To nearest, ties to even: values around every boundary between neighbours."""
    shift = 13 if target == "float16" else 16
    base = np.arange(0, 0x7F80_0000, 1 << 20, dtype=np.uint32)
    near = [base | ((1 << (shift - 1)) + d) for d in (-1, 0, 1)] + [
        base | (1 << shift) | ((1 << (shift - 1)) + d) for d in (-1, 0, 1)
    ]
    data = np.concatenate(near).view(np.float32)
    for sign in (1, -1):
        x = exactly(sign * data, "float32")
        tally.same(f"{sign}", lambda mx, x: x.astype(getattr(mx, target)), x)


PROPERTIES: dict[str, Any] = {
    "names": lambda mx, d: (str(d).split(".")[-1], repr(d).split(".")[-1], d.size),
    "categories": lambda mx, d: [
        mx.issubdtype(d, getattr(mx, c))
        for c in (
            "generic", "number", "integer", "signedinteger", "unsignedinteger", "inexact",
            "floating", "complexfloating",
        )
    ],
    "kinds": lambda mx, d: [
        mx.isdtype(d, k)
        for k in (
            "bool", "signed integer", "unsigned integer", "integral", "real floating",
            "complex floating", "numeric", ("bool", "integral"),
        )
    ],
    "wrong kind": lambda mx, d: mx.isdtype(d, "nothing"),
    "finfo": lambda mx, d: [
        getattr(mx.finfo(d), f) for f in ("bits", "min", "max", "eps", "smallest_normal", "dtype")
    ],
    "iinfo": lambda mx, d: [getattr(mx.iinfo(d), f) for f in ("min", "max", "dtype")],
    "hash": lambda mx, d: len({d, d, mx.float32}),
    "against others": lambda mx, d: (d == 1, d == "float32", d != None),  # noqa: E711
}  # fmt: skip


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", PROPERTIES)
def test_properties(tally: Tally, name: str, dtype: str) -> None:
    tally.same(name, lambda mx: PROPERTIES[name](mx, getattr(mx, dtype)))
