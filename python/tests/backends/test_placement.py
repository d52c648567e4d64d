"""Placement, copies between devices and memory per device, on backends that were compiled and
loaded: the minimal one, with two devices, and OpenCL where there is one. Each test has an
interpreter of its own, since a backend cannot be unloaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.plugins import minimal, opencl, run

LOAD = """
import os
[backends.load(p) for p in os.environ["PLUGINS"].split(":")]
gpu = [mx.Device(mx.gpu, i) for i in range(mx.device_count(mx.gpu))]
def error(kind, f, *parts):
    try:
        f()
    except kind as e:
        assert all(p in str(e) for p in parts), e
    else:
        raise AssertionError("no error at the call")
"""


def routed(script: str, *plugins: Path) -> None:
    run(LOAD + script, PLUGINS=":".join(map(str, plugins)))


def test_operations_follow_their_operands() -> None:
    routed(
        """
x = mx.array([1.0, 2.0])
assert (x + x).device == mx.cpu
a, b = mx.copy(x, gpu[0]), mx.copy(x, device=gpu[1])
assert (a.device, b.device) == (gpu[0], gpu[1])
assert (b + x).device == (x * b).device == (b * 2).device == gpu[1]
assert mx.sum(b + x, stream=mx.cpu).device == mx.cpu
assert mx.add(a, b, stream=mx.cpu).tolist() == [2.0, 4.0]
mx.set_default_device(gpu[0])
made = mx.array([3.0, 4.0])
assert (made + x).device == gpu[0] and (made + b).device == gpu[1]
assert b[mx.array([-1, 0])].tolist() == [2.0, 1.0]
assert mx.zeros((2,), stream=gpu[1]).device == gpu[1]
with mx.stream(gpu[1]):
    assert mx.random.normal((2,)).device == gpu[1]
assert mx.random.normal((2,)).device == gpu[0]
""",
        minimal(),
    )


def test_memory_of_the_host_is_copied_on_the_host() -> None:
    """Whatever the default device is: nothing travels before it is used."""
    routed(
        """
import numpy as np
mx.set_default_device(gpu[0])
backends.reset_op_counts()
a = np.arange(6.0, dtype=np.float32).reshape(2, 3)
for memory in [a, a.T, a[::-1, ::2], a[:0]]:
    x, right = mx.array(memory), memory.tolist()
    memory += 100
    assert x.tolist() == right, x
assert not [r for r in backends.op_counts() if r.device in gpu], backends.op_counts()
assert mx.sum(mx.array(a)).device == gpu[0]
""",
        minimal(),
    )


def test_a_copy_on_a_device_is_not_written_over() -> None:
    """stop_gradient hands its operand's memory on; the device's copy of that belongs to the operand still."""
    routed(
        """
with mx.stream(mx.cpu):
    x = mx.arange(12, dtype=mx.float32) + 0
    mx.eval(x)
for _ in range(2):
    twice = mx.multiply(mx.stop_gradient(x), 2, stream=gpu[0])
    assert twice.tolist() == [2 * i for i in range(12)]
    assert mx.multiply(x, 1, stream=gpu[0]).tolist() == list(range(12))
    assert mx.grad(lambda x: mx.square(x).sum(stream=gpu[0]))(x).tolist() == twice.tolist()
""",
        minimal(),
    )


def test_accelerators_mix_only_on_request() -> None:
    routed(
        """
x = mx.array([1.0, 2.0])
a, b = mx.copy(x, gpu[0]), mx.copy(x, gpu[1])
names = "minimal gpu:0", "minimal gpu:1", "copy(x, device)", "set_transfer_policy"
error(ValueError, lambda: a + b, "[add]", *names)
error(ValueError, lambda: mx.concatenate([a, b]), "[concatenate]", *names)
error(ValueError, lambda: mx.exp(a, stream=gpu[1]), "[exp]", *names)
error(ValueError, lambda: mx.set_transfer_policy("always"), "always")
with mx.transfers("host"):
    assert mx.get_transfer_policy() == "host"
    c = a + b
error(ValueError, lambda: a + b)
assert c.tolist() == [2.0, 4.0] and c.device == gpu[0]
assert mx.set_transfer_policy("host") == "error"
assert (b + a).tolist() == [2.0, 4.0]
assert mx.set_transfer_policy("error") == "host"
error(ValueError, lambda: mx.copy(x, mx.Device(mx.gpu, 99)), "gpu:99")
""",
        minimal(),
    )


def test_copies_are_differentiable() -> None:
    routed(
        """
x = mx.copy(mx.array([1.0, 2.0]), gpu[0])
def f(a):
    return mx.sum(mx.copy(a * a, gpu[1]) * 3)
