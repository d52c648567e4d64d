"""The inputs of the workloads, the same for every library, and how a workload is timed."""

import time
from collections.abc import Callable

import numpy as np

Thunk = Callable[[], object]

N = 4096
ATTENTION = (8, 1024, 64)
MLP = (256, 784, 256, 10)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Seeded standard normals, float32."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def mlp_data() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Parameters, a batch and its labels of the training step."""
    batch, inputs, hidden, classes = MLP
    params = {
        "w1": normal(inputs, hidden, seed=1) * 0.05,
        "b1": np.zeros(hidden, np.float32),
        "w2": normal(hidden, classes, seed=2) * 0.05,
        "b2": np.zeros(classes, np.float32),
    }
    labels = np.random.default_rng(3).integers(0, classes, batch).astype(np.int32)
    return params, normal(batch, inputs), labels


def measure(work: Thunk, seconds: float) -> tuple[float, float]:
    """Best and median time of a run in milliseconds, after a warm-up, over about `seconds`."""
    started = time.perf_counter()
    for _ in range(3):
        work()
    each = (time.perf_counter() - started) / 3
    times = []
    for _ in range(max(5, min(300, int(seconds / max(each, 1e-6))))):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times) * 1e3, float(np.median(times)) * 1e3
