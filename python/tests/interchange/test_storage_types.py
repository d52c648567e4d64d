"""fp8, fp6 and fp4 of torch, jax and ml_dtypes: the same memory, the same numbers, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.capsules import address

import ultramarine as mx

ml: Any = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")

TORCH = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
JAX = ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", *TORCH]
CODES = np.arange(256, dtype=np.uint8).reshape(16, 16)


def where(x: mx.array) -> int:
    return int(address(x.view(mx.uint8)))


@pytest.mark.parametrize("name", TORCH)
def test_torch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    bytes_ = torch.from_numpy(CODES.copy())
    tensor = bytes_.view(getattr(torch, name))
    for view in (tensor, tensor.T, tensor[3:, ::5]):
        x = mx.from_dlpack(view)
        assert x.dtype == getattr(mx, name) and x.shape == tuple(view.shape)
        assert where(x) == view.data_ptr()
        ours = np.array(x.astype(mx.float32))
        assert np.array_equal(ours, view.float().numpy(), equal_nan=True)
    x = mx.array(CODES).view(getattr(mx, name))
    back = torch.from_dlpack(x)
    assert back.dtype == tensor.dtype and back.data_ptr() == where(x)
    assert torch.equal(back.view(torch.uint8), bytes_)


def test_torch_pairs() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    bytes_ = torch.from_numpy(CODES.copy())
    x = mx.from_dlpack(bytes_.view(torch.float4_e2m1fn_x2))
    assert x.dtype == mx.float4_e2m1fn_x2 and x.shape == (16, 16)
    assert where(x) == bytes_.data_ptr()
    low_first = np.stack([CODES & 15, CODES >> 4], -1).reshape(16, 32).view(ml.float4_e2m1fn)
    assert np.array(x.astype(mx.float32)).tolist() == low_first.astype(np.float32).tolist()
    back = torch.from_dlpack(x)
    assert back.dtype == torch.float4_e2m1fn_x2 and back.data_ptr() == bytes_.data_ptr()


@pytest.mark.parametrize("name", JAX)
def test_jax(name: str) -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    theirs = jax.numpy.asarray(CODES.view(getattr(ml, name)))
    x = mx.from_dlpack(theirs)
    assert x.dtype == getattr(mx, name) and x.shape == CODES.shape
    assert where(x) == theirs.unsafe_buffer_pointer()
    assert np.array_equal(np.array(x.view(mx.uint8)), CODES)
    mine = mx.array(CODES).view(getattr(mx, name))
    back = jax.dlpack.from_dlpack(mine)
    assert back.dtype == theirs.dtype
    assert np.array_equal(np.asarray(back).view(np.uint8), CODES)
    assert back.unsafe_buffer_pointer() == where(mine)


def test_jax_packs_fp4() -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    numbers = np.arange(15, dtype=np.uint8).view(ml.float4_e2m1fn)
    x = mx.from_dlpack(jax.numpy.asarray(numbers))
    assert x.dtype == mx.float4_e2m1fn_packed and x.nbytes == 8
    assert x.tolist() == numbers.astype(np.float32).tolist()
    with pytest.raises(BufferError, match="padded"):
        mx.array(numbers).__dlpack__()  # a legacy tensor has no flag for it


@pytest.mark.parametrize("name", ["float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"])
def test_padded_and_packed_by_their_flag(name: str) -> None:
    bits = int(ml.finfo(getattr(ml, name)).bits)
    codes = np.arange(1 << bits, dtype=np.uint8)
    padded = mx.array(codes).view(getattr(mx, name))
    packed = padded.astype(getattr(mx, f"{name}_packed"))
    for x in (padded, packed):
        mx.eval(x)
        back = mx.from_dlpack(x.__dlpack__(max_version=(1, 3)))
        assert back.dtype == x.dtype and back.shape == x.shape and bytes(back) == bytes(x)
        assert back.tolist() == codes.view(getattr(ml, name)).astype(np.float32).tolist()
    assert mx.from_dlpack(packed.__dlpack__()).dtype == packed.dtype
