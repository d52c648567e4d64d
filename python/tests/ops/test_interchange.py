"""Arrays of other libraries given to array, asarray, from_dlpack and operators, beside mlx."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.harness import Tally

DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip

LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "dense": lambda a: a,
    "fortran": np.asfortranarray,
    "stepped": lambda a: a[::2, :, 1::2],
    "transposed": lambda a: a.T,
    "permuted": lambda a: a.transpose(1, 0, 2),
    "broadcast": lambda a: np.broadcast_to(a[0], (5, *a[0].shape)),
    "empty": lambda a: a[:0],
    "inner empty": lambda a: a[:, 1:1],
    "0-d": lambda a: a[1:, 2:, 3:].reshape(()),
    "of one": lambda a: a[1:, 2:, 3:],
    "row": lambda a: a[1, 1],
}


class Producer:
    """Gives NumPy's tensor, and has nothing else."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.data.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def of(library: str, data: np.ndarray) -> Any:
    if library == "numpy":
        return data
    if library == "producer":
        return Producer(data)
    if library == "memoryview":
        return memoryview(data)
    lib = pytest.importorskip(library)
    return lib.asarray(data) if library == "jax.numpy" else lib.as_tensor(data)


# Our own differences are named in differences.py.
GIVEN = ["numpy", "producer", "memoryview", "torch", "jax.numpy"]


def lacks(library: str, dtype: str) -> bool:
    """Dtypes that a library lacks, or has as another one."""
    wide = ("int64", "uint64", "float64", "complex128")
    return (library == "jax.numpy" and dtype in wide) or (
        # mlx copies no memoryview of half or complex numbers.
        library == "memoryview" and dtype in ("float16", "complex64", "complex128")
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("library", GIVEN)
def test_given(tally: Tally, library: str, dtype: str) -> None:
    if lacks(library, dtype):
        pytest.skip(f"{library} has no {dtype}")
    whole = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for name, lay in LAYOUTS.items():
        part = lay(whole)
        try:
            x = of(library, part)
        except (TypeError, ValueError):
            continue  # torch refuses some
        tally.same(f"array {name}", lambda mx: mx.array(x))
        for to in ("float32", "int32", "float16", "bool_", "complex64", "uint8", "int64"):
            tally.same(f"array as {to} {name}", lambda mx: mx.array(x, getattr(mx, to)))
            tally.same(f"asarray as {to} {name}", lambda mx: mx.asarray(x, getattr(mx, to)))
        tally.same(f"asarray {dtype} {name}", lambda mx: mx.asarray(x))
        tally.same(f"asarray copied {dtype} {name}", lambda mx: mx.asarray(x, copy=True))
        tally.same(f"from_dlpack {dtype} {name}", lambda mx: mx.from_dlpack(x))
        for ours in ("float32", "int32", "float16"):
            tally.same(f"ours + {ours} {name}", lambda mx: mx.array([1], getattr(mx, ours)) + x)
            tally.same(f"less {ours} {name}", lambda mx: mx.array([1], getattr(mx, ours)) < x)
            tally.same(f"maximum {ours} {name}", lambda mx: mx.maximum(mx.array([1.0]), x))
            if library in ("torch", "producer", "jax.numpy"):
                tally.same(f"{ours} + ours {name}", lambda mx: x + mx.array([1], getattr(mx, ours)))


def objects() -> dict[str, Callable[[], Any]]:
    """Objects that are no arrays, or not quite."""
    found: dict[str, Callable[[], Any]] = {
        "None": lambda: None,
        "text": lambda: "ab",
        "dict": lambda: {1: 2},
        "set": lambda: {1},
        "iterator": lambda: iter([1]),
        "object": object,
        "type": lambda: int,
        "class of arrays": lambda: np.ndarray,
        "module": lambda: np,
        "dtype": lambda: np.dtype("f4"),
        "ragged": lambda: [[1], [1, 2]],
        "None in list": lambda: [None],
        "text in list": lambda: ["a"],
        "bytes in list": lambda: [b"a"],
        "dict in list": lambda: [{}],
        "bytes": lambda: b"abc",
        "bytearray": lambda: bytearray(b"abc"),
        "memoryview": lambda: memoryview(b"abcd").cast("f"),
        "numpy scalar": lambda: np.float32(3),
        "numpy bool": lambda: np.bool_(True),
        "numpy int64": lambda: np.int64(2**40),
        "list of numpy float64": lambda: [np.float64(1), 2],
    }
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return found
    found |= {
        "torch with gradient": lambda: torch.ones(2, requires_grad=True),
        "torch parameter": lambda: torch.nn.Parameter(torch.ones(2)),
        "torch bfloat16": lambda: torch.ones(2, dtype=torch.bfloat16),
        "torch meta": lambda: torch.ones(2, device="meta"),
        "torch sparse": lambda: torch.eye(2).to_sparse(),
    }
    return found


@pytest.mark.parametrize("name, make", objects().items(), ids=objects())
def test_objects(tally: Tally, name: str, make: Callable[[], Any]) -> None:
    tally.same(f"array {name}", lambda mx: mx.array(make()))
    tally.same(f"array as int32 {name}", lambda mx: mx.array(make(), mx.int32))
    tally.same(f"asarray {name}", lambda mx: mx.asarray(make()))
    tally.same(f"asarray copied {name}", lambda mx: mx.asarray(make(), copy=True))
    tally.same(f"ours + {name}", lambda mx: mx.array([1.0]) + make())
    tally.same(f"{name} + ours", lambda mx: make() + mx.array([1.0]))
    tally.same(f"equal {name}", lambda mx: mx.array([1.0]) == make())
    tally.same(f"ours @ {name}", lambda mx: mx.array([1.0]) @ make())
    tally.same(f"add {name}", lambda mx: mx.add(mx.array([1.0]), make()))
    tally.same(f"assigned {name}", lambda mx: assigned(mx.zeros(2), make()))
    tally.same(f"from_dlpack {name}", lambda mx: mx.from_dlpack(make()))


def assigned(x: Any, value: Any) -> Any:
    x[:] = value
    return x
