"""A soak: eight threads run random programs on the CPU and on GPUs, while calls of the backends fail, the process forks, and
results are exported to NumPy and torch. Nothing may be lost or leaked, and results are exact.

    python testing/soak/soak.py --seconds 1800 --seed 1 --backend target/backends/libultramarine-opencl.so ...

Faults come by way of the contract: `faulty.c` is a backend around another one, some of whose calls fail. On the CPU, whose
memory is the process's, they are arrays that are too large.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import gc
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from programs import Pair, program

import ultramarine as mx

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

THREADS = 8
HERE = Path(__file__).parent
HEADERS = HERE.parents[1] / "crates/ultramarine-abi/include"
KINDS = ("allocation", "upload", "kernel")
# DLPack's names of device types.
TYPES = {"cuda": "kDLCUDA", "opencl": "kDLOpenCL"}
# How long a program, a fork's child or a rest may take on a machine that does other things, too.
PATIENCE = 240.0


class Faulty:
    """A backend some of whose calls fail."""

    def __init__(self, plugin: Path, folder: Path) -> None:
        self.name = plugin.stem.split("-")[1]
        path = folder / f"libultramarine-{self.name}-faulty.so"
        cc = ["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread"]
        inner = f'-DINNER="{plugin.resolve()}"'
        named = [f'-DNAME="{self.name}"', f"-DDEVICE_TYPE={TYPES[self.name]}", inner]
        source = [str(HERE / "faulty.c"), "-o", str(path), "-ldl"]
        subprocess.run([*cc, f"-I{HEADERS}", *named, *source], check=True)
        before = mx.device_count(mx.gpu)
        mx.backends.load(path)
        self.devices = [mx.Device(mx.gpu, i) for i in range(before, mx.device_count(mx.gpu))]
        self.library = ctypes.CDLL(str(path))

    def set(self, rate: int) -> None:
        """One call in this many fails, of each kind; 0: none."""
        for kind in range(len(KINDS)):
            self.library.faulty_set(kind, rate)

    def failures(self) -> dict[str, int]:
        kinds = enumerate(KINDS)
        return {f"{self.name}: {kind}": self.library.faulty_failures(i) for i, kind in kinds}


class Soak:
    def __init__(self, backends: list[Faulty], seed: int, seconds: float) -> None:
        self.backends, self.seed = backends, seed
        self.devices = [mx.Device(mx.cpu, 0)] + [d for b in backends for d in b.devices]
        self.end = time.monotonic() + seconds
        self.counts: Counter[str] = Counter()
        self.errors: list[str] = []
        self.faults = False
        # Threads meet between rounds, where nothing of theirs is alive.
        self.gate = threading.Barrier(THREADS + 1)
        self.over = False

    def run(self) -> None:
        threads = [threading.Thread(target=self.work, args=(i,)) for i in range(THREADS)]
        for thread in threads:
            thread.start()
        rounds, active = 0, None
        while not self.over:
            rng = random.Random(self.seed * 1_000_003 + rounds)
            self.set_faults(0 if rounds % 3 == 2 else rng.choice([20, 60, 200]))
            self.meet()
            for _ in range(3):
                time.sleep(rng.uniform(0.05, 0.5))
                self.fork(rng)
            self.meet()
            self.set_faults(0)
            now = self.memory()
            # The first rounds leave what is kept for good: constants, places of mirrors.
            if rounds < 3 or active is None:
                active = now
            if now != active:
                self.fail(f"round {rounds}: leaked: {active} bytes of arrays became {now}")
            rounds += 1
            if rounds % 50 == 0:
                print(
                    f"{rounds} rounds, {self.counts['programs that were right']} programs",
                    flush=True,
                )
            self.over = bool(self.errors) or time.monotonic() > self.end
            self.meet()
        for thread in threads:
            thread.join()
        self.counts["rounds"] = rounds

    def meet(self) -> None:
        # A thread that hangs shows where all of them are.
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        self.gate.wait()
        faulthandler.cancel_dump_traceback_later()

    def set_faults(self, rate: int) -> None:
        self.faults = rate > 0
        for backend in self.backends:
            backend.set(rate)

    def fail(self, text: str) -> None:
        self.errors.append(text)
        print(f"FAILED: {text}", flush=True)

    def memory(self) -> list[int]:
        """Bytes of arrays on each device, when nothing is in flight."""
        gc.collect()
        for device in self.devices:
            try:
                mx.synchronize(device)
            except RuntimeError:
                self.counts["errors kept by a stream"] += 1
        gc.collect()
        mx.clear_cache()
        return [mx.get_active_memory(device) for device in self.devices]

    def work(self, thread: int) -> None:
        step = 0
        while True:
            self.gate.wait()
            try:
                for _ in range(4):
                    seed = (self.seed * THREADS + thread) * 1_000_003 + step
                    step += 1
                    self.one(seed)
            except BaseException as error:
                self.fail(f"program {seed}: {type(error).__name__}: {error}")
            self.gate.wait()
            self.gate.wait()
            if self.over:
                return

    def one(self, seed: int) -> None:
        """A program, run until it is right: what failed once has to work when it is asked for anew."""
        rng = random.Random(seed)
        for _ in range(1000):
            try:
                self.check(rng, program(seed, self.devices))
            except (RuntimeError, MemoryError) as error:
                if not self.faults or "injected failure" not in str(error):
                    raise
                self.counts["programs that failed"] += 1
            else:
                self.counts["programs that were right"] += 1
                return
        raise AssertionError("fails a thousand times")

    def check(self, rng: random.Random, pairs: list[Pair]) -> None:
        picks = rng.sample(pairs, min(len(pairs), 4))
        way = rng.randrange(4)
        if way == 0:
            mx.eval([p.ours for p in picks])
        elif way == 1:
            mx.async_eval([p.ours for p in picks])
        elif way == 2:
            self.too_large(picks[0])
        for pair in picks:
            self.same(rng, pair)

    def same(self, rng: random.Random, pair: Pair) -> None:
        shown = np.array(pair.ours)
        np.testing.assert_array_equal(shown, pair.wanted)
        on_host = pair.ours.to_device(mx.Device(mx.cpu, 0))
        view = np.asarray(on_host)
        if torch is not None and rng.random() < 0.5:
            tensor = torch.from_dlpack(on_host)
            del on_host
            # Its memory is the consumer's as long as that has it, whatever else is computed.
            np.testing.assert_array_equal(tensor.numpy(), pair.wanted)
            tensor += 1
            np.testing.assert_array_equal(tensor.numpy(), pair.wanted + 1)
            tensor -= 1
            self.counts["exports to torch"] += 1
        np.testing.assert_array_equal(view, pair.wanted)
        self.counts["exports to numpy"] += 1

    def too_large(self, pair: Pair) -> None:
        """An allocation on the CPU that fails, beside work that does not."""
        huge = mx.zeros((1 << 45,), stream=mx.Device(mx.cpu, 0))
        try:
            mx.eval(huge + 1)
        except (MemoryError, RuntimeError, ValueError):
            self.counts["arrays that were too large"] += 1
        else:
            raise AssertionError("an array of 2 ** 47 bytes was computed")

    def fork(self, rng: random.Random) -> None:
        """A child computes on the CPU while the threads of its parent work."""
        seed = rng.getrandbits(32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads beside fork: the point
            pid = os.fork()
        if pid == 0:
            status = 3
            try:
                cpu = self.devices[:1]
                for pair in program(seed, cpu):
                    np.testing.assert_array_equal(np.array(pair.ours), pair.wanted)
                status = 0
            finally:
                os._exit(status)
        if (code := ended(pid)) != 0:
            self.fail(f"a child ended with {code}")
        self.counts["forks"] += 1


def ended(pid: int) -> int:
    """The exit code of a child; one that hangs is ended."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGABRT)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backend", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        backends = [Faulty(plugin, Path(folder)) for plugin in arguments.backend]
        soak = Soak(backends, arguments.seed, arguments.seconds)
        print(f"seed {arguments.seed}, on {soak.devices}", flush=True)
        soak.run()
    for backend in backends:
        soak.counts.update(backend.failures())
    counts: dict[str, Any] = dict(sorted(soak.counts.items()))
    print(", ".join(f"{name}: {n}" for name, n in counts.items()), flush=True)
    right = not soak.errors and soak.counts["programs that were right"] > 0
    print(f"{1 if right else 0} passed, {0 if right else 1} failed")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
