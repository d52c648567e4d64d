"""Where the tests run: on the CPU, and on an accelerator if a backend gives one (ULTRAMARINE_BACKEND_PATH)."""

import pytest

import ultramarine as um

MISSING = pytest.mark.skipif(
    not um.is_available(um.gpu), reason="no accelerator: ULTRAMARINE_BACKEND_PATH names none"
)


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=MISSING)])
def device(request):
    """Default device of the test."""
    before = um.default_device()
    um.set_default_device(getattr(um, request.param))
    yield request.param
    um.set_default_device(before)
