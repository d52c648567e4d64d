"""NumPy: the flag that forbids writing, arrays that DLPack has no words for, and both packages' operators."""

from __future__ import annotations

import numpy as np
import pytest
from support.capsules import IS_COPIED, READ_ONLY, address, header

import ultramarine as mx


def read_only(values: list[float]) -> np.ndarray:
    made = np.array(values, np.float32)
    made.setflags(write=False)
    return made


def test_our_arrays_can_be_written_to() -> None:
    x = mx.array([1.0, 2.0, 3.0])
    there = np.from_dlpack(x)
    assert there.flags.writeable
    there[1] = 20
    assert x.tolist() == [1, 20, 3]


def test_many_writes_in_many_places() -> None:
    """A strided view of ours, filled by NumPy in place."""
    x = mx.array(np.zeros((4, 6), np.float32))
    view = np.from_dlpack(x[1:3, ::2])
    view[:] = np.arange(6).reshape(2, 3) + 1
    np.multiply(view, 10, out=view)
    want = np.zeros((4, 6))
    want[1:3, ::2] = [[10, 20, 30], [40, 50, 60]]
    assert x.tolist() == want.tolist()


def test_read_only_travels_on() -> None:
    theirs = read_only([1, 2, 3])
    x = mx.from_dlpack(theirs)
    assert header(x).flags & READ_ONLY
    assert header(x[1:]).flags & READ_ONLY
    back = np.from_dlpack(x)
    assert not back.flags.writeable
    assert address(x) == theirs.ctypes.data == back.ctypes.data
    # What is computed from it is ours, and free.
    assert not header(x + 1).flags & READ_ONLY


def test_read_only_needs_a_version() -> None:
    x = mx.from_dlpack(read_only([1, 2, 3]))
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__()
    with pytest.raises(ValueError, match="max_version"):
        x.__dlpack__(max_version=(0, 8))


def test_read_only_is_not_written_by_us() -> None:
    theirs = read_only([1, 2, 3])
    x = mx.from_dlpack(theirs)
    x[0] = 9
    x += 1
    assert x.tolist() == [10, 3, 4]
    assert theirs.tolist() == [1, 2, 3]


def test_writing_in_place_makes_an_own_array() -> None:
    """`x[0] = ...` gives `x` new memory; the owner's stays as it was."""
    theirs = np.array([1.0, 2.0, 3.0], np.float32)
    x = mx.from_dlpack(theirs)
    x[0] = 9
    assert x.tolist() == [9, 2, 3]
    assert theirs.tolist() == [1, 2, 3]
    assert address(x) != theirs.ctypes.data


@pytest.mark.parametrize(
    ("what", "made"),
    [
        ("foreign byte order", np.arange(3, dtype=">i4")),
        ("structured", np.zeros(3, [("a", "i4"), ("b", "f4")])),
        ("dates", np.zeros(3, "M8[s]")),
        ("objects", np.array([1, "a", None], object)),
        ("text", np.array(["a", "b"])),
        ("long double", np.zeros(3, np.longdouble)),
    ],
)
def test_what_dlpack_has_no_words_for(what: str, made: np.ndarray) -> None:
    """NumPy's own error arrives as it is."""
    with pytest.raises(BufferError):
        mx.from_dlpack(made)


def test_complex128_says_what_it_is() -> None:
    with pytest.raises(BufferError, match="128"):
        mx.from_dlpack(np.zeros(3, np.complex128))
    assert mx.array(np.full(3, 1 + 2j)).tolist() == [1 + 2j] * 3


def test_misaligned_memory_is_copied_or_refused() -> None:
    held = np.zeros(17, np.uint8)
    odd = held[1:].view(np.int32)
    odd[:] = [1, 2, 3, 4]
    assert odd.ctypes.data % 4 == 1
    with pytest.raises(BufferError, match="align"):
        mx.from_dlpack(odd, copy=False)
    for copied in (mx.from_dlpack(odd), mx.from_dlpack(odd, copy=True)):
        assert copied.tolist() == [1, 2, 3, 4]
        assert address(copied) % 4 == 0


def test_fields_of_records() -> None:
    """One field of a record: strides that are no multiple of the element are NumPy's error."""
    even = np.zeros(3, [("a", "i4"), ("b", "i4")])
    even["b"] = [1, 2, 3]
    assert mx.from_dlpack(even["b"]).tolist() == [1, 2, 3]
    odd = np.zeros(3, [("a", "i1"), ("b", "i4")])
    with pytest.raises(BufferError):
        mx.from_dlpack(odd["b"])


def test_dimensions_of_size_one_have_any_stride() -> None:
    held = np.arange(12, dtype=np.float32)
    strange = np.lib.stride_tricks.as_strided(held, (1, 3, 1), (4 * 999, 4, 4 * 123456))
    x = mx.from_dlpack(strange)
    assert x.tolist() == [[[0], [1], [2]]]
    assert x.reshape(3).tolist() == [0, 1, 2]
    assert address(x.reshape(3)) == held.ctypes.data


def test_empty_arrays_with_strides() -> None:
    strange = np.lib.stride_tricks.as_strided(np.zeros(1), (0, 5), (1 << 40, 8))
    assert mx.from_dlpack(strange).shape == (0, 5)
    assert np.from_dlpack(mx.zeros((3, 0, 2))).shape == (3, 0, 2)


