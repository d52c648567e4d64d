"""A training step that is compiled, with the state of the model, the optimizer and the random numbers."""

from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_map, tree_reduce


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        # Without a bias, whose gradient would be noise: the norm takes it out.
        convolution = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.features = nn.Sequential(convolution, nn.BatchNorm(4), nn.ReLU(), nn.MaxPool2d(2))
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(4 * 4 * 4, 3)

    def __call__(self, x: mx.array) -> mx.array:
        x = self.features(x)
        return self.head(self.dropout(x.reshape(x.shape[0], -1)))


def main() -> None:
    mx.random.seed(5)
    model = Network()
    optimizer = optim.AdamW(learning_rate=0.01, weight_decay=0.05)
    loss = lambda x, y: nn.losses.cross_entropy(model(x), y, reduction="mean")
    gradients = nn.value_and_grad(model, loss)
    mx.eval(model.parameters())
    state = [model.state, optimizer.state, mx.random.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step(x: mx.array, y: mx.array) -> mx.array:
        value, grads = gradients(x, y)
        optimizer.update(model, grads)
        return value

    x = mx.random.normal((48, 8, 8, 1))
    y = mx.argmax(x[:, :3, 0, 0], axis=1)
    for i in range(30):
        value = step(x, y)
        mx.eval(state)
        if i % 5 == 0:
            print("loss", i, value.item())
    running = model.features.layers[1]
    print("running", *running.running_mean.tolist(), *running.running_var.tolist())
    model.eval()
    print("right", (mx.argmax(model(x), axis=1) == y).astype(mx.float32).mean().item())
    half = tree_map(lambda p: p.astype(mx.bfloat16), model.parameters())
    print("bytes", tree_reduce(lambda n, p: n + p.nbytes, half, 0))
    print("steps", optimizer.state["step"].item())


if __name__ == "__main__":
    main()
