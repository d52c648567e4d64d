"""Views of arrays: of evaluated ones, which are made at once, and of lazy ones, which are nodes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import ultramarine as mx

HOST = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

INDICES: list[Any] = [
    0,
    -1,
    (1, 2),
    (1, -1, 3),
    slice(None),
    slice(1, 2),
    slice(5, 9),
    slice(None, None, -1),
    (slice(None), slice(2, None, -2)),
    (slice(None), slice(0, 0), 1),
    (Ellipsis, 1),
    (0, Ellipsis),
    (0, Ellipsis, slice(1, 3)),
    (Ellipsis, None),
    (None, 1, None, slice(None, -1)),
    (1, 0, 2, Ellipsis),
    (slice(-100, 100), slice(100, -100, -1), slice(None, None, 3)),
    (slice(2**70), slice(-(2**70), None)),
    None,
    (),
]
ERRORS: list[Any] = [2, -3, (0, 3), (0, 0, 0, 0), (Ellipsis, Ellipsis), slice(0, 2, 0), 2**70]

VIEWS: dict[str, Callable[[mx.array], mx.array]] = {
    "index": lambda x: x[1],
    "slice": lambda x: x[:, 1:],
    "reshape": lambda x: x.reshape(4, 6),
    "transpose": lambda x: x.T,
    "broadcast": lambda x: mx.broadcast_to(x, (2, 2, 3, 4)),
    "flip": lambda x: x[::-1],
    "diagonal": lambda x: mx.diagonal(x),
}


def evaluated() -> mx.array:
    x = mx.array(HOST)
    mx.eval(x)
    return x


def lazy() -> mx.array:
    return mx.array(HOST) * 1


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize("make", [evaluated, lazy, lambda: evaluated().T.T, lambda: evaluated()[:]])
def test_indices(make: Callable[[], mx.array], index: Any) -> None:
    """As numpy's, and so are views of views."""
    expected = HOST[index]
    part = make()[index]
    assert part.shape == expected.shape
    np.testing.assert_array_equal(np.array(part), expected)
    np.testing.assert_array_equal(np.array(part.T.reshape(-1)), expected.T.reshape(-1))


@pytest.mark.parametrize("index", ERRORS, ids=repr)
def test_errors(index: Any) -> None:
    """An evaluated array raises what a lazy one does."""
    raised = []
    for x in (evaluated(), lazy()):
        with pytest.raises((IndexError, ValueError)) as error:
            x[index]
        raised.append((error.type, str(error.value)))
    assert raised[0] == raised[1]


@pytest.mark.parametrize("view", VIEWS)
def test_memory_is_shared(view: str) -> None:
    x = evaluated()
    before = mx.get_active_memory()
    part = VIEWS[view](x)
    mx.eval(part)
    assert mx.get_active_memory() == before
    assert np.shares_memory(np.asarray(part), np.asarray(x))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("make", [evaluated, lazy])
def test_updates_are_of_one_array(make: Callable[[], mx.array], view: str) -> None:
    x = make()
    part = VIEWS[view](x)
    expected = np.array(VIEWS[view](evaluated()))
    x[0] = -1
    x += 1
    mx.eval(x)
    np.testing.assert_array_equal(np.array(part), expected)
    updated = np.array(x)
    part[0] = 100
    part *= 2
    mx.eval(part)
    np.testing.assert_array_equal(np.array(x), updated)


@pytest.mark.parametrize("view", VIEWS)
def test_gradients(view: str) -> None:
    """By the array, and where views of an evaluated one are constants of the function."""
    x, other = evaluated(), evaluated() + 1
    mx.eval(other)

    def loss(x: mx.array) -> mx.array:
        return (VIEWS[view](x) * VIEWS[view](other)).sum()

    at_once = mx.grad(loss)(x)
    through_nodes = mx.grad(lambda x, y: (VIEWS[view](x) * VIEWS[view](y)).sum())(x, other)
    np.testing.assert_array_equal(np.array(at_once), np.array(through_nodes))
    tangent = mx.jvp(loss, [x], [mx.ones_like(x)])[1][0]
    np.testing.assert_array_equal(np.array(tangent), np.array(VIEWS[view](other).sum()))


@pytest.mark.parametrize("view", VIEWS)
def test_compiled_functions(view: str) -> None:
    """A function's own views, those of what it closes over, and its results that are nothing else."""
    other = evaluated()
    expected = np.array(VIEWS[view](other))

    @mx.compile
    def compiled(x: mx.array) -> tuple[mx.array, mx.array]:
        return VIEWS[view](x) + VIEWS[view](other), VIEWS[view](other)

    for _ in range(4):
        total, same = compiled(evaluated())
        np.testing.assert_array_equal(np.array(total), 2 * expected)
        np.testing.assert_array_equal(np.array(same), expected)


def test_batches() -> None:
    other = evaluated()
    out = mx.vmap(lambda row: row * other[0, 1])(other[1])
    np.testing.assert_array_equal(np.array(out), HOST[1] * HOST[0, 1])


def test_streams_and_threads() -> None:
    """Views are made on any stream, and by threads of an array that another one is computing."""
    stream = mx.new_stream(mx.cpu)
    with mx.stream(stream):
        np.testing.assert_array_equal(np.array(evaluated()[1]), HOST[1])
    x = lazy()

    def work(i: int) -> float:
        return float((x[i % 2, i % 3] + i).sum())

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(400)))
    assert found == [float((HOST[i % 2, i % 3] + i).sum()) for i in range(400)]


def test_one_operation_and_views_of_it() -> None:
    """Evaluated by themselves; a view that strides cannot express is a copy."""
    x = evaluated()
    np.testing.assert_array_equal(np.array(mx.sum(x, axis=1)), HOST.sum(1))
    np.testing.assert_array_equal(np.array((x + 1).T.reshape(-1)), (HOST + 1).T.reshape(-1))
    held = x * 2
    np.testing.assert_array_equal(np.array(held.T[1]), (HOST * 2).T[1])
    np.testing.assert_array_equal(np.array(held), HOST * 2)


def test_many_threads_evaluate_one_array() -> None:
    x = evaluated()
    with ThreadPoolExecutor(8) as pool:
        for i in range(200):
            y = x * i
            found = list(pool.map(lambda _, y=y: mx.eval(y) or y[1, 2, 3].item(), range(8)))
            assert found == [23.0 * i] * 8
