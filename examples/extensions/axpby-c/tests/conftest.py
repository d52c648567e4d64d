"""Where the tests run: on the CPU, and on an accelerator if a backend gives one (ULTRAMARINE_BACKEND_PATH)."""

from collections.abc import Iterator

import pytest

import ultramarine as mx

MISSING = pytest.mark.skipif(
    not mx.is_available(mx.gpu), reason="no accelerator: ULTRAMARINE_BACKEND_PATH names none"
)


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=MISSING)], autouse=True)
def device(request: pytest.FixtureRequest) -> Iterator[mx.Device]:
    """The default device of the test."""
    before = mx.default_device()
    mx.set_default_device(getattr(mx, request.param))
    yield mx.default_device()
    mx.set_default_device(before)
