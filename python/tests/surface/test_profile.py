"""The tests see failed assertions: the module is built with the profile `checked`."""

import os

import pytest

from ultramarine import _core

PROFILE = os.environ.get("ULTRAMARINE_TEST_PROFILE")


@pytest.mark.skipif(PROFILE != "checked", reason="not run by `cargo xtask test`")
def test_module_has_assertions() -> None:
    assert _core._debug_assertions
