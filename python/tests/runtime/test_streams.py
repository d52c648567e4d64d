"""Streams of threads, device_info, and names that mlx.core has."""

from __future__ import annotations

import gc
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

import ultramarine as um


def in_thread(f: Any) -> Any:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(f())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def current(stream: Any) -> um.Stream:
    with um.stream(stream):
        return um.default_stream(um.cpu)


def test_each_thread_has_its_own() -> None:
    local = um.new_thread_local_stream(um.cpu)
    assert isinstance(local, um.ThreadLocalStream)
    assert local.device == um.cpu and repr(local).startswith("ThreadLocalStream(Device(cpu, 0), ")
    here = current(local)
    assert current(local) == here != um.default_stream(um.cpu)
    # Two threads at a time, that both hold theirs.
    barrier = threading.Barrier(2)
    found: list[um.Stream] = []

    def run() -> None:
        found.append(current(local))
        barrier.wait(20)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({here, *found}) == 3
    other = um.new_thread_local_stream(um.cpu)
    assert other != local and local == local and len({local, other}) == 2
    assert local != here and local != 1


def test_threads_hand_their_streams_on() -> None:
    local = um.new_thread_local_stream(um.cpu)
    first = in_thread(lambda: current(local))
    # The next thread takes what the last one left: streams do not pile up.
    seen = {in_thread(lambda: current(local)) for _ in range(20)}
    assert len(seen | {first}) <= 3


def test_work_on_them() -> None:
    local = um.new_thread_local_stream(um.cpu)
    x = um.array([1.0, 2.0])
    y = um.add(x, x, stream=local)
    z = in_thread(lambda: um.multiply(y, y, stream=local))
    assert z.tolist() == [4, 16]
    um.async_eval(um.exp(z, stream=local))
    um.synchronize(local)
    with pytest.raises(TypeError):
        um.set_default_stream(local)
    with pytest.raises(TypeError):
        um.ThreadLocalStream()


def test_clear_streams() -> None:
    def run() -> None:
        local, made = um.new_thread_local_stream(um.cpu), um.new_stream(um.cpu)
        x = um.add(um.ones(3), 1, stream=made)
        y = um.add(x, x, stream=local)
        um.async_eval(y)
        um.clear_streams()
        assert y.tolist() == [4, 4, 4]
        # What used them may go on.
        assert um.add(x, y, stream=made).tolist() == [6, 6, 6]
        assert um.add(x, y, stream=local).tolist() == [6, 6, 6]
        um.clear_streams()
        um.clear_streams()

    in_thread(run)
    run()


def test_device_info() -> None:
    info = um.device_info()
    assert info == um.device_info(um.cpu) == um.device_info(um.Device(um.cpu, 0))
    mlx = pytest.importorskip("mlx.core")
    for key, value in mlx.device_info(mlx.cpu).items():
        assert info[key] == value, key
    assert info["backend"] == "cpu" and int(info["threads"]) >= 1
    assert int(info["memory_size"]) == int(info["total_memory"]) > 1 << 26
    assert um.device_info(um.Device(um.gpu, 77)) == {}
    with pytest.raises(TypeError):
        um.device_info("cpu")


def test_names() -> None:
    assert um.__version__.count(".") == 2
    assert um.metal.is_available() is False and um.cuda.is_available() is False
    mlx = pytest.importorskip("mlx.core")
    for name in ("metal", "cuda"):
        theirs = {n for n in dir(getattr(mlx, name)) if not n.startswith("_")}
        assert theirs - set(dir(getattr(um, name))) == set()
    with pytest.warns(DeprecationWarning, match="get_peak_memory"):
        assert um.metal.get_peak_memory() == um.get_peak_memory()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = um.metal.set_cache_limit(1 << 20)
        assert um.metal.set_cache_limit(before) == 1 << 20
        assert um.metal.device_info() == um.device_info(um.gpu)
        um.metal.reset_peak_memory()
    assert um.metal.start_capture("trace.gputrace") is None and um.metal.stop_capture() is None


def test_buffer_size() -> None:
    x = um.zeros((1000,)) + 1
    with pytest.raises(ValueError, match="must be evaluated"):
        um.get_array_buffer_size(x)
    um.eval(x)
    size = um.get_array_buffer_size(x)
    assert 4000 <= size <= 8192
    view = x[10:20]
    um.eval(view)
    assert um.get_array_buffer_size(x, {"a": [view, 3, None]}) == size
    y = x * 2
    um.eval(y)
    assert um.get_array_buffer_size([x, (y,)]) == 2 * size
    assert um.get_array_buffer_size() == um.get_array_buffer_size(1, "a") == 0


