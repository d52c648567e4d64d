"""Throughput of several threads with a stream each, and of several processes at once, beside one.

    python -m bench.cpu.concurrent [--threads 1,2,4,8] [--processes 2] [--figures FILE] [NAME ...]

A thread repeats one workload of middling size, and its loops may use all cores, as ever; `1 alone` is one thread with one core.
What several threads do together, over `1 alone`, says how many cores they keep busy. Each cell is a process of its own. Words
pick workloads by part of the name.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import record
from bench.cpu.data import normal
from bench.table import number, show

REPEATS = 3  # of each cell, of which the best counts
THREADS = "ULTRAMARINE_NUM_THREADS"


def chain(mx: Any, x: Any) -> Any:
    return mx.tanh(x * 2.0 + 1.0) * mx.exp(-x * x) + x


# Functions of the library and an array, and the array's shape.
WORKLOADS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "elementwise chain, 64k": (chain, (1 << 16,)),
    "elementwise chain, 1M": (chain, (1 << 20,)),
    "softmax, 256 x 512": (lambda mx, x: mx.softmax(x, axis=-1), (256, 512)),
    "product, 256 x 256": (lambda _, x: x @ x, (256, 256)),
    "sort, 64 x 1024": (lambda mx, x: mx.sort(x, axis=-1), (64, 1024)),
}


def measure(name: str, count: int, seconds: float) -> float:
    """Runs per second of `count` threads together."""
    import ultramarine as mx

    function, shape = WORKLOADS[name]
    done = [0] * count
    start = threading.Barrier(count + 1)
    stop = threading.Event()

    def work(i: int) -> None:
        with mx.stream(mx.new_stream(mx.cpu)):
            x = mx.array(normal(*shape, seed=i))
            for _ in range(3):
                mx.eval(function(mx, x))
            start.wait()
            while not stop.is_set():
                mx.eval(function(mx, x))
                done[i] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    # Processes that are measured together begin together.
    print("ready", flush=True)
    sys.stdin.readline()
    start.wait()
    begin, before = time.perf_counter(), sum(done)
    time.sleep(seconds)
    after, end = sum(done), time.perf_counter()
    stop.set()
    for thread in threads:
        thread.join()
    return (after - before) / (end - begin)


def begin(name: str, count: int, seconds: float, environment: dict[str, str]) -> Any:
    """A process that measures."""
    command = [sys.executable, "-m", "bench.cpu.concurrent", "--measure", str(count)]
    command += ["--seconds", str(seconds), name]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, env=os.environ | environment)


def finish(processes: list[Any]) -> float:
    """The sum of what processes measured at the same time."""
    rates = []
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write(b"\n")
        process.stdin.flush()
    for process in processes:
        output, _ = process.communicate()
        if process.returncode:
            sys.exit(f"{process.args} failed")
        rates.append(json.loads(output))
    return sum(rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="1,2,4,8", help="numbers, separated by commas")
    parser.add_argument("--processes", type=int, default=2, help="at once, of a thread each")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--figures", type=Path, help="file for the figures")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.measure:
        print(measure(args.names[0], args.measure, args.seconds))
        return
    words = [word.lower() for word in args.names]
    names = [n for n in WORKLOADS if not words or any(word in n.lower() for word in words)]
    if not names:
        sys.exit(f"workloads: {', '.join(WORKLOADS)}")
    counts = [int(word) for word in args.threads.split(",")]

    def best(name: str, count: int, processes: int = 1, **environment: str) -> float:
        return max(
            finish([begin(name, count, args.seconds, environment) for _ in range(processes)])
            for _ in range(REPEATS)
        )

    cells = ["1 alone", *(f"{n} threads" for n in counts), f"{args.processes} processes"]
    lines = [["runs per second", *cells, "over 1", "over 1 alone"]]
    figures = []
    for name in names:
        alone = best(name, 1, **{THREADS: "1"})
        rates = [best(name, count) for count in counts]
        together = best(name, 1, args.processes)
        over, over_alone = (
            " ".join(f"{rate / one:.1f}" for rate in [*rates, together])
            for one in (rates[0], alone)
        )
        lines.append([name, *map(number, [alone, *rates, together]), over, over_alone])
        figures += [
            record.Figure("concurrent", f"{name}, {cell}", "ultramarine", rate, "steps/s")
            for cell, rate in zip(cells, [alone, *rates, together], strict=True)
        ]
    print(f"{len(os.sched_getaffinity(0))} processors")
    show(lines, left=(0,))
    if args.figures:
        record.save(args.figures, figures)


if __name__ == "__main__":
    main()
