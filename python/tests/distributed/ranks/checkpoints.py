"""Checkpoints by one number of processes and another: `write` and `read` with a folder, and faults with `faults`."""

import json
import os
import sys
from pathlib import Path

import numpy as np

import ultramarine as mx
from ultramarine import nn, optimizers
from ultramarine.nn.checkpoints import (
    load_checkpoint,
    load_sharded,
    save_checkpoint,
    save_sharded,
)
from ultramarine.nn.layers.distributed import fully_shard, shard_inplace, shard_linear
from ultramarine.utils import tree_flatten

action, folder = sys.argv[1], Path(sys.argv[2])
group = mx.distributed.init()
rank, size = group.rank(), group.size()

DTYPES = [
    *("bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64"),
]
# Shape, axis that is split, segments: also lengths that no number of processes divides, and arrays without elements.
LAYOUTS = {
    "rows": ((7, 3), 0, 1),
    "columns": ((2, 3, 5), -1, 1),
    "short": ((1, 2), 0, 1),
    "empty": ((4, 0), 0, 1),
    "none": ((0, 3), 0, 1),
    "segments": ((3, 24), 1, 3),
    "starts": ((14,), 0, [4, 9]),
    "fractions": ((16, 2), 0, [0.25]),
    "whole": ((3, 2), None, 1),
    "number": ((), None, 1),
}


def whole(dtype: str, shape: tuple[int, ...]) -> mx.array:
    """The array that all processes together have."""
    count = int(np.prod(shape))
    if dtype == "bool_":
        return mx.array([i % 3 == 0 for i in range(count)], mx.bool_).reshape(shape)
    numbers = (mx.arange(count) % 23).reshape(shape).astype(mx.float32)
    return (numbers * (1 + 2j) if dtype == "complex64" else numbers).astype(getattr(mx, dtype))


def sharding(path: str, _: mx.array):
    """The axis that is split, by a name such as `float32.rows`."""
    _, axis, segments = LAYOUTS[path.rpartition(".")[2]]
    return axis if axis is None or segments == 1 else (axis, segments)


def all_arrays() -> dict[str, mx.array]:
    return {f"{d}.{name}": whole(d, shape) for d in DTYPES for name, (shape, *_) in LAYOUTS.items()}


