"""What errors say: the function, the parameter, and what would do."""

import inspect
import pickle
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


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "mean of a list": (
        lambda: mx.mean([1.0, 2.0]),
        TypeError,
        r"mean\(\): argument 'a': expected an array, got list",
    ),
    "an axis": (
        lambda: mx.mean(mx.ones(2), "x"),
        TypeError,
        r"mean\(\): argument 'axis': expected an int or a sequence of ints, got str",
    ),
    "by name": (
        lambda: mx.softmax(mx.ones(2), axis=1.5),
        TypeError,
        r"softmax\(\): argument 'axis': .*got float",
    ),
    "no array": (lambda: mx.concatenate(3), TypeError, r"concatenate\(\): argument 'arrays': .*int"),
    "another in a list": (
        lambda: mx.concatenate([3]),
        TypeError,
        r"concatenate\(\): argument 'arrays': expected an array, got int",
    ),
    "of a module": (
        lambda: mx.fft.fft([1.0]),
        (TypeError, ValueError),
        r"fft\(\): argument 'a': .*list",
    ),
    "of a dtype": (lambda: mx.zeros(2, "float"), TypeError, r"zeros\(\): argument 'dtype': "),
    "nothing": (lambda: mx.mean(), TypeError, r"mean\(\) missing 1 required positional"),
    "too much": (lambda: mx.mean(mx.ones(2), x=3), TypeError, r"mean\(\) got an unexpected keyword"),
    "too large": (lambda: mx.zeros(10**30), OverflowError, r"zeros\(\): argument 'shape': "),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_function_and_parameter_are_named(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text) as caught:
        call()
    assert type(caught.value) in (TypeError, ValueError, OverflowError)
    assert not getattr(caught.value, "__notes__", [])


def test_errors_of_the_caller_s_code_stay_what_they_are() -> None:
    class Number:
        def __index__(self) -> int:
            raise ValueError("no number today")

    with pytest.raises(ValueError, match=r"^no number today"):
        mx.mean(mx.ones(2), Number())
    # An error of an inner call keeps that call's name.
    with pytest.raises(TypeError, match=r"^mean\(\): argument 'a'"):
        mx.vjp(lambda x: mx.mean([x]), [mx.ones(2)], [mx.array(1.0)])
    with pytest.raises(TypeError, match=r"^expected an int or"):
        mx.vjp(lambda x: x.reshape("x"), [mx.ones(2)], [mx.array(1.0)])


def test_functions_are_what_they_were() -> None:
    """Builtins of the module: with a name, a signature and documentation, and they can be pickled."""
    for function in (mx.mean, mx.grad, mx.can_cast, mx.fft.fft, mx.random.normal, mx.eval):
        assert inspect.isbuiltin(function) and inspect.signature(function)
        assert function.__doc__ and "--" not in function.__doc__.split("\n")[0]
        assert function.__name__ == function.__qualname__
    assert pickle.loads(pickle.dumps(mx.mean)) is mx.mean
