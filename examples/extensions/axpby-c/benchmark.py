"""axpby composed of operations, and as one operation in C: milliseconds of each, and their ratio."""

import statistics
import sys
import time
from collections.abc import Callable

from ultramarine_axpby_c import axpby

import ultramarine as mx

ROUNDS = 30


def composed(x: mx.array, y: mx.array, alpha: float, beta: float) -> mx.array:
    return alpha * x + beta * y


def once(
    f: Callable[[mx.array, mx.array, float, float], mx.array], x: mx.array, y: mx.array
) -> float:
    start = time.perf_counter()
    mx.eval(f(x, y, 4.0, 2.0))
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    x, y = mx.random.normal((n, n)), mx.random.normal((n, n))
    mx.eval(x, y)
    times: dict[str, list[float]] = {"composed": [], "custom": []}
    for _ in range(ROUNDS):
        # In turns, so that what else the machine does meets all alike.
        times["composed"].append(once(composed, x, y))
        times["custom"].append(once(axpby, x, y))
    middle = {name: statistics.median(all) for name, all in times.items()}
    streams = 3 * n * n * 4 / 1e6
    for name, milliseconds in middle.items():
        print(f"{name:9} {milliseconds:8.3f} ms   {streams / milliseconds:7.1f} GB/s")
    print(f"ratio     {middle['composed'] / middle['custom']:8.2f}")


if __name__ == "__main__":
    main()
