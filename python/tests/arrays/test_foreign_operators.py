"""Operators with arrays of other libraries on either side: the result is ours."""

import importlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.foreign import ByArray, ByDLPack, ByMlx, Refuses
from support.harness import Tally

import ultramarine as mx

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
}
COMPARISONS = {name: getattr(operator, name) for name in ["lt", "le", "eq", "ne", "gt", "ge"]}
BITS = {name: getattr(operator, name) for name in ["and_", "or_", "xor", "lshift", "rshift"]}


def makers() -> Iterator[Any]:
    """How the libraries make an array of NumPy's; one that is missing is skipped, visibly."""
    yield pytest.param(lambda n: n, id="numpy")
    for name, call in (
        ("torch", lambda lib, n: lib.tensor(n)),
        ("jax.numpy", lambda lib, n: lib.asarray(n)),
        ("pyarrow", lambda lib, n: lib.array(n.reshape(-1)).to_numpy().reshape(n.shape)),
    ):
        try:
            lib = importlib.import_module(name)
        except ImportError:
            yield pytest.param(None, id=name, marks=pytest.mark.skip(reason=f"{name} is missing"))
        else:
            yield pytest.param(lambda n, lib=lib, call=call: call(lib, n), id=name)
    yield pytest.param(memoryview, id="memoryview")


MAKERS = list(makers())
each = pytest.mark.parametrize("make", MAKERS)

LEFT, RIGHT = [[7, 2, 3], [4, 5, 6]], [[1, 2, 2], [5, 3, 1]]


def check(f: Callable[[Any, Any], Any], make: Callable[..., Any], dtype: type) -> None:
    """`f` of an array of ours and a foreign one, on either side, against NumPy."""
    a, b = np.array(LEFT, dtype), np.array(RIGHT, dtype)
    want = f(a, b)
    for got in (f(mx.array(a), make(b)), f(make(a), mx.array(b))):
        assert type(got) is mx.array
        np.testing.assert_allclose(np.array(got), want, rtol=1e-6)
        assert got.dtype == f(mx.array(a), mx.array(b)).dtype


@each
@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
def test_on_either_side(make: Callable[..., Any], name: str) -> None:
    if make is memoryview and name in ("eq", "ne"):
        pytest.skip("a memoryview compares buffers itself")
    check({**ARITHMETIC, **COMPARISONS}[name], make, np.float32)
    if name not in ("truediv", "pow"):
        check({**ARITHMETIC, **COMPARISONS}[name], make, np.int32)


@each
@pytest.mark.parametrize("name", BITS)
def test_bits_on_either_side(make: Callable[..., Any], name: str) -> None:
    check(BITS[name], make, np.int32)


@each
def test_products_on_either_side(make: Callable[..., Any]) -> None:
    a, b = np.array(LEFT, np.float32), np.array(RIGHT, np.float32).T.copy()
    for got in (mx.array(a) @ make(b), make(a) @ mx.array(b)):
        assert type(got) is mx.array and np.array_equal(np.array(got), a @ b)


@each
def test_divmod_on_either_side(make: Callable[..., Any]) -> None:
    a, b = np.array(LEFT, np.int32), np.array(RIGHT, np.int32)
    for got in (divmod(mx.array(a), make(b)), divmod(make(a), mx.array(b))):
        assert [type(g) for g in got] == [mx.array, mx.array]
        assert [g.tolist() for g in got] == [w.tolist() for w in divmod(a, b)]
    assert [g.item() for g in divmod(mx.array(7), 2)] == [3, 1]
    assert [g.item() for g in divmod(7.5, mx.array(2.0))] == [3, 1.5]


@each
def test_in_place(make: Callable[..., Any]) -> None:
    b = np.array(RIGHT, np.float32)
    for f in (operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv,
              operator.imod, operator.ipow):  # fmt: skip
        x = mx.array(np.array(LEFT, np.float32))
        alias = x
        want = f(np.array(LEFT, np.float32), b)
        x = f(x, make(b))
        assert x is alias
        np.testing.assert_allclose(np.array(x), want, rtol=1e-6)
    x = alias = mx.array(np.eye(3, dtype=np.float32))
    x @= make(np.full((3, 3), 2, np.float32))
    assert x is alias and x.tolist() == [[2] * 3] * 3
    for f in (operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift):
        got = f(mx.array(np.array(LEFT, np.int32)), make(np.array(RIGHT, np.int32)))
        assert np.array_equal(np.array(got), f(np.array(LEFT, np.int32), np.array(RIGHT, np.int32)))


