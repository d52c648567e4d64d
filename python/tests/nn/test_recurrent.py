"""Recurrent layers: values, gradients, initial states and errors as in mlx."""

from __future__ import annotations

from typing import Any

import pytest
from support.compare import assert_close

import ultramarine as mx
from ultramarine import nn

from .pairs import OURS, THEIRS, Case, assert_same_layer, normal, ordinary, pair, same

LAYERS: dict[str, Case] = {
    "RNN": lambda lib: lib.nn.RNN(3, 4),
    "RNN without bias": lambda lib: lib.nn.RNN(3, 4, False),
    "RNN of relu": lambda lib: lib.nn.RNN(3, 4, nonlinearity=lib.nn.relu),
    "RNN of a function": lambda lib: lib.nn.RNN(3, 4, True, lambda x: x / 2),
    "GRU": lambda lib: lib.nn.GRU(3, 4),
    "GRU without bias": lambda lib: lib.nn.GRU(3, 4, bias=False),
    "LSTM": lambda lib: lib.nn.LSTM(3, 4),
    "LSTM without bias": lambda lib: lib.nn.LSTM(3, 4, False),
}
PLAIN = [name for name in LAYERS if "function" not in name and "relu" not in name]


def joined(module: Any, *inputs: Any) -> Any:
    """A layer's output as one array: states, and cells if there are any."""
    out = module(*inputs)
    if not isinstance(out, tuple):
        return out
    concatenate = mx.concatenate if isinstance(out[0], mx.array) else THEIRS.mx.concatenate
    return concatenate(list(out), axis=-1)


@pytest.mark.parametrize("shape", [(2, 5, 3), (5, 3), (1, 1, 3), (2, 2, 4, 3)])
@pytest.mark.parametrize("name", LAYERS)
def test_outputs_and_gradients(name: str, shape: tuple[int, ...]) -> None:
    modules = pair(LAYERS[name])
    assert_same_layer(modules, normal(shape, name), rtol=5e-5, atol=2e-5, call=joined)


@pytest.mark.parametrize("batch", [(2,), (), (2, 3)])
@pytest.mark.parametrize("name", LAYERS)
def test_initial_states(name: str, batch: tuple[int, ...]) -> None:
    modules = pair(LAYERS[name])
    x, h, c = normal((*batch, 5, 3), name), normal((*batch, 4), "h"), normal((*batch, 4), "c")
    assert_same_layer(modules, x, h, rtol=5e-5, atol=2e-5, call=joined)
    if "LSTM" in name:
        assert_same_layer(modules, x, h, c, rtol=5e-5, atol=2e-5, call=joined)
        only = lambda m, x, c: joined(lambda x: m(x, cell=c), x)
        assert_same_layer(modules, x, c, rtol=5e-5, atol=2e-5, call=only)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", PLAIN)
def test_16_bit_floats(name: str, dtype: str) -> None:
    bound = 1e-2 if dtype == "float16" else 6e-2
    for parameters in (dtype, "float32"):
        modules = pair(LAYERS[name], parameters)
        x = normal((2, 5, 3), name, dtype=dtype)
        found = [joined(module, value) for module, value in zip(modules, x)]
        assert_close(*found, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", PLAIN)
def test_steps_one_by_one(name: str) -> None:
    """The last state goes on where a sequence ended."""
    layer = LAYERS[name](OURS)
    x = normal((2, 6, 3), name)[0]
    whole = layer(x)
    if isinstance(whole, tuple):
        first = layer(x[:, :4])
        rest = layer(x[:, 4:], first[0][:, -1], first[1][:, -1])
        assert_close(list(rest), [w[:, 4:] for w in whole], rtol=1e-5, atol=1e-6)
    else:
        rest = layer(x[:, 4:], layer(x[:, :4])[:, -1])
        assert_close(rest, whole[:, 4:], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PLAIN)
def test_contents(name: str) -> None:
    same(lambda lib: ordinary(LAYERS[name](lib), "nonlinearity"))
    same(lambda lib: [(k, v.shape) for k, v in LAYERS[name](lib).parameters().items()])
    if "RNN" not in name:
        same(lambda lib: repr(LAYERS[name](lib)))
    found = []
    for lib in (OURS, THEIRS):
        lib.mx.random.seed(3)
        found.append(LAYERS[name](lib).parameters())
    assert_close(*found, rtol=1e-6, atol=1e-7)


def test_repr_shows_the_nonlinearity() -> None:
    layer = nn.RNN(3, 4, nonlinearity=abs)
    assert repr(layer) == f"RNN(input_dims=3, hidden_size=4, nonlinearity={abs}, bias=True)"
    assert "tanh" in repr(nn.RNN(3, 4))


@pytest.mark.parametrize(
    "case",
    [
        lambda lib: lib.nn.RNN(3, 4, nonlinearity=3),
        lambda lib: lib.nn.RNN(3, 4)(lib.mx.ones((2, 5, 4))),
        lambda lib: lib.nn.GRU(3, 4)(lib.mx.ones((2, 5, 4))),
        lambda lib: lib.nn.LSTM(3, 4)(lib.mx.ones((2, 0, 3))),
        lambda lib: lib.nn.RNN(3, 4)(lib.mx.ones((2, 5, 3)), lib.mx.ones((3, 4))),
        lambda lib: lib.nn.LSTM(3, 4)(lib.mx.ones((2, 5, 3)), lib.mx.ones((2, 3))),
        lambda lib: lib.nn.LSTM(3, 4, False).bias,
        lambda lib: lib.nn.GRU(3, 4, False).bhn,
    ],
)
def test_odd_calls(case: Case) -> None:
    same(case)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_inputs_of_one_axis(name: str) -> None:
    with pytest.raises(ValueError, match="2 dimensions"):
        LAYERS[name](OURS)(mx.ones((3,)))


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_a_state_is_broadcast_over_the_batch(name: str) -> None:
    layer = LAYERS[name](OURS)
    x, h = normal((2, 5, 3), name)[0], normal((4,), name)[0]
    assert_close(joined(layer, x, h), joined(layer, x, mx.stack([h, h])), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_compiled_and_vectorised(name: str) -> None:
    layer = LAYERS[name](OURS)
    x = normal((3, 5, 3), name)[0]
    want = joined(layer, x)
    assert_close(mx.compile(lambda x: joined(layer, x))(x), want, rtol=1e-5, atol=1e-6)
    assert_close(mx.vmap(lambda x: joined(layer, x))(x), want, rtol=1e-5, atol=1e-6)
