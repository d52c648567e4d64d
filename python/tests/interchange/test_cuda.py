"""CUDA memory exchanged with torch, cupy and jax: no copy by pointer, both ways; streams; lifetimes; managed and pinned
memory. Skipped, visibly, where there is no GPU or no CUDA backend."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from support.capsules import address

import ultramarine as mx

torch: Any = pytest.importorskip("torch", reason="torch is not installed")

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU that torch can use"),
    pytest.mark.skipif(
        not mx.cuda.is_available(), reason="no CUDA backend is loaded, or it has no GPU"
    ),
]

# Cycles of a kernel that only sleeps: about 50 ms.
SLEEP = 80_000_000
SHARED = [
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]


@pytest.fixture(autouse=True)
def on_the_gpu() -> Iterator[None]:
    before = mx.default_device()
    mx.set_default_device(mx.gpu)
    yield
    mx.set_default_device(before)
    torch.cuda.synchronize()


def cupy() -> Any:
    return pytest.importorskip("cupy", reason="cupy is not installed")


def jax() -> Any:
    found = pytest.importorskip("jax", reason="jax is not installed")
    if all(d.platform != "gpu" for d in found.devices()):
        pytest.skip("jax has no GPU")
    return found


@pytest.mark.parametrize("name", SHARED)
def test_torch_dtypes_both_ways(name: str) -> None:
    t = torch.arange(24, device="cuda").reshape(2, 3, 4).to(getattr(torch, name))
    x = mx.from_dlpack(t)
    assert x.dtype == getattr(mx, name) and x.shape == (2, 3, 4)
    assert address(x) == t.data_ptr()
    back = torch.from_dlpack(x)
    assert back.data_ptr() == t.data_ptr() and back.dtype == t.dtype
    assert torch.equal(back, t)
    ours = (mx.arange(24).reshape(2, 3, 4) + 1).astype(getattr(mx, name))
    there = torch.from_dlpack(ours)
    assert there.is_cuda and there.data_ptr() == address(ours)
    assert torch.equal(there, t + 1)


def test_torch_strides_both_ways() -> None:
    t = torch.arange(120.0, device="cuda").reshape(4, 5, 6)
    for view in (t.permute(2, 0, 1), t[1:, ::2, 3:], t[:, 2:3].expand(4, 7, 6), t[2, 3, 4], t[:0]):
        x = mx.from_dlpack(view)
        assert x.shape == tuple(view.shape)
        if view.numel():
            assert address(x) == view.data_ptr()
        assert np.array_equal(np.array(mx.copy(x + 0, mx.cpu)), view.cpu().numpy())
    x = mx.arange(60).reshape(3, 4, 5)
    view = mx.transpose(x, (2, 0, 1))
    mx.eval(view)
    assert torch.equal(
        torch.from_dlpack(view).cpu(),
        torch.arange(60, dtype=torch.int32).reshape(3, 4, 5).permute(2, 0, 1),
    )


def test_foreign_memory_stays_whole() -> None:
    t = torch.zeros(1000, device="cuda")
    x = mx.from_dlpack(t)
    y = x + 1
    x[0] = 5
    mx.eval(x, y)
    assert float(t.sum()) == 0 and x[0].item() == 5 and mx.sum(y).item() == 1000


def runs_ahead(trial: Callable[[int], bool]) -> None:
    """Checks that the host does not wait for a GPU that sleeps for the given cycles. A trial returns true where it came
    first. A busy host may come late, so sleeps become longer; a host that waits is late after any sleep."""
    cycles = (SLEEP << shift for shift in (0, 2, 4, 6))
    assert any(trial(number) for number in cycles), "the host waited, though it need not"


def test_delayed_values_on_a_side_stream() -> None:
    def trial(cycles: int) -> bool:
        side = torch.cuda.Stream()
        t = torch.zeros(1 << 20, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(cycles)
            t.fill_(3)
            x = mx.from_dlpack(t)
            first = not side.query()
        y = x * 2
        assert mx.sum(y).item() == 6 * (1 << 20)
        return first

    for _ in range(3):
        runs_ahead(trial)


def test_a_consumer_on_a_side_stream_waits_for_us() -> None:
    n = 4096
    a = mx.random.normal((n, n))
    mx.eval(a)
    side = torch.cuda.Stream()
    for _ in range(3):
        b = a
        for _ in range(8):
            b = mx.tanh(b @ a / n)
        c = mx.ones((1 << 20,)) * 7 + 0 * b[0, 0]
        mx.eval(c)
        with torch.cuda.stream(side):
            total = torch.from_dlpack(c).sum()
        side.synchronize()
        assert float(total) == 7 * (1 << 20)


def test_a_tensor_that_is_freed_while_our_work_reads_it() -> None:
    """torch hands the memory to its next tensor at once; our reader is behind a long kernel."""
    n = 1 << 22
    big = mx.random.normal((4096, 4096))
    mx.eval(big)
    for i in range(5):
        t = torch.full((n,), float(i), device="cuda")
        x = mx.from_dlpack(t)
        slow = big
        for _ in range(6):
            slow = mx.tanh(slow @ big / 4096)
        y = x + 0 * slow[0, 0]
        del x, t
        mx.async_eval(y)
        gc.collect()
        others = [torch.full((n,), -1.0, device="cuda") for _ in range(4)]
        assert mx.min(y).item() == i and mx.max(y).item() == i
        del others


def test_our_array_that_is_freed_while_torch_reads_it() -> None:
    n = 1 << 22
    for i in range(5):
        x = mx.full((n,), float(i))
        mx.eval(x)
        t = torch.from_dlpack(x)
        del x
        torch.cuda._sleep(SLEEP // 4)
        total = t.sum()
        for _ in range(4):
            mx.eval(mx.full((n,), -1.0))
        assert float(total) == i * n
        del t


def test_memory_that_torch_lets_go_while_its_kernels_read_it() -> None:
    """torch drops a tensor of ours when it has submitted what reads it; our next array may have the memory after that."""
    n = 1 << 24
    big = torch.randn(4096, 4096, device="cuda")
    for i in range(20):
        x = mx.full((n,), float(i))
        mx.eval(x)
        t = torch.from_dlpack(x)
        for _ in range(8):
            big @ big
        y = t * 1.0
        del t, x
        mx.eval(mx.full((n,), -1.0))
        assert bool((y == float(i)).all()), i


@pytest.mark.parametrize("late", [False, True], ids=["on its stream", "elsewhere"])
def test_memory_that_torch_lets_go_on_a_side_stream(late: bool) -> None:
    """A stream that does not wait for the default stream still reads when torch drops the tensor."""
    n = 1 << 22

    def trial(value: float, cycles: int) -> bool:
        x = mx.full((n,), value)
        mx.eval(x)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            t = torch.from_dlpack(x)
            torch.cuda._sleep(cycles)
            y = t * 1.0
            if not late:
                del t
        if late:
            del t
        del x
        reused = [mx.full((n,), -1.0) for _ in range(4)]
        mx.async_eval(reused)
        first = not side.query()
        mx.eval(reused)
        side.synchronize()
        assert bool((y == value).all()), value
        return first

    for i in range(5):
        runs_ahead(partial(trial, float(i)))


def test_memory_that_cupy_lets_go_on_a_side_stream() -> None:
    cp = cupy()
    sleep = cp.RawKernel(
        """extern "C" __global__ void wait(long long cycles) {
            const long long begin = clock64();
            while (clock64() - begin < cycles) {}
        }""",
        "wait",
    )
    sleep((1,), (1,), (1,))
    n = 1 << 22
    for i in range(5):
        x = mx.full((n,), float(i))
        mx.eval(x)
        there = cp.empty(n, dtype=cp.float32)
        cp.cuda.get_current_stream().synchronize()
        side = cp.cuda.Stream(non_blocking=True)
        done = cp.cuda.Event()
        with side:
            t = cp.from_dlpack(x)
            sleep((1,), (1,), (SLEEP,))
            cp.multiply(t, 1.0, out=there)
            done.record()
        del t, side, x
        mx.eval([mx.full((n,), -1.0) for _ in range(4)])
        done.synchronize()
        assert bool((there == float(i)).all()), i


def test_a_release_on_a_side_stream_of_which_torch_captures_a_graph() -> None:
    x = mx.ones((1024,))
    mx.eval(x)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        t = torch.from_dlpack(x)
    sums = torch.zeros(1024, device="cuda")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        sums += 1
        del t
        mx.eval(mx.ones((1 << 20,)) + x[0])
    graph.replay()
    torch.cuda.synchronize()
    assert bool((sums == 1).all())


def test_a_release_while_torch_captures_a_graph() -> None:
    x = mx.ones((1024,))
    mx.eval(x)
    t = torch.from_dlpack(x)
    sums = torch.zeros(1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        sums += 1
        del t
        mx.eval(mx.ones((1 << 20,)) + x[0])
    graph.replay()
    torch.cuda.synchronize()
    assert bool((sums == 1).all())


def test_bits_at_odd_addresses() -> None:
    a = torch.arange(17.0, device="cuda")[1:]
    assert mx.from_dlpack(a).view(mx.complex64)[0].item() == 1 + 2j
    b = torch.zeros(33, dtype=torch.uint8, device="cuda")[1:]
    assert mx.sum(mx.from_dlpack(b).view(mx.float32) + 1).item() == 8


def test_cupy_both_ways() -> None:
    cp = cupy()
    theirs = cp.arange(12, dtype=cp.float32).reshape(3, 4)
    x = mx.from_dlpack(theirs)
    assert address(x) == theirs.data.ptr
    assert x.tolist() == theirs.get().tolist()
    ours = mx.arange(12, dtype=mx.float32).reshape(3, 4) * 2
    there = cp.from_dlpack(ours)
    assert there.data.ptr == address(ours)
    assert there.get().tolist() == ours.tolist()
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        late = cp.zeros(1 << 20, dtype=cp.float32)
        late += 4
        y = mx.from_dlpack(late) + 1
    assert mx.sum(y).item() == 5 * (1 << 20)


def test_cupy_managed_memory() -> None:
    cp = cupy()
    with cp.cuda.using_allocator(cp.cuda.malloc_managed):
        theirs = cp.arange(1000, dtype=cp.float32)
    cp.cuda.get_current_stream().synchronize()
    x = mx.from_dlpack(theirs)
    assert address(x) == theirs.data.ptr
    assert mx.sum(x * 2).item() == 999000


def test_pinned_memory() -> None:
    t = torch.arange(1000, dtype=torch.float32).pin_memory()
    x = mx.from_dlpack(t)
    assert mx.sum(x).item() == 499500
    assert mx.sum(x, stream=mx.cpu).item() == 499500


def test_jax_both_ways() -> None:
    jnp = jax().numpy
    theirs = jnp.arange(12, dtype=jnp.float32).reshape(3, 4)
    x = mx.from_dlpack(theirs)
    assert address(x) == theirs.unsafe_buffer_pointer()
    assert (x + 1).tolist() == (np.asarray(theirs) + 1).tolist()
    ours = mx.arange(12, dtype=mx.float32).reshape(3, 4) * 3
    there = jax().dlpack.from_dlpack(ours)
    assert there.unsafe_buffer_pointer() == address(ours)
    assert np.asarray(there).tolist() == ours.tolist()
    assert np.asarray(jnp.sum(there)).item() == 198


def test_operators_with_torch_tensors() -> None:
    t = torch.arange(4.0, device="cuda")
    total = mx.ones((4,)) + mx.asarray(t)
    assert total.tolist() == [1, 2, 3, 4]


def test_to_the_host() -> None:
    x = mx.arange(10)
    assert np.array(x).tolist() == list(range(10))
    with pytest.raises((BufferError, ValueError, RuntimeError)):
        np.from_dlpack(x)  # NumPy takes no memory of a GPU, and asks for no copy


def test_memory_is_flat_over_many_exchanges() -> None:
    t = torch.ones(1 << 16, device="cuda")
    mx.eval(mx.from_dlpack(t) + 1)
    torch.from_dlpack(mx.ones((1 << 16,)))
    before = mx.get_active_memory(), torch.cuda.memory_allocated()
    for _ in range(10_000):
        torch.from_dlpack(mx.from_dlpack(t))
    for _ in range(2_000):
        torch.from_dlpack(mx.full((1 << 16,), 1.0))
    mx.synchronize()
    gc.collect()
    after = mx.get_active_memory(), torch.cuda.memory_allocated()
    assert after[0] <= before[0] + (1 << 20) and after[1] <= before[1]
