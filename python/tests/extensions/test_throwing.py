"""Operations from outside, in C++, that throw: exceptions end at the boundary, and Python has its own."""

import gc
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from support import extensions

import ultramarine as mx


@pytest.fixture(scope="module")
def cxx(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return extensions.load(extensions.build(tmp_path_factory.mktemp("cxx"), "throwing.cpp"))


X = [1.0, 2.0, 3.0]
RULES: dict[str, Callable[[Callable[[mx.array], mx.array]], Any]] = {
    "infer": lambda f: f(mx.array(X)),
    "eval_cpu": lambda f: mx.eval(f(mx.array(X))),
    "a task": lambda f: mx.eval(mx.exp(f(mx.array(X)))),
    "vjp": lambda f: mx.grad(lambda x: f(x).sum())(mx.array(X)),
    "jvp": lambda f: mx.jvp(f, [mx.array(X)], [mx.ones(3)]),
    "vmap": lambda f: mx.vmap(f)(mx.ones((5, 3))),
}
THROWN: dict[str, tuple[type[Exception], str]] = {
    "runtime_error": (RuntimeError, "thrown in {}"),
    "invalid_argument": (ValueError, "thrown in {}"),
    "bad_alloc": (MemoryError, "memory"),
    "error": (ValueError, "thrown in {}"),
    "host": (ValueError, r"\[reshape\]"),
    "int": (RuntimeError, "unknown"),
}


@pytest.mark.parametrize("what", list(THROWN))
@pytest.mark.parametrize("rule", list(RULES))
def test_an_exception_is_an_exception(cxx: ModuleType, rule: str, what: str) -> None:
    gc.collect()
    memory = mx.get_active_memory()
    error, text = THROWN[what]
    with pytest.raises(error, match=rf"(?s)\[throws\].*{text.format(rule)}") as caught:
        RULES[rule](lambda x: cxx.apply(rule, what, x))
    assert type(caught.value) is error
    del caught
    assert (mx.array(1) + 1).item() == 2
    gc.collect()
    mx.synchronize()
    assert cxx.contexts() == 0 and mx.get_active_memory() == memory


def test_without_an_exception(cxx: ModuleType) -> None:
    f = lambda x: cxx.apply("nowhere", "", x)
    assert f(mx.array(X)).tolist() == [2, 4, 6]
    assert RULES["vjp"](f).tolist() == [2, 2, 2]
    assert RULES["vmap"](f).tolist() == [[2, 2, 2]] * 5
    large = mx.ones(100_000)
    assert f(large).sum().item() == 200_000
