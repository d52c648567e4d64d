"""Recurrent layers.

The input's part of all steps is one matrix product. A step adds that of the state by one `addmm`; the gates
that follow are one compiled function.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import ultramarine as mx
from ultramarine.nn.layers.activation_functions import tanh
from ultramarine.nn.layers.base import Module

__all__ = ["GRU", "LSTM", "RNN"]


def _drawn(hidden_size: int, *shape: int) -> mx.array:
    """Draws a parameter within 1 / sqrt(hidden_size)."""
    bound = 1 / math.sqrt(hidden_size)
    return mx.random.uniform(-bound, bound, shape)


class _Sequences:
    """Sequences of any number of batch axes, as one batch.

    Args:
        x (array): Sequences, (..., steps, elements).
        weight (array): Weight of the input, (outputs, elements).
        bias (array, optional): Bias, (outputs,).
        hidden_size (int): Size of a state.
    """

    def __init__(
        self, x: mx.array, weight: mx.array, bias: mx.array | None, hidden_size: int
    ) -> None:
        if x.ndim < 2:
            raise ValueError(
                "Recurrent layers expect sequences of at least 2 dimensions (..., steps, elements) "
                f"but the input has {x.ndim}. Reshape it."
            )
        *self._batch, steps, elements = x.shape
        if len(self._batch) != 1:
            x = mx.reshape(x, (math.prod(self._batch), steps, elements))
        projected = x @ weight.T if bias is None else mx.addmm(bias, x, weight.T)
        self._hidden_size = hidden_size
        self._dtype = projected.dtype
        # The products of the input with the weight, one array (batch, outputs) for each step.
        self.steps = mx.unstack(projected, axis=1)

    def state(self, initial: mx.array | None) -> mx.array:
        """Returns a state before the first step, (batch, hidden_size); by default zeros."""
        batch, size = math.prod(self._batch), self._hidden_size
        if initial is None:
            return mx.zeros((batch, size), self._dtype)
        return mx.reshape(mx.broadcast_to(initial, (*self._batch, size)), (batch, size))

    def stacked(self, states: list[mx.array]) -> mx.array:
        """Returns the states of all steps, (..., steps, hidden_size)."""
        y = mx.stack(states, axis=1)
        if len(self._batch) != 1:
            y = mx.reshape(y, (*self._batch, len(states), self._hidden_size))
        return y


class RNN(Module):
    """Elman's recurrent layer.

    A step is `h = nonlinearity(Wxh @ x + Whh @ h + bias)`. Parameters are drawn uniformly within
    ± 1 / sqrt(hidden_size).

    Args:
        input_size (int): Size of the input.
        hidden_size (int): Size of the state.
        bias (bool): Adds the bias.
        nonlinearity (Callable, optional): Function of an array, by default `tanh`.

    Raises:
        ValueError: If the nonlinearity cannot be called.

    Example:
        >>> nn.RNN(3, 5)(mx.ones((2, 10, 3))).shape
        (2, 10, 5)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Callable[[mx.array], mx.array] | None = None,
    ) -> None:
        super().__init__()
        self.nonlinearity = nonlinearity or tanh
        if not callable(self.nonlinearity):
            raise ValueError(
                f"Nonlinearity must be callable, but is {nonlinearity!r}. Pass a function, or None for tanh."
            )
        self.hidden_size = hidden_size
        self.Wxh = _drawn(hidden_size, hidden_size, input_size)
        self.Whh = _drawn(hidden_size, hidden_size, hidden_size)
        self.bias = _drawn(hidden_size, hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return (
            f"input_dims={self.Wxh.shape[1]}, hidden_size={self.hidden_size}, "
            f"nonlinearity={self.nonlinearity}, bias={self.bias is not None}"
        )

    def __call__(self, x: mx.array, hidden: mx.array | None = None) -> mx.array:
        """Runs the layer over sequences.

        Args:
            x (array): Sequences, (N, steps, input_size), or one without N.
            hidden (array, optional): State before the first step, (N, hidden_size), by default zeros.

        Returns:
            array: States after each step, (N, steps, hidden_size).
        """
        sequences = _Sequences(x, self["Wxh"], self.bias, self.hidden_size)
        h, weight, nonlinearity = sequences.state(hidden), self["Whh"].T, self.nonlinearity
        states = []
        for projected in sequences.steps:
            h = nonlinearity(mx.addmm(projected, h, weight))
            states.append(h)
        return sequences.stacked(states)


@mx.compile
def _gru_gates(x: mx.array, h_proj: mx.array, h: mx.array) -> mx.array:
    size = h.shape[-1]
    rz = mx.sigmoid(x[:, : 2 * size] + h_proj[:, : 2 * size])
    n = mx.tanh(x[:, 2 * size :] + rz[:, :size] * h_proj[:, 2 * size :])
    z = rz[:, size:]
    return (1 - z) * n + z * h


class GRU(Module):
    """Recurrent layer of gated units (GRU).

    A step, whose rows of `Wx`, `Wh` and `b` are those of r, z and n:

        r = sigmoid(Wxr @ x + Whr @ h + br)
        z = sigmoid(Wxz @ x + Whz @ h + bz)
        n = tanh(Wxn @ x + bn + r * (Whn @ h + bhn))
        h = (1 - z) * n + z * h

    Parameters are drawn uniformly within ± 1 / sqrt(hidden_size).

    Args:
        input_size (int): Size of the input.
        hidden_size (int): Size of the state.
        bias (bool): Adds the biases `b` and `bhn`.

    References:
        Cho et al.: Learning phrase representations using RNN encoder-decoder, https://arxiv.org/abs/1406.1078.

    Example:
        >>> nn.GRU(3, 5)(mx.ones((2, 10, 3))).shape
        (2, 10, 5)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.Wx = _drawn(hidden_size, 3 * hidden_size, input_size)
        self.Wh = _drawn(hidden_size, 3 * hidden_size, hidden_size)
        self.b = _drawn(hidden_size, 3 * hidden_size) if bias else None
        self.bhn = _drawn(hidden_size, hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return (
            f"input_dims={self.Wx.shape[1]}, hidden_size={self.hidden_size}, "
            f"bias={self.b is not None}"
        )

    def __call__(self, x: mx.array, hidden: mx.array | None = None) -> mx.array:
        """Runs the layer over sequences.

        Args:
            x (array): Sequences, (N, steps, input_size), or one without N.
            hidden (array, optional): State before the first step, (N, hidden_size), by default zeros.

        Returns:
            array: States after each step, (N, steps, hidden_size).
        """
        sequences = _Sequences(x, self["Wx"], self.b, self.hidden_size)
        h, weight, bhn = sequences.state(hidden), self["Wh"].T, self.bhn
        # Only n has a separate bias for the state.
        bias = None if bhn is None else mx.pad(bhn, (2 * self.hidden_size, 0))
        states = []
        for projected in sequences.steps:
            h_proj = h @ weight if bias is None else mx.addmm(bias, h, weight)
            h = _gru_gates(projected, h_proj, h)
            states.append(h)
        return sequences.stacked(states)


@mx.compile
def _lstm_gates(gates: mx.array, cell: mx.array) -> tuple[mx.array, mx.array]:
    size = cell.shape[-1]
    i = mx.sigmoid(gates[:, :size])
    f = mx.sigmoid(gates[:, size : 2 * size])
    g = mx.tanh(gates[:, 2 * size : 3 * size])
    o = mx.sigmoid(gates[:, 3 * size :])
    cell = f * cell + i * g
    return o * mx.tanh(cell), cell


class LSTM(Module):
    """Recurrent layer with long short-term memory (LSTM).

    A step, whose rows of `Wx`, `Wh` and `bias` are those of i, f, g and o:

        i = sigmoid(Wxi @ x + Whi @ h + bi)
        f = sigmoid(Wxf @ x + Whf @ h + bf)
        g = tanh(Wxg @ x + Whg @ h + bg)
        o = sigmoid(Wxo @ x + Who @ h + bo)
        c = f * c + i * g
        h = o * tanh(c)

    Parameters are drawn uniformly within ± 1 / sqrt(hidden_size).

    Args:
        input_size (int): Size of the input.
        hidden_size (int): Size of the state and of the cell.
        bias (bool): Adds the bias.

    References:
        Hochreiter, Schmidhuber: Long short-term memory, Neural Computation 9 (1997).

    Example:
        >>> hidden, cell = nn.LSTM(3, 5)(mx.ones((2, 10, 3)))
        >>> hidden.shape, cell.shape
        ((2, 10, 5), (2, 10, 5))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.Wx = _drawn(hidden_size, 4 * hidden_size, input_size)
        self.Wh = _drawn(hidden_size, 4 * hidden_size, hidden_size)
        self.bias = _drawn(hidden_size, 4 * hidden_size) if bias else None

    def _extra_repr(self) -> str:
        return (
            f"input_dims={self.Wx.shape[1]}, hidden_size={self.hidden_size}, "
            f"bias={self.bias is not None}"
        )

    def __call__(
        self, x: mx.array, hidden: mx.array | None = None, cell: mx.array | None = None
    ) -> tuple[mx.array, mx.array]:
        """Runs the layer over sequences.

        Args:
            x (array): Sequences, (N, steps, input_size), or one without N.
            hidden (array, optional): State before the first step, (N, hidden_size), by default zeros.
            cell (array, optional): Cell before the first step, (N, hidden_size), by default zeros.

        Returns:
            tuple[array, array]: States and cells after each step, (N, steps, hidden_size).
        """
        sequences = _Sequences(x, self["Wx"], self.bias, self.hidden_size)
        h, c, weight = sequences.state(hidden), sequences.state(cell), self["Wh"].T
        states, cells = [], []
        for projected in sequences.steps:
            h, c = _lstm_gates(mx.addmm(projected, h, weight), c)
            states.append(h)
            cells.append(c)
        return sequences.stacked(states), sequences.stacked(cells)
