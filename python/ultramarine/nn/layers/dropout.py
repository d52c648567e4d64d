"""Layers that zero a random part of their input in training."""

from __future__ import annotations

import ultramarine as mx
from ultramarine.nn.layers.base import Module

__all__ = ["Dropout", "Dropout2d", "Dropout3d"]


class _Dropout(Module):
    """Zeros with probability `p`, and division of the rest by `1 - p`, in training mode."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if p < 0 or p >= 1:
            raise ValueError(
                f"[{type(self).__name__}] p is {p}. Pass a probability of at least 0 and below 1."
            )
        # The probability of keeping an element.
        self._p_1 = 1 - p

    def _extra_repr(self) -> str:
        return f"p={1 - self._p_1}"

    def _drop(self, x: mx.array, shape: tuple[int, ...]) -> mx.array:
        """The input with a mask, of the given shape, that is broadcast to it."""
        mask = mx.random.bernoulli(self._p_1, shape)
        return mx.where(mask, x * (1 / self._p_1), 0)


class Dropout(_Dropout):
    """Zeros elements at random in training mode, and divides the others by 1 - p.

    In evaluation mode it returns its input. Either way an element has the same mean.

    Args:
        p (float): Probability that an element is zeroed, at least 0 and below 1.

    Example:
        >>> layer = nn.Dropout(p=0.5)
        >>> sorted(set(layer(mx.ones(1000)).tolist()))
        [0.0, 2.0]
        >>> layer.eval()(mx.ones(3))
        array([1, 1, 1], dtype=float32)
    """

    def __init__(self, p: float = 0.5) -> None:
        """Makes the layer.

        Raises:
            ValueError: If `p` is no such probability.
        """
        super().__init__(p)

    def __call__(self, x: mx.array) -> mx.array:
        """Zeros elements.

        Args:
            x (array): Array of any shape.

        Returns:
            array: Array of the same shape.
        """
        if self._p_1 == 1 or not self._training:
            return x
        return self._drop(x, x.shape)


class Dropout2d(_Dropout):
    """Zeros channels of images at random in training mode, and divides the others by 1 - p.

    Neighbouring pixels are alike, so that zeros of single elements would do little (Tompson et al., "Efficient
    Object Localization Using Convolutional Networks", CVPR 2015). In evaluation mode it returns its input.

    Args:
        p (float): Probability that a channel is zeroed, at least 0 and below 1.

    Example:
        >>> nn.Dropout2d(p=0.5)(mx.ones((2, 4, 4, 3))).shape
        (2, 4, 4, 3)
    """

    def __init__(self, p: float = 0.5) -> None:
        """Makes the layer.

        Raises:
            ValueError: If `p` is no such probability.
        """
        super().__init__(p)

    def __call__(self, x: mx.array) -> mx.array:
        """Zeros channels, of each image its own.

        Args:
            x (array): Array of the shape (batch, height, width, channels) or (height, width, channels).

        Returns:
            array: Array of the same shape.

        Raises:
            ValueError: If `x` has neither 3 nor 4 axes.
        """
        if x.ndim not in (3, 4):
            raise ValueError(
                f"[Dropout2d] the input has shape {x.shape}. Pass an array of 3 or 4 axes, channels last."
            )
        if self._p_1 == 1 or not self._training:
            return x
        return self._drop(x, (*x.shape[:-3], 1, 1, x.shape[-1]))


class Dropout3d(_Dropout):
    """Zeros channels of volumes at random in training mode, and divides the others by 1 - p.

    In evaluation mode it returns its input. See `Dropout2d`.

    Args:
        p (float): Probability that a channel is zeroed, at least 0 and below 1.

    Example:
        >>> nn.Dropout3d(p=0.5)(mx.ones((2, 4, 4, 4, 3))).shape
        (2, 4, 4, 4, 3)
    """

    def __init__(self, p: float = 0.5) -> None:
        """Makes the layer.

        Raises:
            ValueError: If `p` is no such probability.
        """
        super().__init__(p)

    def __call__(self, x: mx.array) -> mx.array:
        """Zeros channels, of each volume its own.

        Args:
            x (array): Array of the shape (batch, depth, height, width, channels) or without the batch.

        Returns:
            array: Array of the same shape.

        Raises:
            ValueError: If `x` has neither 4 nor 5 axes.
        """
        if x.ndim not in (4, 5):
            raise ValueError(
                f"[Dropout3d] the input has shape {x.shape}. Pass an array of 4 or 5 axes, channels last."
            )
        if self._p_1 == 1 or not self._training:
            return x
        return self._drop(x, (*x.shape[:-4], 1, 1, 1, x.shape[-1]))
