"""What the comparison with mlx is made of: dtypes, inputs, layouts, running, comparing.

A case is a function that takes a library's namespace and arrays of that library. It runs once
with `ultramarine` and once with `mlx.core`, on arrays made from the same NumPy data in
the same way; results must agree in structure, shape, dtype and values, and where mlx raises
we must raise the same type.
"""

from __future__ import annotations

import fnmatch
import math
import os
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import mlx.core as mlx
import numpy as np
import pytest

import ultramarine as um
from support.differences import ACCIDENTS, DELIBERATE, LACKS

FULL = os.environ.get("ULTRAMARINE_TEST_FULL") == "1"

BOOL = ["bool_"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
SIGNED = ["int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64"]
INTS = UNSIGNED + SIGNED
REALS = BOOL + INTS + FLOATS
ALL = REALS + COMPLEX
INEXACT = FLOATS + COMPLEX

EPS = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
    "complex64": 2.0**-23,
}

# Allowed difference between results, in units in the last place: for each dtype, or one number for all. For 16-bit
# floats it is limited to HALVES: both libraries compute in float32 and round once, or twice if one function is composed
# of others. (64 units are half of a bfloat16.) A test that needs more gives a number for the dtype, and the reason.
Units = float | dict[str, float]
HALVES = 4

# Units between two good implementations of exp, sin and similar functions in float32; mlx's exp of 45 is off by 26
# units. mlx's functions of float64 are computed in float32; ops/test_accuracy.py compares Ultramarine's with NumPy's.
ROUNDED: Units = {
    "float16": 2,
    "bfloat16": 2,
    "float32": 64,
    "float64": 64 * 2.0**29,
    "complex64": 64,
}


def units(ulps: Units, dtype: str) -> float:
    """The units that count for a dtype."""
    if isinstance(ulps, dict):
        return ulps[dtype]
    return min(ulps, HALVES) if dtype in ("float16", "bfloat16") else ulps


def by_dtype(ulps: Units, **others: float) -> dict[str, float]:
    """The units of each dtype, with others for some."""
    return {dtype: units(ulps, dtype) for dtype in EPS} | others


def in_single(ulps: Units) -> dict[str, float]:
    """The units of each dtype for what mlx computes in float32 for float64, too."""
    return by_dtype(ulps, float64=units(ulps, "float64") * 2.0**29)


SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (7,), (3, 0, 2), (4, 5), (2, 1, 3), (37, 67)]


def rng(*key: object) -> np.random.Generator:
    """A generator that depends on the key alone."""
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def sample(cases: Iterable[Any], limit: int, *key: object) -> list[Any]:
    """All cases where the whole is wanted, else `limit` of them, always the same ones."""
    cases = list(cases)
    if FULL or len(cases) <= limit:
        return cases
    chosen = rng("sample", *key).choice(len(cases), limit, replace=False)
    return [cases[i] for i in sorted(chosen)]


# --- values -------------------------------------------------------------------------------

SPECIAL = [math.nan, math.inf, -math.inf, -0.0, 0.0, 1.0, -1.0]

DOMAINS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "any": lambda r, s: r.standard_normal(s) * 3,
    "unit": lambda r, s: r.uniform(-0.98, 0.98, s),
    "positive": lambda r, s: r.uniform(0.05, 8, s),
    "above one": lambda r, s: r.uniform(1.01, 8, s),
    "nonzero": lambda r, s: r.uniform(0.5, 4, s) * r.choice([-1, 1], s),
    "few": lambda r, s: r.integers(-3, 4, s).astype(float),
    "distinct": lambda r, s: r.permutation(math.prod(s)).reshape(s).astype(float),
}


def values(dtype: str, shape: tuple[int, ...], domain: str = "any", *key: object) -> np.ndarray:
    """Seeded values of a dtype (bfloat16 as float32 that bfloat16 holds exactly)."""
    r = rng("values", dtype, shape, domain, *key)
    if dtype == "bool_":
        return r.integers(0, 2, shape).astype(np.bool_)
    data = np.asarray(DOMAINS[domain](r, shape))
    if dtype in INTS:
        if domain in ("any", "nonzero", "above one"):
            data = data * 4
        data = np.trunc(data)
        if domain in ("nonzero", "above one"):
            data = np.where(data == 0, 2, data)
        if dtype in UNSIGNED:
            data = np.abs(data)
        return data.astype(dtype)
    if dtype == "complex64":
        return (data + 1j * DOMAINS[domain](r, shape)).astype(np.complex64)
    if dtype == "bfloat16":
        bits = np.ascontiguousarray(data.astype(np.float32)).view(np.uint32) & 0xFFFF0000
        return bits.view(np.float32).reshape(shape)
    return data.astype(dtype)


def with_specials(data: np.ndarray) -> np.ndarray:
    """The same with NaN, infinities and signed zeros (extremes for integers) here and there."""
    data = np.array(data)
    flat = data.reshape(-1)
    if data.dtype.kind == "f":
        specials: Sequence[float] = SPECIAL
    elif data.dtype.kind in "iu":
        info = np.iinfo(data.dtype)
        specials = [info.min, info.max, 0, 1]
    else:
        return data
    for i, special in enumerate(specials):
        if 3 * i < flat.size:
            flat[3 * i] = special
    return data


