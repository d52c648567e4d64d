"""Objects that lie about themselves, given to array and asarray: an error, and nothing dies."""

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.foreign import ArrayIs, Gives, Refuses

import ultramarine as mx

both = pytest.mark.parametrize("make", [mx.array, mx.asarray], ids=["array", "asarray"])


class Length:
    """A sequence that says it has so many items, and has `items`."""

    def __init__(self, says: Any, items: Any) -> None:
        self.says, self.items = says, items

    def __len__(self) -> Any:
        return self.says

    def __getitem__(self, i: int) -> Any:
        return self.items[i]


@both
def test_lengths_that_lie(make: Callable[..., mx.array]) -> None:
    with pytest.raises(ValueError, match="no item 2"):
        make(Length(5, [1, 2]))
    assert make(Length(1, [1, 2])).tolist() == [1]
    for absurd in (2**62, 2**50):
        with pytest.raises((MemoryError, ValueError)):
            make(Length(absurd, [1]))
    for wrong in (-1, 2**70, "x", None):
        with pytest.raises((ValueError, OverflowError, TypeError)):
            make(Length(wrong, [1]))
    with pytest.raises(KeyError):
        make(Length(2, {5: 1}))


@both
def test_recursion_ends(make: Callable[..., mx.array]) -> None:
    endless = Length(1, None)
    endless.items = [endless]
    own: list[Any] = []
    own.append(own)
    behind: list[Any] = [mx.array(1)]
    behind.append(behind)
    foreign: list[Any] = [np.ones(2)]
    foreign.append(foreign)
    for odd in (endless, own, behind, foreign):
        with pytest.raises(ValueError, match="deep"):
            make(odd)


@both
def test_items_that_change_the_list(make: Callable[..., mx.array]) -> None:
    items: list[Any] = []

    class Clears:
        def __array__(self) -> np.ndarray:
            items.clear()
            return np.ones(())

    items += [Clears(), Clears(), 1]
    with pytest.raises(ValueError):
        make(items)


@both
@pytest.mark.parametrize(
    "given", [3, None, "text", object(), (1, 0), b"bytes"], ids=lambda g: type(g).__name__
)
def test_producers_that_give_nonsense(make: Callable[..., mx.array], given: Any) -> None:
    with pytest.raises(mx.InterchangeError):
        make(Gives(given))
    with pytest.raises(TypeError):
        mx.from_dlpack(Gives(given))


@both
def test_capsules_of_something_else(make: Callable[..., mx.array]) -> None:
    with pytest.raises(mx.InterchangeError, match="datetime_CAPI"):
        make(datetime.datetime_CAPI)  # type: ignore[attr-defined]


@both
@pytest.mark.parametrize("given", [..., 3, None, "text", [1, 2], object()], ids=repr)
def test_arrays_that_are_none(make: Callable[..., mx.array], given: Any) -> None:
    with pytest.raises(ValueError, match="__array__"):
        make(ArrayIs(given))


@both
def test_methods_that_raise(make: Callable[..., mx.array]) -> None:
    class Fails:
        def __array__(self) -> Any:
            raise ZeroDivisionError

    class FailsToo:
        def __mlx_array__(self) -> Any:
            raise ZeroDivisionError

    class Interrupted(Refuses):
        def __array__(self) -> Any:
            raise AssertionError("not to be asked")

    class NotOurs:
        def __mlx_array__(self) -> Any:
            return np.ones(2)

    for odd in (Fails(), FailsToo(), [Fails()]):
        with pytest.raises(ZeroDivisionError):
            make(odd)
    with pytest.raises(KeyboardInterrupt):
        make(Interrupted(KeyboardInterrupt()))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="__mlx_array__"):
        make(NotOurs())


def test_old_arrays_cannot_promise_no_copy() -> None:
    class Old:
        def __array__(self, dtype: Any = None) -> np.ndarray:
            return np.ones(2)

    assert mx.asarray(Old()).dtype == mx.float64
    with pytest.raises(mx.InterchangeError, match="copy=False"):
        mx.asarray(Old(), copy=False)
