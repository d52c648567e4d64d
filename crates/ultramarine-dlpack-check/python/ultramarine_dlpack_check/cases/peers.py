"""The library beside others that are installed: there and back, in place."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from ultramarine_dlpack_check.case import (
    ARRAY_API,
    OURS,
    Skipped,
    case,
    expect,
    expect_equal,
)
from ultramarine_dlpack_check.target import GRID, ROW, Target


def peer(t: Target, name: str) -> Any:
    """Another library."""
    if t.adapter.name.partition(".")[0] == name:
        raise Skipped("it is the library itself")
    if importlib.util.find_spec(name) is None:
        raise Skipped(f"{name} is not installed")
    return importlib.import_module(name)


@case("peers/numpy takes", "numpy.from_dlpack(ours): the same memory.", ARRAY_API)
def numpy_takes(t: Target) -> None:
    numpy, array = peer(t, "numpy"), t.make()
    view = numpy.from_dlpack(array)
    expect_equal((view.tolist(), view.ctypes.data), (ROW, t.pointer(array)), "values and address")


@case("peers/numpy gives", "from_dlpack(numpy's array).", ARRAY_API)
def numpy_gives(t: Target) -> None:
    numpy = peer(t, "numpy")
    source = numpy.array(GRID, dtype="float32")
    expect_equal(t.values(t.take(source)), GRID, "values")
    expect_equal(t.values(t.take(source.T)), source.T.tolist(), "values of a view")


@case("peers/numpy gives in place", "The same memory.", OURS)
def numpy_gives_in_place(t: Target) -> None:
    numpy = peer(t, "numpy")
    source = numpy.array(GRID, dtype="float32")
    for view in (source, source.T, source[:, ::-1], source[1:]):
        expect_equal(t.pointer(t.take(view)), view.ctypes.data, "address")


@case("peers/numpy gives read-only", "Memory that NumPy protects is not written.", ARRAY_API)
def numpy_gives_read_only(t: Target) -> None:
    numpy = peer(t, "numpy")
    source = numpy.array(ROW, dtype="float32")
    source.flags.writeable = False
    try:
        array = t.take(source)
    except BufferError:
        return
    try:
        t.adapter.write(array, 0, 99.0)
        t.values(array)
    except Exception:
        pass
    expect_equal(source.tolist(), ROW, "the memory")


@case("peers/numpy gives foreign byte order", "Refused, or the right values.", ARRAY_API)
def numpy_foreign(t: Target) -> None:
    numpy = peer(t, "numpy")
    swapped = numpy.array(ROW, dtype=numpy.dtype("float32").newbyteorder())
    try:
        array = t.take(swapped)
    except Exception as error:
        expect(str(error), "an exception without a word")
        return
    expect_equal(t.values(array), ROW, "values")


@case("peers/tvm_ffi", "tvm_ffi.from_dlpack(ours) and back: the same memory.", ARRAY_API)
def tvm_ffi(t: Target) -> None:
    ffi, array = peer(t, "tvm_ffi"), t.make(GRID)
    tensor = ffi.from_dlpack(array)
    expect_equal(tuple(tensor.shape), (2, 3), "shape")
    expect_equal(tensor.data_ptr(), t.pointer(array), "address")
    expect_equal(t.values(t.take(tensor)), GRID, "values")


@case("peers/torch takes", "torch.from_dlpack(ours): the same memory.", ARRAY_API)
def torch_takes(t: Target) -> None:
    torch, array = peer(t, "torch"), t.make()
    view = torch.from_dlpack(array)
    expect_equal((view.tolist(), view.data_ptr()), (ROW, t.pointer(array)), "values and address")


@case("peers/torch gives", "from_dlpack(torch's tensor), also of a view.", ARRAY_API)
def torch_gives(t: Target) -> None:
    torch = peer(t, "torch")
    source = torch.tensor(GRID)
    expect_equal(t.values(t.take(source)), GRID, "values")
    expect_equal(t.values(t.take(source.T)), source.T.tolist(), "values of a view")


@case("peers/torch gives in place", "The same memory.", OURS)
def torch_gives_in_place(t: Target) -> None:
    source = peer(t, "torch").tensor(GRID)
    for view in (source, source.T, source[1:]):
        expect_equal(t.pointer(t.take(view)), view.data_ptr(), "address")


def _odd() -> None:
    makers: dict[str, Any] = {
        "conj": lambda torch: torch.tensor([1 + 2j, 3 - 1j]).conj(),
        "neg": lambda torch: torch.tensor([1 + 2j, 3 - 1j]).conj().imag,
        "grad": lambda torch: torch.tensor(ROW, requires_grad=True),
        "sparse": lambda torch: torch.tensor(GRID).to_sparse(),
        "meta": lambda torch: torch.empty(3, device="meta"),
        "quantized": lambda torch: torch.quantize_per_tensor(
            torch.tensor(ROW), 0.5, 0, torch.qint8
        ),
    }
    for name, make in makers.items():

        def check(t: Target, make: Any = make, name: str = name) -> None:
            torch = peer(t, "torch")
            try:
                source = make(torch)
            except Exception as error:
                raise Skipped(f"torch cannot make one: {type(error).__name__}") from None
            try:
                array = t.take(source)
            except Exception as error:
                expect(str(error), "an exception without a word")
                return
            expect(name in ("conj", "neg", "grad"), "accepted")
            plain = source.detach().resolve_conj().resolve_neg()
            expect_equal(t.values(array), plain.tolist(), "values")

        rule = "A tensor that is not plain memory: refused, or the right values."
        # torch itself exports lazily conjugated or negated memory as it is: only who asks first is right.
        source = OURS if name in ("conj", "neg") else ARRAY_API
        case(f"peers/torch gives {name}", rule, source)(check)


_odd()