value, grad = mx.value_and_grad(f)(x)
assert value.device == gpu[1] and grad.device == gpu[0]
assert value.item() == 15.0 and grad.tolist() == [6.0, 12.0]
both = mx.vmap(lambda a: mx.copy(a, gpu[1]) + 1)(mx.array([[1.0], [2.0]]))
assert both.device == gpu[1] and both.tolist() == [[2.0], [3.0]]
back = mx.copy(x, mx.cpu)
assert back.device == mx.cpu and back.tolist() == [1.0, 2.0]
""",
        minimal(),
    )


def test_memory_of_devices() -> None:
    routed(
        """
assert mx.get_active_memory() == 0
def settled(a):
    # The threads that ran it let go of it after it is done.
    mx.eval(a)
    [mx.synchronize(d) for d in [mx.cpu, *gpu]]
    return a
x = settled(mx.copy(mx.ones((1000,)), gpu[1]))
assert mx.get_active_memory(gpu[0]) == 0
assert mx.get_active_memory() == mx.get_active_memory(gpu[1]) >= 4000
assert mx.get_peak_memory(gpu[1]) >= 4000
del x
assert mx.get_active_memory() == 0
mx.reset_peak_memory()
assert mx.get_peak_memory() == 0
former = mx.set_memory_limit(1 << 20)
assert mx.get_memory_limit() == mx.get_memory_limit(gpu[1]) == 1 << 20
error(MemoryError, lambda: mx.eval(mx.copy(mx.ones((1 << 20,)), gpu[0])), str(1 << 20))
assert mx.set_memory_limit(former, gpu[0]) == mx.set_memory_limit(former, gpu[1]) == 1 << 20
settled(mx.copy(mx.ones((1 << 20,)), gpu[0]))
mx.set_cache_limit(0)
mx.set_wired_limit(0)
mx.clear_cache()
mx.clear_cache(device=mx.cpu)
error(TypeError, lambda: mx.set_memory_limit(-1))
assert mx.set_memory_limit(1 << 40, device=mx.cpu) > 0
""",
        minimal(),
    )


def test_a_forked_child_keeps_the_cpu() -> None:
    routed(
        """
x = mx.copy(mx.array([1.0, 2.0]), gpu[0])
y = x + 1
mx.eval(y)
host = mx.array([1.0, 2.0]) + 1
child = os.fork()
if child == 0:
    good = False
    try:
        error(RuntimeError, lambda: mx.eval(y + 1), "fork", "minimal gpu:0")
        error(RuntimeError, lambda: y.tolist(), "fork")
        del x, y
        good = (host * 2).tolist() == [4.0, 6.0]
    finally:
        os._exit(0 if good else 1)
assert os.waitpid(child, 0)[1] == 0
assert (y + 1).tolist() == [3.0, 4.0]
""",
        minimal(),
    )


def test_exit_with_work_in_flight() -> None:
    plugin = opencl() or minimal()
    routed(
        """
x = mx.copy(mx.ones((100_000,)), gpu[0])
for _ in range(20):
    x = x + 1
mx.async_eval(x)
""",
        plugin,
    )


@pytest.mark.skipif("opencl() is None", reason="no OpenCL device")
def test_two_backends() -> None:
    plugin = opencl()
    assert plugin is not None
    routed(
        """
own = [b for b in backends.list() if b.name == "opencl"][0].devices[0]
x = mx.array([1.0, 2.0, 3.0])
a, b = mx.copy(x, gpu[0]), mx.copy(x, own)
error(ValueError, lambda: a * b, "minimal gpu:0", f"opencl gpu:{own.index}", "copy(x, device)")
assert (mx.copy(a, own) * b).tolist() == [1.0, 4.0, 9.0]
assert (a * mx.copy(b, gpu[0]) + x).tolist() == [2.0, 6.0, 12.0]
with mx.transfers("host"):
    assert (a * b).tolist() == [1.0, 4.0, 9.0]
def f(p):
    return mx.sum(mx.copy(mx.copy(p * p, own) * 3, gpu[0]))
value, grad = mx.value_and_grad(f)(a)
assert value.item() == 42.0 and grad.tolist() == [6.0, 12.0, 18.0] and grad.device == gpu[0]
form = "set_memory_limit(limit, device)"
error(ValueError, lambda: mx.set_memory_limit(1 << 30), "minimal", "opencl", form)
error(ValueError, lambda: mx.set_cache_limit(0), "minimal", "opencl")
error(ValueError, lambda: mx.set_wired_limit(0), "minimal", "opencl")
[mx.synchronize(d) for d in [mx.cpu, *gpu]]
total = sum(mx.get_active_memory(d) for d in gpu)
assert mx.get_active_memory() == total > 0
del a, b, value, grad
mx.reset_peak_memory()
mx.clear_cache()
""",
        minimal(),
        plugin,
    )
