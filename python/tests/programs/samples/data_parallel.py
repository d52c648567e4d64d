"""Gradients that are averaged over the processes of a group, of which there is one."""

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.nn.utils import average_gradients


def main() -> None:
    group = mx.distributed.init()
    print("group", group.rank(), group.size())
    mx.random.seed(13)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = optim.Lion(learning_rate=0.01)
    step = nn.value_and_grad(model, lambda x, y: nn.losses.mse_loss(model(x)[:, 0], y))
    x = mx.random.normal((64, 4))
    y = mx.sin(x.sum(axis=1))
    for i in range(20):
        value, grads = step(x, y)
        optimizer.update(model, average_gradients(grads, group))
        value = mx.distributed.all_sum(value) / group.size()
        mx.eval(model.parameters(), optimizer.state)
        if i % 5 == 0:
            print("loss", i, value.item())
    print("gathered", mx.distributed.all_gather(model(x)[:3]).tolist())


if __name__ == "__main__":
    main()
