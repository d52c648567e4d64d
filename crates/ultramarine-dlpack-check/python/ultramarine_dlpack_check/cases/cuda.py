"""Streams and memory of CUDA, with torch or cupy on the other side. Without a device each case
says that it was skipped.

The library under test is both: the consumer of a producer whose values come late (a kernel that
sleeps on a side stream runs before they are written), and a producer whose own values do.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from typing import Any

from ultramarine_dlpack_check.case import (
    ARRAY_API,
    HEADER,
    OURS,
    NotApplicable,
    Skipped,
    case,
    expect,
    expect_equal,
    expect_refusal,
)
from ultramarine_dlpack_check.fabricate import Producer
from ultramarine_dlpack_check.target import Target, address

COUNT = 1 << 20
CYCLES = 400_000_000
CUDA = (2, 0)


def torch_with_cuda() -> Any:
    """torch, if it sees a device."""
    if importlib.util.find_spec("torch") is None:
        raise Skipped("torch is not installed")
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        raise Skipped("no CUDA device")
    return torch


def cupy_with_cuda() -> Any:
    """cupy, if it is there and sees a device."""
    torch_with_cuda()
    if importlib.util.find_spec("cupy") is None:
        raise Skipped("cupy is not installed")
    return importlib.import_module("cupy")


def imported(t: Target, source: Any, **keywords: Any) -> Any:
    """The library's array of a tensor on the device; not applicable if it has no CUDA."""
    try:
        return t.take(source, **keywords)
    except (BufferError, ValueError, TypeError, RuntimeError) as error:
        if not has_cuda(t):
            raise NotApplicable("the library takes nothing from CUDA") from error
        raise


def has_cuda(t: Target) -> bool:
    """Whether the library takes a plain tensor of the device at all."""
    torch = torch_with_cuda()
    try:
        t.take(torch.ones(4, device="cuda"))
    except Exception:
        return False
    return True


def back(torch: Any, array: Any) -> Any:
    """The library's array as torch's, for its values."""
    return torch.from_dlpack(array)


