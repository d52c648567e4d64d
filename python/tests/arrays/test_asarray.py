"""array and asarray of whatever there is: precedence, copies, dtypes, sequences."""

import array as python_array
import collections
import ctypes
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.foreign import ByArray, ByDLPack, ByItems, ByMlx, Refuses, shares

import ultramarine as mx

MAKERS: list[Callable[..., mx.array]] = [mx.array, mx.asarray]
both = pytest.mark.parametrize("make", MAKERS, ids=["array", "asarray"])


# --- precedence ---------------------------------------------------------------------------

# From the first to be asked to the last.
ORDER: list[tuple[type, str, int]] = [
    (ByDLPack, "dlpack", 1),
    (ByArray, "array", 2),
    (ByMlx, "mlx", 3),
    (ByItems, "items", 4),
]


@both
@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("last", range(4))
def test_the_earlier_protocol_is_the_one_asked(
    make: Callable[..., mx.array], first: int, last: int
) -> None:
    classes = tuple(dict.fromkeys([ORDER[last][0], ORDER[first][0]]))
    both = type("Both", classes, {})()
    winner = ORDER[min(first, last)]
    assert make(both).tolist() == [winner[2]] * 2
    assert set(both.asked) == {winner[1]}


@both
def test_buffer_goes_before_array(make: Callable[..., mx.array]) -> None:
    class Bytes(bytearray):
        def __array__(self) -> np.ndarray:
            raise AssertionError("not to be asked")

    assert make(Bytes(b"\x05\x06")).tolist() == [5, 6]


@both
def test_dlpack_goes_before_buffer(make: Callable[..., mx.array]) -> None:
    class Bytes(bytearray, ByDLPack):
        pass

    both = Bytes(b"\x05\x06")
    both.asked = []
    assert make(both).tolist() == [1, 1]


@both
def test_numbers_lists_and_arrays_go_first(make: Callable[..., mx.array]) -> None:
    class Five(int, ByDLPack):
        pass

    class Items(list, ByDLPack):
        pass

    class Ours(mx.array):
        def __dlpack__(self, **keywords: Any) -> Any:
            raise AssertionError("not to be asked")

    assert make(Five()).tolist() == 0
    items = Items()
    items += [6, 7]
    assert make(items).tolist() == [6, 7]
    assert make(Ours([8, 9])).tolist() == [8, 9]


@both
def test_protocols_are_looked_up_on_the_type(make: Callable[..., mx.array]) -> None:
    plain = type("Plain", (), {})()
    for name, method in (
        ("__dlpack__", lambda **k: np.ones(2).__dlpack__(**k)),
        ("__array__", lambda: np.ones(2)),
        ("__mlx_array__", lambda: mx.ones(2)),
    ):
        setattr(plain, name, method)
    for odd in (plain, np.ndarray, mx.array, ByArray, type):
        with pytest.raises(ValueError, match="Invalid type"):
            make(odd)


@both
def test_capsules_of_both_kinds(make: Callable[..., mx.array]) -> None:
    data = np.arange(6, dtype=np.int16).reshape(2, 3)[:, ::-1]
    assert make(data.__dlpack__(max_version=(1, 0))).tolist() == data.tolist()
    capsule = data.__dlpack__()
    assert make(capsule).tolist() == data.tolist()
    with pytest.raises(mx.InterchangeError, match="used"):
        make(capsule)


@both
def test_the_next_protocol_is_asked_where_a_producer_refuses(
    make: Callable[..., mx.array],
) -> None:
    class Falls(Refuses, ByArray):
        def __init__(self, error: Exception) -> None:
            self.error, self.asked = error, []

    assert make(Falls(BufferError("no"))).tolist() == [2, 2]
    # Other errors are no refusals; a TypeError is a final one.
    with pytest.raises(RuntimeError, match="broken"):
        make(Falls(RuntimeError("broken")))
    with pytest.raises(mx.InterchangeError, match="missing"):
        make(Falls(TypeError("missing")))


@both
def test_a_refusal_is_raised_with_its_cause(make: Callable[..., mx.array]) -> None:
    with pytest.raises(
        mx.InterchangeError, match="Refuses cannot be converted to an array: my reason"
    ) as raised:
        make(Refuses(BufferError("my reason")))
    assert isinstance(raised.value.__cause__, BufferError)
    assert isinstance(raised.value, ValueError)


# --- copies -------------------------------------------------------------------------------

DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "float32", "float64", "complex64",
]  # fmt: skip

LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "dense": lambda a: a,
    "fortran": np.asfortranarray,
    "stepped": lambda a: a[::2, 1::2],
    "reversed": lambda a: a[::-1, ::-3],
    "transposed": lambda a: a.T,
    "broadcast": lambda a: np.broadcast_to(a[0], (3, *a[0].shape)),
    "empty": lambda a: a[:0],
    "0-d": lambda a: a[1:2, 1:2].reshape(()),
    "view of one": lambda a: a[1:2, 1:2],
}


