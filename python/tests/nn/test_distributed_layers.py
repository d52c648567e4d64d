"""Layers that are split over processes: splits as in mlx, and with a mock group the results of the layers that are whole."""

from __future__ import annotations

from typing import Any

import mlx.nn.layers.distributed as mlx_distributed
import pytest
from support.compare import assert_close, assert_identical

import ultramarine as mx
from ultramarine import nn, utils
from ultramarine.nn.layers import distributed
from ultramarine.nn.utils import average_gradients, clip_grad_norm_sharded

from .mock_group import MockGroup, mock_processes
from .pairs import Case, converted, same
from .test_quantized_layers import contents

LAYERS = {"ultramarine.nn": distributed, "mlx.nn": mlx_distributed}


def of(lib: Any) -> Any:
    """The library's module `nn.layers.distributed`."""
    return LAYERS[lib.nn.__name__]


def counted(lib: Any, rows: int, columns: int) -> Any:
    """A linear layer whose parameters are all different."""
    layer = lib.nn.Linear(columns, rows)
    weight = lib.mx.arange(rows * columns, dtype=lib.mx.float32).reshape(rows, columns)
    layer.update({"weight": weight, "bias": -lib.mx.arange(rows, dtype=lib.mx.float32)})
    return layer


def without_group(module: Any) -> Any:
    repr_, arrays, attributes, frozen = contents(module)
    own = ("group", "_split_over")
    return repr_, arrays, {k: v for k, v in attributes.items() if k not in own}, frozen


SEGMENTS = [1, 2, 3, 4, [0.5], [0.25, 0.5], [4, 8], [2], [4], [16], [0.3]]
SHARDINGS = ["all-to-sharded", "sharded-to-all", "foo"]


@pytest.mark.parametrize("segments", SEGMENTS, ids=str)
@pytest.mark.parametrize("sharding", SHARDINGS)
def test_shard_linear(sharding: str, segments: Any) -> None:
    for size, rank in ((1, 0), (2, 0), (2, 1), (4, 2)):
        group = MockGroup(size, rank)

        def case(lib: Any, group: Any = group) -> Any:
            layer = of(lib).shard_linear(
                counted(lib, 16, 24), sharding, segments=segments, group=group
            )
            return without_group(layer), layer.parameters(), layer.group is group

        same(case)


@pytest.mark.parametrize("mode", ["affine", "mxfp4", "mxfp8", "nvfp4"])
@pytest.mark.parametrize("segments", [1, 2, [0.5], [0.25], [64]], ids=str)
@pytest.mark.parametrize("sharding", SHARDINGS)
def test_shard_quantized_linear(sharding: str, segments: Any, mode: str) -> None:
    for size, rank in ((1, 0), (2, 1), (4, 2)):
        group = MockGroup(size, rank)

        def case(lib: Any, group: Any = group) -> Any:
            whole = counted(lib, 16, 256).to_quantized(group_size=None, mode=mode)
            layer = of(lib).shard_linear(whole, sharding, segments=segments, group=group)
            return without_group(layer), layer.parameters()

        same(case)


CLASSES = [
    "AllToShardedLinear",
    "ShardedToAllLinear",
    "QuantizedAllToShardedLinear",
    "QuantizedShardedToAllLinear",
]


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_constructors(name: str, size: int) -> None:
    for arguments in ((128, 64), (128, 64, False), (127, 64), (128, 63)):
        same(
            lambda lib: without_group(getattr(of(lib), name)(*arguments, group=MockGroup(size, 0)))
        )
    if size == 1:
        same(lambda lib: without_group(getattr(of(lib), name)(128, 64)))
        same(lambda lib: getattr(of(lib), name)(128, 64)(lib.mx.ones((2, 128))).shape)
    if name.startswith("Quantized"):
        for given in ({"mode": "mxfp8", "group_size": 32, "bits": 8}, {"bits": 3}, {"mode": "foo"}):
            same(lambda lib: without_group(getattr(of(lib), name)(128, 64, **given)))


