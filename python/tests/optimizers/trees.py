"""The same parameters and gradients in both libraries, and runs of an optimizer over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mlx
import mlx.optimizers as mlx_optimizers
from support.harness import array, name_of, rng

import ultramarine as um
from ultramarine import optimizers

# (mx, optim) of each library.
OURS = (um, optimizers)
THEIRS = (mlx, mlx_optimizers)
BOTH = (OURS, THEIRS)

# Wide, tall and square matrices, filters, a vector and a number; lists and dictionaries.
SHAPES: dict[str, Any] = {
    "wide": (4, 6),
    "layers": [{"tall": (6, 4), "bias": (4,)}, {"filters": (3, 2, 2, 2)}],
    "scale": (),
}

Make = Callable[[Any], Any]


def tree(mx: Any, dtype: str, *key: object, shapes: Any = SHAPES) -> Any:
    """A tree of normal variates, the same for the same key."""
    random = rng(*key)

    def make(shape: Any) -> Any:
        if isinstance(shape, dict):
            return {k: make(s) for k, s in shape.items()}
        if isinstance(shape, list):
            return [make(s) for s in shape]
        return array(mx, random.standard_normal(shape).astype("float32"), dtype)

    return make(shapes)


def run(
    library: tuple[Any, Any], make: Make, dtype: str = "float32", grads: str = "", steps: int = 8
) -> tuple[Any, Any]:
    """Parameters and state after some updates, without the step. `make` takes the library's optimizers."""
    mx, optim = library
    optimizer = make(optim)
    parameters = tree(mx, dtype, "parameters")
    for step in range(steps):
        gradients = tree(mx, grads or dtype, "gradients", step)
        parameters = optimizer.apply_gradients(gradients, parameters)
        mx.eval(parameters, optimizer.state)
    state = dict(optimizer.state)
    assert name_of(state["step"].dtype) == "uint64" and state.pop("step").item() == steps
    return parameters, state
