"""Who keeps memory, and until when: views, cycles, weak references, the interpreter's end, leaks."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.capsules import address

import ultramarine as mx

STATM = Path("/proc/self/statm")


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(STATM.read_text().split()[1]) * 4096


def test_an_import_keeps_its_source() -> None:
    theirs = np.arange(10, dtype=np.float32)
    alive = weakref.ref(theirs)
    x = mx.from_dlpack(theirs)
    view = x[2:5]
    mx.eval(view)
    del theirs
    gc.collect()
    assert alive() is not None
    del x
    gc.collect()
    assert alive() is not None, "a view needs the memory still"
    assert view.tolist() == [2, 3, 4]
    del view
    gc.collect()
    assert alive() is None


def test_unevaluated_work_keeps_the_source() -> None:
    theirs = np.arange(10, dtype=np.float32)
    alive = weakref.ref(theirs)
    later = mx.from_dlpack(theirs) * 2
    del theirs
    gc.collect()
    assert alive() is not None
    assert later[3].item() == 6
    mx.eval(later)
    gc.collect()
    assert alive() is None, "the result has memory of its own"


def test_reference_counts_return() -> None:
    theirs = np.arange(10, dtype=np.float32)
    before = sys.getrefcount(theirs)
    held = [mx.from_dlpack(theirs) for _ in range(10)]
    assert sys.getrefcount(theirs) == before + 10
    held.clear()
    gc.collect()
    assert sys.getrefcount(theirs) == before
    x = mx.arange(10)
    before = sys.getrefcount(x)
    there = [np.from_dlpack(x) for _ in range(10)]
    there.clear()
    assert sys.getrefcount(x) == before


def test_copies_hold_nothing() -> None:
    theirs = np.arange(10, dtype=np.float32)
    before = sys.getrefcount(theirs)
    held = [mx.from_dlpack(theirs, copy=True), mx.array(theirs)]
    mx.eval(held)
    assert sys.getrefcount(theirs) == before


def test_refused_sources_are_let_go() -> None:
    theirs = np.zeros(3, np.complex128)
    before = sys.getrefcount(theirs)
    for _ in range(100):
        with pytest.raises(BufferError):
            mx.from_dlpack(theirs)
    gc.collect()
    assert sys.getrefcount(theirs) == before


def test_exports_outlive_our_array() -> None:
    x = mx.arange(1000, dtype=mx.float32)
    there = np.from_dlpack(x[10:])[5:]
    del x
    gc.collect()
    others = [mx.full((1000,), 9.0) for _ in range(20)]
    mx.eval(others)
    assert there.tolist() == list(range(15, 1000))


def test_exports_give_memory_back() -> None:
    gc.collect()  # what earlier tests left
    before = mx.get_active_memory()
    x = mx.zeros((1 << 20,))
    mx.eval(x)
    there = np.from_dlpack(x)
    del x
    gc.collect()
    assert mx.get_active_memory() >= before + (4 << 20)
    del there
    gc.collect()
    assert mx.get_active_memory() < before + (4 << 20)


def test_unused_capsules() -> None:
    """A capsule that nobody takes gives its tensor back, whichever kind it is."""
    theirs = np.arange(10, dtype=np.float32)
    alive = weakref.ref(theirs)
    x = mx.from_dlpack(theirs)
    capsules = [x.__dlpack__(), x.__dlpack__(max_version=(1, 3))]
    del x, theirs
    gc.collect()
    assert alive() is not None
    capsules.clear()
    gc.collect()
    assert alive() is None


def test_a_pending_exception_stays() -> None:
    """The capsule goes while an exception is on its way up."""
    x = mx.arange(3)

    def work() -> None:
        capsule = x.__dlpack__(max_version=(1, 3))
        raise KeyError(str(type(capsule)))

    with pytest.raises(KeyError, match="PyCapsule"):
        work()


def test_cycles_are_collected() -> None:
    class Holder:
        array: Any
        source: Any
        other: Any

    theirs = np.arange(10, dtype=np.float32)
    alive = weakref.ref(theirs)
    a, b = Holder(), Holder()
    a.other, b.other = b, a
    a.source, a.array = theirs, mx.from_dlpack(theirs)
    b.array = np.from_dlpack(a.array)
    del theirs, a, b
    gc.collect()
    assert alive() is None


def test_long_chains() -> None:
    """A thousand exchanges in a row: one memory, and all of it is let go."""
    theirs = np.arange(4, dtype=np.float32)
    alive = weakref.ref(theirs)
    where = theirs.ctypes.data
    there = theirs
    for _ in range(1000):
        there = np.from_dlpack(mx.from_dlpack(there))
    assert there.ctypes.data == where
    del theirs
    gc.collect()
    assert there.tolist() == [0, 1, 2, 3]
    del there
    gc.collect()
    assert alive() is None


def through_numpy() -> Callable[[], None]:
    theirs = np.arange(4, dtype=np.float32)
    return lambda: (np.from_dlpack(mx.from_dlpack(theirs)), None)[1]


def through_torch() -> Callable[[], None]:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    theirs = torch.arange(4)
    return lambda: (torch.from_dlpack(mx.from_dlpack(theirs)), None)[1]


def from_ours() -> Callable[[], None]:
    x = mx.arange(4)
    mx.eval(x)
    return lambda: (mx.from_dlpack(np.from_dlpack(x)), None)[1]


def legacy_and_unused() -> Callable[[], None]:
    x = mx.arange(4)
    mx.eval(x)
    return lambda: (x.__dlpack__(), mx.from_dlpack(x.__dlpack__()), None)[2]


def refused() -> Callable[[], None]:
    theirs = np.zeros(3, np.complex128)

    def work() -> None:
        try:
            mx.from_dlpack(theirs)
        except BufferError:
            return
        raise AssertionError("complex128 was taken")

    return work


@pytest.mark.skipif(not STATM.exists(), reason="this system does not tell the resident size")
@pytest.mark.parametrize(
    "way", [through_numpy, through_torch, from_ours, legacy_and_unused, refused]
)
def test_memory_stays_flat(way: Callable[[], Callable[[], None]]) -> None:
    """100,000 round trips: 40 bytes lost in each would show."""
    work = way()
    for _ in range(20_000):
        work()
    gc.collect()
    before = resident()
    for _ in range(100_000):
        work()
    gc.collect()
    assert resident() - before < 4 << 20


AT_EXIT = """
import sys, threading
import numpy as np
import ultramarine as mx

