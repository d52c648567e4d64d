"""`value_and_grad` and `checkpoint`: results as in mlx, and modules are left as they were."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from support.compare import assert_close

import ultramarine as mx
from ultramarine import nn
from ultramarine.nn.utils import checkpoint

from .pairs import Case, same


def model(lib: Any) -> Any:
    """A module with parameters of its own, in a list and in a submodule, whose sums are exact."""

    class Model(lib.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = lib.mx.array([1.0, 2.0])
            self.v = lib.mx.array([3.0, 4.0])
            self.factors = [lib.mx.array(2.0)]
            linear = lib.nn.Linear(2, 2)
            linear.update({"weight": lib.mx.eye(2) * 2, "bias": lib.mx.array([1.0, -2.0])})
            self.sub = lib.nn.Sequential(linear, abs)
            self.steps = lib.mx.array([1])
            self.freeze(keys="steps", recurse=False)

        def __call__(self, x: Any) -> Any:
            return (self.w * self.sub(x) * self.factors[0]).sum() + self.v.sum()

    return Model()


def gradient(fn: Any, *args: Any, frozen: Any = (), **kwargs: Any) -> Case:
    """Value and gradients of a function of the library, the module and the arguments; and the module afterwards."""

    def case(lib: Any) -> Any:
        module = model(lib)
        module.freeze(keys=frozen) if frozen != "all" else module.freeze()
        x = lib.mx.array([1.0, 3.0])
        compute = lib.nn.value_and_grad(module, functools.partial(fn, lib, module))
        return compute(x, *args, **kwargs), module.parameters()

    return case


def loss(lib: Any, module: Any, x: Any, y: Any = 1) -> Any:
    return module(x) * y


def doubled(lib: Any, module: Any, x: Any) -> Any:
    """A function that sets a parameter, and an array that is none."""
    module.w = module.w * 2
    module.steps = module.steps + 1
    return module(x)


def swapped(lib: Any, module: Any, x: Any) -> Any:
    """A function that replaces a list."""
    module.factors = [module.factors[0] * 3]
    return module(x)


def checkpointed(lib: Any, module: Any, x: Any) -> Any:
    return lib.nn.utils.checkpoint(module)(x) * 2 + module.w.sum()


def checkpointed_function(lib: Any, module: Any, x: Any, flag: bool = False) -> Any:
    def fn(x: Any, flag: bool, scale: Any = None) -> Any:
        y = (module.w * x).sum() if flag else x.sum()
        return {"y": y * module.v[0], "flag": y * 2}, (scale["s"],)

    tree, (scale,) = lib.nn.utils.checkpoint(module, fn)(x, flag, scale={"s": x[0]})
    return tree["y"] + tree["flag"] * scale


CASES: dict[str, Case] = {
    "all": gradient(loss),
    "more arguments": gradient(loss, 2),
    "by name": gradient(loss, y=3),
    "some frozen": gradient(loss, frozen=["w", "bias"]),
    "all frozen": gradient(loss, frozen="all"),
    "tuple": gradient(lambda lib, m, x: (m(x), x, 3, {"a": m.w})),
    "no scalar": gradient(lambda lib, m, x: m.w * x),
    "no array": gradient(lambda lib, m, x: 3),
    "unused": gradient(lambda lib, m, x: x.sum()),
    "error": gradient(lambda lib, m, x: 1 / 0),
    "sets a parameter": gradient(doubled),
    "replaces a list": gradient(swapped),
    "no module": lambda lib: lib.nn.value_and_grad(3, lambda x: x)(lib.mx.array(1.0)),
    "checkpoint": gradient(checkpointed),
    "checkpoint, some frozen": gradient(checkpointed, frozen=["w", "bias"]),
    "checkpoint, function": gradient(checkpointed_function),
    "checkpoint, function with flag": gradient(checkpointed_function, True),
    "checkpoint without gradients": lambda lib: lib.nn.utils.checkpoint(model(lib))(lib.mx.ones(2)),
    "checkpoint, by inputs": lambda lib: lib.mx.grad(lib.nn.utils.checkpoint(model(lib)))(
        lib.mx.array([1.0, 3.0])
    ),
    "twice": lambda lib: (
        lambda m, x: [lib.nn.value_and_grad(m, lambda x: m(x) ** 2)(x) for _ in range(2)]
    )(model(lib), lib.mx.array([1.0, 3.0])),
}


@pytest.mark.parametrize("case", CASES)
def test_as_in_mlx(case: str) -> None:
    same(CASES[case])


def some_function(x: Any) -> Any:
    """A docstring."""
    return x.sum()


def test_names() -> None:
    layer = nn.Linear(2, 2)
    for made in (nn.value_and_grad(layer, some_function), checkpoint(layer, some_function)):
        named: Any = made
        assert named.__name__ == "some_function" and named.__doc__ == "A docstring."
        assert named.__wrapped__ is some_function


def test_parameters_stay_the_same_objects() -> None:
    """A module holds no graph of an earlier step, whatever fails or is computed again."""
    layer = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    x = mx.ones((1, 2))
    before = [layer.layers[0].weight, layer.layers[1].bias]

    def failing(x: mx.array) -> mx.array:
        layer(x)
        raise KeyError

    nn.value_and_grad(layer, lambda x: layer(x).sum())(x)
    nn.value_and_grad(layer, lambda x: checkpoint(layer)(x).sum())(x)
    for compute in (nn.value_and_grad(layer, failing), checkpoint(layer, failing)):
        with pytest.raises(KeyError):
            compute(x)
    after = [layer.layers[0].weight, layer.layers[1].bias]
    assert all(a is b for a, b in zip(after, before))


def test_weights_are_shared_with_a_checkpoint() -> None:
    """A parameter that is used inside of the checkpoint and outside has the gradients of both."""
    embedding = nn.Embedding(5, 4)
    tokens = mx.array([1, 2, 2])
    inside = checkpoint(embedding)
    _, got = nn.value_and_grad(embedding, lambda t: embedding.as_linear(inside(t)).square().sum())(
        tokens
    )
    _, want = nn.value_and_grad(
        embedding, lambda t: embedding.as_linear(embedding(t)).square().sum()
    )(tokens)
    assert_close(got, want, rtol=1e-5)


def test_a_module_in_two_places() -> None:
    """Its gradients are those of the last place, as in mlx, and it has its own parameters afterwards."""
    shared = nn.Linear(2, 2, bias=False)
    weight = shared.weight
    module = nn.Sequential(shared, shared)
    x = mx.ones((1, 2))
    _, gradients = nn.value_and_grad(module, lambda x: module(x).sum())(x)
    want = mx.grad(lambda w: (x @ w.T @ w.T).sum())(weight)
    assert_close(gradients["layers"][1]["weight"], want, rtol=1e-5)
    assert shared.weight is weight


def test_a_training_step_compiles() -> None:
    """As programs write it: the module's state in and out of a compiled function, here with statistics."""
    layer = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Dropout(0.5))
    loss = nn.value_and_grad(layer, lambda x: layer(x).square().mean())
    state = [layer.state, mx.random.state]

    @functools.partial(mx.compile, inputs=state, outputs=state)
    def step(x: mx.array) -> Any:
        value, gradients = loss(x)
        new = [p - 0.1 * g for p, g in zip(weights(layer), weights(gradients))]
        layer.update({"layers": [{"weight": new[0], "bias": new[1]}]})
        return value

    def weights(tree: Any) -> Any:
        first = tree["layers"][0]
        return first["weight"], first["bias"]

    x = mx.random.normal((8, 3))
    before = layer.layers[0].weight, layer.layers[1].running_mean
    values = [step(x).item() for _ in range(3)]
    assert len(set(values)) == 3
    after = layer.layers[0].weight, layer.layers[1].running_mean
    assert not any(mx.array_equal(a, b) for a, b in zip(before, after))
