"""Modules made of other modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ultramarine.nn.layers.base import Module

__all__ = ["Sequential"]


class Sequential(Module):
    """Calls modules and functions one after the other.

    Parameters of modules are those of the sequence. Functions are called, too, but parameters are not looked for
    in them.

    Args:
        *modules (Callable): Modules and functions of one argument.

    Example:
        >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        >>> model(mx.ones((5, 3))).shape
        (5, 1)
    """

    def __init__(self, *modules: Callable[..., Any]) -> None:
        """Makes the sequence."""
        super().__init__()
        self.layers: list[Any] = list(modules)

    def __call__(self, x: Any) -> Any:
        """Returns the result of the last module.

        Args:
            x (Any): Argument of the first module.

        Returns:
            Any: `x` itself if there are no modules.
        """
        for layer in self["layers"]:
            x = layer(x)
        return x
