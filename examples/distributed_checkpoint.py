"""Train a model that is split over the processes, and go on with another number of them.

``python -m ultramarine.launch -n 2 examples/distributed_checkpoint.py run`` trains 50 steps and saves them in the folder
``run``; again, with ``-n 3`` or by itself, it goes on where that ended.
"""

import os
import sys

import ultramarine as mx
from ultramarine import nn, optimizers
from ultramarine.nn.checkpoints import load_checkpoint, save_checkpoint
from ultramarine.nn.layers.distributed import shard_linear

folder = sys.argv[1]
group = mx.distributed.init()

mx.random.seed(0)
model = nn.Sequential(
    shard_linear(nn.Linear(2, 24), "all-to-sharded"),
    nn.Tanh(),
    shard_linear(nn.Linear(24, 1), "sharded-to-all"),
)
optimizer = optimizers.AdamW(3e-2)

begin = 0
if os.path.exists(os.path.join(folder, "model.safetensors.index.json")):
    begin = int(load_checkpoint(folder, model, optimizer)["step"])

x = mx.random.normal((256, 2), key=mx.random.key(1))
y = x[:, :1] * x[:, 1:]
loss_and_gradients = nn.value_and_grad(model, lambda x, y: nn.losses.mse_loss(model(x), y))
for _ in range(50):
    loss, gradients = loss_and_gradients(x, y)
    optimizer.update(model, gradients)
    mx.eval(model.parameters(), optimizer.state, loss)
save_checkpoint(folder, model, optimizer, metadata={"step": str(begin + 50)})
if group.rank() == 0:
    print(f"step {begin + 50} of {group.size()} processes, loss {loss.item():.4f}")
