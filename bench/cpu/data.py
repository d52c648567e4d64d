"""The inputs of the workloads, the same for every library, and how a workload is timed."""

import itertools
import os
import time
from collections.abc import Callable

import numpy as np

Thunk = Callable[[], object]

N = 4096
ATTENTION = (8, 1024, 64)
ROWS = (16, 65536)  # what is sorted and transformed, row by row
TOP = 64
LONG = 1 << 24
CONV = ((4, 56, 56, 64), (64, 3, 3, 64))  # images, and weights (outputs first), channels last
CHANNELS = ((8, 56, 56, 96), (96, 7, 7, 1))  # the same, each channel by itself
MATRIX = (512, 512)  # of decompositions
EMBEDDING = (50000, 512, 8192)  # rows of the table, their length, how many are taken
CACHE = (1, 8, 4096, 128)  # of keys: batch, heads, positions, channels
MLP = (256, 784, 256, 10)
DIGITS = (64, 64, 128, 10)
QUANTIZED = (2048, 8192)  # columns and rows of a matrix of few bits, the second factor transposed
TOKENS = 512  # rows of x that meet it
SETS = 8  # matrices that are taken in turn, so that no cache holds them
CORES = os.cpu_count() or 1
LAYER = (8, 64, 4)  # of a transformer: tokens, channels, heads


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Seeded standard normals, float32."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def in_turn(runs: list[Thunk]) -> Thunk:
    """Runs the next one at each call."""
    turns = itertools.cycle(runs)
    return lambda: next(turns)()


def heads(count: int) -> list[np.ndarray]:
    """Operands of attention, one batch."""
    return [normal(1, *ATTENTION, seed=seed) for seed in range(count)]


def embedding_data() -> tuple[np.ndarray, np.ndarray]:
    """A table and the rows that are taken."""
    rows, length, taken = EMBEDDING
    return normal(rows, length), np.random.default_rng(4).integers(0, rows, taken).astype(np.int32)


def cache_data() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """A cache, the row that each step of a decoder writes, and where 64 steps do."""
    batch, heads, _, channels = CACHE
    places = [np.array([i], np.int64) for i in range(1000, 1064)]
    return np.zeros(CACHE, np.float32), normal(batch, heads, 1, channels), places


def layer_data() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Tokens and weights of a transformer's layer."""
    tokens, channels, _ = LAYER
    shapes = dict.fromkeys("qkvo", (channels, channels))
    shapes |= {"up": (channels, 4 * channels), "down": (4 * channels, channels)}
    weights = {n: normal(*shape, seed=i) * 0.1 for i, (n, shape) in enumerate(shapes.items())}
    return normal(tokens, channels), weights


def mlp_data(
    sizes: tuple[int, int, int, int] = MLP,
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Parameters, a batch and its labels of the training step."""
    batch, inputs, hidden, classes = sizes
    params = {
        "w1": normal(inputs, hidden, seed=1) * 0.05,
        "b1": np.zeros(hidden, np.float32),
        "w2": normal(hidden, classes, seed=2) * 0.05,
        "b2": np.zeros(classes, np.float32),
    }
    labels = np.random.default_rng(3).integers(0, classes, batch).astype(np.int32)
    return params, normal(batch, inputs), labels


def measure(work: Thunk, seconds: float) -> tuple[float, float, int]:
    """Best and median time of a run in milliseconds after a warm-up, and the number of runs in about `seconds`."""
    started = time.perf_counter()
    for _ in range(3):
        work()
    each = (time.perf_counter() - started) / 3
    times = []
    for _ in range(max(5, min(300, int(seconds / max(each, 1e-6))))):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times) * 1e3, float(np.median(times)) * 1e3, len(times)


def symmetric() -> np.ndarray:
    """A matrix for eigenvalues."""
    a = normal(*MATRIX)
    return a + a.T
