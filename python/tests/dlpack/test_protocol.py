"""DLPack's protocol in Python: arguments and errors of `__dlpack__` and `from_dlpack`, and what
producers are asked. Capsules are in test_capsules.py, the table of C functions in test_exchange.py."""

import inspect
from typing import Any

import numpy as np
import pytest

import ultramarine as mx

from .producers import LEGACY, VERSIONED, Answer, Old, Producer, array, name_of, raising

# What __dlpack__ takes.


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (None, LEGACY),
        ((0, 8), LEGACY),
        ((-1, 0), LEGACY),
        ((1, 0), VERSIONED),
        ((1, 3), VERSIONED),
        ((1, 99), VERSIONED),
        ((2, 0), VERSIONED),
        ((100, 3), VERSIONED),
        ((np.int64(1), 0), VERSIONED),
        ((True, False), VERSIONED),
    ],
)
def test_max_version(version: Any, name: bytes) -> None:
    assert name_of(array().__dlpack__(max_version=version)) == name
    assert name_of(np.arange(3.0).__dlpack__(max_version=version)) == name


def test_without_arguments_there_is_no_version() -> None:
    assert name_of(array().__dlpack__()) == LEGACY
    empty: dict[str, Any] = {}
    assert name_of(array().__dlpack__(**empty)) == LEGACY


@pytest.mark.parametrize(
    "version", ["1", (1,), [1, 0], (1.0, 0), ("a", 0), (1, 2, 3), 5, (2**70, 0)], ids=repr
)
def test_max_version_that_is_none(version: Any) -> None:
    with pytest.raises((TypeError, OverflowError)) as theirs:
        np.arange(3.0).__dlpack__(max_version=version)
    with pytest.raises(theirs.type):
        array().__dlpack__(max_version=version)


def test_version_numbers_are_both_looked_at() -> None:
    with pytest.raises(TypeError):
        array().__dlpack__(max_version=(1, "x"))


@pytest.mark.parametrize("stream", [0, 1, 2, -1, "x", 1.5, object()], ids=str)
def test_the_cpu_has_no_streams(stream: Any) -> None:
    with pytest.raises(ValueError, match="stream must be None"):
        array().__dlpack__(stream=stream)


def test_words_of_python() -> None:
    x = array()
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        x.__dlpack__(foo=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_versio'"):
        x.__dlpack__(max_versio=(1, 3))
    with pytest.raises(TypeError, match="takes 0 positional arguments but 1 was given"):
        x.__dlpack__(None)
    with pytest.raises(TypeError):
        x.__dlpack_device__(1)
    with pytest.raises(TypeError):
        x.__dlpack_device__(stream=1)
    with pytest.raises(TypeError):
        mx.array.__dlpack__(3)
    # Names that were computed are not interned.
    word = "".join(["max", "_", "version"])
    assert name_of(x.__dlpack__(**{word: (1, 3)})) == VERSIONED


@pytest.mark.parametrize("device", [(2, 0), (1, 1), (99, 0), (2**40, 0), (-1, 0)], ids=str)
def test_devices_that_are_not_there(device: tuple[int, int]) -> None:
    with pytest.raises(mx.InterchangeDeviceError) as caught:
        array().__dlpack__(dl_device=device)
    assert isinstance(caught.value, (BufferError, ValueError, TypeError))


@pytest.mark.parametrize("device", ["cpu", (1,), [1, 0], (1, 0, 0), (1, "0"), 1], ids=repr)
def test_devices_that_are_none(device: Any) -> None:
    with pytest.raises(TypeError):
        array().__dlpack__(dl_device=device)


def test_the_own_device() -> None:
    x = array()
    assert x.__dlpack_device__() == (1, 0)
    assert [type(n) for n in x.__dlpack_device__()] == [int, int]
    y = np.from_dlpack(Answer(lambda: x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))))
    assert y.ctypes.data == np.from_dlpack(x).ctypes.data


@pytest.mark.parametrize("copy", [None, False, 0, np.False_])
def test_no_copy(copy: Any) -> None:
    x = array()
    y = np.from_dlpack(Answer(lambda: x.__dlpack__(copy=copy, max_version=(1, 0))))
    assert y.ctypes.data == np.from_dlpack(x).ctypes.data


@pytest.mark.parametrize("copy", [True, 1, np.True_])
@pytest.mark.parametrize("version", [None, (1, 3)])
def test_a_copy(copy: Any, version: Any) -> None:
    x = array()
    y = np.from_dlpack(Answer(lambda: x.__dlpack__(copy=copy, max_version=version)))
    assert y.ctypes.data != np.from_dlpack(x).ctypes.data
    assert (y == np.from_dlpack(x)).all()


def test_strings_are_no_truth() -> None:
    with pytest.raises(ValueError, match="copy"):
        array().__dlpack__(copy="false")
    with pytest.raises(ValueError, match="copy"):
        mx.from_dlpack(np.arange(3.0), copy="false")


def test_an_argument_that_raises() -> None:
    class Broken:
        def __bool__(self) -> bool:
            raise KeyError("mine")

        def __index__(self) -> int:
            raise KeyError("mine")

    for words in ({"copy": Broken()}, {"max_version": (Broken(), 0)}, {"dl_device": (1, Broken())}):
        with pytest.raises(KeyError, match="mine"):
            array().__dlpack__(**words)


def test_an_argument_that_changes_the_array() -> None:
    """Arguments may run Python code: the array is looked at after that."""
    x = array()

    class Changing:
        def __bool__(self) -> bool:
            nonlocal x
            x += 1
            return False

    got = np.from_dlpack(Answer(lambda: x.__dlpack__(copy=Changing(), max_version=(1, 0))))
    assert got.tolist() == [[2, 3, 4], [5, 6, 7]]


