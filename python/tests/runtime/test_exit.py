"""Processes that end while streams are at work: no crash, no deadlock, and what still works on the way out."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest
from support import plugins

RUNS = 3

BUSY = """
    mx.set_default_device(mx.gpu)
    streams = [mx.new_stream(mx.gpu) for _ in range(20)]
    x = mx.ones((64, 64))
    results = []

    def work():
        for turn in range(4):
            for i, s in enumerate(streams):
                with mx.stream(s):
                    y = x
                    for k in range(6):
                        y = mx.exp(mx.sin(y) * (i + k + 1)) @ x
                        y = y + mx.sum(y, axis=turn % 2)
                mx.async_eval(y)
                results.append(y)
"""

ENDINGS = {
    "last line": """
        work()
    """,
    "arrays dropped": """
        work()
        results.clear()
    """,
    "sys.exit inside of a transform": """
        import sys

        def loss(w):
            work()
            sys.exit(0)

        mx.grad(lambda w: mx.vmap(loss)(w).sum())(mx.ones(3))
    """,
    "sys.exit in a thread's callback": """
        import sys, threading
        threading.Thread(target=work).start()
        work()
        sys.exit(0)
    """,
    "a thread that goes on": """
        import threading

        def forever():
            while True:
                work()
                mx.eval(results[-1])
                results.clear()

        threading.Thread(target=forever, daemon=True).start()
        work()
    """,
    "a kernel that does not load": """
        work()
        source = {"opencl-c": "nothing;", "cuda-c": "nothing;"}
        broken = mx.fast.kernel("broken", ["a"], ["b"], source=source)
        try:
            mx.eval(broken(
                inputs=[x], grid=(1, 1, 1), threadgroup=(1, 1, 1), output_shapes=[(1,)],
                output_dtypes=[mx.float32],
            ))
        except RuntimeError as error:
            print("refused", error)
        work()
    """,
}


def started(backend: Path, script: str, **environment: str) -> subprocess.Popen[str]:
    head = f'import ultramarine as mx\nmx.backends.load("{backend}")\n'
    return plugins.start(["-c", head + textwrap.dedent(script)], **environment)


def ended(process: subprocess.Popen[str], status: int = 0) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == status, f"exit status {process.returncode}: {err}"
    return out


def opencl() -> tuple[Path, dict[str, str]]:
    found = plugins.opencl()
    if found is None:
        pytest.skip("there is no OpenCL device")
    return found, {}


def cuda() -> tuple[Path, dict[str, str]]:
    found = plugins.emulated_cuda()
    if found is None:
        pytest.skip("the CUDA backend and its emulated driver are not built")
    return found


def minimal() -> tuple[Path, dict[str, str]]:
    return plugins.minimal(), {}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("backend", [opencl, cuda, minimal])
def test_ends_while_streams_are_at_work(backend, ending: str) -> None:
    path, environment = backend()
    script = textwrap.dedent(BUSY) + textwrap.dedent(ENDINGS[ending])
    for _ in range(RUNS):
        ended(started(path, script, **environment))


def test_interpreter_stays_for_handlers_of_others() -> None:
    """Handlers that were registered before the import run after ours: values are read, the CPU computes, devices refuse."""
    path, environment = opencl()
    script = f"""
        import atexit

        def last():
            print(y.tolist(), z.tolist(), mx.add(mx.arange(3, stream=mx.cpu), 1, stream=mx.cpu).tolist())
            try:
                mx.eval(y + 1)
            except RuntimeError as error:
                print("while the process exits" in str(error))

        atexit.register(last)
        import ultramarine as mx
        mx.backends.load("{path}")
        mx.set_default_device(mx.gpu)
        y = mx.array([1.0, 2.0]) * 2
        mx.async_eval(y)
        s = mx.new_stream(mx.cpu)
        z = mx.multiply(mx.array([1.0, 2.0]), 3, stream=s)
        mx.async_eval(z)
    """
    out = ended(plugins.start(["-c", textwrap.dedent(script)], **environment))
    assert out.split("\n")[:2] == ["[2.0, 4.0] [3.0, 6.0] [1, 2, 3]", "True"]


def test_work_that_was_given_is_done() -> None:
    """The number of commands that ran says so; what is given afterwards runs in place, on the CPU."""
    script = """
        import ultramarine as mx
        results = []
        for _ in range(3):
            s = mx.new_stream(mx.cpu)
            x = mx.ones((300, 300), stream=s)
            for _ in range(20):
                x = mx.matmul(x, x, stream=s)
                x = mx.divide(x, 300, stream=s)
            mx.async_eval(x)
            results.append(x)
        mx._core._shutdown()
        ran = {count.op: count.native for count in mx.backends.op_counts()}
        print(ran["matmul"], [x[0, 0].item() for x in results])
    """
    out = ended(plugins.start(["-c", textwrap.dedent(script)]))
    assert out.strip() == "60 [1.0, 1.0, 1.0]"


def test_imports_that_outlive_the_interpreter() -> None:
    """Deleters of other libraries want the interpreter, and streams' threads hold the last references."""
    script = """
        import ultramarine as mx, numpy as np
        held = [mx.asarray(np.ones(1000)) for _ in range(100)]
        s = mx.new_stream(mx.cpu)
        for x in held:
            mx.async_eval(mx.sum(mx.exp(x), stream=s))
        del x
        held.clear()
    """
    for _ in range(RUNS):
        ended(plugins.start(["-c", textwrap.dedent(script)]))


NO_THREADS = {"RUST_MIN_STACK": str(1 << 46)}


def test_without_threads_work_of_several_streams_fails() -> None:
    """A stack that cannot be mapped stands for a limit of threads: both are refused by the system's own call."""
    script = """
        import ultramarine as mx
        def error(f):
            try:
                f()
            except RuntimeError as e:
                return "start a thread for a stream" in str(e)
        s = mx.new_stream(mx.cpu)
        y = mx.add(mx.ones(5), 1, stream=s) * 2
        print(error(lambda: mx.eval(y)))
        z = mx.ones(4) + 1
        mx.async_eval(z)
        print(error(lambda: z.tolist()))
        print((mx.ones((2000, 2000)) + 1).sum().item(), mx.ones(2, stream=s).tolist())
    """
    out = ended(plugins.start(["-c", textwrap.dedent(script)], **NO_THREADS))
    assert out.split("\n")[:3] == ["True", "True", "8000000.0 [1.0, 1.0]"]


def test_without_threads_an_operation_of_several_parts_is_no_deadlock() -> None:
    """The parts are evaluated inside of the job, for which the scheduler is needed once more."""
    script = """
        mx.set_default_device(mx.gpu)
        x = mx.ones((6, 6))
        for y in (mx.cumsum(x, axis=0), mx.sort(x), mx.argmax(x, axis=1), x.astype(mx.float16)):
            mx.async_eval(y)
            try:
                print(y.tolist())
            except RuntimeError as e:
                print("start a thread for a stream" in str(e))
    """
    assert ended(started(plugins.minimal(), script, **NO_THREADS)).split() == ["True"] * 4
