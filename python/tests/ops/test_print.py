"""str and repr, character for character."""

import numpy as np
import pytest
from support.harness import ALL, LAYOUTS, Tally, exactly, given

SHAPES = [(), (0,), (1,), (5,), (2, 3), (2, 0, 3), (2, 2, 2), (1000,), (7,), (8,), (40, 50), (3, 100), (9, 9, 9)]  # fmt: skip


@pytest.mark.parametrize("dtype", ALL)
def test_shapes(tally: Tally, dtype: str) -> None:
    for shape in SHAPES:
        for layout in LAYOUTS if shape else LAYOUTS[:1]:
            x = given(dtype, shape, layout)
            tally.same(f"str {shape} {layout.name}", lambda mx, x: str(x), x)
            tally.same(f"repr {shape} {layout.name}", lambda mx, x: repr(x), x)


VALUES = [
    [0.0], [-0.0], [1.0, 2.5], [1e-8, 1.0], [1e10], [123456789.0], [0.1, 0.2, 0.30000001],
    [1e-45], [3.4e38], [np.nan, np.inf, -np.inf], [100000.0], [1000000.0], [1e7, 1.0],
    [0.0001], [0.00001], [12345.678], [999999.5], [2.0**24], [1 / 3], [-1.5, 10.25],
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_values(tally: Tally, dtype: str) -> None:
    for value in VALUES:
        with np.errstate(over="ignore"):
            x = exactly(value, dtype)
        tally.same(f"{value}", lambda mx, x: str(x), x)
        tally.same(f"0-d {value}", lambda mx, x: str(x[0]), x)
        tally.same(f"list {value}", lambda mx, x: str(x.tolist()), x)


def test_complex_and_integers(tally: Tally) -> None:
    z = exactly([1 + 2j, -1.5 - 0.25j, 0, 1e10 + 1e-10j, complex(np.nan, np.inf)], "complex64")
    tally.same("complex", lambda mx, x: str(x), z)
    for dtype in ("int8", "uint8", "int64", "uint64"):
        info = np.iinfo(dtype)
        x = exactly([info.min, 0, 1, info.max], dtype)
        tally.same(dtype, lambda mx, x: (str(x), repr(x)), x)
    tally.same("bool", lambda mx, x: str(x), exactly([True, False], "bool_"))


def test_precision(tally: Tally) -> None:
    x = exactly([1 / 3, 2e5 / 3, 1e-5 / 3], "float32")
    for digits in (-1, 1, 3, 8):

        def case(mx, x, digits=digits):
            with mx.printoptions(precision=digits):
                inside = str(x)
            return inside, str(x), mx.get_printoptions().precision

        tally.same(f"{digits}", case, x)

    def lasting(mx, x):
        mx.set_printoptions(precision=2)
        try:
            return str(x)
        finally:
            mx.set_printoptions()

    tally.same("set_printoptions", lasting, x)


def test_other_things(tally: Tally) -> None:
    for name, case in {
        "device": lambda mx: repr(mx.default_stream(mx.cpu).device),
        "stream": lambda mx: repr(mx.default_stream(mx.default_device())).split("(")[0],
        "device types": lambda mx: (repr(mx.Device(mx.cpu, 0)), str(mx.cpu).split(".")[-1]),
        "finfo": lambda mx: repr(mx.finfo(mx.float16)).replace("mlx.core", "M").replace("ultramarine", "M"),
        "iinfo": lambda mx: repr(mx.iinfo(mx.int8)).replace("mlx.core", "M").replace("ultramarine", "M"),
    }.items():  # fmt: skip
        tally.same(name, case)
