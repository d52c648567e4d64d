"""State: its structure, loading before and after `init`, files in both directions, and compiled steps."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import mlx.core as mlx
import mlx.optimizers as mlx_optimizers
import mlx.utils as mlx_utils
import pytest
from support.compare import assert_close, assert_identical
from support.harness import name_of

import ultramarine as um
from ultramarine import optimizers as optim
from ultramarine import utils

from .trees import BOTH, OURS, THEIRS, tree

ALL: dict[str, Any] = {
    "sgd": lambda o: o.SGD(0.1),
    "momentum": lambda o: o.SGD(0.1, momentum=0.9),
    "rmsprop": lambda o: o.RMSprop(0.1),
    "adagrad": lambda o: o.Adagrad(0.1),
    "adadelta": lambda o: o.AdaDelta(0.1),
    "adam": lambda o: o.Adam(0.1, bias_correction=True),
    "adamw": lambda o: o.AdamW(o.cosine_decay(0.1, 10)),
    "adamax": lambda o: o.Adamax(0.1),
    "lion": lambda o: o.Lion(0.1),
    "adafactor": lambda o: o.Adafactor(),
    "adafactor momentum": lambda o: o.Adafactor(0.1, relative_step=False, beta_1=0.9),
    "muon": lambda o: o.Muon(0.1),
    "multi": lambda o: o.MultiOptimizer([o.Muon(0.1), o.Adam(0.1)], [lambda n, w: w.ndim >= 2]),
}


def flat(mx: Any, state: Any) -> dict[str, Any]:
    return dict(mlx_utils.tree_flatten(state) if mx is mlx else utils.tree_flatten(state))


@pytest.mark.parametrize("case", ALL)
def test_structure_after_init(case: str) -> None:
    states = []
    for mx, o in BOTH:
        optimizer = ALL[case](o)
        optimizer.init(tree(mx, "bfloat16", "parameters"))
        states.append(optimizer.state)
    got, want = states
    assert_close(got, want)
    assert list(flat(um, got)) == list(flat(mlx, want))


@pytest.mark.parametrize("case", ALL)
def test_attributes(case: str) -> None:
    """Hyperparameters and internals have mlx's names."""
    got, want = [vars(ALL[case](o)) for _, o in BOTH]
    assert got.keys() == want.keys()
    for name in got.keys() - {"_schedulers", "_state", "filters", "optimizers"}:
        assert got[name] == want[name] and type(got[name]) is type(want[name]), name


def test_init_keeps_the_dictionary_and_what_is_there() -> None:
    optimizer = optim.Adam(0.1)
    state = optimizer.state
    parameters = {"w": um.ones(2), "layers": [um.ones(1)]}
    optimizer.apply_gradients(parameters, parameters)
    own = optimizer.state["w"]
    optimizer.init({**parameters, "b": um.ones(3), "layers": [um.ones(1), um.ones(4)]})
    assert optimizer.state is state and state["w"] is own
    assert state["step"].item() == 1 and own["m"].tolist() != [0, 0]
    assert state["b"]["v"].tolist() == [0, 0, 0]
    assert [entry["m"].shape for entry in state["layers"]] == [(1,), (4,)]
    # Those of fewer parameters leave the others' alone.
    optimizer.init({"layers": [um.ones(1)]})
    assert len(state["layers"]) == 2 and "b" in state


def test_update_initialises_the_places_of_the_gradients() -> None:
    def case(o: Any, mx: Any) -> Any:
        optimizer = o.Adam(0.1)
        parameters = {"a": mx.ones(2), "frozen": mx.ones(2)}
        updated = optimizer.apply_gradients({"a": mx.ones(2, mx.float16)}, parameters)
        return updated, optimizer.state

    got, want = [case(o, mx) for mx, o in BOTH]
    assert_close(got, want)
    assert list(got[1]) == ["step", "learning_rate", "a"]


def test_loading_before_init() -> None:
    def case(mx: Any, o: Any) -> Any:
        optimizer = o.Adam(0.1, bias_correction=True)
        optimizer.state = {
            "step": mx.array(7, mx.uint64),
            "learning_rate": mx.array(0.25),
            "w": {"m": mx.array([1.0, 2.0]), "v": mx.array([4.0, 4.0])},
        }
        parameters = {"w": mx.array([1.0, -1.0]), "new": mx.array([1.0])}
        return optimizer.apply_gradients(parameters, parameters), optimizer.state

    assert_close(case(um, optim), case(mlx, mlx_optimizers), rtol=1e-6)


