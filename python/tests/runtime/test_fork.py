"""Work goes on in a forked child."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import ultramarine as mx

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def child_does(work: Callable[[], bool]) -> None:
    """Forks; the child must find `work` true within a minute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads beside fork: the point
        pid = os.fork()
    if pid == 0:
        status = 3
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)
    for _ in range(6000):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError("the child hangs")


def works() -> bool:
    """Small work, work for the pool, and a matrix product."""
    small = (mx.arange(10) + 1).sum().item() == 55
    large = mx.ones((2000, 2000))
    pool = (large * 2 + large).sum().item() == 12_000_000
    product = (mx.ones((300, 300)) @ mx.ones((300, 300)))[7, 9].item() == 300
    return small and pool and product


def test_before_any_use_of_the_pool() -> None:
    child_does(works)


def test_after_the_pool_ran() -> None:
    assert works()
    child_does(works)
    assert works()


def test_arrays_made_before() -> None:
    done = mx.arange(100000)
    mx.eval(done)
    lazy = done * 2 + 1
    want = np.arange(100000) * 2 + 1
    child_does(
        lambda: bool((np.array(lazy) == want).all() and (np.array(done + 0) * 2 + 1 == want).all())
    )
    assert (np.array(lazy) == want).all()


def test_while_another_thread_computes() -> None:
    """The child inherits no lock that a thread of the parent held."""
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            mx.eval(mx.ones((500, 500)) * 3 + 1)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            child_does(works)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_fork_in_a_fork() -> None:
    def grandchild() -> bool:
        child_does(works)
        return works()

    child_does(grandchild)
