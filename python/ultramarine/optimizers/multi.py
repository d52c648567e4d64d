"""Several optimizers, each for some of the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ultramarine as mx
from ultramarine.optimizers.base import Optimizer
from ultramarine.utils import tree_flatten, tree_map_with_path, tree_unflatten

__all__ = ["MultiOptimizer"]

Filter = Callable[[str, Any], bool]


class MultiOptimizer(Optimizer):
    """Several optimizers, each for some of the parameters.

    A filter sees a parameter's path, such as `layers.0.weight`, and its gradient. The first filter that accepts
    them decides for the optimizer in its place; the last optimizer has no filter, and takes the rest.

    Its `state` is `{"states": [...]}`, with the states of the optimizers in their order.

    Args:
        optimizers (list[Optimizer]): The optimizers.
        filters (list[Callable[[str, array], bool]]): Filters of all optimizers but the last.

    Raises:
        ValueError: If there is not one filter less than optimizers.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> optimizer = optim.MultiOptimizer(
        ...     [optim.Muon(0.02), optim.AdamW(3e-4)], [lambda path, weight: weight.ndim >= 2]
        ... )
        >>> optimizer.init({"weight": mx.zeros((2, 3)), "bias": mx.zeros(3)})
        >>> [list(state) for state in optimizer.state["states"]]
        [['step', 'learning_rate', 'weight'], ['step', 'learning_rate', 'bias']]
    """

    def __init__(
        self,
        optimizers: list[Optimizer],
        filters: list[Filter] = [],  # noqa: B006
    ) -> None:
        super().__init__()
        self._state = {}
        if len(filters) != len(optimizers) - 1:
            raise ValueError(
                f"[MultiOptimizer] {len(optimizers)} optimizers have {len(filters)} filters. Pass a filter for "
                "each optimizer but the last."
            )
        self.optimizers = optimizers
        self.filters = [*filters, _accept]

    def _split_dictionary(self, gradients: dict[str, Any]) -> list[Any]:
        """Returns the part of the tree that belongs to each optimizer."""
        if len(self.optimizers) == 1:
            return [gradients]
        parts: list[list[tuple[str, Any]]] = [[] for _ in self.optimizers]
        leaves: Any = tree_flatten(gradients)
        for path, gradient in leaves:
            for part, accepts in zip(parts, self.filters):
                if accepts(path, gradient):
                    part.append((path, gradient))
                    break
        return [tree_unflatten(part) if part else {} for part in parts]

    def init(self, parameters: dict[str, Any]) -> None:
        """Adds the state of parameters that have none, each to its optimizer's.

        Args:
            parameters (dict): Tree of parameters.

        Example:
            >>> import ultramarine.optimizers as optim
            >>> optimizer = optim.MultiOptimizer([optim.Lion(0.1), optim.SGD(0.1)], [lambda path, g: g.ndim > 1])
            >>> optimizer.init({"weight": mx.zeros((2, 2)), "bias": mx.zeros(2)})
            >>> [sorted(state) for state in optimizer.state["states"]]
            [['learning_rate', 'step', 'weight'], ['bias', 'learning_rate', 'step']]
        """
        for optimizer, part in zip(self.optimizers, self._split_dictionary(parameters)):
            optimizer.init(part)

    def apply_gradients(self, gradients: dict[str, Any], parameters: dict[str, Any]) -> Any:
        """Returns the updated parameters, and updates the states of all optimizers.

        Args:
            gradients (dict): Tree of gradients.
            parameters (dict): Tree of parameters, or a model. It may have more leaves than the gradients.

        Returns:
            dict: The updated parameters, in the structure of the gradients.

        Example:
            >>> import ultramarine.optimizers as optim
            >>> optimizer = optim.MultiOptimizer([optim.Lion(0.5), optim.SGD(0.5)], [lambda path, g: path == "a"])
            >>> ones = {"a": mx.array([4.0]), "b": mx.array([4.0])}
            >>> optimizer.apply_gradients(ones, ones)
            {'a': array([3.5], dtype=float32), 'b': array([2], dtype=float32)}
        """
        updated: dict[str, Any] = {}
        for optimizer, part in zip(self.optimizers, self._split_dictionary(gradients)):
            tree_flatten(optimizer.apply_gradients(part, parameters), destination=updated)
        # If the tree is a single leaf, its path is None here and empty in `updated`.
        return tree_map_with_path(lambda path, _: updated[path or ""], gradients)

    @property
    def state(self) -> dict[str, Any]:
        """States of the optimizers, a list under the key "states"."""
        return {"states": [optimizer.state for optimizer in self.optimizers]}

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        if "states" not in state or len(state["states"]) != len(self.optimizers):
            raise ValueError(
                f"[MultiOptimizer.state] the state does not belong to {len(self.optimizers)} optimizers. Pass "
                "{'states': [...]} with the state of each."
            )
        for optimizer, own in zip(self.optimizers, state["states"]):
            optimizer.state = own

    @property
    def learning_rate(self) -> mx.array:
        """Learning rate of the first optimizer. A value that is assigned becomes that of all."""
        return self.optimizers[0].learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | mx.array) -> None:
        for optimizer in self.optimizers:
            optimizer.learning_rate = learning_rate


def _accept(path: str, gradient: Any) -> bool:
    return True
