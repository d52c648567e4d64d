"""Storage dtypes (fp8, fp6, fp4) against ml_dtypes: conversion to the bit, and what Python sees."""

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.harness import rng
from support.paths import DOCS

import ultramarine as mx

ml: Any = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")

BYTES = [
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn",
    "float4_e2m1fn",
]  # fmt: skip
PACKED = ["float6_e2m3fn_packed", "float6_e3m2fn_packed", "float4_e2m1fn_packed"]
PAIR = "float4_e2m1fn_x2"
ALL = [*BYTES, *PACKED, PAIR]

in_bytes = pytest.mark.parametrize("name", BYTES)
every = pytest.mark.parametrize("name", ALL)


def bits_of(name: str) -> int:
    return int(ml.finfo(getattr(ml, name)).bits)


def codes(name: str) -> np.ndarray:
    """Every bit pattern."""
    return np.arange(1 << bits_of(name), dtype=np.uint8)


def theirs(name: str) -> np.ndarray:
    return codes(name).view(getattr(ml, name))


def cast(numbers: np.ndarray, dtype: Any) -> np.ndarray:
    """A cast of NumPy's, by way of float32 where there is none."""
    with np.errstate(all="ignore"):
        try:
            return numbers.astype(dtype)
        except TypeError:
            return numbers.astype(np.float32).astype(dtype)


# --- conversion ---------------------------------------------------------------------------


@in_bytes
def test_every_pattern_decodes_as_theirs(name: str) -> None:
    x = mx.array(codes(name)).view(getattr(mx, name))
    got = np.array(x.astype(mx.float32)).view(np.uint32)
    assert np.array_equal(got, theirs(name).astype(np.float32).view(np.uint32))
    for to, their in (("float16", np.float16), ("bfloat16", ml.bfloat16), ("float64", np.float64)):
        got, want = np.asarray(x.astype(getattr(mx, to))), cast(theirs(name), their)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        assert got.dtype == want.dtype and same.all(), to


def numbers(name: str) -> dict[str, np.ndarray]:
    """What is hard to round."""
    r = rng("storage")
    own = theirs(name).astype(np.float64)
    own = np.sort(own[np.isfinite(own)])
    middle = (own[1:] + own[:-1]) / 2
    up, down = np.float32(np.inf), np.float32(-np.inf)
    with np.errstate(all="ignore"):
        near = np.concatenate([own, middle, own * 2, [own[-1] * 1.5]]).astype(np.float32)
        near = np.concatenate([near, -near])
        near = np.concatenate([near, np.nextafter(near, up), np.nextafter(near, down)])
    patterns = np.arange(1 << 16, dtype=np.uint16)
    wide = middle * (1 + 2.0**-40)
    return {
        "every float16": patterns.view(np.float16),
        "every bfloat16": patterns.view(ml.bfloat16),
        "around numbers and halfway": near,
        "any float32": np.frombuffer(r.bytes(4 << 18), np.float32),
        "usual float32": r.standard_normal(1 << 16).astype(np.float32) * 8,
        "float64": np.concatenate([wide, r.standard_normal(1 << 12), [1e300, -1e300, 5e-324]]),
        "int64": r.integers(-(2**62), 2**62, 1 << 12) >> r.integers(0, 62, 1 << 12),
        "bool": np.array([True, False]),
    }


@in_bytes
def test_numbers_encode_as_theirs(name: str) -> None:
    for what, source in numbers(name).items():
        x = mx.asarray(source)
        assert str(x.dtype).endswith(str(source.dtype)), what
        got = np.array(x.astype(getattr(mx, name)).view(mx.uint8))
        want = cast(source, getattr(ml, name)).view(np.uint8)
        wrong = np.flatnonzero(got != want)
        assert not len(wrong), (what, source[wrong[:5]], got[wrong[:5]], want[wrong[:5]])


@in_bytes
def test_from_one_to_another(name: str) -> None:
    for other in BYTES:
        got = mx.array(codes(name)).view(getattr(mx, name)).astype(getattr(mx, other))
        if other == name:
            want = codes(name)
        else:
            want = cast(theirs(name).astype(np.float32), getattr(ml, other)).view(np.uint8)
        assert np.array_equal(np.array(got.view(mx.uint8)), want), other


