"""How long memory lives, and that nothing leaks."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

from ultramarine_dlpack_check import lab
from ultramarine_dlpack_check.case import (
    HEADER,
    OURS,
    PYTHON,
    NotApplicable,
    case,
    expect,
    expect_equal,
)
from ultramarine_dlpack_check.fabricate import FLOAT32, Producer, pack
from ultramarine_dlpack_check.target import ROW, Target, address, gathered


def _until_the_end() -> None:
    for legacy in (False, True):

        def dropped(t: Target, legacy: bool = legacy) -> None:
            tensor = t.tensor(legacy=True) if legacy else t.tensor(flags=0)
            array = t.accepts(tensor, [ROW[:3], ROW[3:]])
            expect(array is not None, "no array")

        def after_work(t: Target, legacy: bool = legacy) -> None:
            tensor = t.tensor(legacy=True) if legacy else t.tensor(flags=0)
            t.values(t.adapter.heavy(t.import_(tensor)))

        kind = "legacy" if legacy else "versioned"
        rule = "The deleter runs once, when nothing needs the memory any more."
        case(f"lifetime/import dropped, {kind}", rule, HEADER)(dropped)
        rule = "The deleter runs once, also after work with the array."
        case(f"lifetime/import used and dropped, {kind}", rule, HEADER)(after_work)


_until_the_end()


@case("lifetime/capsule dropped unused", "Who drops a capsule lets go of its tensor.", PYTHON)
def dropped_unused(t: Target) -> None:
    array = t.make()
    before = sys.getrefcount(array)
    for version in [None, (1, 3)]:
        try:
            capsule = t.capsule(array, max_version=version)
        except NotApplicable:
            capsule = t.capsule(array)
        del capsule
    gc.collect()
    expect_equal(sys.getrefcount(array), before, "references to the array")
    expect_equal(t.values(array), ROW, "values")


@case("lifetime/source first", "An export lives on without its array.", HEADER)
def source_first(t: Target) -> None:
    array = t.make()
    out = t.newest(array)
    del array
    gc.collect()
    other = [t.make([9.0] * 6) for _ in range(20)]
    expect_equal(gathered(out), pack(ROW, FLOAT32), "bytes")
    del other


@case("lifetime/views outlive the base", "Memory lives as long as a view of it.", HEADER)
def views(t: Target) -> None:
    tensor = t.tensor(shape=(6,))
    array = t.import_(tensor)
    view = t.part(array, slice(2, 5))
    inside = tensor.address <= t.pointer(view) < tensor.address + 24
    del array
    gc.collect()
    expect_equal(t.values(view), ROW[2:5], "values")
    if inside:
        expect_equal(tensor.deleted, 0, "runs of the deleter while a view lives")


@case("lifetime/two arrays of one import", "Memory lives as long as the last of them.", HEADER)
def two_arrays(t: Target) -> None:
    tensor = t.tensor(shape=(6,))
    first = t.import_(tensor)
    second = t.take(first)
    del first
    gc.collect()
    expect_equal(t.values(second), ROW, "values")


@case("lifetime/chain of exports", "An import of an export of an import.", HEADER)
def chain(t: Target) -> None:
    tensor = t.tensor(shape=(6,))
    array = t.import_(tensor)
    for _ in range(5):
        array = t.take(Producer(lambda a=array, **asked: t.capsule(a, **asked)))
    expect_equal(t.values(array), ROW, "values")


@case("lifetime/references return", "Import and export leave no references behind.", PYTHON)
def references(t: Target) -> None:
    producer = Producer(lambda **_: t.tensor().capsule())
    array = t.make()

    def work() -> None:
        for _ in range(50):
            t.values(t.take(producer))
            t.newest(array).delete()
        gc.collect()

    work()
    before = (sys.getrefcount(producer), sys.getrefcount(array), sys.getrefcount(type(array)))
    work()
    after = (sys.getrefcount(producer), sys.getrefcount(array), sys.getrefcount(type(array)))
    grown = max(a - b for a, b in zip(after, before))
    expect(grown < 10, f"references grew from {before} to {after}")


class Holder:
    """Something with attributes."""

    array: Any
    itself: Any


@case("lifetime/cycles", "An array in a cycle is collected, and its import with it.", PYTHON)
def cycles(t: Target) -> None:
    tensor = t.tensor()
    holder = Holder()
    holder.array, holder.itself = t.import_(tensor), holder
    del holder
    gc.collect()
    expect_equal(tensor.deleted, 1, "runs of the deleter after a collection")


def _pending() -> None:
    def unused(t: Target) -> None:
        expect_equal(lab.drop_pending([t.capsule(t.make())]), "KeyError", "pending exception")

    def used(t: Target) -> None:
        capsule = t.capsule(t.make())
        lab.take(capsule).delete()
        held = [capsule]
        del capsule
        expect_equal(lab.drop_pending(held), "KeyError", "pending exception")

    def imported(t: Target) -> None:
        tensor = t.tensor()
        held = [t.import_(tensor)]
        t.values(held[0])
        expect_equal(lab.drop_pending(held), "KeyError", "pending exception")

    rule = "A destructor keeps the exception that is on its way."
    case("lifetime/pending exception, capsule unused", rule, PYTHON)(unused)
    case("lifetime/pending exception, capsule used", rule, PYTHON)(used)
    case("lifetime/pending exception, import dropped", rule, PYTHON)(imported)


_pending()


# Memory that does not grow

# What may come in by the allocator's own ways: less than 100,000 leaks of the smallest struct.
ALLOWED = 6 << 20


def resident() -> int:
    """Bytes of the process that are in memory."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        raise NotApplicable("this system does not say how much memory is resident") from None


