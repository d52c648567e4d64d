"""Protocols of Python objects: pickle, copy, buffers, hashing, iteration."""

import copy
import pickle

import numpy as np
import pytest
from support.compare import assert_identical
from support.harness import ALL, LAYOUTS, Tally, given
from support.plugins import run

import ultramarine as mx

SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 3)]


def each() -> list:
    return [
        given(d, s, lay) for d in ALL for s in SHAPES for lay in (LAYOUTS if s else LAYOUTS[:1])
    ]


def test_pickle() -> None:
    for x in (i.make(mx) for i in each()):
        for protocol in (2, 5):
            assert_identical(pickle.loads(pickle.dumps(x, protocol)), x)


def test_copies_are_equal_and_apart() -> None:
    for x in (i.make(mx) for i in each()):
        for y in (copy.copy(x), copy.deepcopy(x), mx.array(x)):
            assert_identical(x, y)
            assert x is not y
    x = mx.arange(4)
    y, z = copy.copy(x), copy.deepcopy([x, x])
    assert z[0] is z[1]
    x[0] = 9
    assert y.tolist() == [0, 1, 2, 3] and z[0].tolist() == [0, 1, 2, 3]
    lazy = mx.exp(x)
    assert copy.deepcopy({"x": lazy})["x"].tolist() == lazy.tolist()


