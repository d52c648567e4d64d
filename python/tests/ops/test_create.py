"""Creation: from Python values, from NumPy, and by the functions that fill."""

from typing import Any

import numpy as np
import pytest
from support.harness import ALL, Tally, given, um

# Functions of a library that make an array, without inputs.
MAKERS: dict[str, Any] = {
    "array of int": lambda mx: mx.array(3),
    "array of float": lambda mx: mx.array(2.5),
    "array of bool": lambda mx: mx.array(True),
    "array of complex": lambda mx: mx.array(1 + 2j),
    "array of list": lambda mx: mx.array([1, 2, 3]),
    "array of mixed list": lambda mx: mx.array([1, 2.5, True]),
    "array of bools": lambda mx: mx.array([[True], [False]]),
    "array of complex list": lambda mx: mx.array([1, 2j]),
    "array of nested": lambda mx: mx.array([[1, 2], [3, 4]], mx.int8),
    "array of tuples": lambda mx: mx.array(((1.0, 2.0), (3.0, 4.0))),
    "array of empty list": lambda mx: mx.array([]),
    "array of empty lists": lambda mx: mx.array([[], []]),
    "array of arrays": lambda mx: mx.array([mx.array([1, 2]), mx.array([3.5, 4])]),
    "array of array": lambda mx: mx.array(mx.array([1, 2]), mx.float16),
    "array of ragged": lambda mx: mx.array([[1, 2], [3]]),
    "array of string": lambda mx: mx.array("abc"),
    "array of None": lambda mx: mx.array(None),
    "array of dict": lambda mx: mx.array({}),
    "array of big int": lambda mx: mx.array(2**40),
    "array of bigger int": lambda mx: mx.array([2**31]),
    "array of too big int": lambda mx: mx.array(2**70),
    "array of minus as uint8": lambda mx: mx.array(-1, mx.uint8),
    "array of float as int": lambda mx: mx.array([1.7, -1.7], mx.int32),
    "array of range": lambda mx: mx.array(range(4)),
    "asarray of list": lambda mx: mx.asarray([1, 2], mx.float16),
    "asarray of float": lambda mx: mx.asarray(1.0),
    "zeros": lambda mx: mx.zeros((2, 3)),
    "zeros int": lambda mx: mx.zeros(4, mx.int8),
    "zeros ()": lambda mx: mx.zeros(()),
    "zeros of list": lambda mx: mx.zeros([2, 0]),
    "zeros of negative": lambda mx: mx.zeros((-1, 2)),
    "zeros of float": lambda mx: mx.zeros(2.0),
    "ones": lambda mx: mx.ones((2, 3), mx.bool_),
    "ones of negative": lambda mx: mx.ones(-3),
    "full": lambda mx: mx.full((2, 3), 7),
    "full float": lambda mx: mx.full((2, 3), 7.5),
    "full by dtype": lambda mx: mx.full(3, 7.9, mx.int16),
    "full by array": lambda mx: mx.full((2, 3), mx.array([1, 2, 3])),
    "full by wrong array": lambda mx: mx.full((2, 3), mx.array([1, 2])),
    "full_like": lambda mx: mx.full_like(mx.zeros((2, 2), mx.int8), 3.7),
    "zeros_like": lambda mx: mx.zeros_like(mx.array([1, 2])),
    "ones_like by dtype": lambda mx: mx.ones_like(mx.array([1, 2]), mx.float16),
    "arange 5": lambda mx: mx.arange(5),
    "arange 5.0": lambda mx: mx.arange(5.0),
    "arange 2, 9": lambda mx: mx.arange(2, 9),
    "arange 2, 9, 3": lambda mx: mx.arange(2, 9, 3),
    "arange 9, 2, -2": lambda mx: mx.arange(9, 2, -2),
    "arange 0, 1, 0.1": lambda mx: mx.arange(0, 1, 0.1),
    "arange floats": lambda mx: mx.arange(0.5, 3.6, 0.7),
    "arange from True": lambda mx: mx.arange(True, 5),
    "arange to True": lambda mx: mx.arange(0, True, 1),
    "arange by True": lambda mx: mx.arange(0, 3, True),
    "arange of a bool as float32": lambda mx: mx.arange(True, dtype=mx.float32),
    "arange empty": lambda mx: mx.arange(5, 2),
    "arange of dtype": lambda mx: mx.arange(0, 5, 1, mx.bfloat16),
    "arange by stop": lambda mx: mx.arange(stop=5, dtype=mx.uint8),
    "arange of step 0": lambda mx: mx.arange(0, 5, 0),
    "arange of nan": lambda mx: mx.arange(0, mx.nan),
    "arange of step nan": lambda mx: mx.arange(0, 5, mx.nan),
    "arange of infinite steps": lambda mx: [
        mx.arange(0.5, 5, mx.inf),
        mx.arange(5, 0, -mx.inf),
        mx.arange(0, -5, mx.inf),
        mx.arange(0, 5, -mx.inf),
        mx.arange(0, 0, mx.inf),
        mx.arange(1, 5, mx.inf, mx.int32),
    ],
    "arange of infinite stop and step": lambda mx: mx.arange(0, mx.inf, mx.inf),
    "arange by place and name": lambda mx: [
        mx.arange(5, None, 2),
        mx.arange(5, step=2),
        mx.arange(stop=5, step=2),
        mx.arange(1, stop=5),
        mx.arange(1, 5, dtype=mx.int8),
        mx.arange(start=1, stop=5),
        mx.arange(1, 5, None, mx.int8),
    ],
    "arange by start alone": lambda mx: mx.arange(start=5),
    "arange by start and step": lambda mx: mx.arange(start=5, step=2),
    "arange of start twice": lambda mx: mx.arange(5, start=2),
    "arange of too many": lambda mx: mx.arange(1, 5, 1, mx.int8, mx.cpu),
    "arange of nothing": lambda mx: mx.arange(),
    "arange of an unknown name": lambda mx: mx.arange(5, bogus=1),
    "arange of infinity": lambda mx: mx.arange(0.0, mx.inf),
    "arange too long": lambda mx: mx.arange(0.0, 1e30),
    "linspace": lambda mx: mx.linspace(0, 1, 11),
    "linspace of 1": lambda mx: mx.linspace(3, 9, 1),
    "linspace open": lambda mx: mx.linspace(0, 1, 4, endpoint=False),
    "linspace int": lambda mx: mx.linspace(0, 10, 5, dtype=mx.int32),
    "linspace of 0": lambda mx: mx.linspace(0, 1, 0),
    "linspace of -1": lambda mx: mx.linspace(0, 1, -1),
    "eye": lambda mx: mx.eye(3),
    "eye wide": lambda mx: mx.eye(3, 5, 1, mx.int32),
    "eye below": lambda mx: mx.eye(4, 3, -2),
    "identity": lambda mx: mx.identity(3, mx.float16),
    "tri": lambda mx: mx.tri(3, 4, 1),
    "tril": lambda mx: mx.tril(mx.ones((3, 4))),
    "triu": lambda mx: mx.triu(mx.ones((2, 3, 3)), -1),
    "constants": lambda mx: [mx.pi, mx.e, mx.euler_gamma, mx.inf, mx.nan, mx.newaxis],
    "empty": lambda mx: mx.empty((2, 3)),
    "empty shape and dtype": lambda mx: (mx.empty((2, 0), mx.int8), mx.empty(0).dtype),
}