def test_loading_after_init() -> None:
    def case(mx: Any, o: Any) -> Any:
        parameters = {"w": mx.array([1.0, -1.0])}
        one, other = o.Adam(0.1), o.Adam(0.5)
        for _ in range(3):
            parameters = one.apply_gradients(parameters, parameters)
        other.init({"w": mx.zeros(2)})
        other.state = one.state
        return other.apply_gradients(parameters, parameters), other.state, other.learning_rate

    assert_close(case(um, optim), case(mlx, mlx_optimizers))


@pytest.mark.parametrize("case", ALL)
@pytest.mark.parametrize("first, second", [(OURS, THEIRS), (THEIRS, OURS), (OURS, OURS)])
def test_files(case: str, first: Any, second: Any, tmp_path: Path) -> None:
    """A run that goes on in the other library from a file is the run without the change."""
    file = str(tmp_path / "state.safetensors")

    def steps(library: Any, optimizer: Any, parameters: Any, numbers: range) -> Any:
        mx, _ = library
        for step in numbers:
            gradients = tree(mx, "float32", "gradients", step)
            parameters = optimizer.apply_gradients(gradients, parameters)
        return parameters

    mx, o = first
    optimizer = ALL[case](o)
    parameters = steps(first, optimizer, tree(mx, "float32", "parameters"), range(3))
    weights = {f"weights.{k}": v for k, v in flat(mx, parameters).items()}
    mx.save_safetensors(
        file, weights | {f"state.{k}": v for k, v in flat(mx, optimizer.state).items()}
    )
    want = steps(first, optimizer, parameters, range(3, 6))

    mx, o = second
    unflatten = mlx_utils.tree_unflatten if mx is mlx else utils.tree_unflatten
    loaded = unflatten(list(mx.load(file).items()))
    resumed = ALL[case](o)
    resumed.state = loaded["state"]
    got = steps(second, resumed, loaded["weights"], range(3, 6))
    assert_close(flat(second[0], got), flat(first[0], want), rtol=1e-5, atol=1e-6)
    assert_close(
        flat(second[0], resumed.state), flat(first[0], optimizer.state), rtol=1e-5, atol=1e-6
    )


def test_files_without_parameters_in_front(tmp_path: Path) -> None:
    """`tree_unflatten` has a dictionary where no leaf was, whatever node that place had."""
    file = str(tmp_path / "state.safetensors")
    gradients = {"layers": [[{}], {}, [{"w": um.ones(2)}], []]}
    optimizer = optim.Adam(0.1)
    optimizer.apply_gradients(gradients, gradients)
    um.save_safetensors(file, flat(um, optimizer.state))
    resumed = optim.Adam(0.5)
    resumed.state = utils.tree_unflatten(um.load(file))
    assert resumed.state["layers"][0] == {}
    got = resumed.apply_gradients(gradients, gradients)
    assert_close(got, optimizer.apply_gradients(gradients, gradients))


def test_learning_rate() -> None:
    for mx, o in BOTH:
        optimizer = o.SGD(0.1)
        state = optimizer.state
        optimizer.learning_rate = 0.5
        assert optimizer.state is state and state["learning_rate"].item() == 0.5
        parameters = {"w": mx.array(1.0)}
        assert optimizer.apply_gradients(parameters, parameters)["w"].item() == 0.5
        optimizer.learning_rate = mx.array(0.25, mx.float16)
        assert optimizer.learning_rate.dtype == mx.float16
        optimizer.learning_rate = 2
        assert name_of(optimizer.learning_rate.dtype) == "int32"
        # The contents of the array, not the array, are changed.
        optimizer.state["learning_rate"] *= 2
        assert optimizer.apply_gradients(parameters, parameters)["w"].item() == -3.0
        optimizer.learning_rate -= 3
        assert optimizer.apply_gradients(parameters, parameters)["w"].item() == 0.0


def test_rate_replaced_by_its_schedule() -> None:
    for _, o in BOTH:
        optimizer = o.SGD(lambda step: step + 1)
        optimizer.learning_rate = 5.0
        assert optimizer.learning_rate.item() == 5.0
        optimizer.apply_gradients({}, {})
        assert optimizer.learning_rate.item() == 1


