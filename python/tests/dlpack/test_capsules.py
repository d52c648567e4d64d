"""Capsules of DLPack, and what stays behind after exchanges."""

import ctypes
import gc
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from support.memory import resident

import ultramarine as mx

from .producers import (
    Answer,
    Producer,
    array,
    name_of,
)

# Capsules.


@pytest.mark.parametrize("version", [None, (1, 3)])
def test_bare_capsules(version: Any) -> None:
    a = np.arange(4.0)
    capsule = a.__dlpack__(max_version=version)
    assert mx.from_dlpack(capsule).tolist() == [0, 1, 2, 3]
    assert name_of(capsule).startswith(b"used_")
    with pytest.raises(mx.InterchangeError, match="used already"):
        mx.from_dlpack(capsule)
    copied = mx.from_dlpack(a.__dlpack__(max_version=version), copy=True)
    assert np.from_dlpack(copied).ctypes.data != a.ctypes.data


@pytest.mark.parametrize("version", [None, (1, 3)])
def test_a_refused_capsule_stays_usable(version: Any) -> None:
    # Complex numbers of 128 bits are nothing that arrays here hold.
    a = np.arange(3, dtype=np.complex128)
    capsule = a.__dlpack__(max_version=version)
    name = name_of(capsule)
    for _ in range(2):
        with pytest.raises(mx.InterchangeError):
            mx.from_dlpack(capsule)
        assert name_of(capsule) == name
    assert np.from_dlpack(Answer(lambda: capsule)).tolist() == [0, 1, 2]


def test_foreign_capsules() -> None:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    name = ctypes.create_string_buffer(b"something")
    with pytest.raises(mx.InterchangeError, match="something"):
        mx.from_dlpack(new(1, name, None))
    with pytest.raises(mx.InterchangeError, match="without a name"):
        mx.from_dlpack(new(1, None, None))


def test_capsules_without_a_consumer() -> None:
    x = array()
    before = mx.get_active_memory()
    capsules = [x.__dlpack__(max_version=v) for v in (None, (1, 3)) for _ in range(10)]
    del x
    assert mx.get_active_memory() == before
    del capsules
    assert mx.get_active_memory() < before


def test_a_pending_exception_survives_a_capsule() -> None:
    """Temporaries of an expression are freed while the exception of its rest is pending."""
    foreign = mx.from_dlpack(np.arange(4.0))

    def fail() -> None:
        raise KeyError("mine")

    for x in (array(), foreign):
        for version in (None, (1, 3)):
            for _ in range(100):
                with pytest.raises(KeyError, match="mine"):
                    _ = [x.__dlpack__(max_version=version), mx.from_dlpack(x), fail()]
    del x, foreign
    with pytest.raises(KeyError, match="mine"):
        # The last reference to the memory goes in the capsule's destructor.
        _ = [mx.from_dlpack(np.arange(4.0)).__dlpack__(max_version=(1, 3)), fail()]


# What stays behind.


def test_reference_counts_return() -> None:
    a = np.arange(4.0)
    x = array()
    p = Producer()
    objects = [a, x, p.source, type(p), type(x), None, True, (1, 3)]
    before = [sys.getrefcount(o) for o in objects]
    for _ in range(200):
        mx.from_dlpack(a)
        mx.from_dlpack(a, copy=True)
        mx.from_dlpack(x)
        mx.from_dlpack(p, copy=False)
        p.asked.clear()
        np.from_dlpack(x)
        x.__dlpack__()
        x.__dlpack__(max_version=(1, 3), copy=True, dl_device=(1, 0), stream=None)
        x.__dlpack_device__()
        for wrong in ({"foo": 1}, {"stream": 1}, {"max_version": 1}, {"dl_device": (2, 0)}):
            with pytest.raises((TypeError, ValueError)):
                x.__dlpack__(**wrong)
        with pytest.raises(TypeError):
            mx.from_dlpack(3)
    gc.collect()
    after = [sys.getrefcount(o) for o in objects]
    assert all(m - n < 20 for n, m in zip(before, after, strict=True)), (before, after)


def test_the_source_lives_as_long_as_it_is_needed() -> None:
    class Owner(np.ndarray):
        pass

    a = np.arange(8.0).view(Owner)
    gone = weakref.ref(a)
    x = mx.from_dlpack(a)
    view = x[2:4]
    mx.eval(view)
    del a, x
    gc.collect()
    assert gone() is not None
    assert view.tolist() == [2, 3]
    del view
    gc.collect()
    assert gone() is None


def test_weak_references_and_cycles() -> None:
    x = mx.from_dlpack(np.arange(3.0))
    gone = weakref.ref(x)
    assert gone() is x
    del x
    assert gone() is None

    class Holder(mx.array):
        me: Any

    h = Holder([1.0, 2.0])
    # A capsule holds memory, never a Python object.
    h.me = [h, h.__dlpack__(max_version=(1, 3))]
    gone = weakref.ref(h)
    del h
    gc.collect()
    assert gone() is None


def test_types_that_come_and_go() -> None:
    """Types are remembered by their address, few at a time: a new type is a new type."""
    for i in range(100):
        kind = type(f"P{i}", (Producer,), {})
        assert mx.from_dlpack(kind()).tolist() == [0, 1, 2, 3]
        empty = type(f"E{i}", (), {})
        with pytest.raises(TypeError):
            mx.from_dlpack(empty())


def test_eight_threads_race_for_a_capsule() -> None:
    a = np.arange(4.0)
    for _ in range(200):
        capsule = a.__dlpack__(max_version=(1, 3))
        barrier = threading.Barrier(8)
        won: list[mx.array] = []
        lost: list[BaseException] = []

        def race() -> None:
            barrier.wait()
            try:
                won.append(mx.from_dlpack(capsule))
            except mx.InterchangeError as error:
                lost.append(error)

        threads = [threading.Thread(target=race) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert (len(won), len(lost)) == (1, 7)
        assert won[0].tolist() == [0, 1, 2, 3]


def test_eight_threads_share_an_array() -> None:
    x = mx.arange(1000) * 3
    seen: list[int] = []

    def read() -> None:
        for _ in range(50):
            seen.append(int(np.from_dlpack(x)[-1]))
            seen.append(int(mx.from_dlpack(x)[-1].item()))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == [2997] * 800


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_stays_flat() -> None:
    a = np.zeros(1024, np.float32)
    x = mx.array(a)
    mx.eval(x)

    def round_trips(n: int) -> None:
        for _ in range(n):
            np.from_dlpack(x)
            y = mx.from_dlpack(a)
            y.__dlpack__(max_version=(1, 3))
            x.__dlpack__()

    round_trips(2000)
    gc.collect()
    before = resident()
    round_trips(100_000)
    gc.collect()
    assert resident() - before < 4 << 20
