"""`set_deterministic`: settings of the process, of devices and of threads, what they mean on the CPU, and an error where a
device does not say that equal calls give equal bits."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from support import plugins

import ultramarine as um


def test_settings_and_scopes() -> None:
    before = um.set_deterministic(True)
    try:
        assert um.get_deterministic()
        with um.deterministic(False):
            assert not um.get_deterministic() and not um.get_deterministic(device=um.cpu)
            with um.deterministic():
                assert um.get_deterministic()
            assert not um.get_deterministic()
        assert um.set_deterministic(False, device=um.cpu) is True
        assert not um.get_deterministic(device=um.cpu) and um.get_deterministic()
        # One of all devices is one of each.
        assert um.set_deterministic(True) is True
        assert um.get_deterministic(device=um.cpu)
    finally:
        um.set_deterministic(before)


def test_wrong_arguments() -> None:
    for call in (um.set_deterministic, um.deterministic):
        with pytest.raises(TypeError):
            call("yes")  # type: ignore[arg-type]


def test_the_cpu_has_equal_bits() -> None:
    x = um.random.normal((1000, 300), key=um.random.key(1))
    f = lambda x: um.softmax(x @ x.T, axis=-1).sum(axis=0)
    want = f(x)
    with um.deterministic(True):
        assert um.array_equal(f(x), want)
        assert um.array_equal(um.compile(f)(x), um.compile(f)(x))


def test_the_environment() -> None:
    said = "print(mx.get_deterministic())"
    for value, expected in [(None, "False"), ("0", "False"), ("1", "True"), ("yes", "True")]:
        variables = {} if value is None else {"ULTRAMARINE_DETERMINISTIC": value}
        assert plugins.run(said, **variables).split() == [expected]


# On a backend that says nothing of equal bits.
WITHOUT_A_WORD = textwrap.dedent(
    """
    mx.set_default_device(mx.gpu)
    x = mx.arange(6, dtype=mx.float32).reshape(2, 3)
    lazy = x.sum()
    f = mx.compile(lambda x: (x * 2).sum(axis=0) + 1)
    assert f(x).tolist() == [7, 11, 15]
    def refused(call, name):
        try:
            mx.eval(call())
        except RuntimeError as error:
            text = str(error)
            assert "set_deterministic is on, but gpu:0 (backend minimal) does not promise" in text, text
            assert f"those of {name} depend on the order of a sum" in text, text
        else:
            raise AssertionError(f"{name} ran")
    with mx.deterministic(True):
        refused(lambda: x.sum(), "reduce")
        refused(lambda: x @ x.T, "matmul")
        refused(lambda: f(x), "reduce")
        # Operations with one order only.
        assert (x * 2 + 1)[1].tolist() == [7, 9, 11]
        # The setting of its call, as for a derivative.
        assert lazy.item() == 15
        assert mx.sum(mx.copy(x, mx.cpu), stream=mx.cpu).item() == 15
        late = x.sum()
    refused(lambda: late, "reduce")
    assert f(x).tolist() == [7, 11, 15] and x.sum().item() == 15
    mx.set_deterministic(True, device=mx.gpu)
    refused(lambda: x.sum(), "reduce")
    refused(lambda: mx.grad(lambda w: (x @ w).sum())(mx.ones((3, 2))), "matmul")
    with mx.deterministic(False):
        assert x.sum().item() == 15
    mx.set_deterministic(False)
    assert x.sum().item() == 15
    """
)


def test_a_device_that_does_not_say(tmp_path: Path) -> None:
    source = (plugins.EXAMPLES / "minimal/minimal.c").read_text()
    said = "filled.flags = UM_DEVICE_DETERMINISTIC;"
    assert said in source
    plugin = plugins.compiled(tmp_path, "minimal", source.replace(said, ""))
    plugins.run(f"backends.load({str(plugin)!r})\n" + WITHOUT_A_WORD)


ON_A_GPU = textwrap.dedent(
    """
    mx.set_default_device(mx.gpu)
    x = mx.random.normal((40, 30), key=mx.random.key(1))
    f = lambda x: mx.softmax(x @ x.T, axis=-1).sum(axis=0)
    with mx.deterministic(True):
        assert mx.array_equal(f(x), f(x + 0))
        assert mx.array_equal(mx.compile(f)(x), f(x))
        index = mx.array([0, 1, 0, 1, 0])
        sums = lambda: mx.zeros((2,)).at[index].add(x[0, :5])
        assert mx.array_equal(sums(), sums())
    """
)


@pytest.mark.skipif(plugins.emulated_cuda() is None, reason="there is no emulated GPU here")
def test_cuda_says_so() -> None:
    plugin, variables = plugins.emulated_cuda() or ("", {})
    plugins.run(f"backends.load({str(plugin)!r})\n" + ON_A_GPU, ULTRAMARINE_STRICT="1", **variables)