def sample(dtype: str) -> np.ndarray:
    return np.arange(42).reshape(6, 7).astype(dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_asarray_shares_and_array_copies(dtype: str, layout: str) -> None:
    data = LAYOUTS[layout](sample(dtype))
    for given in (data, memoryview(data)) if dtype != "complex64" else (data,):
        for copy in (None, False):
            made = mx.asarray(given, copy=copy)
            assert (made.shape, str(made.dtype).split(".")[-1]) == (
                data.shape,
                "bool" if dtype == "bool" else dtype,
            )
            assert np.array_equal(np.array(made), data)
            assert not data.size or shares(made, data)
        for made in (mx.asarray(given, copy=True), mx.array(given)):
            assert np.array_equal(np.array(made), data)
            assert not data.size or not np.shares_memory(np.asarray(made), data)


def test_what_is_shared_is_seen_and_what_is_copied_is_not() -> None:
    for give in (lambda a: a, memoryview, lambda a: a.__dlpack__(max_version=(1, 3))):
        data = np.zeros(3, np.float32)
        shared = mx.asarray(give(data))
        copies = [mx.array(give(data)), mx.asarray(give(data), copy=True)]
        copies += [mx.asarray(give(data), dtype=mx.int32), mx.array([give(data), [7, 7, 7]])[0]]
        data[1] = 5
        assert shared.tolist() == [0, 5, 0]
        assert [c.tolist() for c in copies] == [[0, 0, 0]] * 4


def test_arrays_of_this_library() -> None:
    x = mx.arange(4, dtype=mx.float32) + 1
    mx.eval(x)
    assert shares(mx.asarray(x), np.asarray(x)) and shares(mx.array(x), np.asarray(x))
    assert shares(mx.asarray(x, copy=False), np.asarray(x))
    for made in (mx.asarray(x, copy=True), mx.array(x, copy=True)):
        assert made.tolist() == [1, 2, 3, 4]
        assert not np.shares_memory(np.asarray(made), np.asarray(x))
    assert mx.asarray(x, mx.int8, copy=True).tolist() == [1, 2, 3, 4]
    # A copy has a gradient.
    slope = mx.grad(lambda x: mx.sum(mx.asarray(x, copy=True) ** 2))
    assert slope(x).tolist() == [2, 4, 6, 8]


def test_copies_of_what_was_shared_are_apart() -> None:
    data = np.zeros(3, np.float32)
    copied = mx.asarray(mx.asarray(data), copy=True)
    mx.eval(copied)
    data[:] = 1
    assert copied.tolist() == [0, 0, 0]


NEEDED: list[tuple[str, Callable[[], Any], Any]] = [
    ("cast", lambda: np.ones(2, np.float32), mx.float64),
    ("cast of a buffer", lambda: python_array.array("f", [1, 2]), mx.int32),
    ("cast of bytes", lambda: b"ab", mx.int8),
    ("cast of ours", lambda: mx.ones(2), mx.float16),
    ("cast of a capsule", lambda: np.ones(2).__dlpack__(max_version=(1, 0)), mx.float32),
    ("complex128", lambda: np.ones(2, np.complex128), None),
    ("byte order", lambda: np.ones(2, ">f4"), None),
    ("misaligned", lambda: np.frombuffer(bytes(9), np.uint8)[1:].view(np.float32), None),
    ("torn", lambda: np.zeros(4, "i4,i2")["f0"], None),
    ("list", lambda: [1, 2], None),
    ("tuple", lambda: (), None),
    ("number", lambda: 1.5, None),
    ("range", lambda: range(3), None),
    ("numpy float64", lambda: np.float64(1), None),
    ("list of arrays", lambda: [np.ones(2)], None),
]


@pytest.mark.parametrize("give, dtype", [n[1:] for n in NEEDED], ids=[n[0] for n in NEEDED])
def test_a_copy_that_is_needed_and_forbidden(
    give: Callable[[], Any], dtype: mx.Dtype | None
) -> None:
    with pytest.raises(mx.InterchangeError, match="copy") as raised:
        mx.asarray(give(), dtype, copy=False)
    assert isinstance(raised.value, BufferError) and isinstance(raised.value, ValueError)
    for copy in (None, True):
        made = mx.asarray(give(), dtype, copy=copy)
        assert dtype is None or made.dtype == dtype
        mx.eval(made)


def test_array_without_a_copy() -> None:
    data = np.ones(3, np.float32)
    assert shares(mx.array(data, copy=False), data)
    assert not shares(mx.array(data, copy=True), data)
    with pytest.raises(mx.InterchangeError, match="float64 to float32"):
        mx.array(np.ones(3), copy=False)
    wide = np.ones(3)
    assert shares(mx.array(wide, mx.float64, copy=False), wide)


def test_memory_that_is_lent_is_kept_and_given_back() -> None:
    lender = bytearray(8)
    x = mx.asarray(lender)
    with pytest.raises(BufferError):
        lender.append(1)
    part = x[2:] + 0
    mx.eval(part)
    del x
    gc.collect()
    lender.append(1)
    data = np.arange(5.0)
    base = weakref.ref(data)
    x = mx.asarray(memoryview(data))[1:]
    del data
    gc.collect()
    assert base() is not None and x.tolist() == [1, 2, 3, 4]
    del x
    gc.collect()
    assert base() is None


def test_memory_is_given_back_on_any_thread() -> None:
    data = np.arange(5.0)
    base = weakref.ref(data)
    held = [mx.asarray(memoryview(data))]
    del data
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert base() is None


def test_references_return() -> None:
    data, wide = np.ones(4, np.float32), np.ones(4)
    objects = [data, wide, memoryview(data), b"abcd", np.float32(3), ByMlx(), ByArray()]
    before = [sys.getrefcount(o) for o in objects]
    for _ in range(100):
        for i in range(len(objects)):
            mx.array(objects[i]), mx.asarray(objects[i])
        with pytest.raises(ValueError):
            mx.asarray(wide, mx.int8, copy=False)
    assert [sys.getrefcount(o) for o in objects] == before


def test_read_only_memory_is_shared_and_stays_as_it_is() -> None:
    data = np.zeros(4, np.float32)
    data.flags.writeable = False
    for given in (data, memoryview(data), bytes(16)):
        x = mx.asarray(given)
        assert np.asarray(x).flags.writeable is False
        x[0] = 1
        x += 1
        mx.eval(x)
    assert data.tolist() == [0, 0, 0, 0]


def test_devices() -> None:
    data = np.ones(2, np.float32)
    assert shares(mx.asarray(data, device=mx.cpu), data)
    for given in (data, [1.0, 1.0], b"ab", mx.ones(2), memoryview(data)):
        assert mx.asarray(given, device=mx.cpu).device == mx.cpu
    with pytest.raises((ValueError, RuntimeError)):
        mx.asarray(data, device=mx.Device(mx.gpu, 77))


# --- dtypes -------------------------------------------------------------------------------


def test_float64_and_complex128() -> None:
    wide = np.array([1 / 3])
    for give in (lambda: wide, lambda: memoryview(wide), lambda: python_array.array("d", wide)):
        assert mx.array(give()).dtype == mx.float32
        assert mx.asarray(give()).dtype == mx.float64
        assert mx.asarray(give()).item() == 1 / 3
        assert mx.array(give(), mx.float64).item() == 1 / 3
    capsule = wide.__dlpack__(max_version=(1, 0))
    assert mx.array(capsule).dtype == mx.float32
    assert mx.from_dlpack(wide).dtype == mx.float64
    for make in MAKERS:
        # Python's numbers are what a float64 scalar of NumPy is, and what lists hold.
        assert make(np.float64(1 / 3)).dtype == make([1 / 3]).dtype == mx.float32
        assert make(np.array([1 + 2j])).dtype == mx.complex64
        assert make(np.complex128(1j)).dtype == mx.complex64
        assert make(wide, mx.int32).tolist() == [0]
    big = np.array([2.0**53 - 1])
    for make in MAKERS:
        assert make(big, mx.int64).item() == 2**53 - 1


@both
@pytest.mark.parametrize("dtype", ["i2", "u4", "i8", "f2", "f4", "c8", "c16"])
def test_other_byte_order(make: Callable[..., mx.array], dtype: str) -> None:
    data = np.arange(-3, 9).reshape(3, 4).astype(f">{dtype}")
    for part in (data, data.T, data[::2, ::-1]):
        assert (np.array(make(part)) == part).all()
    with pytest.raises(BufferError, match="byte order"):
        mx.from_dlpack(data)


@both
def test_misaligned_and_torn_memory_is_copied(make: Callable[..., mx.array]) -> None:
    raw = np.arange(33, dtype=np.uint8)
    odd = raw[1:].view(np.float64)
    assert np.array_equal(np.array(make(odd, mx.float64)), odd)
    torn = np.zeros(4, "i4,i2")
    torn["f0"] = [1, 2, 3, 4]
    assert make(torn["f0"]).tolist() == [1, 2, 3, 4]


@both
def test_bfloat16_of_ml_dtypes(make: Callable[..., mx.array]) -> None:
    types = pytest.importorskip("ml_dtypes")
    data = np.arange(12).reshape(3, 4).astype(types.bfloat16)
    for part in (data, data.T, data[::-1, ::2], data[0, 1]):
        made = make(part)
        assert made.dtype == mx.bfloat16
        assert np.array_equal(np.array(made.astype(mx.float32)), part.astype(np.float32))
        back = np.asarray(made)
        assert back.dtype == types.bfloat16 and np.array_equal(back, part)
    assert make(types.bfloat16(1.5)).item() == 1.5


@both
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_storage_dtypes_of_ml_dtypes(make: Callable[..., mx.array], name: str) -> None:
    types = pytest.importorskip("ml_dtypes")
    data = np.array([[1, 2, 0.5], [4, -3, 0]]).astype(getattr(types, name))
    for part in (data, data.T, data[:, ::-2]):
        made = make(part)
        assert made.dtype == getattr(mx, name) and made.tolist() == part.tolist()
        assert make(part, mx.float32).tolist() == part.tolist()
    assert shares(mx.asarray(data, copy=False), data)
    assert (mx.zeros((2, 3)) + data).tolist() == data.tolist()


@both
@pytest.mark.parametrize(
    "given",
    [
        np.zeros(2, "i4,f4"),
        np.array([1, 2.5], object),
        np.array(["a"]),
        np.array([b"a"]),
        np.array(["2020"], "M8[s]"),
        np.array([1], "m8[s]"),
        np.zeros(2, np.longdouble),
        np.zeros(2, "V3"),
    ],
    ids=lambda a: str(a.dtype),
)
def test_arrays_that_are_no_numbers(make: Callable[..., mx.array], given: np.ndarray) -> None:
    for copy in (None, True, False):
        with pytest.raises(ValueError, match="ndarray"):
            make(given, copy=copy)
    with pytest.raises(BufferError):
        mx.from_dlpack(given)


@both
@pytest.mark.parametrize(
    "scalar",
    [
        np.float32(3),
        np.float16(3),
        np.int8(3),
        np.uint64(3),
        np.bool_(True),
        np.complex64(3),
        np.int64(3),
    ],
    ids=lambda s: type(s).__name__,
)
def test_numpy_scalars(make: Callable[..., mx.array], scalar: np.generic) -> None:
    made = make(scalar)
    assert made.shape == () and str(made.dtype).endswith(str(scalar.dtype))
    assert made.item() == scalar
    assert make([scalar, scalar]).tolist() == [scalar, scalar]


@both
def test_lenders_of_the_standard_library(make: Callable[..., mx.array]) -> None:
    assert make(python_array.array("h", [1, -2])).tolist() == [1, -2]
    assert make((ctypes.c_float * 3)(1, 2, 3)).tolist() == [1, 2, 3]
    assert make(((ctypes.c_int * 2) * 3)()).shape == (3, 2)
    assert make(ctypes.c_double(2.5)).item() == 2.5
    assert make(memoryview(bytes(range(6))).cast("B", (2, 3))).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert make(memoryview(b"abcdef")[::-2]).tolist() == [102, 100, 98]
    assert make(b"").shape == (0,)
    released = memoryview(b"abc")
    released.release()
    with pytest.raises(ValueError):
        make(released)

    class Struct(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int)]

    with pytest.raises(ValueError, match="Struct"):
        make(Struct())


