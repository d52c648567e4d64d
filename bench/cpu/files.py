"""Seconds and memory of loading a file of weights, beside mlx and safetensors with torch.

    python -m bench.cpu.files [--megabytes 1024] [--device gpu] [--folder DIR]

The file is written once. Each library loads it in a process of its own, first with the file in the system's cache, then, where
the system lets go of it, without. All arrays are evaluated. `copied` loads with torch and copies each tensor: `load_file` itself
maps the file, and reads nothing before the elements are used. Memory is the most that the process took beyond what it had
before, without pages of files; for a GPU, the most of the host's.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.table import number, show

REPEATS = 3  # of each cell, of which the fastest counts


def ultramarine(path: str, device: str) -> Callable[[], Any]:
    import ultramarine as mx

    where = mx.gpu if device == "gpu" else mx.cpu
    mx.eval(mx.zeros(1, stream=where))

    def load() -> Any:
        arrays = mx.load(path, stream=where)
        mx.eval(arrays)
        mx.synchronize(mx.default_stream(where))
        return arrays

    return load


def mlx(path: str, _: str) -> Callable[[], Any]:
    import mlx.core as mx

    def load() -> Any:
        arrays = mx.load(path)
        mx.eval(arrays)
        return arrays

    return load


def torch(path: str, device: str) -> Callable[[], Any]:
    from safetensors.torch import load_file

    device = "cuda" if device == "gpu" else device

    def load() -> Any:
        tensors = load_file(path, device=device)
        if device == "cuda":
            import torch

            torch.cuda.synchronize()
        return tensors

    return load


def copied(path: str, device: str) -> Callable[[], Any]:
    load = torch(path, device)
    return lambda: {name: tensor.clone() for name, tensor in load().items()}


LIBRARIES = {
    "ultramarine": ultramarine,
    "mlx": mlx,
    "safetensors, torch": torch,
    "... copied": copied,
}


def taken() -> int:
    """Bytes of the process's own memory, pages of files left out."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) << 10


def measure(library: str, path: str, device: str, cold: bool) -> None:
    load = LIBRARIES[library](path, device)
    if cold:
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before, most, done = taken(), 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.002):
            most = max(most, taken())

    thread = threading.Thread(target=watch)
    thread.start()
    begin = time.perf_counter()
    arrays = load()
    seconds = time.perf_counter() - begin
    most = max(most, taken())
    done.set()
    thread.join()
    print(seconds, most - before, len(arrays))


def written(folder: str, megabytes: int) -> str:
    import ultramarine as mx

    path = f"{folder}/{megabytes}.safetensors"
    if not Path(path).exists():
        # As a model's: matrices of a few sizes, and vectors.
        sizes, names = [(4096, 1024), (1024, 1024), (1024,)], {}
        left, i = megabytes << 20, 0
        while left > 0:
            shape = sizes[i % 3]
            names[f"layers.{i}.weight"] = mx.random.normal(shape).astype(mx.bfloat16)
            left -= names[f"layers.{i}.weight"].nbytes
            i += 1
        mx.save_safetensors(path, names)
    return path


def figure(library: str, path: str, device: str, cold: bool) -> list[str]:
    command = [sys.executable, "-m", "bench.cpu.files", "--measure", library, "--path", path]
    command += ["--device", device, *(["--cold"] if cold else [])]
    runs = []
    for _ in range(REPEATS):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            return ["-", "-"]
        seconds, memory = run.stdout.split()[:2]
        runs.append((float(seconds), int(memory) / (1 << 20)))
    return [number(min(run[0] for run in runs)), number(min(run[1] for run in runs))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--device", default="cpu", choices=["cpu", "gpu"])
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    parser.add_argument("--cold", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options.measure, options.path, options.device, options.cold)
    path = written(options.folder, options.megabytes)
    rows = [["library", "cached: s", "MiB", "from disk: s", "MiB"]]
    for library in LIBRARIES:
        warm, cold = (figure(library, path, options.device, cold) for cold in (False, True))
        rows.append([library, *warm, *cold])
    show(rows)
    return None


if __name__ == "__main__":
    main()