def test_overlapping_windows() -> None:
    held = np.arange(6, dtype=np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(held, 3)
    x = mx.from_dlpack(windows)
    assert x.tolist() == windows.tolist()
    assert (x.sum(axis=1)).tolist() == [3, 6, 9, 12]
    assert address(x) == held.ctypes.data


def test_as_many_dimensions_as_numpy_has() -> None:
    deep = np.arange(2, dtype=np.float32).reshape((1,) * 20 + (2,))
    try:
        x = mx.from_dlpack(deep)
    except BufferError as error:
        assert "dimensions" in str(error)
    else:
        assert x.shape == deep.shape
        assert x.tolist() == deep.tolist()


def test_legacy_consumers() -> None:
    """A capsule of the old kind, as older NumPy took it."""

    class Old:
        def __init__(self, array: mx.array) -> None:
            self.array = array

        def __dlpack__(self, stream: object = None) -> object:
            return self.array.__dlpack__(stream=stream)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    x = mx.array([1.0, 2.0, 3.0])
    assert header(Old(x)).version is None
    there = np.from_dlpack(Old(x))
    assert there.tolist() == [1, 2, 3]
    assert there.ctypes.data == address(x)
    assert mx.from_dlpack(Old(x)).tolist() == [1, 2, 3]


def test_numpy_asks_for_copies() -> None:
    x = mx.array([1.0, 2.0, 3.0])
    copied = np.from_dlpack(x, copy=True)
    assert copied.ctypes.data != address(x)
    copied[0] = 9
    assert x.tolist() == [1, 2, 3]
    assert np.from_dlpack(x, copy=False).ctypes.data == address(x)
    assert np.from_dlpack(x, device="cpu").ctypes.data == address(x)
    assert header_of_copy(x) & IS_COPIED


def header_of_copy(x: mx.array) -> int:
    class Copying:
        def __dlpack__(self, **how: object) -> object:
            return x.__dlpack__(**{**how, "copy": True})  # type: ignore[arg-type]

    return header(Copying()).flags


def test_buffer_protocol_gives_the_same_memory() -> None:
    x = mx.array([1.0, 2.0, 3.0])
    assert np.array(x, copy=False).ctypes.data == address(x)


@pytest.mark.parametrize("order", ["ours first", "theirs first"])
def test_operators(order: str) -> None:
    """Either way round an operand is copied at the call."""
    theirs = np.array([1, 2, 3], np.float32)
    x = mx.array([10.0, 20.0, 30.0])
    total = x - theirs if order == "ours first" else theirs - x
    theirs[:] = 0
    sign = 1 if order == "ours first" else -1
    assert np.array(total).tolist() == [9 * sign, 18 * sign, 27 * sign]


def test_laziness_sees_the_owners_writes() -> None:
    """The hazard that the docs describe: work reads memory when it is evaluated, not when it was asked for."""
    theirs = np.array([1, 2, 3], np.float32)
    x = mx.from_dlpack(theirs)
    early = x * 10
    mx.eval(early)
    late = x * 10
    theirs[0] = 5
    assert early.tolist() == [10, 20, 30]
    assert late.tolist() == [50, 20, 30]


@pytest.mark.parametrize("how", ["array", "from_dlpack"])
def test_a_copy_ends_the_hazard(how: str) -> None:
    theirs = np.array([1, 2, 3], np.float32)
    copied = mx.array(theirs) if how == "array" else mx.from_dlpack(theirs, copy=True)
    late = copied * 10
    theirs[0] = 5
    assert late.tolist() == [10, 20, 30]


def test_laziness_sees_writes_to_our_memory() -> None:
    """The same where the memory is ours and NumPy writes to it."""
    x = mx.array([1.0, 2.0, 3.0])
    mx.eval(x)
    late = x * 10
    np.from_dlpack(x)[0] = 5
    assert late.tolist() == [50, 20, 30]


@pytest.mark.parametrize("make", ["zeros", "full", "scalar", "broadcast", "eye"])
def test_writes_to_our_constants(make: str) -> None:
    """A constant whose memory somebody may have written to is none any more."""
    x = {
        "zeros": mx.zeros((4, 4)),
        "full": mx.full((4, 4), 3.0),
        "scalar": mx.array(3.0),
        "broadcast": mx.broadcast_to(mx.array(1.0), (4, 4)),
        "eye": mx.eye(4),
    }[make]
    there = np.from_dlpack(x)
    there[...] = 5
    del there
    fives = np.full(x.shape, 5.0).tolist()
    assert x.tolist() == fives
    assert (x + 0).tolist() == fives
    assert x.astype(mx.int32).tolist() == fives
    assert x.reshape(-1)[:1].tolist() == [5]
    assert x.T.tolist() == fives
    assert mx.where(x > 4, x, 0).tolist() == fives
    assert (x * mx.ones((2, *x.shape))).tolist() == [fives, fives]


def test_exported_memory_is_not_taken_over() -> None:
    """While NumPy holds what we exported, nothing of ours is computed in its place."""
    x = mx.zeros((1000,))
    mx.eval(x)
    there = np.from_dlpack(x)
    for _ in range(5):
        x = x + 1
        mx.eval(x)
    assert not there.any()
    assert x[0].item() == 5
