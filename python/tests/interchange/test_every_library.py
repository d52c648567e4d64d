"""What holds for every library: dtypes and layouts both ways, with pointers as the proof that nothing
was copied; writes of one side seen by the other; who keeps the memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.capsules import address, header
from support.libraries import DTYPES, LAYOUTS, LIBRARIES, THEIR_ERRORS, Library, numbers

import ultramarine as mx


@pytest.fixture(params=LIBRARIES, ids=lambda library: library.name)
def library(request: pytest.FixtureRequest) -> Iterator[Library]:
    found: Library = request.param
    pytest.importorskip(found.module, reason=f"{found.module} is not installed")
    yield found


def ours(values: Any, dtype: str) -> mx.array:
    made = mx.array(values).astype(getattr(mx, dtype))
    mx.eval(made)
    return made


def square(library: Library) -> mx.array:
    return ours(library.numbers(), "float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_from_it(library: Library, dtype: str) -> None:
    if dtype in library.cannot_give:
        with pytest.raises(THEIR_ERRORS):
            mx.from_dlpack(library.make(numbers(dtype), dtype))
        return
    theirs = library.make(numbers(dtype), dtype)
    x = mx.from_dlpack(theirs)
    assert x.dtype == getattr(mx, library.gives.get(dtype, dtype))
    assert x.shape == (6,)
    assert x.astype(mx.complex64).tolist() == numbers(dtype)
    assert address(x) == library.address(theirs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_to_it(library: Library, dtype: str) -> None:
    x = ours(numbers(dtype), dtype)
    if dtype in library.cannot_take:
        with pytest.raises(THEIR_ERRORS):
            library.take(x)
        return
    theirs = library.take(x)
    assert library.values(theirs) == numbers(dtype)
    if "whole" not in library.copies and dtype not in library.converts:
        assert library.address(theirs) == address(x)
    back = mx.from_dlpack(theirs)
    assert back.dtype == getattr(mx, library.converts.get(dtype, dtype))
    assert back.astype(mx.complex64).tolist() == numbers(dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_from_it(library: Library, layout: str) -> None:
    if layout not in library.layouts() or layout in library.lacks:
        pytest.skip(f"{library.name} has no such arrays")
    theirs = library.laid_out(layout)
    x = mx.from_dlpack(theirs)
    want = LAYOUTS[layout](library.numbers())
    assert x.shape == want.shape
    assert x.tolist() == want.tolist()
    if layout != "empty":
        assert address(x) == library.address(theirs)
    # The view holds what it is a view of.
    del theirs
    gc.collect()
    assert (x + 1).tolist() == (want + 1).tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_to_it(library: Library, layout: str) -> None:
    if layout not in library.layouts():
        pytest.skip(f"{library.name} has one dimension")
    whole = square(library)
    x = LAYOUTS[layout](whole)
    if layout in library.refuses:
        with pytest.raises(THEIR_ERRORS):
            library.take(x)
        return
    theirs = library.take(x)
    want = x.tolist()
    assert library.values(theirs) == want
    same = layout != "empty" and library.address(theirs) == address(x)
    assert same == (layout != "empty" and layout not in library.copies)
    del x, whole
    gc.collect()
    assert mx.from_dlpack(theirs).tolist() == want


def test_broadcast_to_it(library: Library) -> None:
    """Strides of zero: several elements in one place."""
    if library.ndim == 1:
        pytest.skip(f"{library.name} has one dimension")
    x = mx.broadcast_to(ours([1, 2, 3], "float32"), (2, 3))
    assert header(x).strides == (0, 1)
    if library.name == "jax":
        with pytest.raises(Exception, match="trivial"):
            library.take(x)
    else:
        assert library.values(library.take(x)) == [[1, 2, 3], [1, 2, 3]]


def test_their_writes_are_seen_by_us(library: Library) -> None:
    """They write to what we exported: an array of ours that nobody computed anything from yet."""
    if library.writes is None or "whole" in library.copies:
        pytest.skip(f"{library.name} has no arrays that can be written to")
    x = mx.empty((4,), mx.float32)
    theirs = library.take(x)
    assert library.address(theirs) == address(x)
    library.writes(theirs)
    assert x[0].item() == 77
    assert (x * 2)[0].item() == 154


def test_their_writes_to_their_own_memory(library: Library) -> None:
    if library.writes is None:
        pytest.skip(f"{library.name} has no arrays that can be written to")
    theirs = library.make([1, 2, 3], "float32")
    x = mx.from_dlpack(theirs)
    copied = mx.array(theirs)
    mx.eval(copied)
    library.writes(theirs)
    assert x.tolist() == [77, 2, 3]
    assert copied.tolist() == [1, 2, 3]


def test_results_have_memory_of_their_own(library: Library) -> None:
    """Nothing is computed in place of an import: it is not ours to be written to."""
    theirs = library.make([1, 2, 3], "float32")
    x = mx.from_dlpack(theirs)
    where = address(x)
    x = mx.exp(x * 0) + 4
    assert x.tolist() == [5, 5, 5]
    assert address(x) != where
    assert library.values(theirs) == [1, 2, 3]


def test_chain(library: Library) -> None:
    """Ours, theirs, ours again: one memory, and the last in the chain keeps it."""
    x = ours([1, 2, 3], "float32")
    where = address(x)
    y = mx.from_dlpack(library.take(x))
    if "whole" not in library.copies:
        assert address(y) == where
    del x
    gc.collect()
    mx.eval(mx.zeros(3) + 9)  # would take the memory, if it were free
    assert y.tolist() == [1, 2, 3]
    z = mx.from_dlpack(library.take(y[1:]))
    del y
    assert z.tolist() == [2, 3]


def test_lazy_arrays_are_evaluated_when_exported(library: Library) -> None:
    x = ours([1, 2, 3], "float32")
    y = (x + 1) * 2
    assert library.values(library.take(y)) == [4, 6, 8]
    assert address(y) == address(y)


def test_source_goes_first(library: Library) -> None:
    theirs = library.make(np.arange(1000), "float32")
    x = mx.from_dlpack(theirs)
    views = [x[10:], x[::-1], x.reshape(10, 100).T]
    del theirs, x
    gc.collect()
    others = [library.make(np.full(1000, 9), "float32") for _ in range(20)]
    assert views[0].tolist() == list(range(10, 1000))
    assert views[1].tolist() == list(range(999, -1, -1))
    assert views[2][3, 4].item() == 403
    del others


def test_copy_is_asked_for(library: Library) -> None:
    theirs = library.make([1, 2, 3], "float32")
    copied = mx.from_dlpack(theirs, copy=True)
    assert copied.tolist() == [1, 2, 3]
    assert address(copied) != library.address(theirs)
    shared = mx.from_dlpack(theirs, copy=False)
    assert address(shared) == library.address(theirs)


def test_array_copies_and_asarray_does_not(library: Library) -> None:
    theirs = library.make([1, 2, 3], "float32")
    assert address(mx.array(theirs)) != library.address(theirs)
    assert address(mx.asarray(theirs)) == library.address(theirs)


def test_device(library: Library) -> None:
    theirs = library.make([1, 2, 3], "float32")
    assert mx.from_dlpack(theirs).__dlpack_device__() == (1, 0)
    for x in (mx.zeros(3), mx.arange(3) + 1):
        assert tuple(theirs.__dlpack_device__()) == x.__dlpack_device__()


def test_operands(library: Library) -> None:
    """An array of theirs as an operand is copied at the call: what they write later is not seen."""
    theirs = library.make([1, 2, 3], "float32")
    x = ours([10, 20, 30], "float32")
    total = x + theirs
    if library.writes is not None:
        library.writes(theirs)
    assert isinstance(total, mx.array)
    assert total.tolist() == [11, 22, 33]
