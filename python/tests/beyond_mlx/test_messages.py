"""What errors say: the function, the parameter, and what would do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import ultramarine as mx


@dataclass
class Result:
    value: Any


def leaked(transform: Callable[..., Any]) -> list[mx.array]:
    """Arrays that a function made under a transform, which is over."""
    kept: list[mx.array] = []

    def f(x: mx.array) -> mx.array:
        kept.extend([x, x * 2])
        return x.sum()

    transform(f)(mx.ones((2, 3)))
    return [*kept, kept[1] + 1]


def test_leaks_out_of_vmap() -> None:
    for array in leaked(mx.vmap):
        with pytest.raises(RuntimeError, match="vmap called once for the whole batch") as caught:
            array.tolist()
        assert "compile" not in str(caught.value)


def test_leaks_out_of_compiled_functions() -> None:
    for array in leaked(mx.compile):
        with pytest.raises(RuntimeError, match="while a compiled function was traced") as caught:
            mx.eval(array)
        assert "inputs and outputs" in str(caught.value)
        assert "vmap" not in str(caught.value)


def test_leaks_out_of_nested_transforms() -> None:
    inside = leaked(lambda f: mx.compile(lambda x: mx.vmap(f)(x)))
    with pytest.raises(RuntimeError, match="vmap called"):
        mx.eval(inside)
    inside = leaked(lambda f: mx.vmap(lambda x: mx.compile(f)(x)))
    with pytest.raises(RuntimeError, match="compiled function"):
        mx.eval(inside)


def test_objects_that_compiled_functions_return() -> None:
    made = mx.compile(lambda x: Result(x * 2))(mx.ones(2))
    with pytest.raises(RuntimeError, match="a dataclass, is no tree of arrays"):
        mx.eval(made.value)


def test_arrays_of_gradients_outlive_them() -> None:
    assert [a.shape for a in leaked(lambda f: mx.grad(f))] == [(2, 3)] * 3
    assert leaked(lambda f: mx.grad(f))[2].tolist() == [[3.0] * 3] * 2