# What numpy.array is given, and what becomes of it.
FROM_NUMPY = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "float32", "float64", "complex64", "complex128", "datetime64[s]", "S3", "U3", "object",
]  # fmt: skip


@pytest.mark.parametrize("maker", MAKERS)
def test_makers(tally: Tally, maker: str) -> None:
    tally.same(maker, MAKERS[maker], ulps=1, scale="largest")


@pytest.mark.parametrize("dtype", FROM_NUMPY)
def test_from_numpy(tally: Tally, dtype: str) -> None:
    data = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for name, part in {
        "dense": data,
        "fortran": np.asfortranarray(data),
        "reversed": data[::-1, :, ::-2],
        "transposed": data.T,
        "broadcast": np.broadcast_to(data[0], (5, 3, 4)),
        "empty": data[:0],
        "0-d": data[0, 0, :1].reshape(()),
        "numpy scalar": data[1, 1, 1],
        "other endian": data.astype(data.dtype.newbyteorder(">")),
    }.items():
        if name == "numpy scalar" and data.dtype.kind not in "biufc":
            continue  # mlx dies of it; see beyond_mlx/test_wrong_calls.py
        tally.same(f"array {name}", lambda mx, p=part: mx.array(p))
        tally.same(f"array as float32 {name}", lambda mx, p=part: mx.array(p, mx.float32))
        tally.same(f"asarray {dtype} {name}", lambda mx, p=part: mx.asarray(p))
        tally.same(f"operator {name}", lambda mx, p=part: mx.array([1]) + p)
    read_only = data.copy()
    read_only.flags.writeable = False
    tally.same("read-only", lambda mx: mx.array(read_only))


@pytest.mark.parametrize("dtype", ALL)
def test_to_python(tally: Tally, dtype: str) -> None:
    one, many, none = given(dtype, ()), given(dtype, (2, 3)), given(dtype, (0,))
    for x in (one, many, none, given(dtype, (1, 1))):
        for name, case in {
            "item": lambda mx, x: x.item(),
            "tolist": lambda mx, x: x.tolist(),
            "bool": lambda mx, x: bool(x),
            "int": lambda mx, x: int(x),
            "float": lambda mx, x: float(x),
            "complex": lambda mx, x: complex(x),
            "len": lambda mx, x: len(x),
            "iter": lambda mx, x: list(x),
        }.items():
            tally.same(f"{name} {x.shape}", case, x)
    tally.same("format", lambda mx, x: f"{x.astype(mx.float32).item():.3f}", one)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_windows(tally: Tally, name: str) -> None:
    for n in (-3, 0, 1, 2, 3, 4, 11, 100, 3.0, None, "3"):
        tally.same(f"{n}", lambda mx, n=n: getattr(mx, name)(n), ulps=16, scale=1.0)
    tally.same("by name", lambda mx: getattr(mx, name)(M=5), ulps=16, scale=1.0)
    for n in (0, 1, 2, 51):
        want = getattr(np, name)(n)
        np.testing.assert_allclose(np.array(getattr(um, name)(n)), want, atol=1e-6)