@pytest.mark.parametrize("name", PACKED)
def test_packed_bits(name: str) -> None:
    plain = name.removesuffix("_packed")
    width = bits_of(plain)
    for n in (0, 1, 3, 4, 5, 8, 1001):
        source = rng("packed", n).integers(0, 1 << width, n).astype(np.uint8)
        x = mx.array(source).view(getattr(mx, plain)).astype(getattr(mx, name))
        bits = (source[:, None] >> np.arange(width) & 1).astype(np.uint8).reshape(-1)
        assert bytes(x) == np.packbits(bits, bitorder="little").tobytes()
        assert (x.size, x.nbytes, x.itemsize) == (n, (n * width + 7) // 8, 1)
        back = np.array(x.astype(getattr(mx, plain)).view(mx.uint8))
        assert np.array_equal(back, source)


def test_pairs() -> None:
    x = mx.array([[1.0, 2.0, -3.0, 0.5]], dtype=mx.float4_e2m1fn_x2)
    assert x.shape == (1, 2) and x.nbytes == 2
    assert np.array(x.view(mx.uint8)).tolist() == [[0x42, 0x1D]]
    assert x.astype(mx.float32).tolist() == x.tolist() == [[1.0, 2.0, -3.0, 0.5]]
    assert x[0, 1].astype(mx.float32).tolist() == [-3.0, 0.5]
    with pytest.raises(ValueError, match="even"):
        mx.array([1.0]).astype(mx.float4_e2m1fn_x2)
    with pytest.raises(ValueError, match="two numbers"):
        x[0, 1].item()


@every
def test_any_layout(name: str) -> None:
    dtype = getattr(mx, name)
    x = mx.arange(1, 49, dtype=mx.float32).reshape(4, 2, 6) / 8
    for a in (x, x.T, x[::-1, :, ::2][:, :, :2], mx.broadcast_to(x[0], (3, 2, 6)), x[:0], x[0, 0]):
        got = a.astype(dtype)
        want = mx.array(np.array(a)).astype(dtype)
        assert got.shape == want.shape and bytes(got) == bytes(want)
        assert got.astype(mx.float32).tolist() == want.astype(mx.float32).tolist()


# --- what Python sees ---------------------------------------------------------------------


@every
def test_the_dtype(name: str) -> None:
    dtype = getattr(mx, name)
    assert repr(dtype) == f"ultramarine.{name}" and dtype.size == 1
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert mx.issubdtype(dtype, mx.generic) and not mx.issubdtype(dtype, mx.number)
    assert not mx.isdtype(dtype, "numeric") and not mx.isdtype(dtype, "real floating")
    plain = name.removesuffix("_packed").removesuffix("_x2")
    info, want = mx.finfo(dtype), ml.finfo(getattr(ml, plain))
    assert (info.bits, info.min, info.max) == (want.bits, float(want.min), float(want.max))
    assert (info.eps, info.smallest_normal) == (float(want.eps), float(want.smallest_normal))


@every
def test_the_array(name: str) -> None:
    dtype = getattr(mx, name)
    x = mx.array([[1.0, 2.0], [4.0, 0.5]], dtype=dtype)
    assert x.dtype is dtype and x.tolist() == x.astype(mx.float32).tolist()
    assert str(x) == str(x.astype(mx.float32)).replace("float32", name)
    assert all(isinstance(v, float) for row in x.tolist() for v in row)
    for twin in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x), mx.array(x)):
        assert twin.dtype is dtype and twin.shape == x.shape and bytes(twin) == bytes(x)
    one = mx.full((2, 2), 1.5, dtype=dtype)
    two = name in ("float8_e8m0fnu",)
    assert one.tolist()[0][0] == (2.0 if two else 1.5) and one.dtype is dtype
    assert mx.ones_like(one).shape == one.shape and mx.zeros((3,), dtype).dtype is dtype
    assert mx.empty((5, 4), dtype).nbytes == x.nbytes * 5 * 4 // x.size
    if name != PAIR:
        assert mx.array(2, dtype=dtype).item() == 2.0
        assert float(mx.array(2, dtype=dtype)) == 2.0 and f"{mx.array(2, dtype=dtype):.1f}" == "2.0"


