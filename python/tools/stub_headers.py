"""Imports and declarations at the head of each stub of the package."""

from __future__ import annotations

PACKAGE = '''\
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from types import ModuleType
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from ultramarine import backends as backends
from ultramarine import cuda as cuda
from ultramarine import distributed as distributed
from ultramarine import fast as fast
from ultramarine import fft as fft
from ultramarine import linalg as linalg
from ultramarine import metal as metal
from ultramarine import random as random

_P = ParamSpec("_P")
_R = TypeVar("_R")

class SupportsArray(Protocol):
    """Object that converts itself to a NumPy array, such as a pandas Series."""

    def __array__(self) -> Any: ...

class SupportsDLPack(Protocol):
    """Object that exports its memory, such as arrays of NumPy, PyTorch and JAX."""

    def __dlpack__(self) -> Any: ...

class SupportsBuffer(Protocol):
    """Object with the buffer protocol, such as bytes, memoryview and array.array."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

class SupportsMlxArray(Protocol):
    """Object that returns an array itself."""

    def __mlx_array__(self) -> array: ...

scalar: TypeAlias = int | float | bool | complex
Foreign: TypeAlias = SupportsDLPack | SupportsBuffer | SupportsArray | SupportsMlxArray
ArrayLike: TypeAlias = array | scalar | Foreign
StreamOrDevice: TypeAlias = Stream | ThreadLocalStream | Device | DeviceType | None
_Path: TypeAlias = str | PathLike[str] | Any

__version__: str
'''

RANDOM = """\
from collections.abc import Sequence

from ultramarine import ArrayLike, Device, DeviceType, Dtype, StreamOrDevice, array

class _RandomState:
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> array: ...
    def __setitem__(self, index: int, key: array) -> None: ...

state: _RandomState
"""

FFT = """\
from collections.abc import Sequence
from typing import Literal

from ultramarine import StreamOrDevice, array
"""

LINALG = """\
from collections.abc import Sequence
from typing import Any, Literal

from ultramarine import StreamOrDevice, array
"""

FAST = """\
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ultramarine import ArrayLike, Dtype, StreamOrDevice, array
"""

CUDA = ""

DISTRIBUTED = """\
from collections.abc import Callable, Sequence
from typing import Any

from ultramarine import ArrayLike, Dtype, StreamOrDevice, array
"""

METAL = """\
from typing import Any
"""
