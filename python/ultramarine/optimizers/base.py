"""The base class of optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ultramarine as mx
from ultramarine.utils import tree_map

if TYPE_CHECKING:
    from ultramarine.nn import Module

__all__ = ["Optimizer"]


class Optimizer:
    """The base class of optimizers.

    A subclass says how one parameter is updated, and the base class applies it to trees of parameters. Its
    `state` is a tree, too: `step`, the number of updates (uint64), the hyperparameters on a schedule, and in the
    place of each parameter a dictionary of what the subclass keeps for it. The tree can be an input and output
    of `compile`, and be saved with `utils.tree_flatten` and `save_safetensors`.

    A subclass calls `super().__init__()`, gives `_maybe_schedule` those arguments that may be schedules, and
    implements `init_single` and `apply_single`.

    Args:
        schedulers (dict[str, Callable], optional): Functions from the step to the value of entries of the state.

    Example:
        >>> import ultramarine.optimizers as optim
        >>> class SignSGD(optim.Optimizer):
        ...     def __init__(self, learning_rate):
        ...         super().__init__()
        ...         self._maybe_schedule("learning_rate", learning_rate)
        ...
        ...     def init_single(self, parameter, state):
        ...         pass
        ...
        ...     def apply_single(self, gradient, parameter, state):
        ...         return parameter - self.learning_rate * mx.sign(gradient)
        >>> parameters = {"weight": mx.array([1.0, 2.0])}
        >>> SignSGD(0.5).apply_gradients({"weight": mx.array([3.0, -4.0])}, parameters)
        {'weight': array([0.5, 2.5], dtype=float32)}
    """

    # Results of `_once`, kept while gradients are applied.
    _shared: dict[Any, mx.array] | None = None

    def __init__(self, schedulers: dict[str, Callable[[mx.array], Any]] | None = None) -> None:
        self._initialized = False
        self._state: dict[str, Any] = {"step": mx.array(0, mx.uint64)}
        self._schedulers: dict[str, Callable[[mx.array], Any]] = dict(schedulers or {})

    def update(self, model: Module, gradients: dict[str, Any]) -> None:
        """Updates the parameters of a model in place, and the state.

        Args:
            model (nn.Module): Model with the parameters.
            gradients (dict): Tree of gradients, as `nn.value_and_grad` returns it.

        Example:
            >>> import ultramarine.optimizers as optim
            >>> model = nn.Linear(1, 1, bias=False).update({"weight": mx.array([[1.0]])})
            >>> optim.SGD(0.5).update(model, {"weight": mx.array([[2.0]])})
            >>> model.weight
            array([[0]], dtype=float32)
        """
        model.update(self.apply_gradients(gradients, model))

    def init(self, parameters: dict[str, Any]) -> None:
        """Adds the state of parameters that have none. `apply_gradients` does so for the gradients it is given.

        State that is there, as after loading, stays.

        Args:
            parameters (dict): Tree of parameters, e.g. `model.trainable_parameters()`.

        Raises:
            ValueError: If the state has another structure than the parameters.

        Example:
            >>> import ultramarine.optimizers as optim
            >>> optimizer = optim.SGD(learning_rate=0.1, momentum=0.9)
            >>> optimizer.init({"weight": mx.zeros(2)})
            >>> optimizer.state.keys()
            dict_keys(['step', 'learning_rate', 'weight'])
        """
        self._init_tree(parameters, self.state)
        self._initialized = True

    def _init_tree(self, parameters: Any, state: Any) -> Any:
        """Returns `state`, None where there is none, with the state of all parameters.

        Dictionaries stay the same objects: they are what functions that `compile` traced refer to.
        """
        if isinstance(parameters, dict):
            state = self._place(parameters, state, dict)
            for key, child in parameters.items():
                state[key] = self._init_tree(child, state.get(key))
            return state
        if isinstance(parameters, (list, tuple)):
            old = self._place(parameters, state, (list, tuple))
            new = [
                self._init_tree(child, old[i] if i < len(old) else None)
                for i, child in enumerate(parameters)
            ]
            return new + list(old[len(new) :])
        state = self._place(parameters, state, dict)
        if not state:
            self.init_single(parameters, state)
        return state

    def _place(self, parameters: Any, state: Any, kind: type | tuple[type, ...]) -> Any:
        """Returns `state`, or an empty node where there is none or an empty one of another kind.

        `tree_unflatten` puts an empty dictionary in the place of whatever had no leaves.
        """
        if isinstance(state, kind):
            return state
        if state is None or (isinstance(state, (dict, list, tuple)) and not state):
            return {} if kind is dict else []
        raise ValueError(
            f"[{type(self).__name__}.init] the state has a {type(state).__name__} where the parameters have a "
            f"{type(parameters).__name__}. Pass the parameters, as a dictionary, for which the state was made."
        )

    def init_single(self, parameter: mx.array, state: dict[str, Any]) -> None:
        """Makes the state of one parameter. Subclasses implement it.

        Args:
            parameter (array): The parameter, or a gradient with its shape and dtype.
            state (dict): Empty dictionary, to be filled.

        Example:
            >>> import ultramarine.optimizers as optim
            >>> state = {}
            >>> optim.Adam(0.1).init_single(mx.zeros(2), state)
            >>> sorted(state)
            ['m', 'v']
        """
        raise NotImplementedError(
            f"[{type(self).__name__}.init_single] is not implemented. Implement it in the subclass."
        )

    def apply_gradients(self, gradients: dict[str, Any], parameters: dict[str, Any]) -> Any:
        """Returns the updated parameters, and updates the state.

        Args:
            gradients (dict): Tree of gradients.
            parameters (dict): Tree of parameters, or a model. It may have more leaves than the gradients.

        Returns:
            dict: The updated parameters, in the structure of the gradients.

        Raises:
            KeyError: If a gradient has no parameter.

        Example:
            >>> import ultramarine.optimizers as optim
            >>> optim.SGD(0.5).apply_gradients({"w": mx.array([2.0])}, {"w": mx.array([1.0])})
            {'w': array([0], dtype=float32)}
        """
        if not self._initialized:
            self.init(gradients)
        state = self.state
        step = self.step
        for name, schedule in self._schedulers.items():
            state[name] = schedule(step)
        state["step"] = step + 1
        self._shared = {}
        try:
            return tree_map(self.apply_single, gradients, parameters, state)
        finally:
            self._shared = None

    def apply_single(
        self, gradient: mx.array, parameter: mx.array, state: dict[str, Any]
    ) -> mx.array:
        """Returns the updated value of one parameter, and updates its state. Subclasses implement it.

        Args:
            gradient (array): Gradient of the parameter.
            parameter (array): The parameter.
            state (dict): State of the parameter.

        Returns:
            array: Next value of the parameter.

        Example:
            >>> import ultramarine.optimizers as optim
            >>> optim.SGD(0.5).apply_single(mx.array([2.0]), mx.array([1.0]), {})
            array([0], dtype=float32)
        """
        raise NotImplementedError(
            f"[{type(self).__name__}.apply_single] is not implemented. Implement it in the subclass."
        )

    @property
    def state(self) -> dict[str, Any]:
        """The state: a tree of arrays. A tree that is assigned is completed before the next update."""
        return self._state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self._initialized = False
        self._state = state

    @property
    def step(self) -> mx.array:
        """Number of updates so far, a uint64 array without dimensions."""
        return self._entry("step")

    @property
    def learning_rate(self) -> mx.array:
        """Learning rate of the last update, an array without dimensions; before the first, that of step 0.

        A number or array may be assigned. A schedule replaces it in the next update.
        """
        return self._entry("learning_rate")

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | mx.array) -> None:
        self.state["learning_rate"] = mx.array(learning_rate)

    def _entry(self, name: str) -> mx.array:
        try:
            value: mx.array = self.state[name]
        except KeyError:
            raise KeyError(
                f"[{type(self).__name__}] the state has no {name!r}. Pass it to the optimizer, or assign a state "
                "that has it."
            ) from None
        return value

    def _maybe_schedule(self, name: str, param: float | Callable[[mx.array], Any]) -> None:
        """Makes an argument an entry of the state, which follows a schedule if the argument is one.

        Args:
            name (str): Key of the entry.
            param (float or Callable): Value, or function from the step to the value.
        """
        if callable(param):
            self._schedulers[name] = param
            self.state[name] = param(self.step)
        else:
            self.state[name] = mx.array(param)

    def _once(self, compute: Callable[[mx.Dtype], mx.array], dtype: mx.Dtype) -> mx.array:
        """Returns `compute(dtype)`, computed once for all parameters of an update.

        Only during `apply_gradients`: later the arrays of the state may have other contents.

        Args:
            compute (Callable): Method whose result depends on the optimizer's state and the dtype alone.
            dtype (Dtype): Dtype of the parameter or gradient.

        Returns:
            array: The result.
        """
        shared = self._shared
        if shared is None:
            return compute(dtype)
        key = (compute, dtype)
        value = shared.get(key)
        if value is None:
            value = shared[key] = compute(dtype)
        return value


def check_fraction(name: str, parameter: str, value: float) -> None:
    """Raises a ValueError unless `0 <= value < 1`."""
    if not 0.0 <= value < 1.0:
        raise ValueError(f"[{name}] {parameter} is {value}. Pass a number in [0, 1).")


def check_not_negative(name: str, parameter: str, value: float) -> None:
    """Raises a ValueError unless `value >= 0`."""
    if not value >= 0.0:
        raise ValueError(f"[{name}] {parameter} is {value}. Pass a number that is not negative.")


def check_positive(name: str, parameter: str, value: float) -> None:
    """Raises a ValueError unless `value > 0`."""
    if not value > 0.0:
        raise ValueError(f"[{name}] {parameter} is {value}. Pass a positive number.")
