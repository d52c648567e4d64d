"""Layers of few bits: contents, outputs and gradients as in mlx, in all modes, and which layers `quantize` replaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.compare import assert_close, assert_identical
from support.harness import to_numpy

import ultramarine as mx
from ultramarine import nn

from .pairs import OURS, THEIRS, Case, assert_same_layer, normal, ordinary, pair, same

MODES: list[dict[str, Any]] = [
    {},
    {"group_size": 32},
    {"bits": 8},
    {"bits": 3, "group_size": 128},
    {"mode": "mxfp4"},
    {"mode": "mxfp8"},
    {"mode": "nvfp4"},
]
DTYPES = {"float32": 2e-4, "float16": 2e-2, "bfloat16": 1e-1}


def contents(module: Any) -> Any:
    """Shapes and dtypes of arrays, attributes, and frozen names."""
    arrays = {k: (v.shape, str(v.dtype).rsplit(".", 1)[-1]) for k, v in module.items()}
    attributes = ordinary(module)
    return repr(module), arrays, attributes, sorted(module._no_grad)


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_linear_contents(mode: dict[str, Any], bias: bool) -> None:
    same(lambda lib: contents(lib.nn.QuantizedLinear(128, 16, bias, **mode)))
    same(lambda lib: contents(lib.nn.Linear(128, 16, bias).to_quantized(**mode)))
    same(
        lambda lib: contents(
            lib.nn.QuantizedLinear.from_linear(lib.nn.Linear(128, 16, bias), **mode)
        )
    )


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_embedding_contents(mode: dict[str, Any]) -> None:
    same(lambda lib: contents(lib.nn.QuantizedEmbedding(16, 128, **mode)))
    same(lambda lib: contents(lib.nn.Embedding(16, 128).to_quantized(**mode)))
    same(
        lambda lib: contents(
            lib.nn.QuantizedEmbedding.from_embedding(lib.nn.Embedding(16, 128), **mode)
        )
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_linear_outputs_and_gradients(mode: dict[str, Any], bias: bool, dtype: str) -> None:
    modules = pair(lambda lib: lib.nn.Linear(128, 16, bias), dtype)
    quantized = (modules[0].to_quantized(**mode), modules[1].to_quantized(**mode))
    assert_identical(quantized[0].parameters(), quantized[1].parameters())
    for shape in ((128,), (2, 3, 128)):
        bound = DTYPES[dtype]
        assert_same_layer(quantized, normal(shape, dtype=dtype), rtol=bound, atol=bound)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_embedding_outputs_and_gradients(mode: dict[str, Any]) -> None:
    modules = pair(lambda lib: lib.nn.Embedding(16, 128))
    quantized = (modules[0].to_quantized(**mode), modules[1].to_quantized(**mode))
    assert_identical(quantized[0].parameters(), quantized[1].parameters())
    indices = np.array([[0, 5, 15], [-1, 5, 2]], np.int32)
    assert_same_layer(quantized, (mx.array(indices), THEIRS.mx.array(indices)))
    assert_same_layer(
        quantized, normal((2, 128)), rtol=1e-3, atol=1e-3, call=lambda m, x: m.as_linear(x)
    )


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_linear_against_numpy(mode: dict[str, Any]) -> None:
    layer = nn.QuantizedLinear(128, 16, **mode)
    layer.bias = mx.random.normal((16,))
    weight = mx.dequantize(
        layer.weight,
        layer.scales,
        layer.biases,
        layer.group_size,
        layer.bits,
        layer.mode,
        dtype=mx.float32,
    )
    x = mx.random.normal((3, 128))
    want = to_numpy(x).astype(np.float64) @ to_numpy(weight).T + to_numpy(layer.bias)
    np.testing.assert_allclose(to_numpy(layer(x)), want, 1e-4, 1e-4)


def test_bias_of_a_linear_stays_trainable() -> None:
    layer = nn.Linear(64, 8).to_quantized()
    assert list(layer.trainable_parameters()) == ["bias"]
    assert nn.QuantizedLinear(64, 8).trainable_parameters() == {}


# QQLinear, whose products mlx has on GPUs only.


def changed(mode: str, change: Any) -> Case:
    """A layer's contents at every step of a change, a function that yields the layer after each."""
    return lambda lib: [contents(m) for m in change(lib.nn.QQLinear(64, 16, mode=mode))]


def to_and_fro(module: Any) -> Iterator[Any]:
    yield module
    for method in ("quantize", "quantize", "dequantize", "dequantize", "eval", "quantize", "train"):
        getattr(module, method)()
        yield module


