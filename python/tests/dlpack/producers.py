"""Producers that tests ask for tensors, and names of their capsules."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

import ultramarine as mx

Capsule = Any
name_of = ctypes.pythonapi.PyCapsule_GetName
name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
is_valid = ctypes.pythonapi.PyCapsule_IsValid
is_valid.restype, is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]

LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"


def array() -> mx.array:
    x = mx.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mx.eval(x)
    return x


class Producer:
    """A producer that notes what it is asked. (A mock: numpy answers for it.)"""

    def __init__(self, source: Any = None) -> None:
        self.source = np.arange(4.0, dtype=np.float32) if source is None else source
        self.asked: list[dict[str, Any]] = []

    def __dlpack__(self, **words: Any) -> Capsule:
        self.asked.append(words)
        return self.source.__dlpack__(**words)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.source.__dlpack_device__()


class Old:
    """As producers were before DLPack 1.0: no arguments but the stream. (A mock.)"""

    def __init__(self) -> None:
        self.source = np.arange(4.0, dtype=np.float32)
        self.asked = 0

    def __dlpack__(self, stream: Any = None) -> Capsule:
        self.asked += 1
        return self.source.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Answer:
    """A producer whose answer is given. (A mock.)"""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer
        self.asked = 0

    def __dlpack__(self, **words: Any) -> Any:
        self.asked += 1
        return self.answer()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def raising(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer
