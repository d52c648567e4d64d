"""Timing and comparison of an operation in Ultramarine and in torch, on one GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import ultramarine as mx
from bench import record, table
from bench.gpu.clock import RUNS, seconds

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]
if torch is not None and not torch.cuda.is_available():
    torch = None

FIGURES: list[record.Figure] = []
TORCH_COMPILE = False


def warmed(step: Callable[[], Any], wait: Callable[[], Any], least: float = 3.0) -> float:
    """Seconds of a step, once its kernels are compiled, which goes on in the background, and its commands are recorded."""
    end = time.monotonic() + least
    while time.monotonic() < end:
        step()
        wait()
    return seconds(step, wait)


def compiled(module: Any) -> Any:
    """A network compiled by torch, which takes a minute, if that was asked for."""
    return torch.compile(module) if TORCH_COMPILE else None


def ours(make: Callable[[], mx.array]) -> float:
    return seconds(lambda: mx.async_eval(make()), mx.synchronize)


def theirs(make: Callable[[], Any]) -> float | None:
    """Seconds of a step in torch, None without it."""
    return seconds(make, torch.cuda.synchronize) if torch is not None else None


def captured(step: Callable[[], Any]) -> Callable[[], Any] | None:
    """A graph of a step in torch."""
    if torch is None:
        return None
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def row(
    group: str,
    name: str,
    mine: float,
    other: float | None,
    limit: float | None = None,
    amount: float = 1e3,
    unit: str = "ms",
) -> None:
    """Records and prints a figure in both libraries, given in seconds.

    The value is milliseconds, or for another unit `amount` over the seconds, such as TFLOP over seconds.
    """

    def value(time: float) -> float:
        return time * amount if unit in record.LESS else amount / time

    bound = value(limit) if limit else None
    for library, time_ in (("ultramarine", mine), ("torch", other)):
        if time_ is not None:
            FIGURES.append(
                record.Figure(
                    group,
                    name,
                    library,
                    value(time_),
                    unit,
                    on="gpu",
                    limit=bound if library == "ultramarine" else None,
                    samples=RUNS,
                )
            )
    cells = [f"{name:44} ours {table.number(value(mine)):>8} {unit:8}"]
    if other is not None:
        cells.append(f"torch {table.number(value(other)):>8} {unit:8}")
    if limit:
        cells.append(f"{100 * limit / mine:5.1f} % of the limit")
    print("  ".join(cells).rstrip(), flush=True)


def close(name: str, got: mx.array, want: Any, rtol: float) -> None:
    """Ends the program where a result differs from torch's, relative to the largest element."""
    if torch is None:
        return
    a = np.array(got.astype(mx.float32))
    b = want.float().cpu().numpy()
    scale = float(np.abs(b).max()) or 1.0
    error = float(np.abs(a - b).max()) / scale
    if not error <= rtol:
        raise SystemExit(f"{name}: differs from torch by {error:.3g} of the largest element")


def pair(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> tuple[mx.array, Any]:
    """The same standard normals in both libraries."""
    host = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    mine = mx.array(host).astype(getattr(mx, dtype))
    mx.eval(mine)
    other = torch.from_numpy(host).cuda().to(getattr(torch, dtype)) if torch is not None else None
    return mine, other
