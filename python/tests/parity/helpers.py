"""Functions that cases call beside the library's own, where a call is no expression."""

from __future__ import annotations

import io
import os
import re
import tempfile
from typing import Any


def assigned(x: Any, index: Any, value: Any) -> Any:
    """x after x[index] = value."""
    x[index] = value
    return x


def updated(x: Any, change: Any, value: Any) -> Any:
    """The name after an augmented assignment, and another name of the array before."""
    other = x
    x = change(x, value)
    return x, other, x is other


def stored(save: Any, load: Any, ending: str) -> Any:
    """Round trip through a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"file{ending}")
        save(path)
        if not os.path.exists(path):
            return sorted(os.listdir(folder))
        return load(path)


def streamed(save: Any, load: Any) -> Any:
    """Round trip through an open file in memory."""
    file = io.BytesIO()
    save(file)
    file.seek(0)
    return load(file)


def restored(get: Any, put: Any, work: Any) -> Any:
    """Result of `work`; a setting that it changes is restored."""
    before = get()
    try:
        return work()
    finally:
        put(before)


def launched(mx: Any, **change: Any) -> Any:
    """Result of a call of a Metal kernel, of which some arguments are others than usual."""
    kernel = mx.fast.metal_kernel("k", ["a"], ["o"], "o[0] = a[0];")
    usual = {
        "inputs": [mx.array([1.0])],
        "grid": (1, 1, 1),
        "threadgroup": (1, 1, 1),
        "output_shapes": [(1,)],
        "output_dtypes": [mx.float32],
    }
    return kernel(**{**usual, **change})


def traced(exporter: Any, work: Any) -> Any:
    """The body of an exporter's `with` statement."""
    with exporter as entered:
        work(entered)
        return entered is exporter


def canonical(graph: str) -> str:
    """A graph in DOT without the numbers of its operations, and with their names in lower case."""
    return re.sub(r"(?<![\w\"])\d+(?![\w\"])", "0", graph).lower().strip()


def drawn(draw: Any) -> Any:
    """A graph in DOT, written to a file object."""
    file = io.StringIO()
    draw(file)
    return canonical(file.getvalue())


HELPERS = {
    f.__name__: f
    for f in (
        assigned,
        updated,
        stored,
        streamed,
        restored,
        launched,
        traced,
        canonical,
        drawn,
    )
}
