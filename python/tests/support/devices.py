"""The tests of operations on a device: pytest's options, the counters at the end, strict mode.

    pytest -m ops python/tests
        --backend PATH    a plugin to load first; may be given more than once
        --device gpu:0    where operations run unless a test says otherwise
        --each 10         every tenth test, for slow devices
        --operands gpu:1  the cases' arrays are copied there, and operations have to follow
        --strict-for NAME operations must not go to the CPU, but for those that
                          cpu_ops.py lists for the backend NAME

Tests marked `host` only make sense on the CPU and are skipped elsewhere.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import pytest

import ultramarine as um
from support import harness
from support.cpu_ops import ON_CPU
from support.paths import TESTS

# All tests below this folder belong to the suite.
SUITE = TESTS / "ops"
# In these folders, tests can join the suite by a mark of their own. `-m ops` collects no other
# tests.
MARKED = (TESTS / "transforms", TESTS / "extensions", TESTS / "runtime")


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("devices", "operations on devices")
    group.addoption("--backend", action="append", default=[], help="a plugin to load")
    group.addoption("--device", default="cpu:0", help="the default device of the tests")
    group.addoption("--operands", default="", help="the device of the cases' arrays")
    group.addoption("--each", type=int, default=1, help="every so manieth test of the suite")
    group.addoption("--strict-for", default="", metavar="NAME", help="strict mode for this backend")


def configure(config: pytest.Config) -> None:
    """Loads and chooses what the options ask for."""
    config.addinivalue_line("markers", "ops: the suite of operations, which runs on any device")
    config.addinivalue_line("markers", "host(reason): only makes sense on the CPU")
    config.addinivalue_line("markers", "always: taken whatever `--each` leaves out")
    for path in config.getoption("--backend"):
        um.backends.load(Path(path).resolve())
    um.set_default_device(device_of(config))
    if operands := config.getoption("--operands"):
        put_operands(device_named(operands))
    if strict := config.getoption("--strict-for"):
        um.backends.set_strict(True, allow=list(ON_CPU.get(strict, {})))
    um.backends.reset_op_counts()


@dataclass(frozen=True)
class Ran:
    """Counts of an operation, as `backends.op_counts` has them, with the device as text."""

    device: str
    backend: str
    variant: str
    op: str
    native: int
    decomposed: int
    cpu: int


# Counts from pytest-xdist's workers. The controlling process itself runs no tests.
OF_WORKERS: list[Ran] = []


def op_counts() -> list[Ran]:
    """The counts of this process and of its workers."""
    own = [
        Ran(
            f"{r.device.type.name}:{r.device.index}",
            r.backend,
            r.variant,
            r.op,
            r.native,
            r.decomposed,
            r.cpu,
        )
        for r in um.backends.op_counts()
    ]
    return [*own, *OF_WORKERS]


def device_of(config: pytest.Config) -> um.Device:
    return device_named(config.getoption("--device"))


def device_named(name: str) -> um.Device:
    kind, _, index = name.partition(":")
    return um.Device(getattr(um, kind), int(index or 0))


def put_operands(device: um.Device) -> None:
    """Has the cases' arrays on a device that is not the default one: what an operation makes
    on its way (masks, indices, random bits) has to follow them, or it is an error."""

    def put(make: Callable[..., um.array], ours: Callable[..., bool]) -> Callable[..., um.array]:
        def made(*args: Any, **kwargs: Any) -> um.array:
            array = make(*args, **kwargs)
            return um.copy(array, device) if ours(*args) else array

        return made

    harness.array = put(harness.array, lambda mx, *_: mx is um)
    # The weights for the tests of transforms.
    um.arange = put(um.arange, lambda *_: True)


def mark(item: pytest.Item) -> None:
    """Marks a test as one of the suite, and skips what is for the host on other devices."""
    if item.path.is_relative_to(SUITE):
        item.add_marker("ops")
    elif item.get_closest_marker("ops") and item.path.parent not in MARKED:
        raise pytest.UsageError(f"{item.nodeid}: tests of the suite are in {SUITE.name} or MARKED")
    host = item.get_closest_marker("host")
    if host is not None and device_of(item.config) != um.cpu:
        item.add_marker(pytest.mark.skip(reason=f"only on the CPU: {host.args[0]}"))


def outside(config: pytest.Config, path: Path) -> bool:
    """Whether a folder has none of the tests that `-m ops` asks for."""
    asked = config.option.markexpr == "ops"
    return asked and path.parent == TESTS and path not in (SUITE, *MARKED)


def sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves what `--each` asks for, and tests marked `always`: for devices that take minutes for what others do in a
    second."""
    each = config.getoption("--each")
    if each > 1:
        # Put the suite's folder first, so that the selection of its tests does not depend on other
        # tests.
        items.sort(key=lambda item: item.path.parent != SUITE)
        always = [item.get_closest_marker("always") is not None for item in items]
        taken = [not i % each or always[i] for i in range(len(items))]
        config.hook.pytest_deselected(items=[t for t, take in zip(items, taken) if not take])
        items[:] = [t for t, take in zip(items, taken) if take]


def finish(session: pytest.Session) -> None:
    """The suite counts only if the backends that it was for did the work."""
    if session.config.pluginmanager.hasplugin("dsession"):
        return  # workers of pytest-xdist did it, and this process knows nothing of that
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["op_counts"] = [astuple(r) for r in op_counts()]
    ran = {(r.backend, r.variant) for r in op_counts() if r.native}
    loaded = {(b.name, b.variant) for b in um.backends.list() if b.path is not None}
    asked = session.config.getoption("--backend")
    if asked and not session.exitstatus and not loaded & ran:
        print(f"\nnothing ran on what was loaded from {', '.join(asked)}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def worker_finished(output: dict[str, Any]) -> None:
    """Takes the counts of a worker of pytest-xdist."""
    OF_WORKERS.extend(Ran(*row) for row in output.get("op_counts", ()))


def strict_line(backend: str, passed: int, rows: Iterable[Ran]) -> str:
    """How many operations a strict suite let go to the CPU, by name."""
    total, left = 0, Counter[str]()
    for row in rows:
        if row.backend == backend:
            total += row.native + row.decomposed + row.cpu
            left[row.op] += row.cpu
    left += Counter()  # drops zeros
    line = f"strict for {backend}: {passed} passed; {left.total():,} of {total:,} operations went to the CPU"
    named = ", ".join(f"{op} {n:,}" for op, n in left.most_common())
    return f"{line}, as cpu_ops.py lists them: {named}" if left else line


def summary(terminal: pytest.TerminalReporter) -> None:
    """What ran where: per backend in all, and each operation that did not run natively."""
    rows = op_counts()
    if not rows:
        return
    terminal.section("operations by how they ran: native / decomposed / on the CPU")
    total: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    single: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        name = f"{row.device} {row.backend} {row.variant}".rstrip()
        for counts in (total[name], single[row.backend, row.op]):
            for i, n in enumerate((row.native, row.decomposed, row.cpu)):
                counts[i] += n
    for name, counts in total.items():
        terminal.line(f"{name:24} {counts[0]:9} / {counts[1]} / {counts[2]}")
    for (backend, op), (native, decomposed, cpu) in single.items():
        if decomposed or cpu:
            terminal.line(f"  {backend:10} {op:22} {native:9} / {decomposed} / {cpu}")
    if strict := terminal.config.getoption("--strict-for"):
        terminal.line(strict_line(strict, len(terminal.stats.get("passed", [])), rows))