def late(torch: Any, stream: Any) -> Any:
    """A tensor of ones that are written on a stream, after a sleep."""
    tensor = torch.zeros(COUNT, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(CYCLES)
        tensor.fill_(1.0)
    return tensor


@case("cuda/takes", "A tensor on a CUDA device is taken in place.", ARRAY_API)
def takes(t: Target) -> None:
    torch = torch_with_cuda()
    source = torch.arange(6.0, device="cuda")
    array = imported(t, source)
    again = back(torch, array)
    expect_equal(again.tolist(), source.tolist(), "values")
    expect_equal(again.data_ptr(), source.data_ptr(), "address")


@case(
    "cuda/waits for a side stream", "Values that come late on a stream are waited for.", ARRAY_API
)
def waits(t: Target) -> None:
    torch = torch_with_cuda()
    if not has_cuda(t):
        raise NotApplicable("the library takes nothing from CUDA")
    side = torch.cuda.Stream()
    source = late(torch, side)
    with torch.cuda.stream(side):
        array = imported(t, source)
    total = back(torch, array).sum().item()
    expect_equal(total, float(COUNT), "sum")


@case("cuda/asks for a stream", "A consumer says on which stream it goes on.", ARRAY_API)
def asks(t: Target) -> None:
    torch = torch_with_cuda()
    if not has_cuda(t):
        raise NotApplicable("the library takes nothing from CUDA")
    source = torch.ones(4, device="cuda")
    producer = Producer(lambda **asked: source.__dlpack__(**asked), device=CUDA)
    imported(t, producer)
    asked = producer.asked[0]
    expect("stream" in asked, f"asked with {sorted(asked)}")
    expect(asked["stream"] != 0, "stream=0, which is not allowed")


def own(t: Target) -> Any:
    """An array of the library's on the device."""
    torch = torch_with_cuda()
    return imported(t, torch.ones(COUNT, device="cuda"))


def _streams() -> None:
    for stream in (None, 1, 2):

        def waited(t: Target, stream: int | None = stream) -> None:
            torch = torch_with_cuda()
            if not has_cuda(t):
                raise NotApplicable("the library takes nothing from CUDA")
            side = torch.cuda.Stream()
            source = late(torch, side)
            with torch.cuda.stream(side):
                array = imported(t, source)
                out = t.export(array, stream=stream, max_version=(1, 3))
            expect_equal(out.info()["device"][0], 2, "device type")
            view = torch.from_dlpack(array)
            expect_equal(view.sum().item(), float(COUNT), "sum")

        rule = "None and 1 are the default stream, 2 the thread's own: it waits for the values."
        case(f"cuda/stream {stream}", rule, ARRAY_API)(waited)


_streams()


@case("cuda/stream -1 adds no wait", "With -1 the call returns at once.", ARRAY_API)
def no_wait(t: Target) -> None:
    torch = torch_with_cuda()
    array = own(t)
    torch.cuda.synchronize()
    current = torch.cuda.current_stream()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(CYCLES * 4)
    t.capsule(array, stream=-1, max_version=(1, 3))
    expect(current.query(), "the consumer's stream was made to wait")
    expect(not side.query(), "the host waited for the device")
    torch.cuda.synchronize()


@case("cuda/stream 0 is refused", "0 is ambiguous, and forbidden.", ARRAY_API)
def stream_zero(t: Target) -> None:
    array = own(t)
    expect_refusal(lambda: t.capsule(array, stream=0, max_version=(1, 3)), "stream=0")


@case("cuda/stream by pointer", "Above 2 it is the address of a stream.", ARRAY_API)
def stream_pointer(t: Target) -> None:
    torch = torch_with_cuda()
    array = own(t)
    side = torch.cuda.Stream()
    out = t.export(array, stream=side.cuda_stream, max_version=(1, 3))
    expect_equal(out.info()["device"][0], 2, "device type")


@case("cuda/graph capture", "An export with stream=-1 does not end a capture.", OURS)
def graph_capture(t: Target) -> None:
    torch = torch_with_cuda()
    array = own(t)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    other = torch.zeros(4, device="cuda")
    with torch.cuda.graph(graph):
        other.add_(1.0)
        t.capsule(array, stream=-1, max_version=(1, 3))
    graph.replay()
    torch.cuda.synchronize()
    expect_equal(other.tolist(), [1.0] * 4, "values of the replay")


@case("cuda/second device", "Memory of another device stays there.", ARRAY_API)
def second_device(t: Target) -> None:
    torch = torch_with_cuda()
    if torch.cuda.device_count() < 2:
        raise Skipped("one CUDA device")
    source = torch.arange(4.0, device="cuda:1")
    array = imported(t, source)
    expect_equal(t.newest(array).info()["device"], (2, 1), "device")


@case("cuda/managed memory", "Memory that CUDA manages is taken in place.", HEADER)
def managed(t: Target) -> None:
    cupy, torch = cupy_with_cuda(), torch_with_cuda()
    if not has_cuda(t):
        raise NotApplicable("the library takes nothing from CUDA")
    memory = cupy.cuda.malloc_managed(4096)
    source = cupy.ndarray((16,), dtype="float32", memptr=memory)
    source[...] = 3.0
    cupy.cuda.Device().synchronize()
    array = imported(t, source)
    expect_equal(back(torch, array).sum().item(), 48.0, "sum")


@case("cuda/pinned memory", "Pinned memory of the host is taken in place.", HEADER)
def pinned(t: Target) -> None:
    torch = torch_with_cuda()
    source = torch.arange(4.0).pin_memory()
    array = t.take(source)
    expect_equal(torch.from_dlpack(array).tolist(), source.tolist(), "values")


@case("cuda/to the host", "dl_device=(1, 0) waits, and copies to the host.", ARRAY_API)
def to_the_host(t: Target) -> None:
    array = own(t)
    out = t.export(array, dl_device=(1, 0), max_version=(1, 3))
    info = out.info()
    expect_equal(info["device"], (1, 0), "device")
    expect(info["flags"] & 2, f"flags {info['flags']}: not IS_COPIED")
    expect_equal(out.read(8), b"\x00\x00\x80\x3f" * 2, "bytes")


@case("cuda/to the host without a copy", "dl_device=(1, 0) with copy=False raises.", ARRAY_API)
def to_the_host_no_copy(t: Target) -> None:
    array = own(t)
    ask = {"dl_device": (1, 0), "copy": False, "max_version": (1, 3)}
    expect_refusal(lambda: t.capsule(array, **ask), "copy=False", BufferError)


@case("cuda/freed, then reused", "Memory of an export is not handed out while it is used.", HEADER)
def freed_then_reused(t: Target) -> None:
    torch = torch_with_cuda()
    array = own(t)
    out = t.newest(array)
    at = address(out.info())
    del array
    others = [torch.full((COUNT,), 9.0, device="cuda") for _ in range(8)]
    torch.cuda.synchronize()
    expect(all(o.data_ptr() != at for o in others), "the memory was handed out again")


@case("cuda/dropped while the device works", "Work on the device keeps what it reads.", HEADER)
def dropped_while_working(t: Target) -> None:
    torch = torch_with_cuda()
    source = torch.ones(COUNT, device="cuda")
    array = imported(t, source)
    torch.cuda._sleep(CYCLES)
    view = torch.from_dlpack(array)
    total = view.sum()
    del array, view, source
    time.sleep(0.01)
    torch.full((COUNT,), 5.0, device="cuda")
    expect_equal(total.item(), float(COUNT), "sum")


@case("cuda/cupy there and back", "cupy's arrays, with its streams.", ARRAY_API)
def cupy_there_and_back(t: Target) -> None:
    cupy = cupy_with_cuda()
    if not has_cuda(t):
        raise NotApplicable("the library takes nothing from CUDA")
    side = cupy.cuda.Stream(non_blocking=True)
    with side:
        source = cupy.arange(1000, dtype="float32") * 2
        array = imported(t, source)
    again = cupy.from_dlpack(array)
    expect_equal(float(again.sum()), 999000.0, "sum")
    expect_equal(again.data.ptr, source.data.ptr, "address")


@case("cuda/exchange API: stream", "current_work_stream is the stream that work goes to.", HEADER)
def work_stream(t: Target) -> None:
    from ultramarine_dlpack_check.cases.exchange import table_of

    torch = torch_with_cuda()
    if t.adapter.name != "torch":
        raise NotApplicable("only torch lets its stream be asked for")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        expect_equal(table_of(t).stream(2, 0), side.cuda_stream, "stream")
