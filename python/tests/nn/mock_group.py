"""A mock of groups of several processes: threads of one process that exchange arrays as NumPy arrays.

`ultramarine.distributed` has groups of one process only. The layers that communicate are written for any size, and this
mock runs them with several.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from support.harness import array, name_of, to_numpy

import ultramarine as mx


class MockGroup:
    """One member's view of a mock group. Alone, without `mock_processes`, it says its size and rank only."""

    def __init__(self, size: int, rank: int, exchange: Exchange | None = None) -> None:
        self._size = size
        self._rank = rank
        self._exchange = exchange
        self.calls: list[str] = []

    def size(self) -> int:
        return self._size

    def rank(self) -> int:
        return self._rank

    def all(self, operation: str, x: mx.array) -> list[mx.array]:
        """The arrays of all members, of which the others' are constants."""
        self.calls.append(operation)
        assert self._exchange is not None
        arrays = self._exchange.all(self._rank, operation, to_numpy(x))
        dtype = name_of(x.dtype)
        return [x if i == self._rank else array(mx, a, dtype) for i, a in enumerate(arrays)]


class Exchange:
    """A table where every member lays an array and takes those of all."""

    def __init__(self, size: int) -> None:
        self.table: list[Any] = [None] * size
        self.barrier = threading.Barrier(size, timeout=60)

    def all(self, rank: int, operation: str, data: np.ndarray) -> list[np.ndarray]:
        self.table[rank] = (operation, data)
        self.barrier.wait()
        found = list(self.table)
        self.barrier.wait()
        assert {name for name, _ in found} == {operation}, "members call different operations"
        return [data for _, data in found]


def _all_sum(x: mx.array, *, group: MockGroup, stream: Any = None) -> mx.array:
    first, *rest = group.all("all_sum", x)
    return sum(rest, first)


def _all_gather(x: mx.array, *, group: MockGroup, stream: Any = None) -> mx.array:
    return mx.concatenate(group.all("all_gather", x))


def _sum_scatter(x: mx.array, *, group: MockGroup, stream: Any = None) -> mx.array:
    first, *rest = group.all("sum_scatter", x)
    return mx.split(sum(rest, first), group.size())[group.rank()]


@contextmanager
def _mocked() -> Iterator[None]:
    with (
        mock.patch.object(mx.distributed, "all_sum", _all_sum),
        mock.patch.object(mx.distributed, "all_gather", _all_gather),
        mock.patch.object(mx.distributed, "sum_scatter", _sum_scatter),
    ):
        yield


def mock_processes(size: int, program: Callable[[MockGroup], Any]) -> list[Any]:
    """Runs a program as every member of a mock group, and returns the results in the order of ranks."""
    exchange = Exchange(size)
    results: list[Any] = [None] * size
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = program(MockGroup(size, rank, exchange))
            mx.eval(results[rank])
        except BaseException as error:
            errors.append(error)
            exchange.barrier.abort()

    with _mocked():
        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    real = [e for e in errors if not isinstance(e, threading.BrokenBarrierError)]
    for error in real or errors:
        raise error
    return results
