"""Settings for all tests: mlx on the CPU, ours on the device that was asked for."""

from collections.abc import Generator
from typing import Any

import devices
import mlx.core as mlx
import pytest
from harness import tally

__all__ = ["tally"]

# float64 runs in mlx on its CPU only.
mlx.set_default_device(mlx.cpu)


def pytest_addoption(parser: pytest.Parser) -> None:
    devices.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    devices.configure(config)


def pytest_itemcollected(item: pytest.Item) -> None:
    devices.mark(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    devices.sample(config, items)


def pytest_sessionfinish(session: pytest.Session) -> None:
    devices.finish(session)


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
