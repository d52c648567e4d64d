"""The workloads in NumPy, where it has what they need."""

import numpy as np

from bench.cpu.data import (
    ATTENTION,
    LONG,
    MATRIX,
    ROWS,
    TOP,
    N,
    Thunk,
    cache_data,
    embedding_data,
    normal,
    symmetric,
)


def workloads() -> dict[str, "Thunk"]:
    def over(make, *arrays):
        return lambda: make(*arrays)

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(np.float32(0.7978845608) * (x + 0.044715 * x * x * x)))

    def softmax(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def layer_norm(x, w, b):
        centred = x - x.mean(axis=-1, keepdims=True)
        var = (centred * centred).mean(axis=-1, keepdims=True)
        return centred / np.sqrt(var + 1e-5) * w + b

    def attention(q, k, v):
        return softmax((q * ATTENTION[-1] ** -0.5) @ k.swapaxes(-1, -2)) @ v

    def tiny():
        x0 = np.array([1, 2, 3, 4], np.float32)
        y = np.array([0.5, 0.6, 0.7, 0.8], np.float32)

        def run():
            x = x0
            for _ in range(500):
                x = x + y
                x = x * y

        return run

    def embedding():
        table, rows = embedding_data()
        return lambda: np.take(table, rows, axis=0)

    generator = np.random.default_rng(0)

    def cache():
        cache, row, places = cache_data()

        def run():
            for (at,) in places:
                cache[:, :, at : at + 1] = row

        return run

    return {
        "4x + 2y": lambda: over(lambda x, y: 4 * x + 2 * y, normal(N, N), normal(N, N, seed=1)),
        "tanh-gelu": lambda: over(gelu, normal(N, N)),
        "exp": lambda: over(np.exp, normal(N, N)),
        "x + row": lambda: over(np.add, normal(N, N), normal(N)),
        "transpose": lambda: over(lambda x: np.ascontiguousarray(x.T), normal(N, N)),
        "sum rows": lambda: over(lambda x: x.sum(axis=1), normal(N, N)),
        "sum columns": lambda: over(lambda x: x.sum(axis=0), normal(N, N)),
        "softmax": lambda: over(softmax, normal(N, N)),
        "layer norm": lambda: over(layer_norm, normal(N, N), normal(N), normal(N)),
        "matmul 2048": lambda: over(np.matmul, normal(2048, 2048), normal(2048, 2048, seed=1)),
        "matmul 1024 A^T": lambda: over(
            lambda a, b: a.T @ b, normal(1024, 1024), normal(1024, 1024, seed=1)
        ),
        "matrix-vector": lambda: over(np.matmul, normal(N, N), normal(N)),
        "batched matmul": lambda: over(np.matmul, normal(64, 128, 128), normal(64, 128, 128)),
        "attention": lambda: over(attention, *(normal(*ATTENTION, seed=s) for s in range(3))),
        "sort": lambda: over(lambda x: np.sort(x, axis=-1), normal(*ROWS)),
        "sort 16M": lambda: over(np.sort, normal(LONG)),
        "sort columns": lambda: over(lambda x: np.sort(x, axis=0), normal(N, N)),
        "eigvalsh": lambda: over(np.linalg.eigvalsh, symmetric()),
        "eigh": lambda: over(np.linalg.eigh, symmetric()),
        "singular values": lambda: over(
            lambda a: np.linalg.svd(a, compute_uv=False), normal(*MATRIX)
        ),
        "svd": lambda: over(np.linalg.svd, normal(*MATRIX)),
        "argsort": lambda: over(lambda x: np.argsort(x, axis=-1), normal(*ROWS)),
        "top 64": lambda: over(lambda x: np.sort(np.partition(x, -TOP)[:, -TOP:]), normal(*ROWS)),
        "partition": lambda: over(lambda x: np.partition(x, TOP), normal(*ROWS)),
        "argpartition": lambda: over(lambda x: np.argpartition(x, TOP), normal(*ROWS)),
        "embedding": embedding,
        "64 cache writes": cache,
        "cumsum rows": lambda: over(lambda x: np.cumsum(x, axis=1), normal(N, N)),
        "cumsum columns": lambda: over(lambda x: np.cumsum(x, axis=0), normal(N, N)),
        "cumsum 16M": lambda: over(np.cumsum, normal(LONG)),
        "rfft": lambda: over(np.fft.rfft, normal(*ROWS)),
        "normals": lambda: lambda: generator.standard_normal((N, N), dtype=np.float32),
        "1000 tiny ops": tiny,
    }