def test_scalars_of_an_update_are_not_kept() -> None:
    """What is computed once per update follows the state in the next."""
    optimizer = optim.AdamW(0.1, bias_correction=True)
    parameters = {"a": um.array([1.0]), "b": um.array([1.0])}
    first = optimizer.apply_gradients(parameters, parameters)
    assert_identical(first["a"], first["b"])
    optimizer.state["learning_rate"] *= 0
    assert_identical(optimizer.apply_gradients(parameters, parameters), parameters)
    with pytest.raises(KeyError):
        optimizer.apply_gradients(parameters, {})
    optimizer.learning_rate = 0.1
    assert optimizer.apply_gradients(parameters, parameters)["a"].item() < 0.95
    optimizer.state["learning_rate"] *= 0
    alone = optimizer.apply_single(parameters["a"], parameters["a"], optimizer.state["a"])
    assert_identical(alone, parameters["a"])


@pytest.mark.parametrize("case", ALL)
def test_compiled(case: str) -> None:
    """Steps of a compiled function that captures the state are those of the function."""
    outcomes = []
    for compiled in [True, False]:
        optimizer = ALL[case](optim)
        state = {"weights": tree(um, "float32", "parameters"), "optimizer": optimizer.state}
        optimizer.init(state["weights"])

        def step(gradients: Any, state: Any = state, optimizer: Any = optimizer) -> Any:
            state["weights"] = optimizer.apply_gradients(gradients, state["weights"])
            return optimizer.step if case != "multi" else None

        run = um.compile(step, inputs=state, outputs=state) if compiled else step
        for i in range(6):
            run(tree(um, "float32", "gradients", i))
        outcomes.append((state["weights"], optimizer.state))
    assert_close(*outcomes, rtol=1e-5, atol=1e-6)


class Model(dict[str, Any]):
    """Weights with the methods that `update` needs, and dropout."""

    def __init__(self, mx: Any) -> None:
        super().__init__(w=mx.array([[0.5, -0.25], [0.75, 1.0]]), b=mx.array([0.5, -0.5]))

    def update(self, parameters: Any) -> None:  # type: ignore[override]
        for key, value in parameters.items():
            self[key] = value


def test_compiled_training() -> None:
    """mlx's pattern: state of model, optimizer and random numbers as inputs and outputs."""
    losses = []
    for mx, o in BOTH:
        mx.random.seed(4)
        model, optimizer = Model(mx), o.Adam(o.linear_schedule(0.05, 0.1, 8))
        optimizer.init(model)
        state = [model, optimizer.state, mx.random.state]

        def loss_of(weights: Any, x: Any, mx: Any = mx) -> Any:
            kept = mx.random.bernoulli(0.5, x.shape)
            return mx.mean(mx.square((x * kept) @ weights["w"] + weights["b"] - 1))

        @partial(mx.compile, inputs=state, outputs=state)
        def step(
            x: Any, mx: Any = mx, model: Any = model, optimizer: Any = optimizer, f: Any = loss_of
        ) -> Any:
            loss, gradients = mx.value_and_grad(f)(dict(model), x)
            optimizer.update(model, gradients)
            return loss

        x = mx.arange(12).reshape(6, 2) / 6
        losses.append([step(x).item() for _ in range(12)])
        assert optimizer.step.item() == 12
        assert abs(optimizer.learning_rate.item() - 0.1) < 1e-6
    # The masks are mlx's, so that all losses are.
    assert_close(*losses, rtol=1e-5)
    assert len(set(losses[0])) == 12


def test_custom_optimizer() -> None:
    """A subclass with a second scheduled hyperparameter."""
    outcomes = []
    for mx, o in BOTH:

        class Decayed(o.Optimizer):  # type: ignore[name-defined, misc]
            def __init__(self, learning_rate: Any, decay: Any) -> None:
                super().__init__(schedulers={"power": lambda step: step * 2})
                self._maybe_schedule("learning_rate", learning_rate)
                self._maybe_schedule("decay", decay)

            def init_single(self, parameter: Any, state: Any) -> None:
                state["count"] = 0 * parameter

            def apply_single(self, gradient: Any, parameter: Any, state: Any) -> Any:
                state["count"] = state["count"] + 1
                return parameter * (1 - self.state["decay"]) - self.learning_rate * gradient

        optimizer = Decayed(0.5, lambda step: 0.1 * step)
        parameters = {"w": mx.array([1.0, 2.0]), "l": [mx.array(3.0)]}
        for _ in range(3):
            parameters = optimizer.apply_gradients(parameters, parameters)
        outcomes.append((parameters, optimizer.state))
    assert_close(*outcomes, rtol=1e-6)
    assert outcomes[0][1]["power"].item() == 4