theirs = np.arange(1000, dtype=np.float32)
imported = mx.from_dlpack(theirs)
lazy = imported * 2 + 1
exported = np.from_dlpack(mx.arange(1000) + 1)
unused = [imported.__dlpack__(max_version=(1, 3)), imported.__dlpack__()]
cycle = [imported, exported]
cycle.append(cycle)
if "torch" in sys.argv:
    import torch
    tensor = torch.from_dlpack(imported)
    back = mx.from_dlpack(tensor)
sys.held = (imported, exported, unused, lazy)

class Late:
    def __init__(self, x):
        self.x = x
    def __del__(self):
        # Works while modules are taken apart: from here or not at all, but without a crash.
        try:
            assert self.x.tolist()[:2] == [0, 1]
        except Exception:
            pass

late = Late(mx.from_dlpack(theirs))
local = threading.local()
local.held = mx.from_dlpack(theirs)
del theirs
print("end")
"""


@pytest.mark.parametrize("peer", ["numpy", "torch"])
def test_held_at_the_end_of_the_interpreter(peer: str) -> None:
    pytest.importorskip(peer, reason=f"{peer} is not installed")
    run = [sys.executable, "-X", "faulthandler", "-c", AT_EXIT, peer]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "end", "")


def test_deleters_run_where_the_last_holder_is() -> None:
    """The last reference may go on another thread, also one that Python does not know."""
    theirs = np.arange(1 << 16, dtype=np.float32)
    alive = weakref.ref(theirs)
    later = mx.from_dlpack(theirs) * 2 + 1
    mx.async_eval(later)
    del theirs
    total = later.sum().item()
    del later
    gc.collect()
    # A worker frees its stream before it runs the deleter, for which it takes the interpreter's lock.
    deadline = time.monotonic() + 60
    while alive() is not None and time.monotonic() < deadline:
        time.sleep(0.001)
    assert alive() is None
    assert total == float(np.arange(1 << 16).sum() * 2 + (1 << 16))


def test_one_memory_two_imports() -> None:
    theirs = np.arange(4, dtype=np.float32)
    x, y = mx.from_dlpack(theirs), mx.from_dlpack(theirs)
    assert address(x) == address(y)
    del x
    gc.collect()
    assert y.tolist() == [0, 1, 2, 3]
