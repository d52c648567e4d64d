"""pyarrow: columns without missing values, which are immutable, and its tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.capsules import READ_ONLY, address, header

import ultramarine as mx

pa: Any = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pyarrow.compute")


def test_columns_are_read_only() -> None:
    column = pa.array([1.0, 2.0, 3.0], pa.float32())
    x = mx.from_dlpack(column)
    assert header(x).flags & READ_ONLY
    assert not np.from_dlpack(x).flags.writeable
    x[0] = 9
    assert x.tolist() == [9, 2, 3]
    assert column.to_pylist() == [1, 2, 3]


def test_slices_of_columns() -> None:
    column = pa.array(range(100), pa.int64())
    x = mx.from_dlpack(column[10:20])
    assert x.tolist() == list(range(10, 20))
    assert address(x) == column.buffers()[1].address + 80


@pytest.mark.parametrize(
    ("what", "make"),
    [
        ("nulls", lambda: pa.array([1, None, 3])),
        ("DataType", lambda: pa.array(["a", "b"])),
        ("DataType", lambda: pa.array([1, 2], pa.date32())),
        ("boolean", lambda: pa.array([True, False])),
        ("DataType", lambda: pa.array([[1], [2]])),
    ],
)
@pytest.mark.filterwarnings("ignore:Exporting an unversioned:DeprecationWarning")
def test_columns_that_are_no_tensors(what: str, make: Any) -> None:
    """pyarrow's own errors arrive as they are."""
    with pytest.raises(pa.ArrowTypeError, match=what):
        mx.from_dlpack(make())


def test_chunks_and_tables_have_no_protocol() -> None:
    for made in (pa.chunked_array([[1], [2]]), pa.table({"a": [1, 2]}), pa.scalar(1)):
        with pytest.raises(TypeError, match="__dlpack__"):
            mx.from_dlpack(made)


def test_columns_of_own_arrays() -> None:
    x = mx.arange(5, dtype=mx.int32)
    mx.eval(x)
    column = pa.Array.from_dlpack(x)
    assert column.to_pylist() == [0, 1, 2, 3, 4]
    assert column.buffers()[1].address == address(x)
    assert pa.compute.sum(column).as_py() == 10


def test_tensors_report_what_may_be_written() -> None:
    held = np.zeros((2, 2), np.float32)
    held.setflags(write=False)
    assert not pa.Tensor.from_dlpack(mx.from_dlpack(held)).is_mutable
    assert pa.Tensor.from_dlpack(mx.array(np.zeros((2, 2), np.float32))).is_mutable


def test_a_column_goes_around() -> None:
    """pyarrow, ours, numpy: one memory, kept by the last."""
    column = pa.array(range(1000), pa.float64())
    where = column.buffers()[1].address
    there = np.from_dlpack(mx.from_dlpack(column))
    del column
    others = [pa.array([9.0] * 1000) for _ in range(10)]
    assert there.ctypes.data == where
    assert there.sum() == 499500
    del others