QQ: dict[str, Case] = {
    **{
        f"{name} {mode}": changed(mode, change)
        for mode in ("nvfp4", "mxfp8")
        for name, change in {
            "new": lambda m: [m],
            "eval": lambda m: [m.eval()],
            "eval twice": lambda m: [m.eval().eval()],
            "train": lambda m: [m.eval().train()],
            "to and fro": to_and_fro,
            "frozen": lambda m: [m.freeze().eval()],
        }.items()
    },
    "affine": lambda lib: contents(lib.nn.QQLinear(64, 16, mode="affine")),
    "unknown mode": lambda lib: lib.nn.QQLinear(64, 16, mode="foo"),
    "bias": lambda lib: lib.nn.QQLinear.from_linear(lib.nn.Linear(64, 16)),
    "from": lambda lib: contents(lib.nn.QQLinear.from_linear(lib.nn.Linear(64, 16, False))),
    "from evaluated": lambda lib: contents(
        lib.nn.QQLinear.from_linear(lib.nn.Linear(64, 16, False).eval())
    ),
    "weight": lambda lib: (lambda layer: lib.nn.QQLinear.from_linear(layer).weight is layer.weight)(
        lib.nn.Linear(64, 16, False)
    ),
}


@pytest.mark.parametrize("case", QQ)
def test_qq_linear_contents(case: str) -> None:
    same(QQ[case])


@pytest.mark.parametrize("mode", ["nvfp4", "mxfp8"])
def test_qq_linear_outputs_and_gradients(mode: str) -> None:
    layer = nn.QQLinear(64, 16, mode=mode)
    x, weight = mx.random.normal((3, 64)), layer.weight
    rounded = [
        mx.dequantize(*mx.quantize(a, mode=mode), mode=mode, dtype=mx.float32) for a in (x, weight)
    ]
    want = rounded[0] @ rounded[1].T
    assert_close(layer(x), want, rtol=1e-5, atol=1e-5)
    loss = lambda x: layer(x).square().sum()
    _, gradients = nn.value_and_grad(layer, loss)(x)
    assert_close(gradients["weight"], 2 * want.T @ rounded[0], rtol=1e-3, atol=1e-3)
    assert_close(layer.eval()(x), want, rtol=1e-5, atol=1e-5)
    assert layer.weight.dtype == mx.uint32
    assert layer.train().weight.dtype == mx.bfloat16
    # Rounding what is rounded changes nothing.
    assert_close(layer(x), want, rtol=1e-5, atol=1e-5)


# quantize()


