"""Kernels of Triton, tvm-ffi and TileLang that write into our arrays on our stream: eagerly and inside of `compile`, without
a wait of the host. Skipped, visibly, without a GPU or the library (tvm-ffi and TileLang compile with nvcc)."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.capsules import work_stream
from support.paths import ROOT

import ultramarine as mx

sys.path.insert(0, str(ROOT / "examples"))
foreign_kernels: Any = pytest.importorskip("foreign_kernels")
torch: Any = pytest.importorskip("torch", reason="torch is not installed")

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU that torch can use"),
    pytest.mark.skipif(
        not mx.cuda.is_available(), reason="no CUDA backend is loaded, or it has no GPU"
    ),
]

N = foreign_kernels.N
# Writes 4 x + 2 y into its last argument.
Axpby = Callable[[mx.array, mx.array, mx.array], object]


@pytest.fixture(autouse=True)
def on_the_gpu() -> Iterator[None]:
    before = mx.default_device()
    mx.set_default_device(mx.gpu)
    yield
    mx.set_default_device(before)
    torch.cuda.synchronize()


def axpby_of(library: str) -> Axpby:
    """The function of the example, where the library is installed."""
    module = library.replace("-", "_")
    pytest.importorskip(module, reason=f"{library} is not installed")
    if library != "triton" and shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc")
    function: Axpby = getattr(foreign_kernels, f"axpby_by_{module}")
    return function


LIBRARIES = ("triton", "tvm-ffi", "tilelang")
each_library = pytest.mark.parametrize("library", LIBRARIES)


def operands() -> tuple[mx.array, mx.array]:
    x, y = mx.random.normal((N,), key=mx.random.key(1)), mx.arange(N, dtype=mx.float32)
    mx.eval(x, y)
    return x, y


@each_library
def test_into_our_array(library: str) -> None:
    axpby = axpby_of(library)
    x, y = operands()
    out = mx.empty((N,), mx.float32)
    axpby(x * 2, y, out)
    assert mx.allclose(out, 4 * (x * 2) + 2 * y)


def operation(axpby: Axpby) -> Callable[[mx.array, mx.array], mx.array]:
    kernel = mx.fast.foreign_kernel(axpby, name="axpby")
    return lambda x, y: kernel(inputs=[x, y], output_shapes=[(N,)], output_dtypes=[mx.float32])[0]


@each_library
def test_as_an_operation_in_compile(library: str) -> None:
    f = operation(axpby_of(library))
    x, y = operands()
    function = lambda x, y: mx.sqrt(mx.abs(f(x + 1, y * 3))) - f(y, x)
    want = mx.sqrt(mx.abs(4 * (x + 1) + 2 * (y * 3))) - (4 * y + 2 * x)
    assert mx.allclose(function(x, y), want)
    compiled = mx.compile(function)
    for i in range(4):
        assert mx.allclose(compiled(x, y), want), i


def our_stream() -> Any:
    native = mx.default_stream(mx.gpu).native
    assert native == work_stream(mx.array)
    return torch.cuda.ExternalStream(native)


def busy(seconds: float = 0.05) -> mx.array:
    """Work on our stream that lasts a while, of which the host knows nothing."""
    torch.cuda.synchronize()
    with torch.cuda.stream(our_stream()):
        torch.cuda._sleep(int(seconds * 1.6e9))
    return mx.zeros((N,)) + 1


def is_busy() -> bool:
    return not our_stream().query()


@each_library
def test_the_host_does_not_wait(library: str) -> None:
    axpby = axpby_of(library)
    f = operation(axpby)
    compiled = mx.compile(lambda x, y: f(x + 1, y) * 2)
    x, y = operands()
    out = mx.empty((N,), mx.float32)
    # Compiles, and loads what is loaded late.
    axpby(x, y, out)
    mx.eval(compiled(x, y), f(x, y))
    mx.synchronize()

    one = busy()
    mx.async_eval(one)
    axpby(one, y, out)
    assert is_busy(), "the host waited, though it need not"
    total = mx.sum(out) - 2 * mx.sum(y)
    assert total.item() == pytest.approx(4 * N, rel=1e-2)

    one = busy()
    begun = time.perf_counter()
    z = compiled(one, y)
    mx.async_eval(z)
    took = time.perf_counter() - begun
    assert took < 0.04, took
    mx.eval(z)
    assert mx.allclose(z, (8 + 2 * y) * 2)


@each_library
def test_on_a_stream_of_our_own(library: str) -> None:
    f = operation(axpby_of(library))
    x, y = operands()
    side = mx.new_stream(mx.gpu)
    with mx.stream(side):
        z = f(x + 1, y) + 1
    assert mx.allclose(z + 1, 4 * (x + 1) + 2 * y + 2)


def test_conversions_take_microseconds() -> None:
    """The times are in docs/interchange.md; here a bound that a busy machine keeps, too."""
    t, x = torch.ones(1024, device="cuda"), mx.ones((1024,))
    mx.eval(x)
    for convert in (lambda: mx.from_dlpack(t), lambda: torch.from_dlpack(x)):
        for _ in range(1000):
            convert()
        begun = time.perf_counter()
        for _ in range(1000):
            convert()
        assert (time.perf_counter() - begun) / 1000 < 50e-6
