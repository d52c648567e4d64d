"""Exchanges from many threads, and in a forked child."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.capsules import address

import ultramarine as mx

THREADS = 8


def together(work: Callable[[int], Any]) -> list[Any]:
    """What `work` gives or raises in eight threads that begin at once."""
    barrier = threading.Barrier(THREADS)
    results: list[Any] = [None] * THREADS

    def run(i: int) -> None:
        barrier.wait()
        try:
            results[i] = work(i)
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether a condition holds within 5 seconds. A job that is leaving its stream may be the last to release memory."""
    for _ in range(500):
        if holds():
            return True
        time.sleep(0.01)
    return holds()


def test_one_array_in_eight_threads() -> None:
    x = mx.arange(1000, dtype=mx.float32) * 2  # nobody evaluated it yet
    want = (np.arange(1000) * 2).tolist()

    def work(i: int) -> set[int]:
        where = set()
        for _ in range(200):
            there = np.from_dlpack(x)
            where.add(there.ctypes.data)
            assert mx.from_dlpack(there)[i].item() == 2 * i
        assert there.tolist() == want
        return where

    assert together(work) == [{address(x)}] * THREADS


def test_one_source_in_eight_threads() -> None:
    theirs = np.arange(1000, dtype=np.float32)
    before = sys.getrefcount(theirs)

    def work(i: int) -> float:
        return [(mx.from_dlpack(theirs)[i:] + i).sum().item() for _ in range(200)][-1]

    assert together(work) == [float((theirs[i:] + i).sum()) for i in range(THREADS)]
    gc.collect()
    assert eventually(lambda: sys.getrefcount(theirs) == before)


@pytest.mark.parametrize("version", [None, (1, 3)])
def test_eight_race_for_one_capsule(version: tuple[int, int] | None) -> None:
    """One gets the tensor; the others are told that it is gone."""
    alive = []
    for _ in range(50):
        theirs = np.arange(4, dtype=np.float32)
        alive.append(weakref.ref(theirs))
        capsule = theirs.__dlpack__(max_version=version)
        results = together(lambda i: mx.from_dlpack(capsule))
        won = [r for r in results if isinstance(r, mx.array)]
        lost = [r for r in results if isinstance(r, BufferError)]
        assert (len(won), len(lost)) == (1, THREADS - 1), results
        assert "used" in str(lost[0])
        assert won[0].tolist() == [0, 1, 2, 3]
    theirs = capsule = results = won = lost = None
    gc.collect()
    assert [a for a in alive if a() is not None] == []


def test_dropped_while_it_is_computed_with() -> None:
    theirs = np.ones(1 << 20, np.float32)
    alive = weakref.ref(theirs)
    for _ in range(10):
        x = mx.from_dlpack(theirs)
        later = mx.exp(x) + mx.sin(x)
        mx.async_eval(later)
        del x
        assert abs(later[12345].item() - (np.e + np.sin(1))) < 1e-5
    del theirs, later
    gc.collect()
    assert eventually(lambda: alive() is None)


def test_exports_dropped_in_other_threads() -> None:
    gc.collect()  # what earlier tests left
    before = mx.get_active_memory()

    def work(i: int) -> None:
        held = []
        for _ in range(50):
            x = mx.full((1000,), float(i)) + 1
            held.append(np.from_dlpack(x))
        passed.append(held)

    passed: list[Any] = []
    assert together(work) == [None] * THREADS
    assert sorted({there[7] for held in passed for there in held}) == [
        1.0 + i for i in range(THREADS)
    ]
    passed.clear()
    gc.collect()
    assert mx.get_active_memory() < before + 4000 * 50


IN_A_CHILD = """
import os, sys, warnings
import numpy as np
import ultramarine as mx
if "torch" in sys.argv:
    import torch
    make, ask = torch.arange, torch.from_dlpack
else:
    make, ask = np.arange, np.from_dlpack
warnings.simplefilter("ignore")

theirs = make(1000)
imported = mx.from_dlpack(theirs)
lazy = imported * 2
ours = mx.arange(1000)
mx.eval(ours)
exported = ask(ours)
unused = ours.__dlpack__(max_version=(1, 3))
(mx.ones((500, 500)) @ mx.ones((500, 500))).sum().item()  # threads are there

pid = os.fork()
assert imported[7].item() == 7
assert lazy[7].item() == 14
assert int(exported[7]) == 7
fresh = mx.from_dlpack(make(5)) + 1
assert fresh.tolist() == [1, 2, 3, 4, 5]
assert int(ask(fresh)[4]) == 5
# Memory is the child's own from its first write.
exported[0] = 1 if pid == 0 else 2
assert ours[0].item() == (1 if pid == 0 else 2)
del unused, exported, imported, theirs
if pid == 0:
    sys.exit(0)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("peer", ["numpy", "torch"])
def test_in_a_forked_child(peer: str) -> None:
    pytest.importorskip(peer, reason=f"{peer} is not installed")
    run = [sys.executable, "-X", "faulthandler", "-c", IN_A_CHILD, peer]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
