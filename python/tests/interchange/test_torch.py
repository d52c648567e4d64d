"""torch: tensors that are not what their memory says, in-place work on our memory, storage dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.capsules import address, header

import ultramarine as mx

torch: Any = pytest.importorskip("torch", reason="torch is not installed")


def test_in_place_on_our_empty() -> None:
    x = mx.empty((2, 3), mx.float32)
    there = torch.from_dlpack(x)
    where = address(x)
    there.fill_(2).mul_(3)
    there[1].add_(torch.arange(3))
    assert x.tolist() == [[6, 6, 6], [6, 7, 8]]
    assert address(x) == where == there.data_ptr()


def test_a_layer_on_our_memory() -> None:
    """A layer reads its input from our memory and writes its result there."""
    x = mx.arange(6, dtype=mx.float32).reshape(2, 3)
    out = mx.empty((2, 4), mx.float32)
    layer = torch.nn.Linear(3, 4)
    with torch.no_grad():
        torch.addmm(layer.bias, torch.from_dlpack(x), layer.weight.T, out=torch.from_dlpack(out))
        want = layer(torch.arange(6, dtype=torch.float32).reshape(2, 3))
    assert np.allclose(np.from_dlpack(out), want.numpy())
    # Its weights, without a copy, in our product.
    weight = mx.from_dlpack(layer.weight.detach())
    bias = mx.from_dlpack(layer.bias.detach())
    assert address(weight) == layer.weight.data_ptr()
    assert np.allclose(np.array(x @ weight.T + bias), want.numpy(), atol=1e-6)


def test_tensors_with_gradients() -> None:
    """torch's own refusal, or ours: the graph behind the values would be lost."""
    for tensor in (torch.zeros(3, requires_grad=True), torch.nn.Parameter(torch.zeros(3))):
        with pytest.raises(BufferError, match="grad"):
            mx.from_dlpack(tensor)
        assert mx.from_dlpack(tensor.detach()).tolist() == [0, 0, 0]


def test_conjugated_tensors() -> None:
    tensor = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64)
    with pytest.raises(BufferError, match="conj"):
        mx.from_dlpack(tensor.conj())
    assert mx.from_dlpack(tensor.conj().resolve_conj()).tolist() == [1 - 2j, 3 + 4j]
    assert mx.from_dlpack(tensor).tolist() == [1 + 2j, 3 - 4j]


def test_negated_tensors() -> None:
    """The imaginary part of a conjugate is a view whose elements are to be negated when read."""
    tensor = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64)
    negated = tensor.conj().imag
    assert negated.is_neg()
    with pytest.raises(BufferError, match="neg"):
        mx.from_dlpack(negated)
    assert mx.from_dlpack(negated.resolve_neg()).tolist() == [-2, 4]
    assert mx.from_dlpack(tensor.imag).tolist() == [2, -4]


@pytest.mark.parametrize("shape", [(), (1,), (3, 1), (3, 4)])
def test_negated_tensors_of_any_layout(shape: tuple[int, ...]) -> None:
    """torch is asked only where strides allow an imaginary part: that is all of these."""
    negated = torch.ones(shape, dtype=torch.complex128).conj().imag
    views = [negated]
    if shape:
        views += [negated[..., :1], negated[:1]]
    if len(shape) > 1:
        views.append(negated.mT)
    for view in views:
        assert view.is_neg()
        with pytest.raises(BufferError, match="neg"):
            mx.from_dlpack(view)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_sparse_tensors(layout: str) -> None:
    tensor = torch.eye(3).to_sparse(layout=getattr(torch, layout))
    with pytest.raises(BufferError, match=r"strided|sparse"):
        mx.from_dlpack(tensor)


def test_tensors_without_memory() -> None:
    with pytest.raises(BufferError, match="meta"):
        mx.from_dlpack(torch.zeros(3, device="meta"))


@pytest.mark.parametrize("dtype", ["complex32", "complex128"])
def test_dtypes_that_we_have_not(dtype: str) -> None:
    with pytest.raises(BufferError, match=r"complex|code 5"):
        mx.from_dlpack(torch.zeros(3, dtype=getattr(torch, dtype)))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_quantized_tensors() -> None:
    made = torch._empty_affine_quantized([3], scale=1.0, zero_point=0, dtype=torch.quint8)
    with pytest.raises(BufferError):
        mx.from_dlpack(made)


def test_expanded_and_diagonal() -> None:
    tensor = torch.arange(3, dtype=torch.float32)
    wide = mx.from_dlpack(tensor.expand(2, 3))
    assert header(wide).strides == (0, 1)
    assert wide.tolist() == [[0, 1, 2], [0, 1, 2]]
    square = torch.arange(9, dtype=torch.float32).reshape(3, 3)
    assert mx.from_dlpack(square.diagonal()).tolist() == [0, 4, 8]
    assert mx.from_dlpack(torch.arange(6).as_strided((2, 2), (2, 2), 1)).tolist() == [
        [1, 3],
        [3, 5],
    ]


def test_channels_last() -> None:
    tensor = torch.arange(16).reshape(1, 2, 2, 4).to(memory_format=torch.channels_last)
    x = mx.from_dlpack(tensor)
    assert x.tolist() == tensor.tolist()
    assert header(x).strides[1:] == tensor.stride()[1:]


def test_subclasses() -> None:
    class Mine(torch.Tensor):
        pass

    mine = torch.zeros(3).as_subclass(Mine)
    x = mx.from_dlpack(mine)
    assert address(x) == mine.data_ptr()


def test_torch_takes_own_arrays_by_every_protocol() -> None:
    x = mx.array([1.0, 2.0, 3.0])
    for take in (torch.from_dlpack, torch.utils.dlpack.from_dlpack, torch.asarray):
        assert take(x).tolist() == [1, 2, 3]
    assert torch.from_dlpack(x).data_ptr() == address(x)
    assert torch.utils.dlpack.from_dlpack(x.__dlpack__()).data_ptr() == address(x)


def test_torch_asks_for_copies() -> None:
    x = mx.array([1.0, 2.0, 3.0])
    copied = torch.from_dlpack(x, copy=True)
    assert copied.data_ptr() != address(x)
    copied[0] = 9
    assert x.tolist() == [1, 2, 3]
    assert torch.from_dlpack(x, copy=False).data_ptr() == address(x)
    assert torch.from_dlpack(x, device="cpu").data_ptr() == address(x)


def test_writes_are_seen_by_three() -> None:
    """NumPy, torch and ours on one memory."""
    base = np.zeros(4, np.float32)
    x = mx.from_dlpack(base)
    tensor = torch.from_dlpack(x)
    tensor[0] = 1
    base[1] = 2
    assert x.tolist() == [1, 2, 0, 0]
    assert tensor.tolist() == [1, 2, 0, 0]


def test_laziness_sees_torchs_writes() -> None:
    tensor = torch.tensor([1.0, 2.0])
    x = mx.from_dlpack(tensor)
    late = x + 1
    tensor.zero_()
    assert late.tolist() == [1, 1]


def test_two_numbers_in_a_byte() -> None:
    """torch's float4 has two numbers in an element, and so has ours of that name."""
    tensor = torch.tensor([0x21, 0x43], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    x = mx.from_dlpack(tensor)
    assert (x.dtype, x.shape) == (mx.float4_e2m1fn_x2, (2,))
    assert address(x) == tensor.data_ptr()
    assert x.astype(mx.float32).tolist() == [0.5, 1, 1.5, 2]
    back = torch.from_dlpack(x)
    assert back.dtype == torch.float4_e2m1fn_x2
    assert back.view(torch.uint8).tolist() == [0x21, 0x43]
