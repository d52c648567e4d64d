"""Evaluations with and without the commands of earlier ones."""

from __future__ import annotations

import time
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
    before = mx.backends.uses_executables()
    mx.backends.set_executables(False)
    try:
        return f()
    finally:
        mx.backends.set_executables(before)


def numbers(*shape: int, seed: object = 0) -> mx.array:
    return mx.array(rng("repeated", shape, seed).standard_normal(shape, dtype=np.float32))


def bits(arrays: Any) -> list[bytes]:
    """The values of an array, or of a list of them."""
    arrays = arrays if isinstance(arrays, (list, tuple)) else [arrays]
    return [np.array(a.astype(mx.float32)).tobytes() for a in arrays]


def repeated() -> int:
    # A worker updates its counters shortly after the arrays are evaluated.
    mx.synchronize()
    return mx.backends.stats().repeated


def until_repeated(f: Callable[[], Any], count: Callable[[], int] = repeated) -> None:
    """Calls a function until a count grows, for two minutes at most: fused programs are compiled in the background."""
    deadline = time.monotonic() + 120
    before = count()
    while count() == before and time.monotonic() < deadline:
        f()


N = 6


def check_one_buffer_in_two_operands(
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]], views: bool
) -> None:
    """Checks that a step overwrites the buffer only while no other array holds it, through either operand."""

    def step(x: mx.array, y: mx.array) -> mx.array:
        for _ in range(4):
            x = mx.tanh(x * 2 + y)
            y = y + mx.sum(x, axis=0)
        return x + y @ y

    def given() -> tuple[mx.array, mx.array]:
        x = numbers(N, N)
        y = x.reshape(N * N).reshape(N, N) if views else x
        mx.eval(x, y)
        return x, y

    f = wrap(step)
    want = plainly(lambda: bits(step(*given())))
    for i in range(15):
        x, y = given()
        held = [[], [x], [y]][i // 5]
        result = f(x, y)
        del x, y
        mx.eval(result)
        assert bits(result) == want
        for array in held:
            assert bits(array) == bits(numbers(N, N))


def on_the_cpu() -> bool:
    return mx.default_device() == mx.Device(mx.cpu, 0)
