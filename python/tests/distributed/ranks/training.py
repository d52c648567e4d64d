"""Averages of gradients, layers that are cut over processes, and training with a part of the batch on each."""

from functools import partial

import numpy as np

import ultramarine as mx
from ultramarine import nn, optimizers
from ultramarine.nn.layers.distributed import shard_linear
from ultramarine.nn.utils import average_gradients, clip_grad_norm_sharded
from ultramarine.utils import tree_flatten

group = mx.distributed.init(strict=True)
rank, size = group.rank(), group.size()


def close(found, wanted, tolerance=1e-5):
    assert np.allclose(np.array(found), np.array(wanted), atol=tolerance), (found, wanted)


# Buckets of any size give the same averages.
tree = {
    "a": mx.full((3, 2), rank),
    "b": [mx.arange(5) * (rank + 1.0), mx.array(float(rank))],
    "c": {},
}
tree["a"] = tree["a"].astype(mx.float32)
for bucket in (32 << 20, 24, 1, 0, -1):
    found = average_gradients(tree, group, bucket)
    close(found["a"], np.full((3, 2), (size - 1) / 2))
    close(found["b"][0], np.arange(5) * (size + 1) / 2)
    close(found["b"][1], (size - 1) / 2)
mixed = average_gradients({"h": mx.ones(3, mx.float16), "f": mx.ones(2) * rank})
assert mixed["h"].dtype == mx.float16
close(mixed["f"], [(size - 1) / 2] * 2)
_, norm = clip_grad_norm_sharded([mx.ones(4)], 1.0)
close(norm, (4 * size) ** 0.5)

# Two layers, of which the first is cut by rows and the second by columns.
mx.random.seed(1)
up, down = nn.Linear(12, 24), nn.Linear(24, 12)
x = mx.random.normal((5, 12), key=mx.random.key(2))
whole = lambda x: down(nn.relu(up(x)))
wanted, wanted_gradient = whole(x), mx.grad(lambda x: (whole(x) ** 2).sum())(x)
cut_up, cut_down = shard_linear(up, "all-to-sharded"), shard_linear(down, "sharded-to-all")
cut = lambda x: cut_down(nn.relu(cut_up(x)))
close(cut(x), wanted)
close(mx.compile(cut)(x), wanted)
close(mx.grad(lambda x: (cut(x) ** 2).sum())(x), wanted_gradient, 1e-4)
wide = nn.Linear(128 * size, 64)
quantized = wide.to_quantized(group_size=32, bits=8)
x = mx.random.normal((3, 128 * size), key=mx.random.key(3))
part = x[:, 128 * rank : 128 * (rank + 1)]
close(shard_linear(quantized, "sharded-to-all")(part), quantized(x), 1e-3)
rows = shard_linear(quantized, "all-to-sharded")(x) if 64 % size == 0 else None
if rows is not None:
    close(mx.distributed.all_gather(rows.T).T, quantized(x), 1e-4)


# Training with a part of each batch is training with the joint batch.
def train(average, rows):
    mx.random.seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = optimizers.Adam(3e-2)
    mx.eval(model.parameters())
    state = [model.state, optimizer.state]
    loss = lambda x, y: nn.losses.mse_loss(model(x), y)

    @partial(mx.compile, inputs=state, outputs=state)
    def step(x, y):
        value, gradients = nn.value_and_grad(model, loss)(x, y)
        if average:
            gradients = average_gradients(gradients)
            value = mx.distributed.all_sum(value) / size
        optimizer.update(model, gradients)
        return value

    data = mx.random.normal((20, 12 * size, 8), key=mx.random.key(7))
    values = []
    for batch in data:
        values.append(step(batch[rows], batch[rows, :1] - batch[rows, 1:2]))
        mx.async_eval(state, values[-1])
    return [v.item() for v in values], tree_flatten(model.parameters())


alone, alone_parameters = train(False, slice(None))
together, parameters = train(True, slice(12 * rank, 12 * (rank + 1)))
close(together, alone)
assert np.mean(alone[-5:]) < np.mean(alone[:5])
for (_, a), (_, b) in zip(parameters, alone_parameters, strict=True):
    close(a, b, 1e-4)
    # The same bits in all processes.
    bits = mx.view(a, mx.uint32).astype(mx.int64)
    assert mx.array_equal(mx.distributed.all_max(bits), mx.distributed.all_min(bits)).item()
print("done", flush=True)
