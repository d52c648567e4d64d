"""Writes the type stubs of the package from the package itself.

Names, arguments and defaults come from the built module, types from the tables here, so a
stub cannot name what is not there. Run it with the package importable:

    PYTHONPATH=python python python/tools/make_stubs.py
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from stub_of_backends import BACKENDS

import ultramarine as mx

PACKAGE = Path(mx.__file__).parent

HEADER = '''\
"""Ultramarine: lazy arrays on the CPU and on accelerators, with MLX's interface."""

# Made by python/tools/make_stubs.py: change the tables there.

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from types import ModuleType
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from ultramarine import backends as backends
from ultramarine import cuda as cuda
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

# Made by python/tools/make_stubs.py: change the tables there.

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

# Made by python/tools/make_stubs.py: change the tables there.

from collections.abc import Sequence
from typing import Literal

from ultramarine import StreamOrDevice, array
'''

LINALG_HEADER = '''\
"""Linear algebra. Matrices stand in the last two axes, and leading axes are a batch."""

# Made by python/tools/make_stubs.py: change the tables there.

from collections.abc import Sequence
from typing import Any, Literal

from ultramarine import StreamOrDevice, array
'''

AXES = "int | Sequence[int] | None"

# By the argument's name; "function.argument" goes first.
ARGUMENTS = {
    "stream": "StreamOrDevice",
    "axis": "int | None",
    "keepdims": "bool",
    "dtype": "Dtype | None",
    "shape": "Sequence[int]",
    "key": "array | None",
    "a": "array",
    "b": "array",
    "c": "array",
    "x": "array",
    "arr": "array",
    "array": "array",
    "arrays": "Sequence[array]",
    "indices": "array",
    "values": "array",
    "update": "array",
    "start_indices": "array",
    "axes": "Sequence[int] | None",
    "slice_size": "Sequence[int]",
    "k": "int",
    "n": "int",
    "m": "int | None",
    "num": "int",
    "kth": "int",
    "offset": "int",
    "axis1": "int",
    "axis2": "int",
    "source": "int",
    "destination": "int",
    "start_axis": "int",
    "end_axis": "int",
    "decimals": "int",
    "repeats": "int",
    "reps": "int | Sequence[int]",
    "ddof": "int",
    "correction": "int | None",
    "reverse": "bool",
    "inclusive": "bool",
    "precise": "bool",
    "equal_nan": "bool",
    "endpoint": "bool",
    "sparse": "bool",
    "copy": "bool | None",
    "allow_col_major": "bool",
    "indexing": "str",
    "mode": 'Literal["constant", "edge", "reflect", "symmetric"]',
    "rtol": "float",
    "atol": "float",
    "alpha": "float",
    "beta": "float",
    "loc": "ArrayLike | None",
    "scale": "ArrayLike | None",
    "nan": "float",
    "posinf": "float | None",
    "neginf": "float | None",
    "strides": "Sequence[int] | None",
    "shift": "int | Sequence[int]",
    "pad_width": "int | Sequence[int] | Sequence[Sequence[int]]",
    "constant_values": "ArrayLike",
    "indices_or_sections": "int | Sequence[int] | array",
    "vals": "ArrayLike",
    "val": "ArrayLike | Sequence[Any]",
    "value": "ArrayLike",
    "condition": "ArrayLike",
    "a_min": "ArrayLike | None",
    "a_max": "ArrayLike | None",
    "start": "float | None",
    "stop": "float | None",
    "step": "float | None",
    "low": "ArrayLike",
    "high": "ArrayLike",
    "lower": "ArrayLike",
    "upper": "ArrayLike",
    "p": "ArrayLike",
    "logits": "array",
    "width": "int",
    "num_samples": "int | None",
    "seed": "int",
    "limit": "int",
    "precision": "int",
    "device": "Device | DeviceType",
    "policy": 'Literal["error", "host"]',
    "device_type": "Device | DeviceType",
    "s": "Stream | ThreadLocalStream | Device | DeviceType",
    "f": "Callable[..., Any]",
    "d": "Device | DeviceType | None",
    "path": "str",
    "dependencies": "array | Sequence[array]",
    "file": "_Path",
    "format": "str | None",
    "return_metadata": "bool",
    "metadata": "Mapping[str, str] | None",
    "kind": "Dtype | str | tuple[Dtype | str, ...]",
    "arg1": "Dtype | DtypeCategory",
    "arg2": "Dtype | DtypeCategory",
    "from_": "array | Dtype",
    "to": "Dtype",
    "shapes": "Sequence[int]",
    "arrays_and_dtypes": "array | Dtype",
    "arys": "array",
    "subscripts": "str",
    "UPLO": 'Literal["L", "U", "l", "u"]',
    "compute_uv": "bool",
    "ord": "int | float | str | None",
    "mean": "array",
    "cov": "array",
    "operands": "array",
    "args": "Any",
    "kwargs": "Any",
    "fun": "Callable[_P, _R]",
    "argnums": "int | Sequence[int] | None",
    "argnames": "str | Sequence[str]",
    "in_axes": "Any",
    "out_axes": "Any",
    "inputs": "Any",
    "outputs": "Any",
    "shapeless": "bool",
    "primals": "Sequence[array]",
    "tangents": "Sequence[array]",
    "cotangents": "Sequence[array]",
    "api_version": "str | None",
    "other": "ArrayLike",
    "options": "PrintOptions",
    "type": "DeviceType",
    "index": "int",
    "arg": "Dtype",
    "input": "array",
    "weight": "array",
    "v": "array",
    "stride": "int",
    "padding": "int",
    "dilation": "int",
    "output_padding": "int",
    "groups": "int",
    "flip": "bool",
    # Exceptions to the rows above.
    "cholesky.upper": "bool",
    "cholesky_inv.upper": "bool",
    "tri_inv.upper": "bool",
    "solve_triangular.upper": "bool",
    "cross.axis": "int",
    "norm.axis": "int | Sequence[int] | None",
    "matrix_norm.axis": "int | Sequence[int] | None",
    "zeros.shape": "int | Sequence[int]",
    "ones.shape": "int | Sequence[int]",
    "empty.shape": "int | Sequence[int]",
    "full.shape": "int | Sequence[int]",
    "as_strided.shape": "Sequence[int] | None",
    "bernoulli.shape": "Sequence[int] | None",
    "categorical.shape": "Sequence[int] | None",
    "truncated_normal.shape": "Sequence[int] | None",
    "categorical.axis": "int",
    "permutation.axis": "int",
    "permutation.x": "int | array",
    "split.axis": "int",
    "split.key": "array",
    "laplace.loc": "float",
    "laplace.scale": "float",
    "unstack.axis": "int",
    "unflatten.axis": "int",
    "vecdot.axis": "int",
    "expand_dims.axis": "int | Sequence[int]",
    "slice.axes": "Sequence[int]",
    "slice_update.axes": "Sequence[int]",
    "linspace.start": "float",
    "linspace.stop": "float",
    "tensordot.axes": "int | Sequence[Sequence[int]]",
    "take.indices": "int | array",
    "broadcast_to.a": "ArrayLike",
    "where.x": "ArrayLike",
    "where.y": "ArrayLike",
    "nan_to_num.a": "ArrayLike",
    "round.a": "ArrayLike",
    "view.a": "ArrayLike",
    "view.dtype": "Dtype",
    "astype.dtype": "Dtype",
    "isdtype.dtype": "Dtype",
    "asarray.a": "ArrayLike | Sequence[Any]",
    "from_dlpack.x": "SupportsDLPack | Any",  # capsules have no type
    "array_equal.a": "ArrayLike",
    "array_equal.b": "ArrayLike",
    "isclose.a": "ArrayLike",
    "isclose.b": "ArrayLike",
    "save_safetensors.arrays": "Mapping[str, array]",
    "meshgrid.arrays": "array",
    "broadcast_arrays.arrays": "array",
    "savez.args": "array",
    "savez.kwargs": "array",
    "savez_compressed.args": "array",
    "savez_compressed.kwargs": "array",
    "synchronize.stream": "Stream | ThreadLocalStream | Device | DeviceType | None",
    "depends.inputs": "array | Sequence[array]",
    "set_default_stream.stream": "Stream",
    "vjp.fun": "Callable[..., Any]",
    "jvp.fun": "Callable[..., Any]",
    "PrintOptions.precision": "int",
    "TransferContext.s": 'Literal["error", "host"]',
    "stack.axis": "int",
    "sorted_sequence": "array",
    "side": 'Literal["left", "right"]',
    "unique.size": "int",
    "return_index": "bool",
    "return_inverse": "bool",
    "return_counts": "bool",
    "fill_value": "ArrayLike | None",
    "conv_general.padding": "int | Sequence[int] | tuple[Sequence[int], Sequence[int]]",
    "convolve.mode": 'Literal["full", "valid", "same"]',
    "diff.axis": "int",
    "M": "int",
    "fftfreq.d": "float",
    "rfftfreq.d": "float",
    "norm": "str",
    "fftshift.axes": AXES,
    "ifftshift.axes": AXES,
    "n_fft": "int",
    "hop_length": "int | None",
    "win_length": "int | None",
    "window": "array | None",
    "center": "bool",
    "pad_mode": 'Literal["reflect", "constant", "edge", "symmetric"]',
    "onesided": "bool | None",
    "length": "int | None",
    "stft_matrix": "array",
    "istft.n_fft": "int | None",
}
for name in ("fft", "ifft", "rfft", "irfft"):
    ARGUMENTS[f"{name}.n"] = "int | None"
    ARGUMENTS[f"{name}.axis"] = "int"
    ARGUMENTS[f"{name}2.s"] = ARGUMENTS[f"{name}n.s"] = "Sequence[int] | None"
for name in [
    "squeeze",
    "flip",
    "roll",
    "all",
    "any",
    "sum",
    "prod",
    "min",
    "max",
    "minmax",
    "mean",
    "median",
    "var",
    "std",
]:
    ARGUMENTS[f"{name}.axis"] = AXES
for name in ("logsumexp", "count_nonzero", "softmax"):
    ARGUMENTS[f"{name}.axis"] = AXES
for name in ("conv", "conv_transpose"):
    for axes, kind in [(2, "int | tuple[int, int]"), (3, "int | tuple[int, int, int]")]:
        for argument in ("stride", "padding", "dilation", "output_padding"):
            ARGUMENTS[f"{name}{axes}d.{argument}"] = kind
for argument in ("stride", "kernel_dilation", "input_dilation"):
    ARGUMENTS[f"conv_general.{argument}"] = "int | Sequence[int]"

RESULTS = {
    "eval": "None",
    "async_eval": "None",
    "divmod": "list[array]",
    "slogdet": "tuple[array, array]",
    "lu": "tuple[array, array, array]",
    "lu_factor": "tuple[array, array]",
    "qr": "tuple[array, array]",
    "eig": "tuple[array, array]",
    "eigh": "tuple[array, array]",
    "svd": "Any",
    "einsum_path": "tuple[list[tuple[int, ...]], str]",
    "minmax": "tuple[array, array]",
    "split": "list[array]",
    "unstack": "tuple[array, ...]",
    "meshgrid": "tuple[array, ...]",
    "broadcast_arrays": "list[array]",
    "broadcast_shapes": "tuple[int, ...]",
    "atleast_1d": "array | list[array]",
    "atleast_2d": "array | list[array]",
    "atleast_3d": "array | list[array]",
    "issubdtype": "bool",
    "isdtype": "bool",
    "can_cast": "bool",
    "result_type": "Dtype",
    "is_available": "bool",
    "device_count": "int",
    "default_device": "Device",
    "set_default_device": "None",
    "default_stream": "Stream",
    "set_default_stream": "None",
    "new_stream": "Stream",
    "new_thread_local_stream": "ThreadLocalStream",
    "clear_streams": "None",
    "device_info": "dict[str, str | int]",
    "start_capture": "None",
    "stop_capture": "None",
    "get_array_buffer_size": "int",
    "checkpoint": "Callable[_P, _R]",
    "depends": "Any",
    "stream": "StreamContext",
    "synchronize": "None",
    "get_active_memory": "int",
    "get_peak_memory": "int",
    "get_cache_memory": "int",
    "get_memory_limit": "int",
    "set_memory_limit": "int",
    "set_cache_limit": "int",
    "set_wired_limit": "int",
    "reset_peak_memory": "None",
    "clear_cache": "None",
    "copy": "array",
    "set_transfer_policy": 'Literal["error", "host"]',
    "get_transfer_policy": 'Literal["error", "host"]',
    "transfers": "TransferContext",
    "save": "None",
    "savez": "None",
    "savez_compressed": "None",
    "save_safetensors": "None",
    "load": "Any",
    "get_printoptions": "PrintOptions",
    "set_printoptions": "None",
    "printoptions": "_PrintOptionsContext",
    "grad": "Callable[_P, Any]",
    "value_and_grad": "Callable[_P, tuple[_R, Any]]",
    "vmap": "Callable[_P, _R]",
    "vjp": "tuple[list[array], list[array]]",
    "jvp": "tuple[list[array], list[array]]",
    "unique": "array | tuple[array, ...]",
    "compile": "Callable[_P, _R]",
    "disable_compile": "None",
    "enable_compile": "None",
    "seed": "None",
    "item": "Any",
    "tolist": "Any",
    "__array__": "Any",
    "__array_namespace__": "ModuleType",
}

# Of classes, what the module does not tell.
PROPERTIES = {
    "array": {
        "shape": "tuple[int, ...]", "ndim": "int", "size": "int", "itemsize": "int",
        "nbytes": "int", "dtype": "Dtype", "device": "Device", "T": "array", "mT": "array",
        "real": "array", "imag": "array", "at": "ArrayAt",
    },
    "Dtype": {"size": "int"},
    "DtypeCategory": {"name": "str", "value": "int"},
    "DeviceType": {"name": "str", "value": "int"},
    "Device": {"type": "DeviceType", "index": "int"},
    "Stream": {"device": "Device", "index": "int"},
    "ThreadLocalStream": {"device": "Device", "index": "int"},
    "finfo": {
        "bits": "int", "min": "float", "max": "float", "eps": "float",
        "smallest_normal": "float", "dtype": "Dtype",
    },
    "iinfo": {"bits": "int", "min": "int", "max": "int", "dtype": "Dtype"},
}  # fmt: skip

OPERATORS = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
]
COMPARISONS = ["lt", "le", "gt", "ge"]
SPECIAL = {
    "array": [
        *(f"def __{r}{op}__(self, other: ArrayLike) -> array: ..." for op in OPERATORS
          for r in ("", "r", "i")),
        *(f"def __{op}__(self, other: ArrayLike) -> array: ..." for op in COMPARISONS),
        *(f"def __{op}__(self, other: object) -> array: ...  # type: ignore[override]"
          for op in ("eq", "ne")),
        *(f"def __{r}matmul__(self, other: array | Foreign) -> array: ..." for r in ("", "r", "i")),
        "__array_priority__: float",
        *(f"def __{r}divmod__(self, other: ArrayLike) -> tuple[array, array]: ..."
          for r in ("", "r")),
        "def __dlpack__(self, *, stream: int | None = None, "
        "max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, "
        "copy: bool | None = None) -> Any: ...",
        "def __dlpack_device__(self) -> tuple[int, int]: ...",
        *(f"def __{op}__(self) -> array: ..." for op in ("neg", "pos", "abs", "invert")),
        "def __getitem__(self, arg: Any, /) -> array: ...",
        "def __setitem__(self, arg0: Any, arg1: ArrayLike, /) -> None: ...",
        "def __len__(self) -> int: ...",
        "def __iter__(self) -> Iterator[array]: ...",
        *(f"def __{t}__(self) -> {t}: ..." for t in ("bool", "int", "float", "complex")),
        "def __index__(self) -> int: ...",
        "def __bytes__(self) -> bytes: ...",
        "def __hash__(self) -> int: ...",
        "def __format__(self, spec: str, /) -> str: ...",
        "def __copy__(self) -> array: ...",
        "def __deepcopy__(self, memo: Any, /) -> array: ...",
        "def __buffer__(self, flags: int, /) -> memoryview: ...",
        "def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...",
        "def __array_namespace__(self, api_version: str | None = None) -> ModuleType: ...",
        "def to_device(self, device: Device | DeviceType, /, *, stream: None = None) -> array: ...",
        "def reshape(self, *shape: int | Sequence[int], stream: StreamOrDevice = None) -> array: ...",
        "def transpose(self, *axes: int | Sequence[int], stream: StreamOrDevice = None) -> array: ...",
    ],
    "ArrayAt": ["def __getitem__(self, indices: Any) -> ArrayAt: ..."],
    "ArrayIterator": [
        "def __iter__(self) -> ArrayIterator: ...",
        "def __next__(self) -> array: ...",
    ],
    "StreamContext": [
        "def __enter__(self) -> None: ...",
        "def __exit__(self, exc_type: Any = None, exc_value: Any = None, traceback: Any = None) "
        "-> None: ...",
    ],
    "TransferContext": [
        "def __enter__(self) -> None: ...",
        "def __exit__(self, exc_type: Any = None, exc_value: Any = None, traceback: Any = None) "
        "-> None: ...",
    ],
    "_PrintOptionsContext": [
        "def __enter__(self) -> _PrintOptionsContext: ...",
        "def __exit__(self, *args: Any) -> None: ...",
    ],
    "PrintOptions": ["precision: int"],
    "custom_function": [
        "def __init__(self, f: Callable[..., Any]) -> None: ...",
        "def __call__(self, *args: Any, **kwargs: Any) -> Any: ...",
        *(f"def {rule}(self, f: Callable[..., Any]) -> custom_function: ..."
          for rule in ("vjp", "jvp", "vmap")),
        "@property\n    def __wrapped__(self) -> Callable[..., Any]: ...",
    ],
}  # fmt: skip

CUDA_HEADER = '''\
"""Whether there is CUDA."""

