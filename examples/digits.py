"""Train a classifier of handwritten digits, from the images to the saved weights.

Run it with ``cargo xtask demo``, or with Python where the package, numpy,
matplotlib and tqdm are installed.  It prints the backends found, trains a small
network on real data (see data/README.md), tells its accuracy on images that it has not
seen, and leaves a figure and the weights in ``out/``.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import matplotlib
import numpy as np
from tqdm import tqdm

import ultramarine as mx
import ultramarine.nn as nn
import ultramarine.optimizers as optim

matplotlib.use("Agg")  # draw to a file: no display needed
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "out"
LAYERS = (64, 128, 64, 10)
EPOCHS = 40
BATCH = 64
HELD_OUT = 360
WANTED = 0.97


def read_digits() -> tuple[np.ndarray, np.ndarray]:
    """The images, float32 of shape (1797, 64) between 0 and 1, and their digits, int32."""
    table = np.loadtxt(HERE / "data" / "digits.csv.gz", delimiter=",", dtype=np.float32)
    return table[:, :64] / 16, table[:, 64].astype(np.int32)


class Network(nn.Module):
    """Images, (n, 64), to one score per digit, (n, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(*sizes) for sizes in zip(LAYERS, LAYERS[1:])]
        # Weights drawn as He et al. (2015) advise for ReLU, biases of zero.
        for layer in self.layers:
            layer.weight = nn.init.he_normal()(layer.weight, gain=2**0.5)
            layer.bias = mx.zeros_like(layer.bias)

    def __call__(self, x: mx.array) -> mx.array:
        x = self.layers[0](x)
        for layer in self.layers[1:]:
            x = layer(nn.relu(x))
        return x


def loss(network: Network, x: mx.array, y: mx.array) -> mx.array:
    """Mean cross-entropy of the scores against the digits y."""
    return nn.losses.cross_entropy(network(x), y, reduction="mean")


def train(network: Network, images: mx.array, digits: mx.array) -> list[float]:
    """Trains for EPOCHS passes; the mean loss of each."""
    optimizer = optim.Adam(2e-3, betas=[0.9, 0.99], bias_correction=True)
    step = nn.value_and_grad(network, loss)
    batches = images.shape[0] // BATCH
    history: list[float] = []
    with tqdm(total=EPOCHS * batches, unit="step", desc="training") as bar:
        for epoch in range(EPOCHS):
            optimizer.learning_rate = 2e-3 * (1 - epoch / EPOCHS)
            shuffled = mx.random.permutation(images.shape[0])
            total = mx.array(0.0)
            for i in range(batches):
                rows = shuffled[i * BATCH : (i + 1) * BATCH]
                value, grads = step(network, images[rows], digits[rows])
                optimizer.update(network, grads)
                total = total + value
                mx.eval(network.parameters(), optimizer.state, total)
                bar.update()
            history.append(total.item() / batches)
            bar.set_postfix(loss=f"{history[-1]:.4f}")
    return history


def draw(path: Path, history: list[float], images: np.ndarray, guessed: np.ndarray) -> None:
    """Saves the loss curve above ten held-out images with their predictions."""
    figure = plt.figure(figsize=(9, 5), layout="constrained")
    grid = figure.add_gridspec(2, 10, height_ratios=(3, 1))
    curve = figure.add_subplot(grid[0, :])
    curve.plot(range(1, len(history) + 1), history, marker=".")
    curve.set(xlabel="epoch", ylabel="mean cross-entropy", yscale="log", title="Training loss")
    curve.grid(True, alpha=0.3)
    for i in range(10):
        axes = figure.add_subplot(grid[1, i])
        axes.imshow(images[i].reshape(8, 8), cmap="gray_r")
        axes.set(title=f"says {guessed[i]}", xticks=[], yticks=[])
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> int:
    """Runs it all; 0 where the held-out accuracy is what it should be."""
    parser = argparse.ArgumentParser(description="Train a classifier of handwritten digits.")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="where it runs")
    device = parser.parse_args().device
    if device == "gpu" and not mx.is_available(mx.gpu):
        print("There is no GPU here; `python -m ultramarine backends` says why.", file=sys.stderr)
        return 1
    mx.set_default_device(mx.gpu if device == "gpu" else mx.cpu)
    backends = getattr(mx, "backends", None)
    if backends is not None:
        print("Backends found:")
        for entry in backends.list():
            devices = ", ".join(map(str, entry.devices))
            print(f"  {entry.name}: {entry.device_type}, devices {devices}")

    images, digits = read_digits()
    # A fixed split: the permutation of a fixed key.
    mixed = np.array(mx.random.permutation(len(images), key=mx.random.key(2026)))
    test, rest = mixed[:HELD_OUT], mixed[HELD_OUT:]
    print(f"{len(images)} images: {len(rest)} to train on, {len(test)} held out")

    mx.random.seed(7)
    started = time.perf_counter()
    network = Network()
    history = train(network, mx.array(images[rest]), mx.array(digits[rest]))
    seconds = time.perf_counter() - started

    guessed = np.array(mx.argmax(network(mx.array(images[test])), axis=1))
    accuracy = float((guessed == digits[test]).mean())
    print(
        f"Trained in {seconds:.2f} s to a loss of {history[-1]:.6f}. Held-out accuracy: {accuracy:.2%}"
    )

    OUT.mkdir(exist_ok=True)
    figure, weights = OUT / "digits.png", OUT / "digits.safetensors"
    draw(figure, history, images[test], guessed)
    network.save_weights(str(weights))
    print(f"Figure:  {figure}")
    print(f"Weights: {weights}")
    if accuracy < WANTED:
        print(f"That is less than the {WANTED:.0%} expected of it.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