@each
def test_single_elements_and_0d(make: Callable[..., Any]) -> None:
    """Libraries take such arrays for numbers where they can."""
    for shape in ((), (1,), (1, 1)):
        one = np.full(shape, 3, np.float32)
        for f in (operator.add, operator.mul, operator.sub, operator.lt, operator.ge):
            for got in (f(mx.array(one), make(one)), f(make(one), mx.array(one))):
                assert type(got) is mx.array and got.shape == shape
                assert got.item() == f(3, 3)


@each
def test_operands_are_copied_at_the_call(make: Callable[..., Any]) -> None:
    for dtype in (np.float32, np.float64, np.int32):
        n = np.array([1, 2], dtype)
        foreign = make(n)
        writable = np.asarray(foreign)
        if not writable.flags.writeable:
            pytest.skip("these arrays cannot be written to")
        x = mx.array([10.0, 20.0])
        lazy = [x + foreign, foreign + x, x == foreign, mx.maximum(x, foreign), x / foreign]
        product = x @ make(n)
        writable[:] = 0
        assert [y.tolist() for y in lazy] == [[11, 22]] * 2 + [[False] * 2, [10, 20], [10, 10]]
        assert product.item() == 50


@each
@pytest.mark.parametrize("ours", [mx.int8, mx.float16, mx.bfloat16, mx.float32, mx.complex64])
@pytest.mark.parametrize("theirs", [np.int16, np.int64, np.float32, np.float64])
def test_foreign_operands_are_typed_weakly(
    make: Callable[..., Any], ours: mx.Dtype, theirs: type
) -> None:
    x, n = mx.array([1, 2], ours), make(np.array([3, 4], theirs))
    for got in (x + n, x * n, mx.add(x, n), mx.add(n, x)):
        assert got.dtype == ours
    assert (n < x).dtype == mx.bool_


@each
@pytest.mark.parametrize(
    "ours", [mx.bool_, mx.uint8, mx.int32, mx.uint64, mx.float16, mx.float32, mx.complex64]
)
@pytest.mark.parametrize("theirs", [np.uint8, np.int16, np.int64, np.float32, np.float64])
def test_foreign_operands_on_the_left_are_promoted(
    make: Callable[..., Any], ours: mx.Dtype, theirs: type
) -> None:
    x, n = mx.array([1, 1], ours), make(np.array([3, 4], theirs))
    promoted = mx.array(n)
    for f in (operator.add, operator.mul, operator.truediv, operator.pow):
        got, want = f(n, x), f(promoted, x)
        assert type(got) is mx.array and got.dtype == want.dtype
        assert got.tolist() == want.tolist()
    # Python does not say which side a comparison has.
    for f in (operator.lt, operator.ge):
        assert f(n, x).tolist() == f(promoted, x).tolist()
        assert f(x, n).tolist() == f(x, promoted).tolist()


@each
def test_values_on_the_left_are_kept(make: Callable[..., Any]) -> None:
    half, wide = make(np.array([2.5, 300.0])), make(np.array([300, -1]))
    x = mx.array([1, 1])
    assert (half * x).tolist() == [2.5, 300] and (half * x).dtype == mx.float32
    assert (wide + mx.array([1, 1], mx.uint8)).tolist() == [301, 0]
    assert (half * mx.array([True, True])).tolist() == [2.5, 300]
    assert [p.tolist() for p in divmod(half, x)] == [[2, 300], [0.5, 0]]
    assert (half @ mx.array([2, 0])).item() == 5
    assert (half >= mx.array([3, 3])).tolist() == [False, True]
    if make is not memoryview:
        assert (half == mx.array([2, 300])).tolist() == [False, True]
        assert (half != mx.array([2, 300])).tolist() == [True, False]
    with pytest.raises(ValueError, match="Floating point"):
        half | x
    x64 = mx.array([3.0], mx.float64)
    third = make(np.array([1 / 3]))
    if np.asarray(third).dtype != np.float64:
        return  # jax makes it float32
    assert (third * x64).dtype == mx.float64 and (third * x64).item() == 1 / 3 * 3.0
    assert (third + x64).item() == 1 / 3 + 3.0


def test_complex_values_on_the_left_are_kept() -> None:
    torch = pytest.importorskip("torch")
    for n in (np.array([1 + 1j]), np.array([1 + 1j], np.complex64), torch.tensor([1 + 1j])):
        assert (n * mx.array([2.0])).tolist() == [2 + 2j]
        assert (n * mx.array([2])).tolist() == [2 + 2j]
        assert (n == mx.array([1.0])).tolist() == [False]
    assert (np.complex64(1j) * mx.array([2.0])).tolist() == [2j]


