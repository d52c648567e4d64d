"""How exactly products of float32 are made: settings, scopes, and what devices make of them."""

from __future__ import annotations

import textwrap

import pytest
from support import plugins
from support.harness import um


def test_settings_and_scopes() -> None:
    before = um.set_matmul_precision("high")
    try:
        assert um.get_matmul_precision() == "high"
        with um.matmul_precision("medium"):
            assert um.get_matmul_precision() == um.get_matmul_precision(device=um.cpu) == "medium"
            with um.matmul_precision("highest"):
                assert um.get_matmul_precision() == "highest"
            assert um.get_matmul_precision() == "medium"
        assert um.set_matmul_precision("highest", device=um.cpu) == "high"
        assert um.get_matmul_precision(device=um.cpu) == "highest"
        assert um.get_matmul_precision() == "high"
        # For all devices, those with a setting of their own too.
        assert um.set_matmul_precision("medium") == "high"
        assert um.get_matmul_precision(device=um.cpu) == "medium"
    finally:
        um.set_matmul_precision(before)


@pytest.mark.parametrize("word", ["tf32", "", "HIGH"])
def test_other_words(word: str) -> None:
    for call in (um.set_matmul_precision, um.matmul_precision):
        with pytest.raises(ValueError, match='"highest", "high" or "medium"'):
            call(word)
    with pytest.raises(TypeError):
        um.set_matmul_precision(32)


def test_the_cpu_is_exact() -> None:
    x = um.array([[1 + 2.0**-20]])
    with um.matmul_precision("medium"):
        assert (x @ um.array([[1.0]])).item() == 1 + 2.0**-20


def test_the_environment() -> None:
    said = "print(mx.get_matmul_precision())"
    for variables, expected in [
        ({}, "highest"),
        ({"MLX_ENABLE_TF32": "1"}, "high"),
        ({"MLX_ENABLE_TF32": "1", "ULTRAMARINE_MATMUL_PRECISION": "highest"}, "highest"),
        ({"ULTRAMARINE_MATMUL_PRECISION": "medium"}, "medium"),
        ({"ULTRAMARINE_MATMUL_PRECISION": "low"}, "highest"),
    ]:
        assert plugins.run(said, **variables).split() == [expected]


ON_A_GPU = textwrap.dedent(
    """
    mx.set_default_device(mx.gpu)
    # What TensorFloat-32 and bfloat16 cannot hold.
    x, one = mx.array([[1 + 2.0**-12, 1 + 2.0**-9]]).T, mx.array([[1.0, 1.0]])
    exact, high, medium = [1 + 2.0**-12, 1 + 2.0**-9], [1.0, 1 + 2.0**-9], [1.0, 1.0]
    f = lambda x: (x @ one)[:, 0]
    compiled = mx.compile(f)
    of = lambda f: f(x).tolist()
    assert of(f) == of(compiled) == exact
    with mx.matmul_precision("high"):
        assert of(f) == of(compiled) == high, of(f)
        lazy = f(x)
    with mx.matmul_precision("medium"):
        assert of(f) == of(compiled) == medium
        assert (x.astype(mx.float64) @ one.astype(mx.float64))[:, 0].tolist() == exact
        assert lazy.tolist() == high  # that of its call
    assert of(f) == of(compiled) == exact
    mx.set_matmul_precision("high", device=mx.gpu)
    assert of(f) == of(compiled) == high
    mx.set_matmul_precision("highest")
    # A derivative has the precision of its function.
    diagonal = mx.diag(x[:, 0])
    def loss(w, precision):
        with mx.matmul_precision(precision):
            return (diagonal @ w).sum()
    slope = lambda p: mx.grad(loss)(mx.ones((2, 2)), p)[:, 0].tolist()
    assert slope("highest") == exact and slope("high") == high
    kernel = mx.full((1, 3, 3, 32), 1.0)
    image = mx.full((1, 8, 8, 32), 1 + 2.0**-12)
    exact = mx.conv2d(image, kernel)[0, 3, 3].item()
    with mx.matmul_precision("high"):
        assert mx.conv2d(image, kernel)[0, 3, 3].item() == 288.0 < exact
    """
)


@pytest.mark.skipif(plugins.emulated_cuda() is None, reason="there is no emulated GPU here")
def test_a_device_that_rounds() -> None:
    plugin, variables = plugins.emulated_cuda() or ("", {})
    head = f"backends.load({str(plugin)!r})\n"
    plugins.run(head + ON_A_GPU, ULTRAMARINE_STRICT="1", **variables)