def test_lazy_arrays_are_evaluated() -> None:
    x = mx.arange(6) * 2
    assert np.from_dlpack(x).tolist() == [0, 2, 4, 6, 8, 10]
    y = (mx.arange(6) * 2).reshape(2, 3).T
    assert np.from_dlpack(y).strides == (4, 12)


def test_read_only_needs_a_version() -> None:
    source = np.arange(4.0)
    source.flags.writeable = False
    x = mx.from_dlpack(source)
    with pytest.raises(mx.InterchangeError, match="read-only"):
        x.__dlpack__()
    assert not np.from_dlpack(x).flags.writeable


def test_signatures() -> None:
    assert str(inspect.signature(mx.array.__dlpack__)) == (
        "(self, /, *, stream=None, max_version=None, dl_device=None, copy=None)"
    )
    assert str(inspect.signature(mx.array.__dlpack_device__)) == "(self, /)"
    assert str(inspect.signature(mx.from_dlpack)) == "(x, /, *, device=None, copy=None)"
    for function in (mx.array.__dlpack__, mx.array.__dlpack_device__, mx.from_dlpack):
        assert (function.__doc__ or "").strip()
    assert mx.from_dlpack.__module__ == mx.add.__module__
    assert mx.array.__dlpack__.__qualname__ == "array.__dlpack__"


# What from_dlpack takes and asks.


def test_arguments_of_from_dlpack() -> None:
    a = np.arange(3.0)
    for wrong in (
        lambda: mx.from_dlpack(),
        lambda: mx.from_dlpack(a, None),
        lambda: mx.from_dlpack(x=a),
        lambda: mx.from_dlpack(a, stream=None),
        lambda: mx.from_dlpack(a, device="cpu"),
        lambda: mx.from_dlpack(3),
        lambda: mx.from_dlpack(None),
        lambda: mx.from_dlpack([1, 2]),
        lambda: mx.from_dlpack(np.ndarray),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_what_is_asked() -> None:
    p = Producer()
    x = mx.from_dlpack(p)
    assert p.asked == [{"max_version": (1, 3)}]
    assert np.from_dlpack(x).ctypes.data == p.source.ctypes.data
    p = Producer()
    mx.from_dlpack(p, copy=False)
    assert p.asked == [{"max_version": (1, 3), "copy": False}]
    p = Producer()
    x = mx.from_dlpack(p, copy=True)
    assert p.asked == [{"max_version": (1, 3), "copy": True}]
    assert np.from_dlpack(x).ctypes.data != p.source.ctypes.data
    p = Producer()
    mx.from_dlpack(p, device=mx.cpu)
    assert p.asked == [{"max_version": (1, 3)}]


def test_producers_of_before_1_0() -> None:
    p = Old()
    x = mx.from_dlpack(p)
    assert np.from_dlpack(x).ctypes.data == p.source.ctypes.data
    assert p.asked == 1
    y = mx.from_dlpack(p, copy=True)
    assert np.from_dlpack(y).ctypes.data != p.source.ctypes.data
    assert y.tolist() == x.tolist()
    assert np.from_dlpack(mx.from_dlpack(p, copy=False)).ctypes.data == p.source.ctypes.data


class Both(BufferError, TypeError):
    """An answer about memory that is a TypeError too."""


@pytest.mark.parametrize("error", [BufferError("mine"), KeyError("mine"), Both("mine")], ids=repr)
def test_the_producers_own_errors(error: Exception) -> None:
    p = Answer(raising(error))
    with pytest.raises(type(error)) as caught:
        mx.from_dlpack(p)
    assert caught.value is error
    assert p.asked == 1


def test_type_errors_are_retried() -> None:
    p = Answer(raising(TypeError("mine")))
    with pytest.raises(TypeError, match="mine"):
        mx.from_dlpack(p)
    assert p.asked == 2


@pytest.mark.parametrize("answer", [None, 3, "dltensor", (1, 0)], ids=repr)
def test_answers_that_are_no_capsules(answer: Any) -> None:
    with pytest.raises(TypeError, match="capsule"):
        mx.from_dlpack(Answer(lambda: answer))


def test_special_methods_are_the_types() -> None:
    class Plain:
        pass

    thing = Plain()
    thing.__dlpack__ = np.arange(3.0).__dlpack__
    with pytest.raises(TypeError):
        mx.from_dlpack(thing)


def test_a_method_that_is_not_found_for_another_reason() -> None:
    class Meta(type):
        @property
        def __dlpack__(cls) -> Any:
            raise KeyError("mine")

    class Thing(metaclass=Meta):
        pass

    with pytest.raises(KeyError, match="mine"):
        mx.from_dlpack(Thing())


def test_own_arrays() -> None:
    class Sub(mx.array):
        pass

    for x in (array(), Sub([1.0, 2.0])):
        same = np.from_dlpack(x).ctypes.data
        assert np.from_dlpack(mx.from_dlpack(x)).ctypes.data == same
        assert np.from_dlpack(mx.from_dlpack(x, copy=False)).ctypes.data == same
        assert np.from_dlpack(mx.from_dlpack(x, device=mx.cpu)).ctypes.data == same
        copied = mx.from_dlpack(x, copy=True)
        assert np.from_dlpack(copied).ctypes.data != same
        assert copied.tolist() == x.tolist()
    assert mx.from_dlpack(mx.arange(3) + 1).tolist() == [1, 2, 3]