def equal(a: mx.array, b: mx.array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and bool(mx.array_equal(a, b).item())


def reference_part(x: mx.array, layout: tuple, rank: int, size: int) -> np.ndarray:
    """The part by NumPy, of float32."""
    shape, axis, segments = layout
    values = np.array(x.astype(mx.float32))
    if axis is None:
        return values
    if isinstance(segments, list):
        segments = [int(s * shape[axis]) if isinstance(s, float) else s for s in segments]
    pieces = np.split(values, segments, axis)
    return np.concatenate([np.array_split(p, size, axis)[rank] for p in pieces], axis)


def model_and_optimizer(seed: int):
    """A model that is split in all ways, as 1, 2, 3 and 4 processes can."""
    mx.random.seed(seed)
    fused = nn.Linear(12, 36)
    wide = nn.Linear(384, 24).to_quantized(group_size=32, bits=8)
    layers = [
        shard_linear(nn.Linear(12, 24), "all-to-sharded"),
        nn.Tanh(),
        shard_linear(nn.Linear(24, 12), "sharded-to-all"),
        fully_shard(nn.Sequential(nn.Linear(12, 12), fully_shard(nn.Linear(12, 12, bias=False)))),
        nn.LayerNorm(12),
        shard_linear(fused, "all-to-sharded", segments=3),
    ]
    model = nn.Sequential(*layers)
    # Not called: without gradients.
    beside = nn.Sequential(shard_linear(wide, "sharded-to-all"), nn.Linear(12, 24))
    shard_inplace(beside.layers[1], lambda path, x: -1 if path == "weight" else None)
    model.beside = beside
    optimizer = optimizers.MultiOptimizer(
        [optimizers.Adam(1e-2), optimizers.SGD(optimizers.cosine_decay(1e-2, 100), momentum=0.9)],
        [lambda path, x: x.ndim >= 2],
    )
    return model, optimizer


def step(model, optimizer) -> None:
    x = mx.random.normal((5, 12), key=mx.random.key(9))
    gradients = nn.value_and_grad(model, lambda x: mx.square(model(x)).sum())(x)[1]
    optimizer.update(model, gradients)
    mx.eval(model.parameters(), optimizer.state)


def contents() -> dict[str, list]:
    """The checkpoint as one process reads it."""
    found = {}
    index = mx.load(str(folder / "model.safetensors.index.json"), return_metadata=True)
    state = mx.load(str(folder / index[1]["optimizer"]))
    for name, arrays in (("model", index[0]), ("state", state)):
        found |= {f"{name}:{path}": np.array(x).tolist() for path, x in arrays.items()}
    return found


arrays = str(folder / "arrays.safetensors.index.json")

if action == "write":
    parts = {}
    for path, x in all_arrays().items():
        name = path.rpartition(".")[2]
        axis = sharding(path, x)
        if name in ("rows", "columns") and size > 1:
            # Parts of any lengths: the last process has most.
            length = x.shape[axis]
            first = min(rank, length)
            last = length if rank == size - 1 else min(rank + 1, length)
            index = (slice(None),) * (axis % x.ndim) + (slice(first, last),)
            parts[path] = x[index]
        else:
            parts[path] = nn._sharded_files.part_of(path, x, axis, size, rank)
    for most in (5 << 30, 500):
        save_sharded(arrays, parts, sharding, metadata={"step": "7"}, max_file_bytes=most)
    model, optimizer = model_and_optimizer(3)
    for _ in range(2):
        step(model, optimizer)
    save_checkpoint(str(folder), model, optimizer, metadata={"step": "2"})
    if rank == 0:
        found, metadata = mx.load(arrays, return_metadata=True)
        assert metadata["step"] == "7", metadata
        assert found.keys() == all_arrays().keys()
        for path, x in all_arrays().items():
            assert equal(found[path], x), path
        # Nothing of an earlier save is left.
        with open(arrays) as file:
            names = set(json.load(file)["weight_map"].values())
        assert len(names) > size and names == {p.name for p in folder.glob("arrays-*")}
        assert len(list(folder.glob("optimizer-*.json"))) == 1
        (folder / "contents.json").write_text(json.dumps(contents()))

elif action == "read":
    found = load_sharded(arrays, sharding)
    for path, x in all_arrays().items():
        wanted = reference_part(x, LAYOUTS[path.rpartition(".")[2]], rank, size)
        assert found[path].dtype == x.dtype
        assert np.array_equal(np.array(found[path].astype(mx.float32)), wanted), path
    if size == 1:
        # Plain weights for a model of one process.
        plain = model_and_optimizer(5)[0]
        plain.load_weights(str(folder / "model.safetensors.index.json"))
    # Another seed: all values are the checkpoint's.
    model, optimizer = model_and_optimizer(4)
    assert load_checkpoint(str(folder), model, optimizer)["step"] == "2"
    assert optimizer.state["states"][0]["step"].item() == 2
    if size == 1:
        for (_, a), (_, b) in zip(
            tree_flatten(plain.parameters()), tree_flatten(model.parameters())
        ):
            assert a is b is None or equal(a, b)
    before = json.loads((folder / "contents.json").read_text())
    save_checkpoint(str(folder), model, optimizer, metadata={"step": "2"})
    after = contents()
    assert after.keys() == before.keys(), after.keys() ^ before.keys()
    for path, wanted in before.items():
        assert after[path] == wanted, path
    mx.distributed.all_sum(mx.zeros(1)).item()
    # It goes on as it was.
    step(model, optimizer)
    whole_model = dict(tree_flatten(model.parameters()))
    close = folder / "next.json"
    save_sharded(
        str(folder / "next.safetensors.index.json"),
        {"norm": whole_model["layers.4.weight"]},
    )
    if not close.exists() and rank == 0:
        close.write_text(json.dumps(np.array(whole_model["layers.4.weight"]).tolist()))
    mx.distributed.all_sum(mx.zeros(1)).item()
    wanted = np.array(json.loads(close.read_text()))
    assert np.allclose(np.array(whole_model["layers.4.weight"]), wanted, atol=1e-5)

elif action == "faults":

    def caught(kind: type, call, *texts: str) -> None:
        """Checks that a call is an error in all processes, with one of the texts in each."""
        try:
            call()
        except (ValueError, TypeError, RuntimeError, OSError) as error:
            assert isinstance(error, (kind, RuntimeError)), repr(error)
            assert any(text in str(error) for text in texts), (texts, str(error))
            return
        raise AssertionError(f"no error with {texts}")

    def saved(x, axis=0, path="x"):
        return lambda: save_sharded(
            str(folder / "f.safetensors.index.json"), {path: x}, lambda *_: axis
        )

    caught(
        ValueError,
        lambda: save_sharded(str(folder / "f.safetensors"), {}),
        "not the name of an index",
    )
    caught(ValueError, saved(mx.ones((2,)), 1), "has no axis 1")
    caught(
        ValueError,
        saved(mx.ones((2,)), None, f"x{rank}"),
        "rank 0 has an array x0, and rank 1 has none",
        "rank 1 has an array",
    )
    caught(
        ValueError,
        saved(mx.ones((2, 2 + rank))),
        "parts of x do not fit: rank 0 has ultramarine.float32 (2, 2)",
    )
    mixed = mx.ones((2,), mx.int32 if rank == 1 else mx.float32)
    caught(ValueError, saved(mixed), "rank 1 ultramarine.int32 (2,), split along axis 0")
    caught(ValueError, saved(mx.ones((2,)), rank), "has no axis", "rank 1 failed")
    caught(ValueError, saved(mx.ones((2 + rank,)), (0, [1])), "parts of x have the lengths")
    caught(ValueError, saved(mx.ones((2,)), (0, 7)), "cannot be split into 7 equal segments")
    caught(TypeError, saved(mx.ones(2).astype(mx.float8_e4m3fn)), "Save its view(uint8)")
    caught(
        TypeError,
        saved(3 if rank == 1 else mx.ones(2)),
        "x is of type int",
        "rank 1 failed: TypeError",
    )
    # A folder that one process cannot make.
    blocked = folder / "blocked"
    (folder / f"blocked{rank}").write_text("")
    own = (folder / f"blocked{rank}" / "sub") if rank == 1 else blocked
    caught(
        OSError,
        lambda: save_sharded(str(own / "f.safetensors.index.json"), {"x": mx.ones(2)}),
        "rank 1 failed: ",
        "Not a directory",
    )
    # A write that fails in one process alone leaves what was there.
    good = str(folder / "good.safetensors.index.json")
    save_sharded(good, {"x": mx.ones(2), "y": mx.zeros(3)})
    original = mx.save_safetensors

    def full(*_):
        raise OSError(28, "No space left on device")

    if rank == 1:
        mx.save_safetensors = full
    caught(
        OSError,
        lambda: save_sharded(good, {"x": mx.full((2,), 5.0), "y": mx.ones(3)}),
        "No space left",
    )
    mx.save_safetensors = original
    assert mx.load(good)["x"].tolist() == [1, 1]
    assert mx.distributed.all_sum(mx.ones(1)).item() == size
    assert len(list(folder.glob("good-*"))) == min(size, 2), list(folder.glob("good-*"))

    # Checkpoints of models.
    model, optimizer = model_and_optimizer(3)
    step(model, optimizer)
    save_checkpoint(str(folder), model, optimizer)
    caught(
        ValueError,
        lambda: load_checkpoint(str(folder), nn.Linear(2, 3)),
        "are not in the checkpoint: bias, weight",
    )
    other, _ = model_and_optimizer(3)
    other.layers[4] = nn.LayerNorm(24)
    caught(
        ValueError,
        lambda: load_checkpoint(str(folder), other),
        "layers.4.weight has the shape (12,), and the model's parameter (24,)",
    )
    other, _ = model_and_optimizer(3)
    other.layers[0] = shard_linear(nn.Linear(12, 48), "all-to-sharded")
    caught(
        ValueError,
        lambda: load_checkpoint(str(folder), other),
        f"(24, 12), of which rank {rank} gets ({24 // size}, 12)",
    )
    adafactor = optimizers.Adafactor()
    adafactor.init(model.trainable_parameters())
    caught(ValueError, lambda: save_checkpoint(str(folder), model, adafactor), "cannot be joined")
    caught(
        ValueError,
        lambda: save_checkpoint(str(folder), model, metadata={"optimizer": "x"}),
        "reserved name",
    )
    alone = group.split(rank)
    caught(
        ValueError,
        lambda: save_checkpoint(str(folder), model, group=alone),
        f"is split over {size} processes, and the group has 1",
    )
    caught(RuntimeError, lambda: load_checkpoint(str(folder / "nowhere"), model), "nowhere")
    mx.distributed.all_sum(mx.zeros(1)).item()
    values = dict(tree_flatten(model.parameters()))
    index = folder / "model.safetensors.index.json"
    names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    victim = folder / names[-1]
    if rank == 0:
        content = victim.read_bytes()
        victim.write_bytes(content[:-100])
    mx.distributed.all_sum(mx.zeros(1)).item()
    caught(
        RuntimeError,
        lambda: load_checkpoint(str(folder), model, optimizer),
        "Copy or save it again",
    )
    mx.distributed.all_sum(mx.zeros(1)).item()
    if rank == 0:
        os.remove(victim)
    mx.distributed.all_sum(mx.zeros(1)).item()
    caught(RuntimeError, lambda: load_checkpoint(str(folder), model, optimizer), "No such file")
    # The model is as it was.
    for path, x in tree_flatten(model.parameters()):
        assert x is values[path] or equal(x, values[path]), path
    save_checkpoint(str(folder), model)
    caught(
        ValueError,
        lambda: load_checkpoint(str(folder), model, optimizer),
        "names no state of an optimizer",
    )
    load_checkpoint(str(folder), model)

print("done", flush=True)