# --- sequences ----------------------------------------------------------------------------


@both
def test_any_sequence(make: Callable[..., mx.array]) -> None:
    assert make(range(3)).tolist() == [0, 1, 2]
    assert make(collections.deque([1.5, 2])).tolist() == [1.5, 2]
    assert make([range(2), (3, 4), collections.deque([5, 6])]).tolist() == [[0, 1], [3, 4], [5, 6]]
    assert make(ByItems(), mx.float16).dtype == mx.float16
    assert make(range(0)).shape == (0,)
    for odd in ({}, {1: 2}, {1}, "ab", ["ab"], (i for i in [1]), [None], [{}], [b"ab"], iter([1])):
        with pytest.raises(ValueError, match="Invalid type"):
            make(odd)
    with pytest.raises(TypeError):
        make(None)
    with pytest.raises(ValueError, match="non-uniform"):
        make([range(2), range(3)])


@both
def test_lists_with_foreign_arrays(make: Callable[..., mx.array]) -> None:
    n = np.array([1, 2], np.int16)
    for odd in (
        [n, n],
        (n, [1, 2]),
        [mx.array([1, 2]), n],
        [memoryview(n), n],
        [ByMlx(), n],
        [[1, 2], ByArray()],
    ):
        assert make(odd).shape == (2, 2)
    assert make([[n], [n]]).tolist() == [[[1, 2]], [[1, 2]]]
    assert make([np.float32(1), 2, np.array(3.5)]).tolist() == [1, 2, 3.5]
    assert make([n, n]).dtype == mx.int16
    assert make([np.ones(2), n]).dtype == mx.float32
    for ragged in ([n, n[:1]], [n, 1], [1, n], [[n], n]):
        with pytest.raises(ValueError):
            make(ragged)
