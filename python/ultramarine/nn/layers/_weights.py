"""Checks of weights that are loaded into a module."""

from __future__ import annotations

from typing import Any

import ultramarine as mx


def check_weights(module: str, current: dict[str, mx.array], new: dict[str, Any]) -> None:
    """Raises ValueError unless names and shapes of weights are those of the parameters.

    Args:
        module (str): Name of the module's class, for the message.
        current (dict): The parameters, by their paths.
        new (dict): The weights, by their paths.
    """
    if extra := new.keys() - current.keys():
        raise ValueError(
            f"[load_weights] {len(extra)} weights are not parameters of {module}: "
            f"{_lines(extra)}\nRemove them, or pass strict=False."
        )
    if missing := current.keys() - new.keys():
        raise ValueError(
            f"[load_weights] weights of {len(missing)} parameters of {module} are missing: "
            f"{_lines(missing)}\nAdd them, or pass strict=False to keep the present ones."
        )
    for name, parameter in current.items():
        value = new[name]
        if not isinstance(value, mx.array):
            raise ValueError(
                f"[load_weights] the weight {name} is of type {type(value).__name__}. Pass an array."
            )
        if value.shape != parameter.shape:
            raise ValueError(
                f"[load_weights] the weight {name} has shape {value.shape}, and its parameter "
                f"{parameter.shape}. Check that the weights are this model's."
            )


def _lines(names: set[str]) -> str:
    """Names in order, one a line."""
    return "".join(f"\n  {name}" for name in sorted(names))
