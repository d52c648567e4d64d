"""`MultiOptimizer`: which optimizer updates what, its state and its learning rate."""

from __future__ import annotations

from typing import Any

import pytest
from support.compare import assert_close

import ultramarine as um
from ultramarine import optimizers as optim

from .trees import BOTH, OURS, run, tree

FILTERS: dict[str, Any] = {
    "matrices": [lambda path, w: w.ndim >= 2],
    "by path": [lambda path, w: path.startswith("layers.0")],
    "all": [lambda path, w: True],
    "none": [lambda path, w: False],
    "first of two": [lambda path, w: w.ndim >= 2, lambda path, w: "wide" in path or w.ndim == 1],
}


def make(o: Any, filters: list[Any]) -> Any:
    kinds = [o.SGD(0.1, momentum=0.9), o.Lion(0.05)][: len(filters)]
    return o.MultiOptimizer([*kinds, o.Adam(o.exponential_decay(0.1, 0.5))], filters)


@pytest.mark.parametrize("case", FILTERS)
def test_updates(case: str) -> None:
    outcomes = []
    for mx, o in BOTH:
        optimizer = make(o, FILTERS[case])
        parameters = tree(mx, "float32", "parameters")
        for step in range(4):
            gradients = tree(mx, "float32", "gradients", step)
            parameters = optimizer.apply_gradients(gradients, parameters)
        outcomes.append((parameters, optimizer.state))
    assert_close(*outcomes)


def test_each_has_its_own_formula() -> None:
    """The parts are those that the optimizers compute alone."""
    parts = [run(OURS, kind)[0] for kind in (lambda o: o.Muon(0.1), lambda o: o.Adam(0.1))]
    both = optim.MultiOptimizer(
        [optim.Muon(0.1), optim.Adam(0.1)], [lambda path, w: path == "wide"]
    )
    parameters = tree(um, "float32", "parameters")
    for step in range(8):
        parameters = both.apply_gradients(tree(um, "float32", "gradients", step), parameters)
    assert_close(parameters["wide"], parts[0]["wide"])
    assert_close(parameters["layers"], parts[1]["layers"])
    assert_close(parameters["scale"], parts[1]["scale"])


def test_structure_is_that_of_the_gradients() -> None:
    """mlx cannot merge lists of which one ends before a place without parameters."""
    w, b = um.ones((2, 2)), um.ones(2)
    gradients: Any = {"layers": [{"b": b}, {}, ({"w": w}, {"b": b})], "empty": [], "w": w}
    optimizer = make(optim, FILTERS["matrices"])
    updated = optimizer.apply_gradients(gradients, gradients)
    alone = optim.SGD(0.1, momentum=0.9).apply_gradients(gradients, gradients)
    assert list(updated) == list(gradients) and isinstance(updated["layers"][2], tuple)
    assert_close(updated["w"], alone["w"])
    assert_close(updated["layers"][2][0], alone["layers"][2][0])


def test_filters_see_paths_and_gradients() -> None:
    calls = []
    for mx, o in BOTH:
        seen: list[Any] = []

        def note(path: str, w: Any, seen: list[Any] = seen) -> bool:
            seen.append((path, w.shape))
            return True

        optimizer = o.MultiOptimizer([o.SGD(0.1), o.SGD(0.2)], [note])
        gradients = tree(mx, "float32", "gradients")
        optimizer.apply_gradients(gradients, {**gradients, "frozen": mx.ones(1)})
        calls.append(seen)
    assert calls[0] == calls[1] and len(calls[0]) == 5


def test_one_optimizer() -> None:
    for mx, o in BOTH:
        optimizer = o.MultiOptimizer([o.SGD(0.5)])
        parameters = {"w": mx.array(1.0)}
        assert optimizer.apply_gradients(parameters, parameters)["w"].item() == 0.5
        assert optimizer.apply_gradients({}, {}) == {}


def test_learning_rate_and_state() -> None:
    for mx, o in BOTH:
        optimizer = make(o, FILTERS["matrices"])
        assert optimizer.learning_rate.item() == optimizer.optimizers[0].learning_rate.item()
        optimizer.learning_rate = 0.75
        assert [x.learning_rate.item() for x in optimizer.optimizers] == [0.75, 0.75]
        states = {"states": [{"step": mx.array(3)}, {"step": mx.array(4)}]}
        optimizer.state = states
        assert [x.step.item() for x in optimizer.optimizers] == [3, 4]
        assert optimizer.state["states"][1] is states["states"][1]
        for wrong in [{}, {"states": []}, {"states": [{}]}, []]:
            with pytest.raises(ValueError, match="state"):
                optimizer.state = wrong


def test_nested() -> None:
    outcomes = []
    for mx, o in BOTH:
        inner = o.MultiOptimizer([o.SGD(0.1), o.Lion(0.1)], [lambda path, w: w.ndim == 0])
        outer = o.MultiOptimizer([inner, o.Adam(0.1)], [lambda path, w: w.ndim < 2])
        parameters = tree(mx, "float32", "parameters")
        updated = outer.apply_gradients(tree(mx, "float32", "gradients"), parameters)
        outcomes.append((updated, outer.state))
    assert_close(*outcomes)


@pytest.mark.parametrize("optimizers, filters", [(2, 0), (1, 1), (3, 1), (0, 0)])
def test_numbers_that_differ(optimizers: int, filters: int) -> None:
    for _, o in BOTH:
        with pytest.raises(ValueError):
            o.MultiOptimizer([o.SGD(0.1)] * optimizers, [lambda path, w: True] * filters)
    with pytest.raises(ValueError, match=r"\[MultiOptimizer\] 3 optimizers have 1 filters"):
        optim.MultiOptimizer([optim.SGD(0.1)] * 3, [lambda path, w: True])