# --- arrays -------------------------------------------------------------------------------


def array(mx: Any, data: np.ndarray, dtype: str) -> Any:
    """The library's array of the dtype that holds exactly this data."""
    if dtype == "bfloat16":
        bits = np.ascontiguousarray(data.astype(np.float32)).view(np.uint32) >> 16
        return mx.array(bits.astype(np.uint16).reshape(data.shape)).view(mx.bfloat16)
    if dtype == "float64":
        return mx.array(data, dtype=mx.float64)
    return mx.array(data)


def to_numpy(x: Any) -> np.ndarray:
    """A library's array as NumPy, bfloat16 as float32."""
    if name_of(x.dtype) == "bfloat16":
        lib = mlx if isinstance(x, mlx.array) else um
        bits = np.array(x.view(lib.uint16)).astype(np.uint32) << 16
        return bits.view(np.float32)
    return np.array(x)


def name_of(dtype: Any) -> str:
    """float32 for mlx.core.float32 and for ultramarine.float32."""
    return str(dtype).rsplit(".", 1)[-1]


@dataclass(frozen=True)
class Layout:
    """How an array of some shape is laid out: the base to make and the views to take of it."""

    name: str
    base: Callable[[tuple[int, ...]], tuple[int, ...]]
    view: Callable[[Any, Any, tuple[int, ...]], Any]
    # The view as text to append to the base, as a function of the shape.
    text: Callable[[tuple[int, ...]], str] = lambda s: ""


def _index(part: str) -> Callable[[tuple[int, ...]], str]:
    return lambda s: f"[{', '.join([part] * len(s))}]" if s else ""


def _all(*part: int | None) -> Callable[[Any, Any, tuple[int, ...]], Any]:
    return lambda mx, x, s: x[tuple(slice(*part) for _ in s)] if s else x


LAYOUTS = [
    Layout("dense", lambda s: s, lambda mx, x, s: x),
    Layout("stepped", lambda s: tuple(2 * n for n in s), _all(None, None, 2), _index("::2")),
    Layout("reversed", lambda s: s, _all(None, None, -1), _index("::-1")),
    Layout(
        "reversed by two",
        lambda s: tuple(2 * n for n in s),
        _all(None, None, -2),
        _index("::-2"),
    ),
    Layout("inner", lambda s: tuple(n + 3 for n in s), _all(2, -1), _index("2:-1")),
    Layout("transposed", lambda s: s[::-1], lambda mx, x, s: mx.transpose(x), lambda s: ".T"),
    Layout(
        "broadcast",
        lambda s: (1, *s[1:]) if s else s,
        lambda mx, x, s: mx.broadcast_to(x, s),
    ),
]


@dataclass(frozen=True)
class Input:
    """Data of a dtype in a layout, to be made in either library."""

    data: np.ndarray
    dtype: str
    layout: Layout
    shape: tuple[int, ...]

    def make(self, mx: Any) -> Any:
        return self.layout.view(mx, array(mx, self.data, self.dtype), self.shape)

    def source(self) -> str:
        """Python that makes it."""
        if self.data.size == 0:
            base = f"mx.zeros({self.data.shape}, mx.{self.dtype})"
        else:
            base = f"mx.array({self.data.tolist()}, mx.{self.dtype})"
        if self.layout.name == "broadcast":
            return f"mx.broadcast_to({base}, {self.shape})"
        return base + self.layout.text(self.shape)


def given(
    dtype: str,
    shape: tuple[int, ...],
    layout: Layout = LAYOUTS[0],
    domain: str = "any",
    specials: bool = False,
    key: object = None,
) -> Input:
    """Seeded input."""
    data = values(dtype, layout.base(shape), domain, layout.name, key)
    return Input(with_specials(data) if specials else data, dtype, layout, shape)


def exactly(data: Any, dtype: str) -> Input:
    """Input with these values."""
    data = np.asarray(data, dtype=np.float32 if dtype == "bfloat16" else dtype.rstrip("_"))
    return Input(data, dtype, LAYOUTS[0], data.shape)


# --- running and comparing ----------------------------------------------------------------


def attempt(mx: Any, case: Callable[..., Any], inputs: Sequence[Input]) -> Any:
    """What the case comes to in a library: ("value", tree) or ("raises", exception)."""
    try:
        result = case(mx, *(i.make(mx) for i in inputs))
        mx.eval(result)
        return "value", result
    except Exception as error:
        return "raises", error


