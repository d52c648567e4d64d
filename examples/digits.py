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

matplotlib.use("Agg")  # draw to a file: no display needed
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "out"
LAYERS = (64, 128, 64, 10)
EPOCHS = 40
BATCH = 64
HELD_OUT = 360
WANTED = 0.97

Params = dict[str, mx.array]


def read_digits() -> tuple[np.ndarray, np.ndarray]:
    """The images, float32 of shape (1797, 64) between 0 and 1, and their digits, int32."""
    table = np.loadtxt(HERE / "data" / "digits.csv.gz", delimiter=",", dtype=np.float32)
    return table[:, :64] / 16, table[:, 64].astype(np.int32)


def new_params() -> Params:
    """Weights drawn as He et al. (2015) advise for ReLU, biases of zero."""
    params: Params = {}
    for i, (fan_in, fan_out) in enumerate(zip(LAYERS, LAYERS[1:])):
        params[f"w{i}"] = mx.random.normal((fan_in, fan_out)) * (2 / fan_in) ** 0.5
        params[f"b{i}"] = mx.zeros((fan_out,))
    return params


def logits(params: Params, x: mx.array) -> mx.array:
    """The network: x of shape (n, 64) to one score per digit, (n, 10)."""
    last = len(LAYERS) - 2
    for i in range(last + 1):
        x = x @ params[f"w{i}"] + params[f"b{i}"]
        if i < last:
            x = mx.maximum(x, 0)
    return x


def loss(params: Params, x: mx.array, y: mx.array) -> mx.array:
    """Mean cross-entropy of the scores against the digits y."""
    scores = logits(params, x)
    right = mx.take_along_axis(scores, y[:, None], axis=1).squeeze(1)
    return mx.mean(mx.logsumexp(scores, axis=1) - right)


def adam(
    params: Params, grads: Params, m: Params, v: Params, step: int, rate: float
) -> tuple[Params, Params, Params]:
    """One step of Adam (Kingma and Ba, 2015): new parameters and both moments."""
    m = {k: 0.9 * m[k] + 0.1 * g for k, g in grads.items()}
    v = {k: 0.99 * v[k] + 0.01 * g * g for k, g in grads.items()}
    m_scale = rate / (1 - 0.9**step)
    v_scale = 1 / (1 - 0.99**step)
    params = {k: p - m_scale * m[k] / (mx.sqrt(v[k] * v_scale) + 1e-8) for k, p in params.items()}
    return params, m, v


def train(images: mx.array, digits: mx.array) -> tuple[Params, list[float]]:
    """Trains for EPOCHS passes; the parameters and the mean loss of each pass."""
    order = np.random.default_rng(0)
    params = new_params()
    m = {k: mx.zeros_like(p) for k, p in params.items()}
    v = {k: mx.zeros_like(p) for k, p in params.items()}
    step_of = mx.value_and_grad(loss)
    batches = images.shape[0] // BATCH
    history: list[float] = []
    step = 0
    with tqdm(total=EPOCHS * batches, unit="step", desc="training") as bar:
        for epoch in range(EPOCHS):
            rate = 2e-3 * (1 - epoch / EPOCHS)
            shuffled = mx.array(order.permutation(images.shape[0]).astype(np.int32))
            total = mx.array(0.0)
            for i in range(batches):
                rows = shuffled[i * BATCH : (i + 1) * BATCH]
                step += 1
                value, grads = step_of(params, images[rows], digits[rows])
                params, m, v = adam(params, grads, m, v, step, rate)
                total = total + value
                mx.eval(params, m, v, total)
                bar.update()
            history.append(total.item() / batches)
            bar.set_postfix(loss=f"{history[-1]:.4f}")
    return params, history


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
    mixed = np.random.default_rng(2026).permutation(len(images))
    test, rest = mixed[:HELD_OUT], mixed[HELD_OUT:]
    print(f"{len(images)} images: {len(rest)} to train on, {len(test)} held out")

    mx.random.seed(7)
    started = time.perf_counter()
    params, history = train(mx.array(images[rest]), mx.array(digits[rest]))
    seconds = time.perf_counter() - started

    guessed = np.array(mx.argmax(logits(params, mx.array(images[test])), axis=1))
    accuracy = float((guessed == digits[test]).mean())
    print(f"Trained in {seconds:.1f} s. Held-out accuracy: {accuracy:.2%}")

    OUT.mkdir(exist_ok=True)
    figure, weights = OUT / "digits.png", OUT / "digits.safetensors"
    draw(figure, history, images[test], guessed)
    mx.save_safetensors(str(weights), params)
    print(f"Figure:  {figure}")
    print(f"Weights: {weights}")
    if accuracy < WANTED:
        print(f"That is less than the {WANTED:.0%} expected of it.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