def test_what_mlx_does_otherwise(tally: Tally) -> None:
    torch = pytest.importorskip("torch")
    tally.same("on the left", lambda lib: torch.tensor([2.5]) * lib.array([1]))
    tally.same("compared", lambda lib: lib.array([1]) == np.array([1.5]))
    assert (torch.tensor([2.5]) * mx.array([1])).tolist() == [2.5]
    assert (mx.array([1]) == np.array([1.5])).tolist() == [False]


def test_numpy_scalars_on_the_left_are_kept() -> None:
    assert (np.float32(2.5) * mx.array([1])).tolist() == [2.5]
    assert (np.float64(2.5) * mx.array([1])).tolist() == [2.5]
    assert (np.int64(300) + mx.array([1], mx.uint8)).tolist() == [301]
    assert (np.float32(1.5) > mx.array([1])).tolist() == [True]
    assert (np.float32(1.5) == mx.array([1])).tolist() == [False]


def test_beside_float64_nothing_is_lost() -> None:
    x, n = mx.array([0.0], mx.float64), np.array([1 / 3])
    assert (x + n).item() == (n + x).item() == 1 / 3
    assert (mx.array([0], mx.int64) + np.array([2.0**53 - 1])).item() == 2**53 - 1


@pytest.mark.parametrize(
    "scalar",
    [np.float32(3), np.float64(3), np.int8(3), np.uint64(3), np.bool_(True), np.float16(3)],
    ids=lambda s: type(s).__name__,
)
def test_numpy_scalars(scalar: Any) -> None:
    x = mx.array([6.0, 4.0])
    number = scalar.item()
    for f in (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
              operator.mod, operator.pow, operator.lt, operator.ge, operator.eq):  # fmt: skip
        for got, want in ((f(x, scalar), f(x, number)), (f(scalar, x), f(number, x))):
            assert type(got) is mx.array
            assert got.tolist() == want.tolist() and got.shape == (2,)
    with pytest.raises((TypeError, ValueError)):
        x @ scalar
    with pytest.raises((TypeError, ValueError)):
        scalar @ x


def test_numpys_functions_stay_numpys() -> None:
    x, n = mx.array([1.0, 4.0]), np.array([1.0, 2.0], np.float32)
    for got in (np.sqrt(x), np.add(x, 1), np.add(n, x), np.add(x, n), np.matmul(n, x)):
        assert isinstance(got, (np.ndarray, np.generic))
    assert np.sqrt(x).tolist() == [1, 2]
    out = np.zeros(2, np.float32)
    np.add(n, x, out=out)
    assert out.tolist() == [2, 6]
    assert np.concatenate([n, x]).tolist() == [1, 2, 1, 4]
    assert np.asarray(x).tolist() == [1, 4]
    n[...] += x
    assert isinstance(n, np.ndarray) and n.tolist() == [2, 6]
    n[:] = x
    assert n.tolist() == [1, 4]


def test_in_place_on_the_left_binds_the_name_anew() -> None:
    n = kept = np.array([1.0, 2.0], np.float32)
    n += mx.array([10.0, 20.0])
    assert type(n) is mx.array and n.tolist() == [11, 22]
    assert kept.tolist() == [1, 2]


def test_subclasses_of_numpys_arrays() -> None:
    x = mx.array([1.0, 2.0])
    for other in (np.matrix([[1.0, 2.0]]), np.ma.array([1.0, 2.0])):
        assert type(x + other) is mx.array
        assert type(other + x) is mx.array


@pytest.mark.parametrize("kind, value", [(ByDLPack, 1), (ByArray, 2), (ByMlx, 3)])
def test_whatever_offers_memory(kind: type, value: int) -> None:
    x = mx.array([1.0, 2.0])
    for got in (x + kind(), kind() + x, kind() * mx.ones(2) + x):
        assert got.tolist() == [1 + value, 2 + value]
    assert (kind() @ x).item() == 3 * value
    assert (x == kind()).tolist() == [value == 1, value == 2]
    assert mx.maximum(x, kind()).tolist() == [max(1, value), max(2, value)]
    y = mx.zeros(2)
    y[:] = kind()
    assert y.tolist() == [value, value]
    with pytest.raises(ValueError, match="broadcast"):
        mx.zeros(3) + kind()