@every
def test_numpy_both_ways(name: str) -> None:
    plain = getattr(ml, name.removesuffix("_packed").removesuffix("_x2"))
    x = mx.array([[1.0, 2.0], [4.0, 0.5]], dtype=getattr(mx, name))
    for n in (np.asarray(x), np.array(x)):
        assert n.dtype == plain and n.astype(np.float32).tolist() == x.tolist()
    assert np.asarray(x, dtype=np.float64).tolist() == x.tolist()
    for make in (mx.array, mx.asarray):
        back = make(np.asarray(x))
        assert back.dtype == getattr(mx, str(np.dtype(plain))) and back.tolist() == x.tolist()
    shared = np.asarray(x.astype(getattr(mx, str(np.dtype(plain)))))
    strided = mx.asarray(np.asarray(shared).T[::-1])
    assert strided.tolist() == shared.T[::-1].astype(np.float32).tolist()
    if name in BYTES:
        again = np.asarray(x, copy=False)
        assert again.ctypes.data == np.asarray(x.view(mx.uint8)).ctypes.data
    else:
        with pytest.raises(ValueError, match="copy"):
            np.asarray(x, copy=False)


@every
def test_transforms(name: str) -> None:
    dtype = getattr(mx, name)
    x, w = mx.array([[0.3, 1.2], [2.7, 5.0]]), mx.array([[1.0, 10.0], [0.001, 7.7]])

    def loss(x: mx.array) -> mx.array:
        return (x.astype(dtype).astype(mx.float32) * w).sum()

    if name == PAIR:
        with pytest.raises(ValueError, match="two numbers"):
            mx.grad(loss)(x)
    else:
        assert mx.grad(loss)(x).tolist() == w.tolist()
    mapped = mx.vmap(lambda row: row.astype(dtype).astype(mx.float32))(x)
    assert mapped.tolist() == x.astype(dtype).astype(mx.float32).tolist()


# --- nothing else -------------------------------------------------------------------------

# What only shows or moves elements, or makes other arrays of the same dtype.
SHOWS = {
    "array", "as_strided", "asarray", "astype", "async_eval", "at", "atleast_1d", "atleast_2d",
    "atleast_3d", "broadcast_arrays", "broadcast_to", "contiguous", "copy", "depends", "device",
    "diag", "diagonal", "einsum_path", "empty_like", "eval", "expand_dims", "flatten", "flip", "from_dlpack",
    "full", "full_like", "identity", "item", "matrix_transpose", "meshgrid", "moveaxis",
    "ones_like", "permute_dims", "repeat", "reshape", "result_type", "save", "savez",
    "savez_compressed", "split", "squeeze", "stop_gradient", "swapaxes", "take", "tile", "tolist",
    "transpose", "unflatten", "unstack", "view", "zeros_like", "issubdtype", "can_cast",
    "concatenate", "concat", "stack", "array_equal", "roll",
}  # fmt: skip
SKIPPED = {
    "save",
    "savez",
    "savez_compressed",
    "save_safetensors",
    "load",
    "synchronize",
    "export_to_dot",
}

CALLS: list[Callable[[Any, mx.array, mx.array], Any]] = [
    lambda f, a, b: f(a),
    lambda f, a, b: f(a, a),
    lambda f, a, b: f(b, a),
    lambda f, a, b: f(a, b),
    lambda f, a, b: f(a, a, a),
    lambda f, a, b: f([a, a]),
    lambda f, a, b: f(a, 0),
    lambda f, a, b: f(a, 1, 0),
    lambda f, a, b: f(a, 2.0),
    lambda f, a, b: f(2.0, a),
    lambda f, a, b: f(a, (1, 1)),
    lambda f, a, b: f(b, 0, a),
    lambda f, a, b: f(mx.array([[True, False], [True, True]]), a, a),
    lambda f, a, b: f(a, mx.array([[0, 1], [1, 0]]), axis=0),
    lambda f, a, b: f(b, mx.array([[0, 1], [1, 0]]), a, 0),
    lambda f, a, b: f("ij,jk", a, a),
]


