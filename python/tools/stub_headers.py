"""How each stub of the package begins."""

from __future__ import annotations

HEADER = '''\
"""Ultramarine: lazy arrays on the CPU and on accelerators, with MLX's interface."""

# Made by python/tools/make_stubs.py: change the tables beside it.

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from types import ModuleType
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from ultramarine import backends as backends
from ultramarine import cuda as cuda
from ultramarine import fast as fast
from ultramarine import fft as fft
from ultramarine import linalg as linalg
from ultramarine import metal as metal
from ultramarine import random as random

_P = ParamSpec("_P")
_R = TypeVar("_R")

class SupportsArray(Protocol):
    """What can be made an array, such as a pandas Series."""

    def __array__(self) -> Any: ...

class SupportsDLPack(Protocol):
    """What gives its memory, such as arrays of NumPy, PyTorch and JAX."""

    def __dlpack__(self) -> Any: ...

class SupportsBuffer(Protocol):
    """What lends its memory, such as bytes, memoryview and array.array."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

class SupportsMlxArray(Protocol):
    """What knows an array of its own."""

    def __mlx_array__(self) -> array: ...

scalar: TypeAlias = int | float | bool | complex
Foreign: TypeAlias = SupportsDLPack | SupportsBuffer | SupportsArray | SupportsMlxArray
ArrayLike: TypeAlias = array | scalar | Foreign
StreamOrDevice: TypeAlias = Stream | ThreadLocalStream | Device | DeviceType | None
_Path: TypeAlias = str | PathLike[str] | Any

__version__: str

def __array_namespace_info__() -> Any:
    """What the arrays can do, as the Python array API standard tells it."""
'''

RANDOM_HEADER = '''\
"""Random numbers. Without a key they come from a global state; see `seed`."""

# Made by python/tools/make_stubs.py: change the tables beside it.

from collections.abc import Sequence

from ultramarine import ArrayLike, Dtype, StreamOrDevice, array

class _RandomState:
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> array: ...
    def __setitem__(self, index: int, key: array) -> None: ...

state: _RandomState
'''

FFT_HEADER = '''\
"""Discrete Fourier transforms. They are computed in float32 and complex64, whatever the dtype of
their operands."""

# Made by python/tools/make_stubs.py: change the tables beside it.

from collections.abc import Sequence
from typing import Literal

from ultramarine import StreamOrDevice, array
'''

LINALG_HEADER = '''\
"""Linear algebra. Matrices stand in the last two axes, and leading axes are a batch."""

# Made by python/tools/make_stubs.py: change the tables beside it.

from collections.abc import Sequence
from typing import Any, Literal

from ultramarine import StreamOrDevice, array
'''

FAST_HEADER = '''\
"""Kernels in source form: operations of your own on devices, without building anything; and parts of layers."""

# Made by python/tools/make_stubs.py: change the tables beside it.

from collections.abc import Mapping, Sequence

from ultramarine import ArrayLike, Dtype, StreamOrDevice, array
'''

CUDA_HEADER = '''\
"""Whether there is CUDA."""

# Made by python/tools/make_stubs.py: change the tables beside it.
'''

METAL_HEADER = '''\
"""Whether there is Metal, and old names of functions that are in the package itself."""

# Made by python/tools/make_stubs.py: change the tables beside it.

from typing import Any
'''

# Functions of one or two arrays take numbers and what can be made an array, too.
