"""Dtypes: their kinds, what they are promoted to, and the checks that all functions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeGuard, TypeVar

import ultramarine as mx
from ultramarine import Dtype, array

Number: TypeAlias = "bool | int | float | complex"
DeviceLike: TypeAlias = "mx.Device | mx.DeviceType"

# The names that the standard defines, by kind. complex128 is missing because Ultramarine does not
# have it.
NAMES: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64",),
}

# Kinds that are unions of the kinds above.
UNIONS: dict[str, tuple[str, ...]] = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}

# Kinds that functions require, and their names in errors.
REAL = ("signed integer", "unsigned integer", "real floating")
NUMERIC = UNIONS["numeric"]
INTEGRAL = UNIONS["integral"]
BITS = ("bool", *INTEGRAL)
BOOL = ("bool",)
REAL_FLOATING = ("real floating",)
COMPLEX = ("complex floating",)
FLOATING = ("real floating", "complex floating")
ANY = ("bool", *NUMERIC)

T = TypeVar("T")


def by_name(name: str) -> Dtype:
    """The dtype of a name of the standard."""
    found: Dtype = mx.bool_ if name == "bool" else getattr(mx, name)
    return found


_KINDS: dict[Dtype, str] = {by_name(n): kind for kind, names in NAMES.items() for n in names}
# These dtypes are not in the standard, but belong to one of its kinds.
_KINDS[mx.float16] = _KINDS[mx.bfloat16] = "real floating"


def kind_of(dtype: Dtype) -> str:
    """The standard's kind of a dtype; `storage` for those that only store."""
    return _KINDS.get(dtype, "storage")


def is_number(x: object) -> TypeGuard[Number]:
    """Tests whether an object is a Python number."""
    return isinstance(x, (bool, int, float, complex))


def check_array(name: str, x: object) -> None:
    """Raises unless `x` is an array."""
    if not isinstance(x, array):
        raise TypeError(
            f"[{name}] Expected an array, got {type(x).__name__}. Convert it with asarray."
        )


def check(name: str, x: array, kinds: Sequence[str]) -> array:
    """The array, if its dtype is of one of the kinds."""
    check_array(name, x)
    if kind_of(x.dtype) not in kinds:
        raise TypeError(
            f"[{name}] Expected a dtype of kind {_or(kinds)}, got {_name(x.dtype)}. Convert it with astype."
        )
    return x


def _or(kinds: Sequence[str]) -> str:
    names = {REAL: "real", NUMERIC: "numeric", INTEGRAL: "integral", FLOATING: "floating"}
    name = names.get(tuple(kinds))
    return name or " or ".join(kinds)


def _name(dtype: Dtype) -> str:
    return str(dtype).rsplit(".", 1)[-1]


def promote(name: str, a: Dtype, b: Dtype) -> Dtype:
    """The dtype that the standard promotes two to.

    Raises:
        TypeError: For dtypes of different kinds, for which the standard has no rule, and where the
            result would be complex128.
    """
    if a == b:
        return a
    kinds = {kind_of(a), kind_of(b)}
    message = f"[{name}] {_name(a)} and {_name(b)}"
    if kinds <= set(INTEGRAL):
        if len(kinds) == 2 and mx.uint64 in (a, b):
            raise TypeError(f"{message} have no common integer dtype. Convert one with astype.")
        return mx.result_type(a, b)
    if kinds <= set(FLOATING):
        if mx.float64 in (a, b) and len(kinds) == 2:
            raise TypeError(
                f"{message} would be complex128, which is not supported. Convert one to complex64."
            )
        return mx.result_type(a, b)
    raise TypeError(f"{message} are of kinds that are not promoted. Convert one with astype.")


def beside(name: str, number: Number, dtype: Dtype) -> Dtype:
    """The dtype of an operation on a Python number and an array of a dtype."""
    kind = kind_of(dtype)
    allowed: bool
    if isinstance(number, bool):
        allowed = kind == "bool"
    elif isinstance(number, int):
        allowed = kind in NUMERIC
    elif isinstance(number, float):
        allowed = kind in FLOATING
    else:
        allowed = kind in FLOATING
        if allowed and kind == "real floating":
            return promote(name, dtype, mx.complex64)
    if not allowed:
        operands = f"a Python {type(number).__name__} and an array of {_name(dtype)}"
        raise TypeError(f"[{name}] The dtype of {operands} is not defined. Convert one of them.")
    return dtype


def common(name: str, *operands: array | Number) -> Dtype:
    """The promoted dtype of arrays and Python numbers, of which one at least is an array."""
    dtype: Dtype | None = None
    for x in operands:
        if isinstance(x, array):
            dtype = x.dtype if dtype is None else promote(name, dtype, x.dtype)
        elif not is_number(x):
            raise TypeError(f"[{name}] Expected an array or a number, got {type(x).__name__}.")
    if dtype is None:
        raise TypeError(f"[{name}] One of the operands must be an array. Convert one with asarray.")
    for x in operands:
        if is_number(x):
            dtype = beside(name, x, dtype)
    return dtype