def flat(t: Target, work: Callable[[], object]) -> None:
    """Resident memory stays as it is. The first rounds fill caches; a library that puts frees off
    gets a second chance."""
    count = max(t.loops, 1000)
    for _ in range(count // 10):
        work()
    grown = 0
    for _ in range(2):
        gc.collect()
        before = resident()
        for _ in range(count):
            work()
        gc.collect()
        grown = resident() - before
        if grown < ALLOWED:
            return
    expect(False, f"{grown >> 20} MiB more after {count} rounds")


@case("lifetime/flat memory: imports", "Many imports leave nothing behind.", HEADER, seconds=600)
def flat_imports(t: Target) -> None:
    if not t.asks_versions:
        # Who takes the destructor off a capsule, as some do, leaves what is ours behind it.
        raise NotApplicable("the suite's own capsules would be counted")
    data = pack(ROW * 20, FLOAT32)
    flat(t, lambda: t.take(Producer(lab.Tensor(data, [120], [1]))))


@case("lifetime/flat memory: exports", "Many exports leave nothing behind.", HEADER, seconds=600)
def flat_exports(t: Target) -> None:
    array = t.make()
    t.newest(array)
    flat(t, lambda: t.newest(array).delete())


@case("lifetime/flat memory: unused", "Many unused capsules leave nothing.", PYTHON, seconds=600)
def flat_unused(t: Target) -> None:
    array = t.make()
    flat(t, lambda: t.capsule(array))


@case("lifetime/flat memory: round trips", "There and back leaves nothing.", HEADER, seconds=600)
def flat_round_trips(t: Target) -> None:
    array = t.make()
    flat(t, lambda: t.take(Producer(lambda **asked: t.capsule(array, **asked))))


@case("lifetime/flat memory: refusals", "Many refusals leave nothing.", HEADER, seconds=600)
def flat_refusals(t: Target) -> None:
    if t.adapter.from_dlpack is None or not t.asks_versions:
        raise NotApplicable("it takes no versioned tensors")
    data = pack(ROW, FLOAT32)

    def work() -> None:
        try:
            t.take(Producer(lab.Tensor(data, [6], [1], version=(2, 0), guard="header")))
        except Exception:
            return
        expect(False, "a tensor of major version 2 was accepted")

    flat(t, work)


# The process's end


def program(t: Target, text: str) -> str:
    """What a program prints, which must end well."""
    start = f"""\
        from ultramarine_dlpack_check import lab
        from ultramarine_dlpack_check.adapters import adapter
        from ultramarine_dlpack_check.target import Target
        from ultramarine_dlpack_check.fabricate import Producer
        t = Target(adapter({t.adapter.name!r}), 1)
    """
    source = textwrap.dedent(start) + textwrap.dedent(text)
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=120
    )
    last = (done.stderr.strip().splitlines() or [""])[-1]
    expect_equal(done.returncode, 0, f"exit status ({last})")
    return done.stdout


@case("lifetime/import held at exit", "A process ends well with imports alive.", PYTHON)
def held_at_exit(t: Target) -> None:
    if t.adapter.from_dlpack is None:
        raise NotApplicable("no from_dlpack")
    text = """
        held = [t.import_(t.tensor()), t.import_(t.tensor(legacy=True))]
        print("end")
    """
    expect_equal(program(t, text), "end\n", "output")


@case("lifetime/capsule held at exit", "A process ends well with capsules alive.", PYTHON)
def capsule_at_exit(t: Target) -> None:
    text = """
        held = [t.capsule(t.make()), t.tensor().capsule()]
        print("end")
    """
    expect_equal(program(t, text), "end\n", "output")


@case(
    "lifetime/export deleted after the end",
    "A deleter may run after the interpreter's end: the process ends well.",
    HEADER,
)
def deleted_after_the_end(t: Target) -> None:
    text = """
        t.newest(t.make()).delete_at_exit()
        t.export(t.make()).delete_at_exit()
        print("end", flush=True)
    """
    wanted = "end\n" + "deleted after the end\n" * 2
    expect_equal(program(t, text), wanted, "output")


@case("lifetime/refused in place of used", "A refused tensor can be taken by another.", OURS)
def refused_then_taken(t: Target) -> None:
    tensor = t.tensor(device=(7, 0))
    capsule = tensor.capsule()
    try:
        t.take(Producer(lambda **_: capsule, device=(7, 0)))
    except NotApplicable:
        raise
    except Exception:
        out = lab.take(capsule)
        expect_equal(address(out.info()), tensor.address, "address")
        return
    expect(False, "memory of Vulkan was accepted")
