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


CREATION = """
import numpy as np
x, logits, key = mx.array([[1.0, 2.0], [3.0, 4.0]]), mx.zeros((2, 3)), mx.random.key(3)
mean, cov = mx.zeros(2), mx.eye(2)
r = mx.random
made = {
    "array": lambda **k: mx.array([[1, 2], [3, 4]], **k),
    "array of a number": lambda **k: mx.array(1.5, mx.float16, **k),
    "array of an array": lambda **k: mx.array(x, **k),
    "array of arrays": lambda **k: mx.array([x, x], **k),
    "array of NumPy's": lambda **k: mx.array(np.arange(3.0), **k),
    "array of bytes": lambda **k: mx.array(b"abc", **k),
    "asarray": lambda **k: mx.asarray([1, 2], **k),
    "zeros": lambda **k: mx.zeros((2, 3), **k),
    "ones": lambda **k: mx.ones((2, 3), mx.int32, **k),
    "empty": lambda **k: mx.empty((2, 3), **k),
    "full": lambda **k: mx.full((2, 3), 7, **k),
    "full of an array": lambda **k: mx.full((2, 2), x, **k),
    "zeros_like": lambda **k: mx.zeros_like(x, **k),
    "ones_like": lambda **k: mx.ones_like(x, **k),
    "empty_like": lambda **k: mx.empty_like(x, **k),
    "full_like": lambda **k: mx.full_like(x, 3, **k),
    "arange": lambda **k: mx.arange(5, **k),
    "linspace": lambda **k: mx.linspace(0, 1, 5, **k),
    "eye": lambda **k: mx.eye(3, **k),
    "identity": lambda **k: mx.identity(3, **k),
    "tri": lambda **k: mx.tri(3, 4, **k),
    "bartlett": lambda **k: mx.bartlett(5, **k),
    "blackman": lambda **k: mx.blackman(5, **k),
    "hamming": lambda **k: mx.hamming(5, **k),
    "hanning": lambda **k: mx.hanning(5, **k),
    "bits": lambda **k: r.bits((3,), key=key, **k),
    "split": lambda **k: r.split(key, **k),
    "uniform": lambda **k: r.uniform(shape=(3,), key=key, **k),
    "normal": lambda **k: r.normal((3,), key=key, **k),
    "randint": lambda **k: r.randint(0, 9, (3,), key=key, **k),
    "bernoulli": lambda **k: r.bernoulli(0.5, (3,), key=key, **k),
    "truncated_normal": lambda **k: r.truncated_normal(-1.0, 1.0, (3,), key=key, **k),
    "gumbel": lambda **k: r.gumbel((3,), key=key, **k),
    "laplace": lambda **k: r.laplace((3,), key=key, **k),
    "categorical": lambda **k: r.categorical(logits, key=key, **k),
    "permutation": lambda **k: r.permutation(5, key=key, **k),
    "permutation of rows": lambda **k: r.permutation(x, key=key, **k),
    "multivariate_normal": lambda **k: r.multivariate_normal(mean, cov, key=key, **k),
}
"""


def test_devices_by_number() -> None:
    routed(
        """
assert mx.gpu(1) == gpu[1] == mx.Device(mx.gpu, 1) and type(mx.gpu(1)) is mx.Device
assert mx.cpu() == mx.cpu(0) == mx.cpu and mx.gpu(0) == mx.gpu
assert isinstance(mx.cpu, mx.DeviceType) and mx.gpu(index=1).index == 1
error(ValueError, lambda: mx.gpu(-1), "no index -1")
error(ValueError, lambda: mx.ones(2, device=mx.gpu(7)), "gpu:7")
error(TypeError, lambda: mx.gpu("0"))
error(TypeError, lambda: mx.ones(2, device="gpu"), "Device")
""",
        minimal(),
    )


def test_creation_on_a_device() -> None:
    routed(
        CREATION
        + """
for name, make in made.items():
    here = make()
    for device in (gpu[1], mx.gpu, mx.cpu):
        there = make(device=device)
        assert there.device == device, (name, device)
        assert there.dtype == here.dtype and there.shape == here.shape, name
        if "empty" not in name:
            assert np.allclose(np.array(there), np.array(here), 1e-5), name
    if not name.startswith(("array", "asarray")):
        stream = mx.new_stream(gpu[1])
        assert make(stream=stream, device=gpu[1]).device == gpu[1], name
        error(ValueError, lambda: make(stream=mx.cpu, device=gpu[1]), "gpu:1", "cpu:0")
    with mx.stream(gpu[0]):
        assert make(device=gpu[1]).device == gpu[1], name
# Without a key, from the thread's state, which stays on the CPU.
mx.random.seed(3)
first = mx.random.normal((3,), device=gpu[1]).tolist()
mx.random.seed(3)
assert np.allclose(mx.random.normal((3,)).tolist(), first, 1e-5)
assert mx.random.state[0].device == mx.cpu
""",
        minimal(),
    )


def test_every_creation_takes_a_device() -> None:
    """All functions that make arrays of nothing are in the table of the test before."""
    routed(
        CREATION
        + """
import inspect
spaces = {**vars(mx), **{n: getattr(mx.random, n) for n in mx.random.__all__}}
takes = {n for n, f in spaces.items() if not n.startswith("_") and callable(f)
         and not inspect.isclass(f) and "device=" in (getattr(f, "__text_signature__", None) or "")
         and "stream=" in f.__text_signature__}
assert takes == {n.split()[0] for n in made} - {"array", "asarray"}, takes
""",
        minimal(),
    )


@pytest.mark.skipif("opencl() is None", reason="no OpenCL device")
def test_a_program_on_two_backends() -> None:
    plugin = opencl()
    assert plugin is not None
    routed(
        """
own = [b for b in backends.list() if b.name == "opencl"][0].devices[0].index
other = [b for b in backends.list() if b.name == "minimal"][0].devices[0].index
a = mx.ones((1000, 1000), device=mx.gpu(own))
b = mx.random.normal((1000, 1000), key=mx.random.key(1), device=mx.gpu(other))
mx.eval(a, b)
[mx.synchronize(mx.gpu(i)) for i in (own, other)]
assert mx.get_active_memory(mx.gpu(own)) >= 4_000_000 <= mx.get_active_memory(mx.gpu(other))
error(ValueError, lambda: a + b, "copy(x, device)")
c = a + mx.copy(b, mx.gpu(own))
assert c.device == mx.gpu(own)
total = mx.sum(c, stream=mx.cpu)
assert total.device == mx.cpu
assert abs(total.item() - 1e6 - mx.sum(mx.copy(b, mx.cpu)).item()) < 50
del a, b, c, total
[mx.synchronize(d) for d in (mx.cpu, mx.gpu(own), mx.gpu(other))]
assert mx.get_active_memory(mx.gpu(own)) == mx.get_active_memory(mx.gpu(other)) == 0
""",
        minimal(),
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
