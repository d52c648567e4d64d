"""The names of mlx.core, in groups; which of them are for later, and which are none of ours."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import mlx.core as mlx

from .table import TABLE

# What is not there yet, by what it waits for.
LATER: dict[str, str] = {}

# Names that only mlx's own machinery has.
INNER = {
    "get_array_buffer_size": "of arrays in mlx's own memory; x.nbytes is there",
    "array.__div__": "of Python 2",
    "array.__rdiv__": "of Python 2",
    "array.__setstate__": "part of pickling, which is compared as a whole",
    "array.__init__": "compared as array",
    **dict.fromkeys(
        [
            "array.__class__",
            "array.__delattr__",
            "array.__dir__",
            "array.__doc__",
            "array.__getattribute__",
            "array.__init_subclass__",
            "array.__module__",
            "array.__new__",
            "array.__reduce__",
            "array.__reduce_ex__",
            "array.__setattr__",
            "array.__sizeof__",
            "array.__subclasshook__",
        ],
        "of every object",
    ),
    "array.__array_namespace__": "the array API's, with a suite of its own",
    "array.__bytes__": "of the buffer protocol, which is compared",
}

GROUPS = {
    "": "Functions, types and constants",
    "random": "Random numbers",
    "linalg": "Linear algebra",
    "fft": "Fourier transforms",
    "fast": "Kernels of your own, and fused layers",
    "distributed": "Groups of processes",
    "array": "The array class",
}


def all_names() -> list[str]:
    """Every public name of mlx.core, its modules and its array class."""
    out: list[str] = []
    for prefix in ("", "random.", "linalg.", "fft.", "fast.", "distributed.", "array."):
        space: Any = getattr(mlx, prefix.rstrip(".")) if prefix else mlx
        for name in dir(space):
            special = prefix == "array." and name.startswith("__")
            if (name.startswith("_") and not special) or isinstance(
                getattr(space, name), ModuleType
            ):
                continue
            out.append(prefix + name)
    return [*out, "metal.is_available", "cuda.is_available"]


def unlisted() -> list[str]:
    """Names of mlx that nothing here speaks of."""
    known = {e.name for e in TABLE} | LATER.keys() | INNER.keys()
    return [n for n in all_names() if n not in known]


def group_of(name: str) -> str:
    head = name.split(".")[0]
    return head if head in GROUPS and "." in name else ""
