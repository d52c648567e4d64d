"""A plugin for pytest, by which tests that know nothing of devices run on one: those of examples.

python -m pytest -p python.tests.on_device --backend FILE --device gpu:0 examples/extensions/axpby-c/tests
"""

from __future__ import annotations

from pathlib import Path

import pytest

import ultramarine as mx


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("devices", "operations on devices")
    group.addoption("--backend", required=True, help="the plugin to load")
    group.addoption("--device", default="gpu:0", help="where operations run")


def pytest_configure(config: pytest.Config) -> None:
    mx.backends.load(Path(config.getoption("--backend")).resolve())
    kind, _, index = config.getoption("--device").partition(":")
    mx.set_default_device(mx.Device(getattr(mx, kind), int(index or 0)))
