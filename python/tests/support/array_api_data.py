"""Data for the tests of `ultramarine.array_api`, and the comparison with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import ultramarine as um
import ultramarine.array_api as xp
from support import array_api_table as standard
from support.compare import assert_close
from support.harness import EPS, largest, rng

SHAPES: list[tuple[int, ...]] = [(), (0,), (5,), (3, 4), (2, 0, 3), (2, 3, 4)]
KINDS = {
    "bool": ["bool"],
    "int": ["int8", "int16", "int32", "int64"],
    "uint": ["uint8", "uint16", "uint32", "uint64"],
    "float": ["float32", "float64"],
    "complex": ["complex64"],
}
OF = {
    "integral": KINDS["int"] + KINDS["uint"],
    "bits": KINDS["bool"] + KINDS["int"] + KINDS["uint"],
    "real": KINDS["int"] + KINDS["uint"] + KINDS["float"],
    "floating": KINDS["float"] + KINDS["complex"],
    "real floating": KINDS["float"],
    "numeric": KINDS["int"] + KINDS["uint"] + KINDS["float"] + KINDS["complex"],
    "complex": KINDS["complex"],
    "bool": KINDS["bool"],
    "any": standard.DTYPES,
}


def data(dtype: str, shape: tuple[int, ...], domain: str = "any", key: Any = 0) -> np.ndarray:
    """Seeded NumPy data."""
    r = rng("array_api", dtype, shape, domain, key)
    if dtype == "bool":
        return r.integers(0, 2, shape).astype(bool)
    if domain == "small":
        made = r.integers(0, 7, shape).astype(float)
    elif domain == "unit":
        made = r.uniform(-0.95, 0.95, shape)
    elif domain == "above one":
        made = r.uniform(1.05, 9, shape)
    else:
        made = r.standard_normal(shape) * 5
    if dtype == "complex64":
        return np.asarray(made + 1j * r.permutation(made.reshape(-1)).reshape(shape), np.complex64)
    if np.dtype(dtype).kind in "iu":
        made = np.trunc(made)
        made = np.abs(made) if np.dtype(dtype).kind == "u" else made
        if domain in ("nonzero", "above one"):
            made = np.where(made == 0, 3, made)
    return np.asarray(made, dtype)


def ours(x: Any) -> Any:
    """NumPy arrays as ours, in tuples and lists, too."""
    if isinstance(x, (tuple, list)) and x and isinstance(x[0], np.ndarray):
        return type(x)(ours(i) for i in x)
    return xp.asarray(x) if isinstance(x, np.ndarray) else x


def same(got: Any, want: Any, ulps: float = 0, indices: bool = False) -> None:
    """Asserts that ours is what NumPy's is. `indices`: whose dtype is our default one."""
    if isinstance(want, tuple):
        assert isinstance(got, tuple)
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w, ulps, indices)
        return
    assert isinstance(got, um.array)
    want = np.asarray(want)
    assert got.shape == want.shape
    dtype = str(got.dtype).rsplit(".", 1)[-1]
    if indices:
        assert dtype == "int32"
    else:
        assert dtype == want.dtype.name
    eps = ulps * EPS.get(dtype, 0)
    scale = largest(want) if np.isfinite(want).any() else 1.0
    # Functions of float64 are accurate well beyond float32, but not always to the last bit.
    assert_close(got, want, rtol=eps, atol=eps * scale, dtype=False)
