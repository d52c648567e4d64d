"""Recurrent networks that add up numbers along a sequence; gradients are clipped, some parameters frozen."""

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim


class Adder(nn.Module):
    def __init__(self, cell: nn.Module, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.cell = cell
        self.head = nn.Linear(width, 1)

    def __call__(self, x: mx.array) -> mx.array:
        states = self.cell(self.embedding(x))
        if isinstance(states, tuple):
            states = states[0]
        return self.head(states[:, -1])[:, 0]


def train(name: str, model: Adder) -> None:
    optimizer = optim.SGD(learning_rate=0.05, momentum=0.9, nesterov=True)
    step = nn.value_and_grad(
        model, lambda x, y: nn.losses.huber_loss(model(x), y, reduction="mean")
    )
    for i in range(40):
        x = mx.random.randint(0, 10, (32, 6))
        value, grads = step(x, x.sum(axis=1) / 10)
        grads, norm = optim.clip_grad_norm(grads, max_norm=1.0)
        optimizer.update(model, grads)
        mx.eval(model.state, optimizer.state)
        if i % 10 == 0:
            print(name, i, value.item(), norm.item())
    print(name, "state", optimizer.step.item(), mx.abs(model.head.weight).sum().item())


def main() -> None:
    mx.random.seed(11)
    width = 16
    for name, cell in [("rnn", nn.RNN), ("gru", nn.GRU), ("lstm", nn.LSTM)]:
        model = Adder(cell(8, width), width)
        model.embedding.freeze()
        before = mx.array(model.embedding.weight)
        train(name, model)
        print(name, "frozen", mx.array_equal(model.embedding.weight, before).item())


if __name__ == "__main__":
    main()
