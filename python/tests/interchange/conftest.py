"""Arrays exchanged with other libraries. What is not installed is skipped, unless
ULTRAMARINE_NEEDS_PEERS=1 says that everything has to be there."""

import os
import sys
import warnings

import pytest
from support import libraries
from support.paths import TOOLS

sys.path.insert(0, str(TOOLS))
NEEDS_ALL = os.environ.get("ULTRAMARINE_NEEDS_PEERS") == "1"


def pytest_configure(config: pytest.Config) -> None:
    missing = [name for name, version in libraries.versions().items() if version is None]
    if NEEDS_ALL and missing:
        raise pytest.UsageError(f"not installed: {', '.join(missing)}")


def pytest_report_header(config: pytest.Config) -> str:
    found = libraries.versions().items()
    return "libraries: " + ", ".join(f"{name} {version or 'MISSING'}" for name, version in found)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Quiet runs print no header.
    terminalreporter.write_line(pytest_report_header(terminalreporter.config))


@pytest.fixture(autouse=True)
def foreign_warnings() -> None:
    """Warnings of the other libraries that are not about us."""
    warnings.filterwarnings("ignore", message="ComplexHalf support is experimental")
    warnings.filterwarnings("ignore", message=".*nested tensors is in prototype stage")
