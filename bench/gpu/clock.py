"""Time of a step on a GPU, of any library."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

RUNS = 5


def seconds(step: Callable[[], Any], wait: Callable[[], Any], least: float = 0.1) -> float:
    """Seconds of one step: the median of several runs, each long enough to be measured."""
    step()
    wait()
    begun = time.perf_counter()
    step()
    wait()
    once = max(time.perf_counter() - begun, 1e-7)
    count = max(3, min(2000, int(least / once)))
    runs = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        for _ in range(count):
            step()
        wait()
        runs.append((time.perf_counter() - begun) / count)
    return statistics.median(runs)