FORMATS = {
    "bool_": "?", "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I",
    "int32": "i", "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip


@pytest.mark.parametrize("dtype", FORMATS)
def test_buffer(dtype: str) -> None:
    for shape in SHAPES:
        for layout in LAYOUTS if shape else LAYOUTS[:1]:
            x = given(dtype, shape, layout).make(mx)
            view = memoryview(x)
            assert view.format == FORMATS[dtype]
            assert view.shape == shape
            assert view.itemsize == x.itemsize
            assert np.asarray(view).tolist() == x.tolist()


def test_buffer_keeps_its_values() -> None:
    """Later work, also assignment, does not show through an exported buffer."""
    x = mx.arange(1000, dtype=mx.float32) + 0
    view = memoryview(x)
    x[0] = 99
    y = x * 2
    mx.eval(y)
    del x, y
    assert view[0] == 0 and view[999] == 999


def test_numpy_reads_every_dtype() -> None:
    for given_ in each():
        if given_.dtype == "bfloat16":
            continue
        x = given_.make(mx)
        out = np.array(x)
        assert out.shape == x.shape and out.tolist() == x.tolist()
        assert np.asarray(x).dtype == out.dtype
    assert np.array(mx.array([1.5, 2.5]), dtype=np.int32).tolist() == [1, 2]
    assert np.add(mx.array([1, 2]), 1).tolist() == [2, 3]


def test_numpys_protocol() -> None:
    """`__array__` with NumPy 2's `dtype` and `copy`."""
    x = mx.arange(6, dtype=mx.float32).reshape(2, 3) * 2  # lazy
    view = x.__array__()
    assert (view.dtype, view.tolist()) == (np.float32, [[0, 2, 4], [6, 8, 10]])
    for never in (None, False):
        for dtype in (None, np.float32, "f4", np.dtype("float32")):
            assert np.shares_memory(x.__array__(dtype, copy=never), view)
        assert np.shares_memory(np.asarray(x.T, copy=never), view)
    for made in (x.__array__(copy=True), np.array(x), x.__array__(np.int8), np.asarray(x, "f8")):
        assert not np.shares_memory(made, view) and made.tolist() == view.tolist()
    assert x.__array__(np.float32, copy=True).dtype == np.float32
    for f in (lambda: x.__array__(np.int8, copy=False), lambda: np.asarray(x, "f8", copy=False)):
        with pytest.raises(ValueError, match="copy"):
            f()
    with pytest.raises(TypeError):
        x.__array__("no dtype")
    assert mx.zeros((2, 0)).__array__().shape == (2, 0)


def test_bfloat16_in_numpy() -> None:
    """The buffer protocol has no bfloat16: NumPy takes it by `__array__`, as ml_dtypes names it."""
    types = pytest.importorskip("ml_dtypes")
    x = mx.arange(6, dtype=mx.bfloat16).reshape(2, 3)
    view = np.asarray(x)
    assert view.dtype == types.bfloat16 and view.tolist() == x.tolist()
    assert np.shares_memory(np.asarray(x), view)
    assert np.asarray(x[:, ::-1]).tolist() == [[2, 1, 0], [5, 4, 3]]
    assert np.array(x, np.float32).tolist() == x.tolist()
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(x)
    assert bytes(x) == view.tobytes()


def test_numpy_on_either_side() -> None:
    x, n = mx.array([1.0, 2.0]), np.array([3.0, 4.0], np.float32)
    assert isinstance(x + n, mx.array) and (x + n).tolist() == [4, 6]
    assert (x @ mx.array(n)).item() == 11


def test_foreign_operands_are_copied_at_the_call() -> None:
    """Lazy work does not see what happens to a NumPy operand afterwards."""
    n = np.array([1.0, 2.0], np.float32)
    lazy, made = mx.array([10.0, 20.0]) + n, mx.array(n)
    n[:] = 0
    assert lazy.tolist() == [11, 22]
    assert made.tolist() == [1, 2]


def test_assignment_rebinds() -> None:
    x = mx.arange(4)
    alias, part, lazy = x, x[1:3], x * 10
    x[1] = 100
    assert x.tolist() == [0, 100, 2, 3]
    assert alias is x
    assert part.tolist() == [1, 2]
    assert lazy.tolist() == [0, 10, 20, 30]
    y = x
    y += 1
    assert y.tolist() == [1, 101, 3, 4]


def test_as_an_index_and_as_a_number() -> None:
    assert [10, 20, 30][mx.array(1)] == 20
    assert list(range(mx.array(3).item())) == [0, 1, 2]
    assert int(mx.array(3.7)) == 3 and float(mx.array(2)) == 2.0 and complex(mx.array(1j)) == 1j
    assert f"{mx.array(1.5).item():.2f}" == "1.50"
    assert bool(mx.array(0.0)) is False and bool(mx.array([2])) is True


def test_iteration_and_membership() -> None:
    x = mx.arange(6).reshape(3, 2)
    assert [r.tolist() for r in x] == [[0, 1], [2, 3], [4, 5]]
    assert len(x) == 3
    a, b, c = x
    assert b.tolist() == [2, 3]
    first, *rest = iter(x)
    assert first.tolist() == [0, 1] and len(rest) == 2


REDUCED = ["all", "any", "sum", "prod", "mean", "max", "min", "std", "var"]


@pytest.mark.parametrize("name", REDUCED)
def test_numpys_reductions(name: str) -> None:
    """They call the method, with `dtype=None` and `out=None`."""
    data = np.array([[1, 2, 0], [4, 5, 6]], np.float32)
    x, f = mx.array(data), getattr(np, name)
    for keywords in ({}, {"axis": 0}, {"axis": (0, 1)}, {"axis": 1, "keepdims": True}):
        got, want = f(x, **keywords), f(data, **keywords)
        assert type(got) is mx.array and got.shape == want.shape
        np.testing.assert_allclose(np.array(got), want, rtol=1e-6)
    method = getattr(x, name)
    assert method(dtype=None, out=None).item() == method().item()
    for odd in ({"dtype": np.float64}, {"dtype": mx.float32}, {"out": np.zeros(())}):
        with pytest.raises(TypeError, match="astype"):
            method(**odd)
    if name in ("std", "var"):
        np.testing.assert_allclose(np.array(f(x, ddof=1)), f(data, ddof=1), rtol=1e-6)


def test_numpys_reductions_in_mlx(tally: Tally) -> None:
    tally.same("numpy.sum", lambda lib: np.sum(lib.array([1.0, 2.0])))
    assert np.sum(mx.array([1.0, 2.0])).item() == 3


def test_reprlib() -> None:
    """It takes what is called `array` for the standard library's. (mlx mends that for itself, so
    this runs without it.)"""
    run(
        """
import array, reprlib, sys
assert "mlx" not in sys.modules
for x in (mx.array([1, 2, 3]), mx.array(1.5), mx.zeros((30, 30)), mx.zeros((0,))):
    assert reprlib.repr(x) == reprlib.Repr().repr_instance(x, 1)
    assert reprlib.repr([x]) == f"[{reprlib.repr(x)}]"
assert reprlib.repr(mx.array([1, 2, 3])) == "array([1, 2, 3], dtype=int32)"
assert reprlib.repr(array.array("i", [1, 2])) == "array('i', [1, 2])"
assert reprlib.repr(array.array("i")) == "array('i')"
"""
    )


def test_memoryview_of_bfloat16(tally: Tally) -> None:
    """mlx has one of the format "bfloat16", with which NumPy refuses the array."""
    tally.same("memoryview of bfloat16", lambda lib: memoryview(lib.ones(2, lib.bfloat16)).nbytes)
    x = mx.array([1.0, 2.0], mx.bfloat16)
    with pytest.raises(BufferError, match=r"view\(uint16\)"):
        memoryview(x)
    assert bytes(memoryview(x.view(mx.uint16))) == bytes(x)
