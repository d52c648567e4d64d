"""All entries, and the names that are left for later."""

from __future__ import annotations

from typing import Any

import ultramarine

from .calls import (
    arrays,
    attention,
    conv,
    create,
    distributed,
    elementwise,
    export,
    fft,
    grouped,
    index,
    linalg,
    matmul,
    nn,
    others,
    quantized,
    random,
    reduce,
    scan,
    shape,
    sort,
)
from .draw import Entry

TABLE: list[Entry] = [
    *elementwise.ENTRIES,
    *reduce.ENTRIES,
    *scan.ENTRIES,
    *sort.ENTRIES,
    *nn.ENTRIES,
    *attention.ENTRIES,
    *shape.ENTRIES,
    *index.ENTRIES,
    *create.ENTRIES,
    *matmul.ENTRIES,
    *grouped.ENTRIES,
    *quantized.ENTRIES,
    *conv.ENTRIES,
    *linalg.ENTRIES,
    *fft.ENTRIES,
    *random.ENTRIES,
    *arrays.ENTRIES,
    *distributed.ENTRIES,
    *export.ENTRIES,
    *others.ENTRIES,
]


def found(module: Any, name: str) -> bool:
    """Whether a module has a dotted name; what an array's `at` gives counts as its."""
    if name.startswith("array.at."):
        return hasattr(module.ones(1).at[0], name.removeprefix("array.at."))
    for part in name.split("."):
        # memoryview() works before CPython 3.12, which gave it a name.
        if not hasattr(module, part) and part != "__buffer__":
            return False
        module = getattr(module, part, None)
    return True


def present(name: str) -> bool:
    """Whether ultramarine has it."""
    return found(ultramarine, name)