def stream_threads() -> int:
    """Threads that run the jobs of streams (Linux)."""
    names = [(task / "comm") for task in Path("/proc/self/task").iterdir()]
    return sum(name.read_text().startswith("ultramarine-str") for name in names if name.exists())


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads as Linux does")
def test_streams_share_threads() -> None:
    streams = [um.new_stream(um.cpu) for _ in range(200)]
    for stream in streams:
        x = um.exp(um.ones(100), stream=stream)
        um.async_eval(x)
        um.synchronize(stream)
    assert stream_threads() <= 24


def test_dropped_streams_are_given_out_again() -> None:
    def indices() -> set[int]:
        streams = [um.new_stream(um.cpu) for _ in range(200)]
        found = {stream.index for stream in streams}
        assert len(found) == 200
        return found

    gc.collect()
    first = indices()
    assert len(first | indices()) < 300


def test_a_stream_is_ones_own_while_anything_refers_to_it() -> None:
    with um.stream(um.new_stream(um.cpu)):
        inside = um.default_stream(um.cpu)
        assert um.new_stream(um.cpu) != inside
    index = inside.index
    del inside
    gc.collect()
    others = [um.new_stream(um.cpu) for _ in range(500)]
    assert index in {s.index for s in others}
    # A default stream is nobody else's for good.
    former = um.default_stream(um.cpu)
    um.set_default_stream(um.new_stream(um.cpu))
    try:
        assert um.default_stream(um.cpu) != um.new_stream(um.cpu)
    finally:
        um.set_default_stream(former)
    # Arrays that are to be computed on a dropped stream are.
    x = um.exp(um.zeros(3), stream=um.new_stream(um.cpu)) + 1
    assert x.tolist() == [2, 2, 2]


def fails(lib: Any, stream: Any = None) -> Any:
    """An array whose evaluation fails."""
    return lib.linalg.inv(lib.zeros((3, 3)), stream=stream or lib.cpu)


def outcomes(*calls: Any) -> list[str]:
    found = []
    for call in calls:
        try:
            call()
            found.append("done")
        except RuntimeError:
            found.append("fails")
    return found


def test_synchronize_raises_asynchronous_failures() -> None:
    def case(lib: Any) -> list[list[str]]:
        default = lib.default_stream(lib.cpu)
        own = lib.new_stream(lib.cpu)
        found = []

        x, y = fails(lib), fails(lib)
        lib.async_eval(x)
        lib.async_eval(y)
        found.append(outcomes(lambda: lib.synchronize(default), lambda: lib.synchronize(default)))

        lib.async_eval(fails(lib))  # an array that nobody has
        found.append(outcomes(lib.synchronize, lib.synchronize))

        z = fails(lib, own)
        lib.async_eval(z)
        found.append(outcomes(lib.synchronize, lambda: lib.synchronize(own)))

        z = fails(lib)
        lib.async_eval(z)
        # What was raised once is not raised again.
        found.append(outcomes(lambda: lib.eval(z), lib.synchronize))

        found.append(outcomes(lambda: lib.eval(fails(lib)), lib.synchronize))
        return found

    assert case(um) == [
        ["fails", "done"],
        ["fails", "done"],
        ["done", "fails"],
        ["fails", "done"],
        ["fails", "done"],
    ]
    mlx = pytest.importorskip("mlx.core")
    # In mlx any later call may raise a failure that is pending.
    assert "fails" in outcomes(lambda: mlx.async_eval(fails(mlx)), mlx.synchronize)


def test_synchronize_raises_no_failure_that_a_dependent_raised() -> None:
    x = fails(um)
    y = x * 2
    um.async_eval(x, y)
    with pytest.raises(RuntimeError, match="singular"):
        um.eval(y)
    um.synchronize()
    # Unlike mlx, ours stays failed.
    with pytest.raises(RuntimeError, match="singular"):
        um.eval(x)


def test_synchronize_names_the_failure() -> None:
    um.async_eval(fails(um) + 1)
    with pytest.raises(RuntimeError, match="singular"):
        um.synchronize(um.default_stream(um.cpu))