# Made by python/tools/make_stubs.py: change the tables there.
'''

METAL_HEADER = '''\
"""Whether there is Metal, and old names of functions that are in the package itself."""

# Made by python/tools/make_stubs.py: change the tables there.

from typing import Any
'''

# Functions of one or two arrays take numbers and what can be made an array, too.
OPERANDS = {"a", "b"}


def parameter(owner: str, p: inspect.Parameter, elementwise: bool) -> str:
    kind = ARGUMENTS.get(f"{owner}.{p.name}")
    if kind is None and elementwise and p.name in OPERANDS:
        kind = "ArrayLike"
    kind = kind or ARGUMENTS[p.name]
    if p.default is None and p.name == "device":
        kind += " | None"
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    default = "" if p.default is p.empty else " = ..."
    if p.default is None or isinstance(p.default, (bool, int, float, str)):
        default = f" = {p.default!r}"
    return f"{star}{p.name}: {kind}{default}"


def define(name: str, function: Any, indent: str = "", method: bool = False) -> str:
    text = getattr(function, "__text_signature__", None) or str(inspect.signature(function))
    text = text.replace("$self", "self")
    # Defaults that are objects of ours are no literals to `inspect`.
    text = text.replace("=float32", "=...").replace("=int32", "=...").replace("=[]", "=()")
    space: dict[str, Any] = {}
    exec(f"def f{text}: pass", space)
    parameters = list(inspect.signature(space["f"]).parameters.values())
    others = [p.name for p in parameters if p.name not in ("self", "stream")]
    elementwise = not method and (
        (others == ["a"] and name in ELEMENTWISE) or (others == ["a", "b"] and name in ELEMENTWISE)
    )
    parts: list[str] = []
    positional = star = False
    for p in parameters:
        if p.kind == p.POSITIONAL_ONLY and p.name != "self":
            positional = True
        elif positional:
            parts.append("/")
            positional = False
        if p.kind == p.VAR_POSITIONAL:
            star = True
        if p.kind == p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        parts.append("self" if p.name == "self" else parameter(name, p, elementwise))
    if positional:
        parts.append("/")
    if method and "self" not in parts:
        parts.insert(0, "self")
    result = RESULTS.get(name, "array")
    return f"{indent}def {name}({', '.join(parts)}) -> {result}: ..."


ELEMENTWISE = set(
    re.findall(
        r"\w+",
        """abs square sqrt rsqrt reciprocal exp log log2 log10 log1p sin cos conj conjugate sign
        positive negative trunc floor ceil logical_not bitwise_invert expm1 erf erfinv tan arcsin
        arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians sigmoid isnan isinf
        isfinite isposinf isneginf real imag stop_gradient add subtract multiply divide
        floor_divide remainder power maximum minimum logaddexp xlogy arctan2 equal not_equal less
        less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or
        bitwise_xor left_shift right_shift divmod""",
    )
)


def class_stub(name: str, kind: type) -> str:
    bases = ", ".join(b.__name__ for b in kind.__bases__ if b is not object)
    lines = [f"class {name}({bases}):" if issubclass(kind, Exception) else f"class {name}:"]
    doc = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].replace("\n", "\n    ")
    if doc:
        lines.append(f'    """{doc}"""\n')
    if name in ("DtypeCategory", "DeviceType"):
        lines += [f"    {n}: {name}" for n, v in vars(kind).items() if isinstance(v, kind)]
    else:
        try:
            signature = inspect.signature(kind)
        except ValueError:
            signature = None
        own = any("def __init__" in text for text in SPECIAL.get(name, []))
        if signature and "__new__" in vars(kind) and not own:
            parts = [parameter(name, p, False) for p in signature.parameters.values()]
            kinds = [p.kind for p in signature.parameters.values()]
            if inspect.Parameter.KEYWORD_ONLY in kinds:
                parts.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
            lines.append(f"    def __init__({', '.join(['self', *parts])}) -> None: ...")
    for attribute, type_ in PROPERTIES.get(name, {}).items():
        lines += ["    @property", f"    def {attribute}(self) -> {type_}: ..."]
    special = SPECIAL.get(name, [])
    lines += [f"    {text}" for text in special]
    done = {text.split("(")[0].removeprefix("def ") for text in special}
    for attribute, value in sorted(vars(kind).items()):
        if attribute.startswith("_") or attribute in done or not inspect.isroutine(value):
            continue
        lines.append(define(attribute, value, "    ", method=True))
    if len(lines) == 1:
        lines.append("    ...")
    return "\n".join(lines)


def public(module: ModuleType) -> dict[str, Any]:
    extra = {"_PrintOptionsContext": getattr(module, "_PrintOptionsContext", None)}
    found = {n: v for n, v in vars(module).items() if not n.startswith("_")}
    found.update({n: v for n, v in extra.items() if v is not None})
    return {n: v for n, v in sorted(found.items()) if not isinstance(v, ModuleType)}


def module_stub(module: ModuleType, header: str) -> str:
    classes, functions, constants, aliases = [], [], [], []
    for name, value in public(module).items():
        if isinstance(value, type):
            classes.append(class_stub(name, value))
        elif callable(value):
            own = value.__name__
            if own != name and hasattr(module, own):
                aliases.append(f"{name} = {own}")
            else:
                functions.append(define(name, value))
        elif name not in ("state",):
            kind = "None" if value is None else type(value).__name__
            constants.append(f"{name}: {kind}")
    parts = [header, *classes, "\n".join(constants), *functions, "\n".join(aliases)]
    return "\n\n".join(p.rstrip() for p in parts if p.strip()) + "\n"


def main() -> None:
    (PACKAGE / "__init__.pyi").write_text(module_stub(mx, HEADER))
    (PACKAGE / "linalg.pyi").write_text(module_stub(mx.linalg, LINALG_HEADER))
    (PACKAGE / "random.pyi").write_text(module_stub(mx.random, RANDOM_HEADER))
    (PACKAGE / "fft.pyi").write_text(module_stub(mx.fft, FFT_HEADER))
    (PACKAGE / "backends.pyi").write_text(BACKENDS)
    (PACKAGE / "cuda.pyi").write_text(module_stub(mx.cuda, CUDA_HEADER))
    (PACKAGE / "metal.pyi").write_text(module_stub(mx.metal, METAL_HEADER))


if __name__ == "__main__":
    main()
