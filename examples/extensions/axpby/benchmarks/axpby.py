"""How long composed and custom take, and their ratio.

    python benchmarks/axpby.py [--size 4096] [--runs 40] [--dtype float32]

Runs alternate, so that a change of the machine's pace meets all of them; medians count. A result's memory is
let go before the next one is made, as in a training loop. What memory gives is told by `cargo xtask bench axpby`.
"""

import argparse
import statistics
import time

from ultramarine_axpby import axpby

import ultramarine as um


def seconds(function):
    """How long an evaluation takes."""
    start = time.perf_counter()
    um.eval(function())
    return time.perf_counter() - start


def measure(functions, runs):
    """Median seconds of each, by name: functions that run once and say how long that took."""
    times = {name: [] for name in functions}
    for run in range(runs + 3):
        for name, function in functions.items():
            took = function()
            if run >= 3:
                times[name].append(took)
    return {name: statistics.median(each) for name, each in times.items()}


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--device", default="cpu", choices=["cpu", "gpu"])
    given = parser.parse_args()

    um.set_default_device(getattr(um, given.device))
    dtype = getattr(um, given.dtype)
    x = um.random.normal((given.size, given.size)).astype(dtype)
    y = um.random.normal((given.size, given.size)).astype(dtype)
    um.eval(x, y)
    alpha, beta = 4.0, 2.0
    functions = {
        "composed": lambda: seconds(lambda: alpha * x + beta * y),
        "custom": lambda: seconds(lambda: axpby(x, y, alpha, beta)),
    }
    times = measure(functions, given.runs)

    print(f"{given.size} x {given.size} of {given.dtype}, median of {given.runs} runs")
    for name, median in times.items():
        print(f"{name:9} {1e3 * median:8.3f} ms  {3 * x.nbytes / median / 1e9:6.2f} GB/s")
    print(f"composed / custom: {times['composed'] / times['custom']:.2f}")


if __name__ == "__main__":
    main()
