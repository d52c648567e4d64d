"""Objects of other kinds that tests give to the library: each counts what it was asked."""

from typing import Any

import numpy as np

import ultramarine as mx

CPU = (1, 0)


class Asked:
    """Notes the protocols that were used."""

    def __init__(self) -> None:
        self.asked: list[str] = []


class ByDLPack(Asked):
    """The numbers 1, 1 by DLPack."""

    def __dlpack__(self, **keywords: Any) -> Any:
        self.asked.append("dlpack")
        return np.array([1, 1]).__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


class ByArray(Asked):
    """The numbers 2, 2 by `__array__`."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self.asked.append("array")
        return np.array([2, 2], dtype)


class ByMlx(Asked):
    """The numbers 3, 3 by `__mlx_array__`."""

    def __mlx_array__(self) -> mx.array:
        self.asked.append("mlx")
        return mx.array([3, 3])


class ByItems(Asked):
    """The numbers 4, 4 as a sequence."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> int:
        self.asked.append("items")
        if not 0 <= i < 2:
            raise IndexError(i)
        return 4


class Refuses:
    """A producer that cannot give its memory."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __dlpack__(self, **keywords: Any) -> Any:
        raise self.error

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


class Gives:
    """A producer that gives this."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.given

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


class ArrayIs:
    """Its `__array__` gives this; of `self`, itself."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self if self.given is Ellipsis else self.given


def address(x: Any) -> int:
    """Where the first element is, of an array of ours or of NumPy."""
    if isinstance(x, mx.array):
        mx.eval(x)
        x = np.asarray(x)
    return int(x.__array_interface__["data"][0])


def shares(x: mx.array, y: Any) -> bool:
    """Whether both begin at one place."""
    return address(x) == address(y)