def functions() -> list[tuple[str, Any]]:
    found = [(n, getattr(mx, n)) for n in dir(mx) if not n.startswith("_")]
    operators = [
        f"__{p}{n}__"
        for n in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or",
                  "xor", "lshift", "rshift")
        for p in ("", "r", "i")
    ]  # fmt: skip
    operators += ["__neg__", "__abs__", "__invert__", "__lt__", "__le__", "__gt__", "__ge__"]
    operators += ["__eq__", "__ne__"]
    names = [n for n in dir(mx.array) if not n.startswith("_")] + operators
    found += [(f"array.{n}", getattr(mx.array, n)) for n in names if hasattr(mx.array, n)]
    return [(n, f) for n, f in found if callable(f) and not isinstance(f, type)]


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float4_e2m1fn", *PACKED, PAIR])
def test_no_arithmetic(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever float32 can do, a storage dtype refuses at the call, or it only moves bytes."""
    # Some functions write files.
    monkeypatch.chdir(tmp_path)
    plain = mx.array([[1.0, 2.0], [3.0, 4.0]])
    refused, wrong = set(), []
    for path, function in functions():
        short = path.removeprefix("array.")
        if short in SKIPPED:
            continue
        for number, call in enumerate(CALLS):
            stored = mx.ones((2, 2), getattr(mx, name))
            try:
                call(function, plain + 0, plain)
            except Exception:
                continue
            try:
                result = call(function, stored, plain)
            except TypeError as error:
                text = str(error)
                if "storage type" in text or "share bytes" in text:
                    refused.add(short)
                elif short not in SHOWS:
                    wrong.append((path, number, text))
            except Exception as error:
                if short not in SHOWS:
                    wrong.append((path, number, repr(error)))
            else:
                if short not in SHOWS and result is not NotImplemented:
                    wrong.append((path, number, "no error"))
    assert not wrong
    assert {"add", "exp", "matmul", "sort", "sum", "where", "__add__", "__imul__"} <= refused
    assert len(refused) > 120


def test_assignment_and_selection() -> None:
    x = mx.ones((3,), mx.float8_e5m2)
    plain = mx.zeros((3,))
    for entry in (0, slice(None), mx.array([0, 1]), mx.array([True, False, True])):
        with pytest.raises(TypeError, match="storage type"):
            x[entry] = 1.0
        with pytest.raises(TypeError, match="storage type"):
            plain[entry] = x
    with pytest.raises(TypeError, match="storage type"):
        x[mx.array([0, 1])]
    assert x[1:].tolist() == [1.0, 1.0] and x[0].item() == 1.0
    assert [v.item() for v in x] == [1.0, 1.0, 1.0]
    with pytest.raises(TypeError, match=r"astype\(float4_e2m1fn\)"):
        mx.ones((4,), mx.float4_e2m1fn_packed)[0]


# --- files --------------------------------------------------------------------------------


@every
def test_files(name: str, tmp_path: Path) -> None:
    x = mx.array([[1.0, 2.0], [4.0, 0.5]], dtype=getattr(mx, name))
    with pytest.raises(TypeError, match=name):
        mx.save(str(tmp_path / "x.npy"), x)
    file = str(tmp_path / "x.safetensors")
    known = {
        "float8_e4m3fn": "F8_E4M3", "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2": "F8_E5M2",
        "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0",
        "float6_e2m3fn_packed": "F6_E2M3", "float6_e3m2fn_packed": "F6_E3M2",
        "float4_e2m1fn_packed": "F4",
    }  # fmt: skip
    if name not in known:
        with pytest.raises(TypeError, match=name):
            mx.save_safetensors(file, {"x": x})
        return
    mx.save_safetensors(file, {"x": x})
    assert f'"{known[name]}"' in Path(file).read_bytes().decode(errors="replace")
    back: Any = mx.load(io.BytesIO(Path(file).read_bytes()), format="safetensors")
    assert back["x"].dtype == x.dtype and bytes(back["x"]) == bytes(x)
    assert back["x"].shape == x.shape


def test_the_page() -> None:
    """The example in docs/dtypes.md is true."""
    page = (DOCS / "dtypes.md").read_text()
    blocks = page.split("```python\n")[1:]
    assert blocks
    for block in blocks:
        exec(block.split("```")[0], {})
