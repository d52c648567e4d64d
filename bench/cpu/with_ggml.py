"""Products with matrices of 4 bits in llama.cpp: the functions of its library ggml, which the wheel xllamacpp has inside."""

from __future__ import annotations

import ctypes
from ctypes import c_bool, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import ClassVar

import numpy as np
import xllamacpp

from bench.cpu.data import CORES, QUANTIZED, SETS, TOKENS, Thunk, in_turn, normal

# Codes of ggml's types: float32, and 4 bits with scales and minima of 6 bits.
F32, Q4_K = 0, 12
# Memory for the tensors of a product, in bytes, at least what they take.
ROOM = 64 << 20


class InitParams(ctypes.Structure):
    _fields_ = (("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool))


class Ggml:
    """The functions that are called, by their names without `ggml_`."""

    FUNCTIONS: ClassVar[dict[str, tuple[object, tuple[object, ...]]]] = {
        "cpu_init": (None, ()),
        "init": (c_void_p, (InitParams,)),
        "new_tensor_2d": (c_void_p, (c_void_p, c_int, c_int64, c_int64)),
        "mul_mat": (c_void_p, (c_void_p, c_void_p, c_void_p)),
        "new_graph": (c_void_p, (c_void_p,)),
        "build_forward_expand": (None, (c_void_p, c_void_p)),
        "graph_compute_with_ctx": (c_int, (c_void_p, c_void_p, c_int)),
        "get_data": (c_void_p, (c_void_p,)),
        "quantize_chunk": (
            c_size_t,
            (c_int, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p),
        ),
    }

    def __init__(self) -> None:
        (library,) = Path(xllamacpp.__file__).parent.glob("*.so")
        functions = ctypes.CDLL(str(library))
        for name, (result, arguments) in self.FUNCTIONS.items():
            function = getattr(functions, f"ggml_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self.cpu_init()

    def product(self, weights: np.ndarray, x: np.ndarray) -> Thunk:
        """Computes x times the transposed weights, which are rounded to 4 bits."""
        (n, k), (m, _) = weights.shape, x.shape
        context = self.init(InitParams(ROOM, None, False))
        left = self.new_tensor_2d(context, Q4_K, k, n)
        right = self.new_tensor_2d(context, F32, k, m)
        self.quantize_chunk(Q4_K, weights.ctypes.data, self.get_data(left), 0, n, k, None)
        ctypes.memmove(self.get_data(right), x.ctypes.data, x.nbytes)
        out = self.mul_mat(context, left, right)
        graph = self.new_graph(context)
        self.build_forward_expand(graph, out)
        # A warm-up that checks: 4 bits are right to some per cent.
        self.graph_compute_with_ctx(context, graph, CORES)
        at = ctypes.cast(self.get_data(out), ctypes.POINTER(ctypes.c_float))
        got, want = np.ctypeslib.as_array(at, (m, n)), x @ weights.T
        assert np.linalg.norm(got - want) < 0.15 * np.linalg.norm(want), "a wrong product"
        return lambda: self.graph_compute_with_ctx(context, graph, CORES)


def workloads() -> dict[str, Thunk]:
    ggml = Ggml()

    def quantized(rows: int) -> Thunk:
        k, n = QUANTIZED
        x = normal(rows, k)
        return in_turn([ggml.product(normal(n, k, seed=s), x) for s in range(SETS)])

    return {
        "4 bits, 1 row": lambda: quantized(1),
        "4 bits, 512 rows": lambda: quantized(TOKENS),
    }
