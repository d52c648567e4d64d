"""Positional encodings: values, gradients and errors as in mlx."""

from __future__ import annotations

import pytest
from support.compare import assert_close
from support.harness import to_numpy

import ultramarine as mx
from ultramarine import nn

from .pairs import OURS, THEIRS, Case, assert_same_layer, normal, ordinary, pair, same

ROPES: dict[str, Case] = {
    "plain": lambda lib: lib.nn.RoPE(8),
    "part": lambda lib: lib.nn.RoPE(4),
    "traditional": lambda lib: lib.nn.RoPE(8, True),
    "other base and scale": lambda lib: lib.nn.RoPE(6, traditional=True, base=100.0, scale=0.5),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(3, 5, 8), (2, 3, 5, 8)])
@pytest.mark.parametrize("name", ROPES)
def test_rope(name: str, shape: tuple[int, ...], dtype: str) -> None:
    bound = {"float32": 1e-5, "float16": 8e-3, "bfloat16": 6e-2}[dtype]
    modules = (ROPES[name](OURS), ROPES[name](THEIRS))
    for offset in (0, 7):
        call = lambda m, x, offset=offset: m(x, offset=offset)
        assert_same_layer(
            modules, normal(shape, name, dtype=dtype), rtol=bound, atol=bound, call=call
        )
    same(lambda lib: repr(ROPES[name](lib)))
    same(lambda lib: ordinary(ROPES[name](lib)))


def test_rope_of_an_offset_for_each_sequence() -> None:
    x = normal((2, 3, 5, 8))
    found = [lib.nn.RoPE(8)(x[lib is THEIRS], lib.mx.array([1, 4])) for lib in (OURS, THEIRS)]
    assert_close(*found, rtol=1e-5, atol=1e-5)


SINUSOIDS: dict[str, Case] = {
    "plain": lambda lib: lib.nn.SinusoidalPositionalEncoding(8),
    "of two": lambda lib: lib.nn.SinusoidalPositionalEncoding(2),
    "of four": lambda lib: lib.nn.SinusoidalPositionalEncoding(4, scale=1.0),
    "all options": lambda lib: lib.nn.SinusoidalPositionalEncoding(8, 0.1, 10.0, 2.0, True, True),
    "scale 0": lambda lib: lib.nn.SinusoidalPositionalEncoding(6, scale=0),
    "cosines first": lambda lib: lib.nn.SinusoidalPositionalEncoding(6, cos_first=True),
}


@pytest.mark.parametrize("shape", [(1,), (5,), (2, 3)])
@pytest.mark.parametrize("name", SINUSOIDS)
def test_sinusoids(name: str, shape: tuple[int, ...]) -> None:
    modules = (SINUSOIDS[name](OURS), SINUSOIDS[name](THEIRS))
    # Frequencies of up to 63, rounded differently.
    assert_same_layer(modules, normal(shape, name), rtol=1e-4, atol=2e-4)
    same(lambda lib: SINUSOIDS[name](lib)(lib.mx.array(0)))
    same(lambda lib: repr(SINUSOIDS[name](lib)))
    same(lambda lib: SINUSOIDS[name](lib).parameters())


@pytest.mark.parametrize("dtype", ["int32", "float16", "bfloat16", "float32"])
def test_sinusoids_of_other_dtypes(dtype: str) -> None:
    found = []
    for lib in (OURS, THEIRS):
        layer = lib.nn.SinusoidalPositionalEncoding(8)
        # The frequencies are no parameters.
        layer.set_dtype(lib.mx.float16)
        found.append(layer(lib.mx.arange(5).astype(getattr(lib.mx, dtype))))
    assert_close(*found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 40])
def test_slopes(heads: int) -> None:
    found = [lib.nn.ALiBi.create_alibi_slope(heads) for lib in (OURS, THEIRS)]
    assert_close(*found, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(1, 4, 3, 3), (2, 8, 2, 7), (1, 6, 1, 5)])
def test_alibi(shape: tuple[int, ...], dtype: str) -> None:
    bound = {"float32": 1e-6, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    modules = pair(lambda lib: lib.nn.ALiBi())
    x = normal(shape, dtype=dtype)
    for offset in (0, 3):
        call = lambda m, x, offset=offset: m(x, offset)
        assert_same_layer(modules, x, rtol=bound, atol=bound, call=call)
        sizes = (shape[2] + offset, shape[3], 4, offset)
        matrices = [
            lib.nn.ALiBi.create_alibi_matrix(*sizes, getattr(lib.mx, dtype))
            for lib in (OURS, THEIRS)
        ]
        assert_close(*matrices, rtol=bound)
    mask = normal(shape[2:], "mask")
    assert_same_layer(
        modules, x, mask, rtol=bound, atol=bound, call=lambda m, x, mask: m(x, mask=mask)
    )


@pytest.mark.parametrize(
    "case",
    [
        lambda lib: lib.nn.SinusoidalPositionalEncoding(7),
        lambda lib: lib.nn.SinusoidalPositionalEncoding(0),
        lambda lib: lib.nn.SinusoidalPositionalEncoding(-2),
        lambda lib: lib.nn.RoPE(8)(lib.mx.ones((5, 8))),
        lambda lib: lib.nn.RoPE(16)(lib.mx.ones((1, 5, 8))),
        lambda lib: lib.nn.ALiBi()(lib.mx.zeros((1, 2, 2, 2)), mask=lib.mx.ones((2, 2)) > 0),
        lambda lib: repr(lib.nn.ALiBi()),
    ],
)
def test_odd_calls(case: Case) -> None:
    same(case)


def test_biases_of_far_positions_in_bfloat16() -> None:
    """Distances are computed as integers, and biases in float32: 1001 is no bfloat16."""
    matrix = nn.ALiBi.create_alibi_matrix(1002, 1002, 1, 1001, mx.bfloat16)
    assert to_numpy(matrix)[0, 0, 0, 0] == to_numpy(mx.array(-1001 / 256, mx.bfloat16))
