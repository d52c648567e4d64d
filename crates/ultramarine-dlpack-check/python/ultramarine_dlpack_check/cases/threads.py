"""Deleters on other threads, many threads at once, forks."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from ultramarine_dlpack_check.case import (
    HEADER,
    OURS,
    PYTHON,
    NotApplicable,
    case,
    described,
    expect,
    expect_equal,
)
from ultramarine_dlpack_check.fabricate import FLOAT32, Producer, pack
from ultramarine_dlpack_check.target import ROW, Target, gathered

THREADS = 8


def together(work: Callable[[int], None]) -> list[str]:
    """Runs the work on eight threads that start at once; the exceptions, as texts."""
    gate = threading.Barrier(THREADS)
    errors: list[str] = []

    def run(number: int) -> None:
        gate.wait()
        try:
            work(number)
        except NotApplicable:
            errors.append("n.a.")
        except Exception as error:
            errors.append(described(error))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@case("threads/export deleted on a native thread", "A deleter may run on any thread.", HEADER)
def native_thread(t: Target) -> None:
    array = t.make()
    outs = [t.export(array)]
    try:
        outs.append(t.export(array, max_version=(1, 3)))
    except NotApplicable:
        pass
    for out in outs:
        out.delete_on_thread()
    expect_equal(t.values(array), ROW, "values")


@case(
    "threads/deleters do not wait for the interpreter",
    "A deleter ends while another thread holds the interpreter's lock.",
    OURS,
)
def without_the_lock(t: Target) -> None:
    array = t.make()
    expect(t.newest(array).delete_on_thread(hold=3.0), "the deleter waits for the lock")
    last = t.newest(t.make())
    expect(last.delete_on_thread(hold=3.0), "the deleter of the last owner waits for the lock")


@case("threads/import of one dropped on another", "Imports may be dropped anywhere.", HEADER)
def dropped_elsewhere(t: Target) -> None:
    tensor = t.tensor()
    held = [t.import_(tensor)]
    t.values(held[0])
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()


@case("threads/eight export one array", "Threads may export the same array at once.", OURS)
def eight_export(t: Target) -> None:
    array = t.make()
    wanted = pack(ROW, FLOAT32)

    def work(_: int) -> None:
        for i in range(200):
            out = t.newest(array)
            expect_equal(gathered(out), wanted, "bytes")
            if i % 50 == 0:
                out.delete_on_thread()

    expect_equal(together(work), [], "exceptions")


@case("threads/eight export work", "Threads may export the same lazy array at once.", OURS)
def eight_export_lazy(t: Target) -> None:
    for _ in range(10):
        work = t.adapter.heavy(t.make())

        def check(_: int, work: Any = work) -> None:
            expect_equal(gathered(t.newest(work)), bytes(24), "bytes")

        expect_equal(together(check), [], "exceptions")


@case("threads/eight import one array", "Threads may import the same array at once.", OURS)
def eight_import(t: Target) -> None:
    array = t.make()

    def work(_: int) -> None:
        for _ in range(100):
            expect_equal(t.values(t.take(array)), ROW, "values")

    errors = together(work)
    if errors and set(errors) == {"n.a."}:
        raise NotApplicable("no from_dlpack")
    expect_equal(errors, [], "exceptions")


@case("threads/eight race for one capsule", "Exactly one gets its tensor.", PYTHON)
def eight_race(t: Target) -> None:
    if t.adapter.from_dlpack is None:
        raise NotApplicable("no from_dlpack")
    for legacy in (False, True) if t.asks_versions else (True,):
        for _ in range(25):
            tensor = t.tensor(legacy=legacy)
            capsule = tensor.capsule()
            won: list[Any] = []

            def work(_: int, capsule: Any = capsule, won: list[Any] = won) -> None:
                won.append(t.take(Producer(lambda **_: capsule)))

            lost = together(work)
            expect_equal((len(won), len(lost)), (1, THREADS - 1), "winners and losers")
            expect(tensor.deleted <= 1, f"the deleter ran {tensor.deleted} times")
            won.clear()


@case("threads/dropped while it is used", "Work that was begun keeps its memory.", HEADER)
def dropped_while_used(t: Target) -> None:
    for _ in range(20):
        tensor = t.tensor(ROW * 500, (3000,))
        array = t.import_(tensor)
        work = t.adapter.heavy(array)
        thread = threading.Thread(target=lambda w=work: t.values(w))
        thread.start()
        del array
        thread.join()
        expect_equal(t.values(work)[:3], [0.0] * 3, "values")


def child(work: Callable[[], None], seconds: float = 40) -> str:
    """What became of a forked child."""
    if not hasattr(os, "fork"):
        raise NotApplicable("no fork on this system")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        status = 3
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return signal.Signals(-code).name if code < 0 else f"exit {code}"
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hangs"


@case("threads/fork", "A child may use, import and export after a fork.", OURS)
def fork(t: Target) -> None:
    tensor = t.tensor()
    array = t.import_(tensor)
    t.values(t.adapter.heavy(array))
    out, before = t.newest(array), tensor.deleted

    def work() -> None:
        expect_equal(t.values(array), [ROW[:3], ROW[3:]], "values")
        expect_equal(gathered(out), pack(ROW, FLOAT32), "bytes")
        out.delete()
        expect_equal(gathered(t.newest(array)), pack(ROW, FLOAT32), "bytes")
        inner = t.tensor()
        again = t.import_(inner)
        expect_equal(t.values(t.adapter.heavy(again))[0], [0.0] * 3, "values of work")

    expect_equal(child(work), "exit 0", "the child")
    expect_equal(tensor.deleted, before, "runs of the deleter in the parent")


@case("threads/fork and drop", "What the child drops stays the parent's.", OURS)
def fork_and_drop(t: Target) -> None:
    tensor = t.tensor()
    held = [t.import_(tensor)]
    before = tensor.deleted
    expect_equal(child(held.clear), "exit 0", "the child")
    expect_equal(tensor.deleted, before, "runs of the deleter in the parent")
    expect_equal(t.values(held[0]), [ROW[:3], ROW[3:]], "values in the parent")