def test_what_is_no_operand() -> None:
    x = mx.array([1.0, 2.0])
    for odd in ([1, 2], (1, 2), range(2), "ab", {}, {1}, object(), iter([1])):
        for f in (operator.add, operator.lt, operator.truediv):
            with pytest.raises(ValueError, match="Cannot perform"):
                f(x, odd)
            with pytest.raises((ValueError, TypeError)):
                f(odd, x)
        for f in (lambda: x @ odd, lambda: odd @ x):
            with pytest.raises(TypeError, match="@"):
                f()
        assert (x == odd) is False and (odd != x) is True
    assert (x == None) is False and (x != None) is True  # noqa: E711
    for f in (operator.add, operator.matmul):
        with pytest.raises(TypeError):
            f(x, None)
        with pytest.raises(TypeError):
            f(None, x)
    for number in (2, 2.0, 1j, True):
        for f in (lambda: x @ number, lambda: number @ x):
            with pytest.raises(TypeError, match="@"):
                f()


def test_operands_that_refuse() -> None:
    x = mx.array([1.0, 2.0])
    for odd in (Refuses(BufferError("no")), np.zeros(2, "i4,f4"), np.array(["a", "b"])):
        for f in (operator.add, operator.matmul, operator.lt):
            with pytest.raises(ValueError):
                f(x, odd)
            with pytest.raises(ValueError):
                f(odd, x)
        assert (x == odd) is False and (x != odd) is True
    with pytest.raises(ZeroDivisionError):
        x + Refuses(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        x == Refuses(ZeroDivisionError())  # noqa: B015


def test_torch_with_marks() -> None:
    """What torch does not export as it is has its values taken all the same, as in mlx."""
    torch = pytest.importorskip("torch")
    x = mx.array([1.0, 2.0])
    grad = torch.tensor([3.0, 4.0], requires_grad=True)
    for got in (x + grad, grad + x, mx.array(grad) + 1 - 1 + x, mx.asarray(grad) + x):
        assert type(got) is mx.array and got.tolist() == [4, 6]
    assert (torch.nn.Parameter(torch.ones(2)) * x).tolist() == [1, 2]
    flipped = torch.tensor([1j, 2 + 1j]).conj()
    assert mx.array(flipped).tolist() == [-1j, 2 - 1j]
    # Negated lazily, of which torch's own `__dlpack__` says nothing.
    assert mx.array(flipped.imag).tolist() == (x * 0 + flipped.imag).tolist() == [-1, -1]
    for mark in (grad, flipped, flipped.imag):
        with pytest.raises(mx.InterchangeError):
            mx.asarray(mark, copy=False)
        with pytest.raises(BufferError):
            mx.from_dlpack(mark)
    for odd in (torch.ones(2, device="meta"), torch.eye(2).to_sparse()):
        for f in (mx.array, mx.asarray, lambda o: x + o, lambda o: o + x):
            with pytest.raises(mx.InterchangeError, match="Tensor"):
                f(odd)


def test_torch_types() -> None:
    torch = pytest.importorskip("torch")
    for name in ("bfloat16", "float16", "float64", "uint8", "int8", "int16", "int64", "bool"):
        x = torch.tensor([0, 1, 1], dtype=getattr(torch, name))
        want = "float32" if name == "float64" else name
        assert str(mx.array(x).dtype).split(".")[-1].startswith(want)
        assert mx.asarray(x).tolist() == x.tolist()
    assert mx.array(torch.tensor([1j], dtype=torch.complex128)).dtype == mx.complex64
    strided = torch.arange(24).reshape(2, 3, 4).permute(2, 0, 1)[::2]
    assert mx.array(strided).tolist() == mx.asarray(strided).tolist() == strided.tolist()


def test_pyarrow() -> None:
    pa = pytest.importorskip("pyarrow")
    assert mx.array(pa.array([1, 2])).dtype == mx.int64
    assert (pa.array([1.5, 2]) + mx.array([1.0, 1.0])).tolist() == [2.5, 3]
    for odd in (pa.array([1, None]), pa.array(["a"]), pa.array([True])):
        for f in (mx.array, mx.asarray, lambda o: mx.ones(1) + o):
            with pytest.raises(mx.InterchangeError, match=r"cannot be (used|converted)"):
                f(odd)


def test_pandas() -> None:
    pd = pytest.importorskip("pandas")
    x, series = mx.array([1.0, 3.0]), pd.Series([1.0, 2.0], index=["a", "b"])
    assert mx.array(series).tolist() == [1, 2]
    assert mx.asarray(series).dtype == mx.float64
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    for f in (operator.add, operator.mul, operator.truediv, operator.lt, operator.ge):
        for other in (series, pd.Index([1.0, 2.0]), frame):
            values = np.asarray(other)
            for got, want in (
                (f(x, other), f(np.array([1.0, 3.0]), values)),
                (f(other, x), f(values, np.array([1.0, 3.0]))),
            ):
                assert type(got) is mx.array
                np.testing.assert_allclose(np.array(got), want, rtol=1e-6)
    with pytest.raises(ValueError):
        mx.array(pd.Series(["a", 1]))