def problem(
    want: Any, got: Any, ulps: Units, where: str = "result", scale: str | float = "each"
) -> str:
    """What is wrong with `got`, or nothing."""
    if isinstance(want, (mlx.array, um.array)):
        if not isinstance(got, um.array):
            return f"{where}: {type(got)} is not an array"
        if name_of(want.dtype) != name_of(got.dtype):
            return f"{where}: dtype {name_of(got.dtype)}, mlx has {name_of(want.dtype)}"
        if tuple(want.shape) != tuple(got.shape):
            return f"{where}: shape {got.shape}, mlx has {want.shape}"
        return unequal(to_numpy(want), to_numpy(got), name_of(want.dtype), ulps, where, scale)
    if isinstance(want, (list, tuple)):
        if type(want) is not type(got) or len(want) != len(got):
            return f"{where}: {got!r}, mlx has {want!r}"
        parts = (
            problem(w, g, ulps, f"{where}[{i}]", scale) for i, (w, g) in enumerate(zip(want, got))
        )
        return next((p for p in parts if p), "")
    if isinstance(want, dict):
        if not isinstance(got, dict) or want.keys() != got.keys():
            return f"{where}: {got!r}, mlx has {want!r}"
        parts = (problem(w, got[k], ulps, f"{where}[{k!r}]", scale) for k, w in want.items())
        return next((p for p in parts if p), "")
    if isinstance(want, (mlx.Dtype, um.Dtype)):
        same = name_of(want) == name_of(got)
    else:
        # NaN is not equal to itself, but its text is.
        same = type(want) is type(got) and (want == got or repr(want) == repr(got))
    return "" if same else f"{where}: {got!r}, mlx has {want!r}"


def largest(values: np.ndarray) -> float:
    """The largest finite magnitude."""
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size else 0.0


def unequal(
    want: np.ndarray, got: np.ndarray, dtype: str, ulps: Units, where: str, scale: str | float
) -> str:
    """What is wrong with the values; floats may be `ulps` units in the last place apart, of
    each value, or (scale "largest") of the largest, or of a given size, as sums of mixed signs
    need."""
    if dtype not in EPS or units(ulps, dtype) == 0:
        wrong = ~((want == got) | ((want != want) & (got != got)))
    elif dtype == "complex64":
        parts = [
            unequal(
                getattr(want, p),
                getattr(got, p),
                "float32",
                units(ulps, dtype),
                f"{where}.{p}",
                largest(want) if isinstance(scale, str) else scale,
            )
            for p in ("real", "imag")
        ]
        return parts[0] or parts[1]
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            w, g = want.astype(np.float64), got.astype(np.float64)
            finite = np.isfinite(w) & np.isfinite(g)
            size = np.abs(w)
            if scale != "each":
                size = np.full_like(w, largest(w) if isinstance(scale, str) else scale)
            tiny = 2.0**-24 if dtype == "float16" else 2.0**-126
            near = np.abs(w - g) <= units(ulps, dtype) * (EPS[dtype] * size + tiny)
            wrong = ~np.where(finite, near, (w == g) | ((w != w) & (g != g)))
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{where}{list(at)}: {got[at]!r}, mlx has {want[at]!r} ({wrong.sum()} of {wrong.size})"


def refused_as(kind: type, got: Any) -> bool:
    """Whether ours is the error of memory that cannot be had, which is one of mlx's kind, too."""
    return isinstance(got, um.InterchangeError) and isinstance(got, kind)


@cache
def deliberate(module: str) -> re.Pattern[str]:
    """Matches the cases of a module that are not compared: one expression, since there are 100,000 cases."""
    rows = [fnmatch.translate(row) for row in DELIBERATE if row.partition("/")[0] == module]
    return re.compile("|".join(rows or ["(?!)"]))


class Tally:
    """Compares cases and tells all that went wrong at the end, so that one failure hides no other."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.deliberate = deliberate(group.partition("/")[0])
        self.wrong: list[str] = []
        self.compared = 0

    def same(
        self,
        name: str,
        case: Callable[..., Any],
        *inputs: Input,
        ulps: Units = 0,
        scale: str | float = "each",
    ) -> None:
        """Runs the case in both libraries and notes any difference."""
        full = f"{self.group}/{name}"
        if self.deliberate.match(full):
            return
        kind, want = attempt(mlx, case, inputs)
        our_kind, got = attempt(um, case, inputs)
        self.compared += 1
        if kind == "raises":
            if any(words in str(want) for words in ACCIDENTS + LACKS):
                return
            if our_kind != "raises":
                difference = f"gives a value, mlx raises {type(want).__name__}: {want}"
            elif type(want) is not type(got) and not refused_as(type(want), got):
                difference = f"raises {got!r}, mlx {want!r}"
            else:
                return
        elif our_kind == "raises":
            difference = f"raises {got!r}"
        else:
            difference = problem(want, got, ulps, scale=scale)
        if difference:
            self.wrong.append(f"{name}: {difference}")

    def close(self) -> None:
        """Fails the test if anything differed."""
        if self.wrong:
            shown = "\n  ".join(self.wrong[:20])
            more = f"\n  and {len(self.wrong) - 20} more" if len(self.wrong) > 20 else ""
            count = f"{len(self.wrong)} of {self.compared} cases of {self.group} differ from mlx"
            pytest.fail(f"{count}:\n  {shown}{more}", pytrace=False)


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """A tally named after the test; conftest closes it when the test's own code is through."""
    module = request.node.path.stem.removeprefix("test_")
    return Tally(f"{module}/{request.node.name}")
