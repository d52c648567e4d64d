"""A classifier of points on two spirals: layers, their gradients, and Adam."""

import argparse

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten


class MLP(nn.Module):
    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.layers = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
        self.norm = nn.LayerNorm(sizes[-2])

    def __call__(self, x: mx.array) -> mx.array:
        for layer in self.layers[:-1]:
            x = nn.gelu(layer(x))
        return self.layers[-1](self.norm(x))


def spirals(n: int) -> tuple[mx.array, mx.array]:
    t = mx.sqrt(mx.random.uniform(shape=(n,))) * 9
    side = mx.arange(n) % 2
    angle = t + side * mx.pi
    x = mx.stack([mx.cos(angle), mx.sin(angle)], axis=1) * t[:, None] / 9
    return x + 0.01 * mx.random.normal(x.shape), side


def loss(model: MLP, x: mx.array, y: mx.array) -> mx.array:
    return nn.losses.cross_entropy(model(x), y, label_smoothing=0.05, reduction="mean")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args()
    mx.random.seed(7)
    x, y = spirals(512)
    model = MLP([2, 32, 32, 2])
    mx.eval(model.parameters())
    print("parameters", sum(p.size for _, p in tree_flatten(model.trainable_parameters())))
    optimizer = optim.Adam(learning_rate=optim.cosine_decay(1e-2, given.steps))
    step = nn.value_and_grad(model, loss)
    for i in range(given.steps):
        value, grads = step(model, x, y)
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        if i % 20 == 0:
            print("loss", i, value.item(), optimizer.learning_rate.item())
    print("loss", given.steps, loss(model, x, y).item())
    print("right", (mx.argmax(model(x), axis=1) == y).astype(mx.float32).mean().item())
    print("norms", *(mx.linalg.norm(p).item() for _, p in tree_flatten(model.parameters())))


if __name__ == "__main__":
    main()