@pytest.mark.parametrize("name", CLASSES[2:])
def test_quantized_parameters_stay_frozen(name: str) -> None:
    layer = getattr(distributed, name)(64, 8)
    assert layer.unfreeze() is layer
    assert layer.unfreeze(keys="bias", strict=True).trainable_parameters() == {}


INPLACE: dict[str, Any] = {
    "all-to-sharded": "all-to-sharded",
    "sharded-to-all": "sharded-to-all",
    "unknown": "foo",
    "nothing": lambda path, x: None,
    "rows": lambda path, x: 0,
    "columns": lambda path, x: -1 if path.endswith("weight") else None,
    "rows in segments": lambda path, x: (0, 2),
    "columns in segments": lambda path, x: (-1, [0.5]) if x.ndim > 1 else None,
}

MODELS: dict[str, Case] = {
    "linear": lambda lib: counted(lib, 8, 16),
    "quantized": lambda lib: counted(lib, 8, 128).to_quantized(group_size=32),
    "list": lambda lib: lib.nn.Sequential(counted(lib, 8, 4), lib.nn.ReLU(), counted(lib, 4, 8)),
    "filters": lambda lib: lib.nn.Conv1d(4, 8, 2),
    "odd": lambda lib: counted(lib, 7, 9),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("sharding", INPLACE)
def test_shard_inplace(sharding: str, model: str) -> None:
    for rank in (0, 1):

        def case(lib: Any, rank: int = rank) -> Any:
            lib.mx.random.seed(0)
            module = MODELS[model](lib)
            group = MockGroup(2, rank)
            result = of(lib).shard_inplace(module, INPLACE[sharding], segments=2, group=group)
            return result, repr(module), module.parameters()

        same(case)


def test_shard_inplace_alone() -> None:
    layer = nn.Linear(3, 5)
    before = dict(layer)
    distributed.shard_inplace(layer, "all-to-sharded")
    assert_identical(dict(layer), before)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("segments", [1, 2])
@pytest.mark.parametrize("quantized", [False, True], ids=["floats", "few bits"])
def test_two_layers_with_a_mock_group(size: int, segments: int, quantized: bool) -> None:
    """Outputs, and gradients by inputs and by each process's parameters, are those of the layers that are whole."""
    hidden = size * segments * 32
    mx.random.seed(size)
    up: Any = nn.Linear(32, hidden)
    down: Any = nn.Linear(hidden, 6)
    if quantized:
        up, down = up.to_quantized(32, 8), down.to_quantized(32, 8)
        up.bias, down.bias = mx.random.normal((hidden,)), mx.random.normal((6,))
    x = mx.random.normal((3, 32))
    mx.eval(x, up.parameters(), down.parameters())

    def results(up: Any, down: Any) -> Any:
        loss = lambda x: down(nn.silu(up(x))).square().sum()
        model = nn.Sequential(up, down)
        gradients = {} if quantized else nn.value_and_grad(model, loss)(x)[1]
        return down(nn.silu(up(x))), mx.grad(loss)(x), gradients

    def member(group: Any) -> Any:
        split = [
            distributed.shard_linear(layer, sharding, segments=segments, group=group)
            for layer, sharding in ((up, "all-to-sharded"), (down, "sharded-to-all"))
        ]
        if quantized:
            assert utils.tree_flatten(nn.Sequential(*split).trainable_parameters()) == []
        return results(*split)

    output, by_input, gradients = results(up, down)
    for rank, (y, dx, parts) in enumerate(mock_processes(size, member)):
        assert_close([y, dx], [output, by_input], rtol=1e-3, atol=1e-3)
        if not quantized:
            whole = [nn.Linear(32, hidden).update(gradients["layers"][0])]
            whole.append(nn.Linear(hidden, 6).update(gradients["layers"][1]))
            for layer, sharding in zip(whole, SHARDINGS):
                group: Any = MockGroup(size, rank)
                distributed.shard_inplace(layer, sharding, segments=segments, group=group)
            want = [layer.parameters() for layer in whole]
            assert_close(parts["layers"], want, rtol=1e-3, atol=1e-3)


def test_sum_gradients() -> None:
    alone = distributed.sum_gradients(mx.distributed.init())
    x = mx.ones(3)
    assert alone(x) is x
    assert alone is distributed.sum_gradients(mx.distributed.init())

    def member(group: Any) -> Any:
        rank = group.rank()
        gradient = mx.grad(lambda x: (distributed.sum_gradients(group)(x) * (rank + 1)).sum())(x)
        return gradient, group.calls

    for gradient, calls in mock_processes(3, member):
        assert gradient.tolist() == [6, 6, 6] and calls == ["all_sum"]


# FullyShardedModule


class Tied(nn.Module):
    """An embedding whose vectors are the last layer's, too, and a gain that is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(12, 8)
        self.layers = [nn.Linear(8, 12), nn.Linear(12, 8, bias=False)]
        self.gain = mx.full((4,), 2.0)
        self.freeze(keys="gain", recurse=False)

    def __call__(self, tokens: mx.array, *, scale: float = 1.0) -> Any:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(nn.silu(x))
        return self.embedding.as_linear(x) * self.gain[0] * scale


def tokens(rank: int) -> mx.array:
    return mx.array([[rank, 3, 5], [7, rank + 1, 11]])


@pytest.mark.parametrize("dtype", [None, "float16"])
@pytest.mark.parametrize("size", [2, 4])
def test_fully_sharded_module(size: int, dtype: str | None) -> None:
    """Gradients are those of the whole module, averaged over the processes, each of which has its own data."""
    mx.random.seed(0)
    whole = Tied()
    mx.eval(whole.parameters())
    compute_dtype = getattr(mx, dtype) if dtype else None

    def loss(model: Any, rank: int) -> Any:
        return model(tokens(rank), scale=0.5).square().mean()

    def member(group: Any) -> Any:
        model = Tied()
        model.update(utils.tree_map(lambda x: x + 0, whole.parameters()))
        sharded = nn.fully_shard(model, group=group, compute_dtype=compute_dtype)
        assert isinstance(sharded, nn.FullyShardedModule)
        before = dict(utils.tree_flatten(model.parameters()))
        value, gradients = nn.value_and_grad(sharded, lambda: loss(sharded, group.rank()))()
        after = dict(utils.tree_flatten(model.parameters()))
        assert all(after[k] is v for k, v in before.items())
        assert group.calls == ["all_gather", "sum_scatter"]
        return value, gradients["module"], clip_grad_norm_sharded(gradients, 0.01, group)

    gradients, values = [], []
    for rank in range(size):
        value, gradient = nn.value_and_grad(whole, lambda rank=rank: loss(whole, rank))()
        values.append(value)
        gradients.append(gradient)
    mean = utils.tree_map(lambda *x: sum(x) / size, *gradients)
    norm = mx.sqrt(
        utils.tree_reduce(lambda total, x: total + x.square().sum(), mean, mx.array(0.0))
    )
    bound = 2e-2 if dtype else 1e-4
    for rank, (value, parts, clipped) in enumerate(mock_processes(size, member)):
        part = lambda x, rank=rank: mx.split(x, size)[rank]
        assert_close(value, values[rank], rtol=bound, dtype=not dtype)
        assert_close(parts, utils.tree_map(part, mean), rtol=bound, atol=bound / 100)
        assert_close(clipped[1], norm, rtol=bound)
        scale = 0.01 / norm
        want = utils.tree_map(lambda x, part=part: part(x) * scale, mean)
        assert_close(clipped[0]["module"], want, rtol=bound, atol=bound / 100)


def test_fully_sharded_module_inside_of_another() -> None:
    mx.random.seed(1)
    first, second, x = nn.Linear(4, 8), nn.Linear(8, 2), mx.random.normal((3, 4))
    mx.eval(first.parameters(), second.parameters(), x)
    want = second(first(x))

    def member(group: Any) -> Any:
        layers = [nn.Linear(4, 8), nn.Linear(8, 2)]
        layers[0].update(first.parameters())
        layers[1].update(second.parameters())
        inner = nn.fully_shard(layers[1], group=group)
        assert nn.fully_shard(inner, group=group) is inner
        model = nn.fully_shard(nn.Sequential(layers[0], inner), group=group)
        return model(x), repr(model)

    for y, text in mock_processes(2, member):
        assert_close(y, want, rtol=1e-5, atol=1e-6)
        assert text.count("num_sharded_params=2") == 2


def test_fully_sharded_module_of_other_dtypes() -> None:
    """Words of few bits and integers are gathered as they are; in mlx they become floats, which is an error."""
    layer, x = nn.Linear(64, 64).to_quantized(), mx.random.normal((2, 64))
    layer.counts = mx.array([1, 2, 3, 4])
    mx.eval(layer.parameters(), x)

    def member(group: Any) -> Any:
        mine = nn.Linear(64, 64).to_quantized()
        mine.counts = mx.zeros(4, dtype=mx.int32)
        mine.update(layer.parameters())
        model = nn.fully_shard(mine, group=group, compute_dtype=mx.float16)
        return model(x.astype(mx.float16)), mine.counts

    results = mock_processes(2, member)
    for y, _ in results:
        assert_close(y, layer(x).astype(mx.float16), rtol=2e-2, atol=2e-2)
    assert [counts.tolist() for _, counts in results] == [[1, 2], [3, 4]]


def test_fully_sharded_module_restores_parts_after_an_error() -> None:
    def member(group: Any) -> Any:
        model = nn.fully_shard(nn.Linear(4, 8), group=group)
        with pytest.raises(ValueError):
            model(mx.ones((2, 3)))
        return model.module.weight.shape, model.module.bias.shape

    assert mock_processes(2, member) == [((4, 4), (4,))] * 2


FULLY: dict[str, Case] = {
    "alone": lambda lib: (lambda m: lib.nn.fully_shard(m) is m)(lib.nn.Linear(4, 8)),
    "two": lambda lib: lib.nn.fully_shard(lib.nn.Linear(4, 8), group=MockGroup(2, 1)),
    "parts": lambda lib: lib.nn.fully_shard(counted(lib, 8, 4), group=MockGroup(2, 1)).parameters(),
    "nothing to split": lambda lib: lib.nn.fully_shard(lib.nn.ReLU(), group=MockGroup(2, 0)),
    "odd": lambda lib: lib.nn.fully_shard(lib.nn.Linear(4, 7), group=MockGroup(2, 0)),
    "number": lambda lib: lib.nn.fully_shard(
        counted(lib, 8, 4).apply(lambda x: x.sum()), group=MockGroup(2, 0)
    ),
    "frozen": lambda lib: lib.nn.fully_shard(
        lib.nn.Linear(4, 8).freeze(), group=MockGroup(2, 0)
    ).trainable_parameters(),
    "class": lambda lib: lib.nn.FullyShardedModule(lib.nn.Linear(4, 8)),
    "class of nothing": lambda lib: lib.nn.FullyShardedModule(lib.nn.ReLU()),
    "call": lambda lib: lib.nn.FullyShardedModule(counted(lib, 8, 4))(lib.mx.ones((2, 4))),
    "as_linear": lambda lib: (
        lib.nn.FullyShardedModule(lib.nn.Embedding(8, 4)).as_linear(lib.mx.ones((2, 4))).shape
    ),
    "no as_linear": lambda lib: lib.nn.FullyShardedModule(lib.nn.Linear(8, 4)).as_linear(
        lib.mx.ones(4)
    ),
    "attributes": lambda lib: lib.nn.FullyShardedModule(lib.nn.Linear(8, 4)).weight,
    "children": lambda lib: lib.nn.FullyShardedModule(lib.nn.Linear(8, 4)).named_modules(),
    "gradients": lambda lib: (
        lambda m: lib.nn.value_and_grad(m, lambda x: m(x).sum())(lib.mx.ones((2, 4)))
    )(lib.nn.FullyShardedModule(counted(lib, 8, 4))),
    "dtype": lambda lib: lib.nn.FullyShardedModule(
        counted(lib, 8, 4), compute_dtype=lib.mx.float16
    )(lib.mx.ones((2, 4), dtype=lib.mx.float16)),
}


@pytest.mark.parametrize("case", FULLY)
def test_fully_shard(case: str) -> None:
    same(FULLY[case])


# average_gradients and clip_grad_norm_sharded

GRADIENTS: Any = {"a": mx.array([1.0, 2.0]), "b": [mx.array(3.0), {}, (mx.ones((2, 3)),)]}
MIXED: Any = {"a": mx.array([1.0, 2.0]), "b": [mx.ones((2, 3), dtype=mx.float16)]}


@pytest.mark.parametrize(
    ("arguments", "calls"),
    [
        ({}, 1),
        ({"all_reduce_size": 0}, 3),
        ({"all_reduce_size": 8}, 2),
        ({"all_reduce_size": 12}, 2),
    ],
    ids=str,
)
def test_average_gradients(arguments: dict[str, Any], calls: int) -> None:
    def member(group: Any) -> Any:
        gradients = utils.tree_map(lambda x: x * (group.rank() + 1), GRADIENTS)
        averages = average_gradients(gradients, group, **arguments)
        return averages, group.calls

    for averages, called in mock_processes(3, member):
        assert_close(averages, utils.tree_map(lambda x: x * 2, GRADIENTS))
        assert isinstance(averages["b"][2], tuple) and averages["b"][1] == {}
        assert called == ["all_sum"] * calls


def test_average_gradients_of_several_dtypes() -> None:
    def member(group: Any) -> Any:
        return average_gradients(MIXED, group), group.calls

    for averages, called in mock_processes(2, member):
        assert_identical(averages, MIXED)
        assert len(called) == 2


def test_averages_of_one_process() -> None:
    assert average_gradients(GRADIENTS) is GRADIENTS
    group = mx.distributed.init()
    assert average_gradients(GRADIENTS, group, 0, mx.default_stream(mx.cpu)) is GRADIENTS
    assert average_gradients({}) == {}


@pytest.mark.parametrize("max_norm", [0.5, 4.0, 100.0])
def test_clip_as_in_mlx(max_norm: float) -> None:
    trees: list[Any] = [GRADIENTS, {}, {"a": mx.zeros(2)}]
    for tree in trees:

        def case(lib: Any, tree: Any = tree) -> Any:
            gradients = converted(tree, lib.mx)
            clipped = lib.nn.utils.clip_grad_norm_sharded(gradients, max_norm)
            return lib.utils.tree_map(lambda x: lib.mx.round(x, 5), clipped)

        same(case)


def test_clip_of_halves() -> None:
    """Squares of float16 overflow, which makes all gradients zeros in mlx, and dtypes stay."""
    tree = {"a": mx.full((3,), 300.0, mx.float16), "b": mx.ones(1)}
    clipped, norm = clip_grad_norm_sharded(tree, 1.0)
    assert norm.dtype == mx.float32 and abs(norm.item() - (3 * 300**2 + 1) ** 0.5) < 1e-2
    assert clipped["a"].dtype == mx.float16 and abs(clipped["a"][0].item() - 3**-0.5) < 1e-3
    assert clipped["b"].dtype == mx.float32


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda g: nn.AllToShardedLinear(4, 7, group=g), "output of size 7 .* 2 processes"),
        (lambda g: nn.ShardedToAllLinear(7, 4, group=g), "input of size 7 .* 2 processes"),
        (lambda g: nn.fully_shard(nn.Linear(4, 7), group=g), r"weight of shape \(7, 4\)"),
        (lambda g: distributed.shard_linear(nn.Linear(4, 4), "rows", group=g), "'rows' is unknown"),
        (lambda g: distributed.shard_inplace(nn.Linear(4, 4), "rows", group=g), "or a function"),
    ],
)
def test_messages(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(MockGroup(2, 0))