def as_dtype(x: array | Number, dtype: Dtype) -> array:
    """An array or a Python number as an array of a dtype."""
    if isinstance(x, array):
        return x if x.dtype == dtype else x.astype(dtype)
    if isinstance(x, int) and kind_of(dtype) in INTEGRAL:
        limits = mx.iinfo(dtype)
        if not limits.min <= x <= limits.max:
            raise OverflowError(
                f"{x} is out of the range of {_name(dtype)}. Convert the array to a wider dtype."
            )
    return mx.array(x, dtype)


def pair(
    name: str, x1: array | Number, x2: array | Number, kinds: Sequence[str]
) -> tuple[array, array]:
    """Two operands in their promoted dtype, which must be of one of the kinds."""
    dtype = common(name, x1, x2)
    for x in (x1, x2):
        if isinstance(x, array):
            check(name, x, kinds)
    return as_dtype(x1, dtype), as_dtype(x2, dtype)


def index(x: array, n: int) -> array:
    """Indices below `n` in the dtype for indices: int32, where that is enough."""
    return x.astype(mx.int32 if n < 2**31 else mx.int64)


def axes_of(name: str, axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front; all for `None`.

    Raises:
        IndexError: For an axis out of range.
        ValueError: For an axis that is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in axes:
        if not -ndim <= a < ndim:
            raise IndexError(
                f"[{name}] Axis {a} is out of range for {ndim} dimensions. Use an axis from {-ndim} to {ndim - 1}."
            )
    found = tuple(a % ndim for a in axes)
    if len(set(found)) != len(found):
        raise ValueError(f"[{name}] An axis is named twice in {axes}. Name each once.")
    return found


# --- the standard's functions -------------------------------------------------------------


def astype(
    x: array, dtype: Dtype, /, *, copy: bool = True, device: DeviceLike | None = None
) -> array:
    """The array in another dtype. A copy is made if it is asked for, although arrays never change.

    Raises:
        TypeError: For complex numbers that would become real: take `real` or `imag` of them.
    """
    check_array("astype", x)
    if kind_of(x.dtype) == "complex floating" and kind_of(dtype) not in (*COMPLEX, *BOOL):
        raise TypeError(
            "[astype] Complex numbers cannot be converted to real ones. Use real(x) or imag(x)."
        )
    out = x if x.dtype == dtype else x.astype(dtype)
    if out is x and copy:
        out = mx.array(x, copy=True)
    return out if device is None else out.to_device(device)


def can_cast(from_: Dtype | array, to: Dtype, /) -> bool:
    """Tests whether promotion leads from a dtype (or an array's) to another."""
    dtype = from_.dtype if isinstance(from_, array) else from_
    try:
        return promote("can_cast", dtype, to) == to
    except TypeError:
        return False


def finfo(type: Dtype | array, /) -> mx.finfo:
    """The limits of a floating dtype (or an array's): of a complex one, its parts'."""
    dtype = type.dtype if isinstance(type, array) else type
    if kind_of(dtype) not in FLOATING:
        raise TypeError(f"[finfo] Expected a floating dtype, got {_name(dtype)}.")
    return mx.finfo(dtype)


def iinfo(type: Dtype | array, /) -> mx.iinfo:
    """The limits of an integer dtype (or an array's)."""
    dtype = type.dtype if isinstance(type, array) else type
    if kind_of(dtype) not in INTEGRAL:
        raise TypeError(f"[iinfo] Expected an integer dtype, got {_name(dtype)}.")
    return mx.iinfo(dtype)


def isdtype(dtype: Dtype, kind: Dtype | str | tuple[Dtype | str, ...]) -> bool:
    """Tests whether a dtype is of a kind, is another dtype, or either of one of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if not isinstance(kind, str):
        return dtype == kind
    if kind not in NAMES and kind not in UNIONS:
        raise ValueError(
            f"[isdtype] There is no kind {kind!r}. Use a dtype or a name such as 'integral'."
        )
    return kind_of(dtype) in UNIONS.get(kind, (kind,))


def result_type(*arrays_and_dtypes: array | Dtype | Number) -> Dtype:
    """The dtype that arrays, dtypes and Python numbers are promoted to.

    Raises:
        TypeError: Where the standard does not promote: see `promote`.
        ValueError: Without an array or a dtype.
    """
    dtype: Dtype | None = None
    for x in arrays_and_dtypes:
        if is_number(x):
            continue
        if not isinstance(x, (array, Dtype)):
            raise TypeError(f"[result_type] Expected arrays and dtypes, got {type(x).__name__}.")
        own = x.dtype if isinstance(x, array) else x
        dtype = own if dtype is None else promote("result_type", dtype, own)
    if dtype is None:
        raise ValueError("[result_type] Expected an array or a dtype among the arguments.")
    for x in arrays_and_dtypes:
        if is_number(x):
            dtype = beside("result_type", x, dtype)
    return dtype
