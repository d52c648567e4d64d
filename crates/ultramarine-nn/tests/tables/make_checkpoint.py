"""Writes the folder `checkpoint`, of a model that is split over two processes, for checkpoints.rs:

mpirun -n 2 python crates/ultramarine-nn/tests/tables/make_checkpoint.py
"""

import shutil
from pathlib import Path

import ultramarine as mx
from ultramarine import nn, optimizers
from ultramarine.nn.checkpoints import save_checkpoint
from ultramarine.nn.layers.distributed import shard_linear
from ultramarine.utils import tree_map

FOLDER = Path(__file__).parent / "checkpoint"

group = mx.distributed.init(strict=True)
assert group.size() == 2
if group.rank() == 0:
    shutil.rmtree(FOLDER, ignore_errors=True)
mx.eval(mx.distributed.all_sum(mx.array(1)))


def linear(inputs: int, outputs: int, start: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    layer.weight = mx.arange(start, start + inputs * outputs).reshape(outputs, inputs) / 8.0
    layer.bias = mx.arange(outputs) - 1.0
    return layer


model = nn.Sequential(
    shard_linear(linear(3, 4, 0), "all-to-sharded"),
    nn.Tanh(),
    shard_linear(linear(4, 2, 100), "sharded-to-all"),
)
optimizer = optimizers.AdamW(0.5)
optimizer.init(model.parameters())
optimizer.update(model, tree_map(lambda p: mx.zeros_like(p) + 2, model.parameters()))
mx.eval(model.parameters(), optimizer.state)
save_checkpoint(str(FOLDER), model, optimizer, metadata={"step": "7"}, max_file_bytes=64)
