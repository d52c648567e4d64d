"""Attention and transformers: values, gradients, initial values, dropout and errors as in mlx."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.compare import assert_close

import ultramarine as mx
from ultramarine import nn

from .pairs import OURS, THEIRS, Case, assert_same_layer, normal, ordinary, pair, same

SIDES: dict[bool, Any] = {True: nn, False: THEIRS.nn}


def causal(x: Any, n: int) -> Any:
    """A mask of the library of `x`."""
    library = SIDES[isinstance(x, mx.array)]
    return library.MultiHeadAttention.create_additive_causal_mask(n, x.dtype)


# Layers, the shapes of their inputs, and calls.
LAYERS: dict[str, tuple[Case, list[tuple[int, ...]], Callable[..., Any]]] = {
    "attention": (lambda lib: lib.nn.MultiHeadAttention(8, 2), [(2, 5, 8), (2, 3, 8)], lambda m, x, y: m(x, y, y)),
    "attention of one head": (
        lambda lib: lib.nn.MultiHeadAttention(8, 1), [(2, 5, 8)], lambda m, x: m(x, x, x)),
    "attention with a mask": (
        lambda lib: lib.nn.MultiHeadAttention(8, 4), [(2, 5, 8)], lambda m, x: m(x, x, x, causal(x, 5))),
    "attention with bools": (
        lambda lib: lib.nn.MultiHeadAttention(8, 2), [(2, 5, 8)], lambda m, x: m(x, x, x, mask=causal(x, 5) == 0)),
    "causal attention": (
        lambda lib: lib.nn.MultiHeadAttention(8, 2), [(2, 5, 8)], lambda m, x: m(x, x, x, "causal")),
    "attention of all sizes": (
        lambda lib: lib.nn.MultiHeadAttention(8, 2, 3, 4, 5, 6, 7, True),
        [(2, 5, 3), (2, 3, 4), (2, 3, 5)], lambda m, q, k, v: m(q, k, v)),
    "attention of other keys": (
        lambda lib: lib.nn.MultiHeadAttention(8, 2, key_input_dims=6, bias=True),
        [(2, 5, 8), (2, 3, 6)], lambda m, x, y: m(x, y, y)),
    "encoder layer": (
        lambda lib: lib.nn.TransformerEncoderLayer(8, 2), [(2, 5, 8)], lambda m, x: m(x, causal(x, 5))),
    "encoder layer, norm last": (
        lambda lib: lib.nn.TransformerEncoderLayer(8, 2, 12, activation=lib.nn.gelu, norm_first=False),
        [(2, 5, 8)], lambda m, x: m(x, mask=None)),
    "decoder layer": (
        lambda lib: lib.nn.TransformerDecoderLayer(8, 2), [(2, 5, 8), (2, 3, 8)],
        lambda m, x, y: m(x, y, causal(x, 5), None)),
    "decoder layer, norm last": (
        lambda lib: lib.nn.TransformerDecoderLayer(8, 2, 12, 0.0, lib.nn.silu, False), [(2, 5, 8), (2, 3, 8)],
        lambda m, x, y: m(x, y, x_mask="causal", memory_mask=None)),
    "encoder": (lambda lib: lib.nn.TransformerEncoder(2, 8, 2), [(2, 5, 8)], lambda m, x: m(x, None)),
    "checkpointed encoder": (
        lambda lib: lib.nn.TransformerEncoder(2, 8, 2, 12, checkpoint=True), [(2, 5, 8)],
        lambda m, x: m(x, causal(x, 5))),
    "decoder": (
        lambda lib: lib.nn.TransformerDecoder(2, 8, 2, norm_first=False), [(2, 5, 8), (2, 3, 8)],
        lambda m, x, y: m(x, y, causal(x, 5), None)),
    "transformer": (
        lambda lib: lib.nn.Transformer(8, 2, 1, 2), [(2, 3, 8), (2, 5, 8)],
        lambda m, x, y: m(x, y, None, causal(y, 5), None)),
    "checkpointed transformer": (
        lambda lib: lib.nn.Transformer(8, 2, 1, 1, 12, 0.0, lib.nn.gelu, None, None, False, True),
        [(2, 3, 8), (2, 5, 8)], lambda m, x, y: m(x, y, None, causal(y, 5), None)),
    "transformer of other parts": (
        lambda lib: lib.nn.Transformer(
            8, 2, 1, 1, custom_encoder=lib.nn.TransformerEncoder(1, 8, 4),
            custom_decoder=lib.nn.TransformerDecoder(1, 8, 4)),
        [(2, 3, 8), (2, 5, 8)], lambda m, x, y: m(x, y, None, None, None)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_outputs_and_gradients(name: str) -> None:
    make, shapes, call = LAYERS[name]
    inputs = [normal(shape, name, i) for i, shape in enumerate(shapes)]
    assert_same_layer(pair(make), *inputs, rtol=1e-4, atol=1e-4, call=call)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", LAYERS)
def test_16_bit_floats(name: str, dtype: str) -> None:
    make, shapes, call = LAYERS[name]
    inputs = [normal(shape, name, i, dtype=dtype) for i, shape in enumerate(shapes)]
    found = [
        call(module, *(x[side] for x in inputs)) for side, module in enumerate(pair(make, dtype))
    ]
    bound = 2e-2 if dtype == "float16" else 0.12
    assert_close(*found, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", LAYERS)
def test_contents_and_initial_values(name: str) -> None:
    make, _, _ = LAYERS[name]
    same(lambda lib: repr(make(lib)))
    same(lambda lib: ordinary(make(lib), "activation"))
    found = []
    for lib in (OURS, THEIRS):
        lib.mx.random.seed(3)
        found.append(make(lib).parameters())
    assert_close(*found, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("checkpoint", [True, False])
def test_dropout_of_the_same_seed(norm_first: bool, checkpoint: bool) -> None:
    """It is in the same places, and draws the same numbers."""
    modules = pair(
        lambda lib: lib.nn.Transformer(
            8, 2, 2, 2, dropout=0.3, norm_first=norm_first, checkpoint=checkpoint
        )
    )
    inputs = normal((2, 3, 8), "source"), normal((2, 5, 8), "target")
    found = []
    for side, lib in enumerate((OURS, THEIRS)):
        lib.mx.random.seed(9)
        found.append(modules[side](inputs[0][side], inputs[1][side], None, None, None))
    assert_close(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize("n", [0, 1, 4])
def test_causal_masks(n: int, dtype: str) -> None:
    same(
        lambda lib: (
            lib.nn.MultiHeadAttention.create_additive_causal_mask(n, getattr(lib.mx, dtype)) + 0
        )
    )


@pytest.mark.parametrize(
    "case",
    [
        lambda lib: lib.nn.MultiHeadAttention(8, 3),
        lambda lib: lib.nn.TransformerEncoderLayer(8, 3),
        lambda lib: lib.nn.MultiHeadAttention(8, 2)(*[lib.mx.ones((5, 8))] * 3),
        lambda lib: lib.nn.MultiHeadAttention(8, 2)(*[lib.mx.ones((1, 5, 6))] * 3),
        lambda lib: lib.nn.MultiHeadAttention(8, 2, value_dims=7)(*[lib.mx.ones((1, 5, 8))] * 3),
        lambda lib: lib.nn.MultiHeadAttention(8, 2)(lib.mx.ones((1, 5, 8))),
        lambda lib: lib.nn.MultiHeadAttention(8, 2)(*[lib.mx.ones((1, 5, 8))] * 3, "other"),
        lambda lib: lib.nn.TransformerEncoderLayer(8, 2)(lib.mx.ones((1, 5, 8))),
        lambda lib: lib.nn.Transformer(8, 2, 1, 1)(lib.mx.ones((1, 5, 8)), lib.mx.ones((1, 5, 8))),
        lambda lib: lib.nn.Transformer(8, 2, 1, 1, custom_decoder=lib.nn.Identity()).decoder,
        lambda lib: lib.nn.Transformer(8, 2, 0, 0),
    ],
)
def test_odd_calls(case: Case) -> None:
    same(case)


def test_masks_hide_later_positions() -> None:
    layer = nn.TransformerEncoder(2, 8, 2)
    x = normal((1, 5, 8))[0]
    mask = nn.MultiHeadAttention.create_additive_causal_mask(5)
    changed = mx.concatenate([x[:, :3], x[:, 3:] ** 2], axis=1)
    assert_close(layer(x, mask)[:, :3], layer(changed, mask)[:, :3], rtol=1e-6, atol=1e-6)
    assert not mx.allclose(layer(x, None)[:, :3], layer(changed, None)[:, :3])
