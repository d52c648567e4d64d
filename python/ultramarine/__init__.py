"""Ultramarine: lazy arrays on the CPU and on accelerators, with MLX's interface."""

import atexit as _atexit

from ultramarine import _core
from ultramarine import _reprlib as _reprlib
from ultramarine import backends as backends
from ultramarine import cuda as cuda
from ultramarine import distributed as distributed
from ultramarine import fast as fast
from ultramarine import fft as fft
from ultramarine import linalg as linalg
from ultramarine import metal as metal
from ultramarine import random as random
from ultramarine._array_like import ArrayLike as ArrayLike
from ultramarine._core import *
from ultramarine._errors import InterchangeDeviceError as InterchangeDeviceError
from ultramarine._errors import InterchangeError as InterchangeError

__version__ = _core.__version__
# Finish all streams before the interpreter exits. Exit handlers that are registered later run before this one.
_atexit.register(_core._shutdown)
# The C API that extensions in other languages import; see docs/native-arrays.md.
_C_API = _core._C_API

e = 2.718281828459045
euler_gamma = 0.5772156649015329
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

acos = _core.arccos
acosh = _core.arccosh
asin = _core.arcsin
asinh = _core.arcsinh
atan = _core.arctan
atan2 = _core.arctan2
atanh = _core.arctanh
bitwise_left_shift = _core.left_shift
bitwise_right_shift = _core.right_shift
concat = _core.concatenate
cumulative_prod = _core.cumprod
cumulative_sum = _core.cumsum
matrix_norm = linalg.norm
pow = _core.power


def get_include():
    """Returns the directory of the C and C++ headers, for a compiler's `-I`.

    They are those of extensions (`ultramarine/extension.h`) and of backends (`ultramarine/backend.h`).
    `ultramarine.extension` builds extensions with setuptools.

    Returns:
        str: Path of the directory.

    Example:
        >>> import os
        >>> os.path.isfile(os.path.join(mx.get_include(), "ultramarine", "extension.h"))
        True
    """
    return backends.include_dir()


def __array_namespace_info__():
    """Returns the inspection functions of the Python array API standard; see `ultramarine.array_api`.

    Returns:
        Any: Object with the functions.
    """
    from ultramarine import array_api

    return array_api.__array_namespace_info__()
