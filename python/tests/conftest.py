"""Settings for all tests: mlx on the CPU, ours on the device that was asked for."""

import gc
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import mlx.core as mlx
import pytest
from support import devices
from support.harness import tally
from support.paths import TESTS
from support.repeats import executables

__all__ = ["executables", "tally"]

# float64 runs in mlx on its CPU only.
mlx.set_default_device(mlx.cpu)
# mlx takes nothing from a GPU, so jax's arrays are the CPU's unless a run is about GPUs.
os.environ.setdefault("JAX_PLATFORMS", "cpu")


def pytest_addoption(parser: pytest.Parser) -> None:
    devices.add_options(parser)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves these to runs of their own, which name them: their libraries take seconds to import."""
    apart = collection_path in (TESTS / "interchange", TESTS / "models")
    return True if apart or devices.outside(config, collection_path) else None


def pytest_configure(config: pytest.Config) -> None:
    devices.configure(config)


def pytest_itemcollected(item: pytest.Item) -> None:
    devices.mark(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    devices.sample(config, items)


def pytest_collection_finish() -> None:
    """Garbage collection, which many tests ask for, need not visit a million objects of imported modules."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    devices.finish(session)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    devices.worker_finished(getattr(node, "workeroutput", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    devices.summary(terminalreporter)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """What a tally noted is a failure of the test itself, not of its clearing up."""
    result = yield
    used = getattr(item, "funcargs", {}).get("tally")
    if used is not None:
        used.close()
    return result
