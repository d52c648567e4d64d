"""Evaluations with and without the commands of earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ultramarine as mx
from support.harness import rng


@pytest.fixture
def executables() -> Iterator[None]:
    """Switches executables on for a test."""
    before = mx.backends.uses_executables()
    mx.backends.set_executables(True)
    yield
    mx.backends.set_executables(before)


def plainly(f: Callable[[], Any]) -> Any:
    """Calls a function without executables."""
    mx.backends.set_executables(False)
    try:
        return f()
    finally:
        mx.backends.set_executables(True)


def numbers(*shape: int, seed: object = 0) -> mx.array:
    return mx.array(rng("repeated", shape, seed).standard_normal(shape, dtype=np.float32))


def bits(arrays: Any) -> list[bytes]:
    return [np.array(a.astype(mx.float32)).tobytes() for a in arrays]


def repeated() -> int:
    # A worker counts what it did a moment after the arrays are there.
    mx.synchronize()
    return mx.backends.stats().repeated


def on_the_cpu() -> bool:
    return mx.default_device() == mx.Device(mx.cpu, 0)
