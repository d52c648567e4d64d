"""Two GPUs of one host: arrays on the second one, copies between them, memory of each, streams, DLPack with torch, and a
training step on each at once. Checks all of it, and times copies and steps beside torch's, where torch has two GPUs.

    python3 testing/gpu-checks/two_gpus.py [--quick]

Prints a line for each; the exit status is 1 if one is wrong. With one GPU it says so and ends. `--quick` leaves out the times,
as on emulated devices (ULTRAMARINE_CUDA_DEVICES=2 EMULATED_CUDA_DEVICES=2).
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import ultramarine as mx

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

CHECKS: list[Callable[[], str | None]] = []
QUICK = "--quick" in sys.argv
MIB = 1 << 20
RUNS, WARM = 12, 4


def check(f: Callable[[], str | None]) -> Callable[[], str | None]:
    CHECKS.append(f)
    return f


def gpu(i: int) -> mx.Device:
    return mx.Device(mx.gpu, i)


def both_have_torch() -> bool:
    return torch is not None and torch.cuda.is_available() and torch.cuda.device_count() > 1


def median(step: Callable[[], object]) -> float:
    """Seconds of a step, which waits for its end."""
    times = []
    for _ in range(WARM):
        step()
    for _ in range(RUNS):
        begun = time.perf_counter()
        step()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


# ---- what is computed ------------------------------------------------------------------------------------------------------


@check
def arrays_on_the_second() -> None:
    with mx.stream(gpu(1)):
        x = mx.arange(1000, dtype=mx.float32)
        y = mx.compile(lambda x: mx.sqrt(x * x + 1).sum())(x)
        w = mx.random.normal((64, 64), key=mx.random.key(3))
        z = mx.softmax(w @ w.T, axis=-1)
    assert x.device == y.device == z.device == gpu(1), (x.device, y.device)
    np.testing.assert_allclose(y.item(), np.sqrt(np.arange(1000.0) ** 2 + 1).sum(), rtol=1e-5)
    with mx.stream(gpu(0)):
        v = mx.random.normal((64, 64), key=mx.random.key(3))
        same = mx.softmax(v @ v.T, axis=-1)
    assert np.array_equal(np.array(z), np.array(same)), "two devices of one kind differ"


@check
def copies_between_them() -> None:
    for dtype in (mx.float32, mx.bfloat16, mx.uint8, mx.complex64, mx.bool_):
        x = mx.arange(5000, dtype=mx.float32, stream=gpu(0)).astype(dtype).reshape(50, 100)
        for view in (x, x[10:20], x.T, x[::-1, ::3], x[7, 7], x[:0]):
            there = mx.copy(view, gpu(1))
            back = mx.copy(there + 0 if dtype != mx.bool_ else there, gpu(0))
            assert there.device == gpu(1) and back.device == gpu(0)
            assert mx.array_equal(mx.copy(back, mx.cpu), mx.copy(view, mx.cpu)), (dtype, view.shape)
    # Each copy waits for what wrote its source, also across devices.
    x = mx.zeros((MIB // 4,), stream=gpu(0))
    for i in range(20):
        x = mx.copy(x + 1, gpu(1 - i % 2))
    assert mx.min(x).item() == mx.max(x).item() == 20


@check
def arrays_of_two_do_not_mix() -> None:
    a, b = mx.ones((3,), stream=gpu(0)) + 0, mx.ones((3,), stream=gpu(1)) + 0
    mx.eval(a, b)
    try:
        mx.eval(a + b)
    except ValueError as error:
        assert "gpu:0" in str(error) and "gpu:1" in str(error), error
    else:
        raise AssertionError("they mix")
    assert (a + mx.copy(b, gpu(0))).tolist() == [2, 2, 2]


@check
def memory_of_each() -> None:
    small = MIB // 8  # what else comes and goes
    active = lambda: [mx.get_active_memory(device=gpu(i)) for i in range(2)]
    before = active()
    held = mx.zeros((16 * MIB,), mx.uint8, stream=gpu(1)) + 1
    mx.eval(held)
    grown = [now - then for now, then in zip(active(), before, strict=True)]
    assert abs(grown[0]) < small and abs(grown[1] - 16 * MIB) < small, grown
    assert mx.get_peak_memory(device=gpu(1)) > before[1] + 16 * MIB - small
    del held
    mx.synchronize(gpu(1))
    assert abs(active()[1] - before[1]) < small


@check
def streams_of_each() -> None:
    streams = [mx.new_stream(gpu(i % 2)) for i in range(4)]
    results = []
    for i, stream in enumerate(streams):
        with mx.stream(stream):
            results.append((mx.arange(10_000) * i).sum())
    mx.async_eval(results)
    assert [r.item() for r in results] == [49_995_000 * i for i in range(4)]
    assert [r.device for r in results] == [gpu(i % 2) for i in range(4)]
    mx.synchronize(streams[1])


@check
def dlpack_with_torch() -> str | None:
    if not both_have_torch():
        return "SKIPPED: torch has no two GPUs"
    t = torch.arange(1000.0, device="cuda:1")
    x = mx.from_dlpack(t)
    assert x.device == gpu(1) and mx.sum(x * 2).item() == 999_000
    back = torch.from_dlpack(x)
    assert back.data_ptr() == t.data_ptr() and back.device == t.device
    with mx.stream(gpu(1)):
        y = mx.arange(1000, dtype=mx.float32) * 3
    there = torch.from_dlpack(y)
    assert there.device.index == 1 and float(there.sum()) == 1_498_500
    # A value that is late, on a stream of torch's on the second device.
    with torch.cuda.device(1):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            late = torch.zeros(MIB, device="cuda:1")
            torch.cuda._sleep(50_000_000)
            late += 4
            z = mx.from_dlpack(late)
    assert mx.sum(z).item() == 4 * MIB
    return None


# ---- a training step on each -----------------------------------------------------------------------------------------------


class Training:
    """A few layers, trained on one device."""

    def __init__(self, device: mx.Device, size: int, batch: int) -> None:
        self.device = device
        with mx.stream(device):
            keys = mx.random.split(mx.random.key(5), 6)
            scale = size**-0.5
            self.weights = [mx.random.normal((size, size), key=k) * scale for k in keys[:4]]
            self.x = mx.random.normal((batch, size), key=keys[4])
            self.y = mx.random.normal((batch, size), key=keys[5])
            mx.eval(self.weights, self.x, self.y)
        slopes = mx.value_and_grad(self.loss)

        def step(weights: list[mx.array]) -> tuple[mx.array, list[mx.array]]:
            loss, by = slopes(weights)
            return loss, [w - 0.01 * g for w, g in zip(weights, by, strict=True)]

        self.step = mx.compile(step)

    def loss(self, weights: list[mx.array]) -> mx.array:
        h = self.x
        for w in weights:
            h = mx.tanh(h @ w)
        return mx.mean((h - self.y) ** 2)

    def run(self, steps: int) -> list[float]:
        losses = []
        with mx.stream(self.device):
            for _ in range(steps):
                loss, self.weights = self.step(self.weights)
                mx.async_eval(loss, self.weights)
                losses.append(loss)
            return [loss.item() for loss in losses]


def together(runs: list[Callable[[], Any]]) -> list[Any]:
    """Runs in threads of their own; their results."""
    results: list[Any] = [None] * len(runs)

    def work(i: int) -> None:
        try:
            results[i] = runs[i]()
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


@check
def training_on_each_at_once() -> str | None:
    size, batch, steps = (64, 32, 3) if QUICK else (2048, 4096, 40)
    alone = [Training(gpu(i), size, batch).run(steps) for i in range(2)]
    assert alone[0] == alone[1] and alone[0][-1] < alone[0][0], alone
    trainings = [Training(gpu(i), size, batch) for i in range(2)]
    losses = together([lambda t=t: t.run(steps) for t in trainings])  # type: ignore[misc]
    assert losses[0] == losses[1] == alone[0], "a device changes what the other one computes"
    if QUICK:
        return None
    seconds = []
    for threads in (trainings[:1], trainings[1:], trainings):
        begun = time.perf_counter()
        together([lambda t=t: t.run(steps) for t in threads])  # type: ignore[misc]
        seconds.append((time.perf_counter() - begun) / steps)
    ms = [f"{1e3 * s:.3f}" for s in seconds]
    slower = seconds[2] / max(seconds[:2])
    assert slower < 1.15, f"both at once take {slower:.2f} times as long as one"
    return f"a step on gpu:0 {ms[0]} ms, on gpu:1 {ms[1]} ms, on both at once {ms[2]} ms"


# ---- times of copies ----------------------------------------------------------------------------------------------------------


def our_copies(x: mx.array, device: mx.Device, count: int) -> Callable[[], None]:
    """Copies of arrays that were not copied before: what was is not copied again. Each source is made and waited for first."""
    sources = [[x + 0 for _ in range(count)] for _ in range(RUNS + WARM)]
    mx.eval(sources)
    mx.synchronize(x.device)

    def step() -> None:
        mx.eval([mx.copy(source, device) for source in sources.pop()])

    return step


def their_copies(t: Any, device: int, count: int) -> Callable[[], None]:
    def step() -> None:
        made = [t.to(f"cuda:{device}", non_blocking=True) for _ in range(count)]
        for i in range(2):
            torch.cuda.synchronize(i)
        del made

    return step


@check
def times_of_copies() -> str | None:
    if QUICK or not both_have_torch():
        return "SKIPPED: no times here"
    lines = []
    for source, target in ((0, 1), (1, 0)):
        for name, count, n in (("256 MiB", 4, 256 * MIB), ("4 KiB", 1, 4096)):
            x = mx.zeros((n,), mx.uint8, stream=gpu(source)) + 1
            mx.eval(x)
            t = torch.ones(n, dtype=torch.uint8, device=f"cuda:{source}")
            ours = median(our_copies(x, gpu(target), count)) / count
            theirs = median(their_copies(t, target, count)) / count
            if n > MIB:
                rates = [n / s / 1e9 for s in (ours, theirs)]
                lines.append(
                    f"gpu:{source} -> gpu:{target} {name}: {rates[0]:.0f} GB/s, torch {rates[1]:.0f} GB/s"
                )
                assert rates[0] >= 0.8 * rates[1], lines[-1]
            else:
                lines.append(
                    f"gpu:{source} -> gpu:{target} {name}: {1e6 * ours:.1f} us, torch {1e6 * theirs:.1f} us"
                )
    return "; ".join(lines)


def main() -> int:
    count = mx.device_count(mx.gpu)
    if count < 2:
        print(f"SKIPPED: there are {count} GPUs here, and it takes two")
        return 0
    failed = 0
    for f in CHECKS:
        name = f.__name__.replace("_", " ")
        try:
            print(f"{name}: {f() or 'right'}", flush=True)
        except Exception:
            failed += 1
            print(f"{name}: WRONG", flush=True)
            traceback.print_exc()
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
