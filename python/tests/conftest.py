"""Settings for all tests: both libraries on the CPU."""

from collections.abc import Generator
from typing import Any

import mlx.core as mlx
import pytest
from harness import tally

__all__ = ["tally"]

# float64 runs in mlx on its CPU only.
mlx.set_default_device(mlx.cpu)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """What a tally noted is a failure of the test itself, not of its clearing up."""
    result = yield
    used = getattr(item, "funcargs", {}).get("tally")
    if used is not None:
        used.close()
    return result