def model(lib: Any) -> Any:
    nn = lib.nn

    class Model(lib.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(16, 64)
            self.layers = [nn.Linear(64, 64), {"x": nn.Linear(64, 32, bias=False)}, nn.ReLU()]
            self.head = nn.Linear(32, 7, bias=False)
            self.norm = nn.LayerNorm(7)

    return Model()


def quantized(*args: Any, **kwargs: Any) -> Case:
    def case(lib: Any) -> Any:
        module = model(lib)
        result = lib.nn.quantize(module, *args, **kwargs)
        frozen = [sorted(m._no_grad) for m in module.modules()]
        return result, repr(module), frozen

    return case


def chosen(path: str, value: Any) -> Any:
    """A predicate that returns a value for one path, else False."""
    return lambda p, m: value if p == path else False


def custom(*, keywords: bool, **arguments: Any) -> Case:
    """The arguments that a module's own `to_quantized` gets."""

    def case(lib: Any) -> Any:
        seen: list[Any] = []

        class Full(lib.nn.Module):  # type: ignore[misc]
            def to_quantized(self, **kwargs: Any) -> Any:
                seen.append(kwargs)
                return lib.nn.ReLU()

        class Old(lib.nn.Module):  # type: ignore[misc]
            def to_quantized(self, group_size: Any, bits: Any, mode: Any) -> Any:
                seen.append((group_size, bits, mode))
                return lib.nn.ReLU()

        module = lib.nn.Sequential(Full() if keywords else Old())
        lib.nn.quantize(module, **arguments)
        return repr(module), seen

    return case


def asked(lib: Any) -> Any:
    """The arguments of the predicate, in order."""
    seen: list[Any] = []
    lib.nn.quantize(model(lib), class_predicate=lambda path, module: seen.append((path, module)))
    return seen


ODD: list[Any] = [1, 0, None, "yes", []]

QUANTIZED: dict[str, Case] = {
    "too few columns": quantized(),
    "group size": quantized(32),
    "bits": quantized(32, 8),
    "mode by place": quantized(32, 8, "affine"),
    "mxfp4": quantized(mode="mxfp4"),
    "nvfp4": quantized(mode="nvfp4"),
    "unknown mode": quantized(mode="foo"),
    "bits of mode": quantized(mode="mxfp4", bits=8),
    "group size of mode": quantized(mode="nvfp4", group_size=32),
    "bits that there are not": quantized(32, 7),
    "group size that there is not": quantized(17),
    "one": quantized(class_predicate=chosen("layers.0", True)),
    "in a dict": quantized(32, class_predicate=chosen("layers.1.x", True)),
    "arguments": quantized(
        class_predicate=lambda p, m: (
            {"bits": 8, "group_size": 32} if p == "head" else p == "embedding"
        )
    ),
    "some arguments": quantized(32, 2, class_predicate=chosen("layers.0", {"bits": 8})),
    "no arguments": quantized(32, 2, class_predicate=chosen("layers.0", {})),
    "unknown arguments": quantized(class_predicate=chosen("layers.0", {"foo": 8})),
    "another module": quantized(class_predicate=chosen("norm", True)),
    "another module with arguments": quantized(class_predicate=chosen("norm", {"bits": 8})),
    **{
        f"predicate returns {value!r}": quantized(32, class_predicate=chosen("layers.0", value))
        for value in ODD
    },
    "inputs": quantized(mode="nvfp4", quantize_input=True),
    "inputs of one": quantized(
        mode="nvfp4", quantize_input=True, class_predicate=chosen("layers.1.x", True)
    ),
    "inputs of one with bias": quantized(
        mode="nvfp4", quantize_input=True, class_predicate=chosen("layers.0", True)
    ),
    "inputs of affine": quantized(quantize_input=True, class_predicate=chosen("head", True)),
    "inputs of an embedding": quantized(
        mode="nvfp4", quantize_input=True, class_predicate=chosen("embedding", True)
    ),
    "a layer itself": lambda lib: (lambda m: (lib.nn.quantize(m), m))(lib.nn.Linear(64, 64)),
    "twice": lambda lib: (
        lambda m: (
            lib.nn.quantize(m, 32, class_predicate=chosen("head", True)),
            lib.nn.quantize(m, 32),
            m,
        )
    )(model(lib)),
    "evaluation mode": lambda lib: (
        lambda m: (
            lib.nn.quantize(
                m, mode="nvfp4", quantize_input=True, class_predicate=chosen("layers.1.x", True)
            ),
            [x.training for x in m.modules()],
            m,
        )
    )(model(lib).eval()),
    "predicate's arguments": asked,
    "own method": custom(keywords=True, group_size=32, bits=3),
    "own method, inputs": custom(keywords=True, mode="nvfp4", quantize_input=True),
    "own method, arguments": custom(
        keywords=True,
        mode="nvfp4",
        quantize_input=True,
        class_predicate=chosen("layers.0", {"a": 1}),
    ),
    "own old method": custom(keywords=False, group_size=32),
    "own old method, inputs": custom(keywords=False, mode="nvfp4", quantize_input=True),
}


@pytest.mark.parametrize("case", QUANTIZED)
def test_quantize(case: str) -> None:
    same(QUANTIZED[case])


@pytest.mark.parametrize(
    "case",
    [
        lambda lib: lib.nn.Linear(64, 16, False).to_quantized(mode="mxfp4", quantize_input=True),
        lambda lib: lib.nn.Linear(64, 16, False).to_quantized(quantize_input=True),
        lambda lib: lib.nn.Linear(64, 16).to_quantized(mode="nvfp4", quantize_input=True),
        lambda lib: lib.nn.Linear(64, 16, False).to_quantized(mode="nvfp4", quantize_input=True),
        lambda lib: lib.nn.Embedding(64, 64).to_quantized(mode="nvfp4", quantize_input=True),
        lambda lib: lib.nn.Linear(64, 16).to_quantized(32, 8, "affine", False),
        lambda lib: lib.nn.QuantizedEmbedding(8, 48),
        lambda lib: lib.nn.QuantizedLinear(48, 8),
        lambda lib: lib.nn.QuantizedEmbedding(8, 64)(3).shape,
        lambda lib: lib.nn.QuantizedEmbedding(8, 64, mode="mxfp4")(lib.mx.array([1])).dtype,
        lambda lib: lib.nn.QuantizedLinear(64, 8)(lib.mx.ones((2, 32))),
    ],
)
def test_odd_calls(case: Case) -> None:
    same(case)


def test_random_numbers_afterwards_are_those_of_mlx() -> None:
    """A program that converts layers and then makes others starts the others from the same values."""
    found = []
    for lib in (OURS, THEIRS):
        linear, embedding = lib.nn.Linear(64, 64, False), lib.nn.Embedding(64, 64)
        lib.mx.random.seed(1)
        linear.to_quantized()
        embedding.to_quantized()
        linear.to_quantized(mode="nvfp4", quantize_input=True)
        found.append(lib.mx.random.uniform(shape=(4,)))
    assert_identical(*found)
