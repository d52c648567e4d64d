"""Train a small language model on a book, from characters to definitions of its own.

Run it with ``cargo xtask demo``, or with Python where the package, numpy and tqdm are installed.  It trains a
transformer of ``ultramarine.nn`` for some seconds on The Devil's Dictionary (see data/README.md), draws how the loss
fell, and prints entries that the model writes.  The weights are left in ``out/``.

Several processes (``python -m ultramarine.launch -n 2 examples/text.py``) each take a part of every batch and average
their gradients; the first one reports.
"""

from __future__ import annotations

import argparse
import gzip
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

import ultramarine as mx
import ultramarine.nn as nn
import ultramarine.optimizers as optim
from ultramarine.utils import tree_flatten

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "out"

DIMS, HEADS, LAYERS = 128, 4, 3
CONTEXT = 64
"""Characters that the model sees at a time."""
BATCH = 8
RATE = 2e-3
"""The highest learning rate."""
BEGINNINGS = ("\nLOVE, n.", "\nCOMPUTER, n.", "\nWISDOM, n.", "\n")
"""What samples begin with: an entry begins a line."""


# --- Text ---


@dataclass(frozen=True)
class Corpus:
    """A text in two parts, as the numbers of its characters."""

    characters: str
    train: np.ndarray
    held_out: np.ndarray

    def encode(self, text: str) -> np.ndarray:
        """The numbers of a text's characters."""
        return np.array([self.characters.index(c) for c in text], np.int32)

    def decode(self, numbers: list[int]) -> str:
        """The text of some numbers."""
        return "".join(self.characters[i] for i in numbers)

    def guesses(self) -> tuple[float, float]:
        """Bits a character of the held-out part under two guesses: all alike, and by frequency in the other part."""
        size = len(self.characters)
        counts = np.bincount(self.train, minlength=size) + 1
        return math.log2(size), float(-np.log2(counts / counts.sum())[self.held_out].mean())


def read_text() -> Corpus:
    """The book: one entry a line, of which a tenth, drawn at random, is held out."""
    with gzip.open(HERE / "data" / "devil.txt.gz", "rt", encoding="ascii") as file:
        entries = file.readlines()
    mixed = np.array(mx.random.permutation(len(entries), key=mx.random.key(2026)))
    parts = ["".join(entries[i] for i in part) for part in np.split(mixed, [len(entries) // 10])]
    whole = Corpus("".join(sorted(set("".join(entries)))), np.empty(0), np.empty(0))
    held_out, train = (whole.encode(part) for part in parts)
    return Corpus(whole.characters, train, held_out)


# --- Model ---


class Cache:
    """A layer's keys and values of the characters that came last, at most `CONTEXT` of them."""

    def __init__(self) -> None:
        self.position = 0
        self.keys: mx.array | None = None
        self.values: mx.array | None = None

    def update(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Appends keys and values, (batch, heads, positions, size), and returns those that are kept."""
        self.position += keys.shape[2]
        if self.keys is not None and self.values is not None:
            keys = mx.concatenate([self.keys, keys], axis=2)
            values = mx.concatenate([self.values, values], axis=2)
        self.keys, self.values = keys[:, :, -CONTEXT:], values[:, :, -CONTEXT:]
        return self.keys, self.values


class Attention(nn.Module):
    """Causal attention; rotations of queries and keys tell it distances (rotary encoding)."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(DIMS, 3 * DIMS, bias=False)
        self.rotate = nn.RoPE(DIMS // HEADS)
        self.out = nn.Linear(DIMS, DIMS, bias=False)

    def __call__(self, x: mx.array, cache: Cache | None) -> mx.array:
        batch, positions, _ = x.shape
        parts = self.project(x).reshape(batch, positions, 3 * HEADS, -1).swapaxes(1, 2)
        queries, keys, values = mx.split(parts, 3, axis=1)
        offset = cache.position if cache else 0
        queries, keys = self.rotate(queries, offset), self.rotate(keys, offset)
        if cache is not None:
            keys, values = cache.update(keys, values)
        y = mx.fast.scaled_dot_product_attention(
            queries,
            keys,
            values,
            scale=(DIMS // HEADS) ** -0.5,
            mask="causal" if positions > 1 else None,
        )
        joined: mx.array = self.out(y.swapaxes(1, 2).reshape(batch, positions, DIMS))
        return joined


class Block(nn.Module):
    """Attention and two linear layers, each behind a norm and added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.norm = nn.RMSNorm(DIMS), nn.RMSNorm(DIMS)
        self.attention = Attention()
        self.up = nn.Linear(DIMS, 4 * DIMS, bias=False)
        self.down = nn.Linear(4 * DIMS, DIMS, bias=False)
        # At first each block is the identity: deep models learn faster from there.
        self.attention.out.weight = mx.zeros((DIMS, DIMS))
        self.down.weight = mx.zeros((DIMS, 4 * DIMS))

    def __call__(self, x: mx.array, cache: Cache | None) -> mx.array:
        x = x + self.attention(self.attention_norm(x), cache)
        y: mx.array = x + self.down(nn.gelu_approx(self.up(self.norm(x))))
        return y


class Writer(nn.Module):
    """Characters, (batch, positions), to scores of the next one, (batch, positions, characters)."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, DIMS)
        self.blocks = [Block() for _ in range(LAYERS)]
        self.norm = nn.RMSNorm(DIMS)
        self.out = nn.Linear(DIMS, characters)

    def __call__(self, x: mx.array, caches: list[Cache] | None = None) -> mx.array:
        x = self.embedding(x)
        for i, block in enumerate(self.blocks):
            x = block(x, caches[i] if caches else None)
        scores: mx.array = self.out(self.norm(x))
        return scores


def loss(model: Writer, windows: mx.array) -> mx.array:
    """Mean cross-entropy of each character after those before it, in nats; windows are (n, CONTEXT + 1)."""
    each = nn.losses.cross_entropy(model(windows[:, :-1]), windows[:, 1:])
    return mx.mean(each)


# --- Training ---


def held_out_bits(model: Writer, text: np.ndarray) -> float:
    """Bits a character of a text that was not trained on, in windows side by side."""
    starts = np.arange(0, len(text) - CONTEXT, CONTEXT)[:, None]
    return float(loss(model, mx.array(text[starts + np.arange(CONTEXT + 1)])).item()) / math.log(2)


@dataclass(frozen=True)
class Curve:
    """How training went: at some shares of the time, bits a character of both parts."""

    steps: int
    seconds: float
    train: list[tuple[float, float]]
    held_out: list[tuple[float, float]]


def new_step(
    model: Writer, optimizer: optim.Optimizer, text: mx.array
) -> tuple[Callable[[], mx.array], list[object]]:
    """One step of training as a compiled function, and the state that it changes.

    All processes draw the same batch, of which each has the rows of its rank.
    """
    group = mx.distributed.init()
    rank, size = group.rank(), group.size()
    optimizer.init(model.trainable_parameters())
    state: list[object] = [model.state, optimizer.state, mx.random.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step() -> mx.array:
        starts = mx.random.randint(0, text.size - CONTEXT, (BATCH, 1))
        windows = text[starts[rank::size] + mx.arange(CONTEXT + 1)]
        value, grads = nn.value_and_grad(model, loss)(model, windows)
        optimizer.update(model, nn.average_gradients(grads))
        return mx.distributed.all_sum(value) / size

    return step, state


def train(model: Writer, corpus: Corpus, seconds: float, limit: int | None) -> Curve:
    """Trains for a number of seconds, or of steps if there is a limit.

    The learning rate is a function of the time that has passed, in thousandths of the whole, so that it ends where it
    should on any machine.
    """
    whole, unit = (limit, "steps") if limit else (seconds, "s")
    warm_up = optim.linear_schedule(0, RATE, 50)
    schedule = optim.join_schedules([warm_up, optim.cosine_decay(RATE, 950, RATE / 20)], [50])
    optimizer = optim.AdamW(RATE, betas=[0.9, 0.99], weight_decay=0.1)
    step, state = new_step(model, optimizer, mx.array(corpus.train))
    curve = Curve(0, 0, [], [(0.0, held_out_bits(model, corpus.held_out[: 16 * CONTEXT]))])
    recent: list[float] = []
    steps, passed = 0, 0.0
    started = time.perf_counter()
    layout = f"{{desc}} {{percentage:3.0f}}%|{{bar}}| {{n:.0f}}/{{total:.0f}} {unit}{{postfix}}"
    group = mx.distributed.init()
    with tqdm(total=whole, desc="training", bar_format=layout, disable=group.rank() > 0) as bar:
        while passed < 1:
            optimizer.learning_rate = schedule(mx.array(1000 * passed))
            value = step()
            mx.eval(value, state)
            recent.append(value.item() / math.log(2))
            steps += 1
            elapsed = time.perf_counter() - started
            if group.size() > 1:
                # By one clock, so that all processes end with the same step.
                elapsed = float(mx.distributed.all_max(mx.array(elapsed)).item())
            passed = (steps if limit else elapsed) / whole
            if passed * 60 >= len(curve.train) + 1:
                curve.train.append((passed, sum(recent) / len(recent)))
                recent.clear()
                if len(curve.train) % 6 == 0:
                    part = corpus.held_out[: 64 * CONTEXT]
                    curve.held_out.append((passed, held_out_bits(model, part)))
                bar.set_postfix_str(
                    f"{curve.train[-1][1]:.2f} bits a character, held out "
                    f"{curve.held_out[-1][1]:.2f}, {steps / elapsed:.0f} steps/s"
                )
            bar.update(min(passed, 1) * whole - bar.n)
    return Curve(steps, time.perf_counter() - started, curve.train, curve.held_out)


def write(model: Writer, beginning: np.ndarray, length: int, temperature: float) -> list[int]:
    """Continues a text until the end of a line; the numbers of all its characters.

    Keys and values of earlier characters are kept, so that each new one is computed alone.
    """
    caches = [Cache() for _ in model.blocks]
    numbers: list[int] = beginning.tolist()
    x = mx.array(beginning)[None]
    while len(numbers) < length:
        x = mx.random.categorical(model(x, caches)[:, -1] / temperature)[:, None]
        numbers.append(int(x.item()))
        if numbers[-1] == 0:  # the end of the line is the first of the characters
            break
    return numbers


def draw(curve: Curve, levels: list[tuple[str, float]], width: int = 60, height: int = 14) -> str:
    """The losses over time as a picture of characters, and some levels as lines."""
    values = [value for _, value in (*levels, *curve.train, *curve.held_out)]
    top, bottom = max(values), min(values)
    rows = [[" "] * width for _ in range(height)]

    def row(value: float) -> int:
        return round((top - value) / (top - bottom or 1) * (height - 1))

    for _, value in levels:
        rows[row(value)] = ["-"] * width
    for points, mark in ((curve.train, "."), (curve.held_out, "o")):
        for at, value in points:
            rows[row(value)][min(int(at * width), width - 1)] = mark
    names = {row(value): f"  {name}" for name, value in levels}
    lines = []
    for i, line in enumerate(rows):
        value = top - (top - bottom) * i / (height - 1)
        lines.append(f"{value:6.2f} |{''.join(line)}|{names.get(i, '')}")
    lines.append(f"       +{'-' * width}+")
    lines.append(f"        0 s{f'{curve.seconds:.0f} s':>{width - 3}}")
    return "\n".join([" bits a character:  . trained on  o held out", *lines])


def main() -> int:
    """Runs it all; 0 where the model predicts better than frequencies do."""
    parser = argparse.ArgumentParser(description="Train a language model on a book.")
    parser.add_argument("--seconds", type=float, default=45, help="how long to train")
    parser.add_argument("--steps", type=int, metavar="N", help="train N steps instead")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="where it runs")
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="for the weights")
    arguments = parser.parse_args()
    if arguments.seconds <= 0 or (arguments.steps is not None and arguments.steps <= 0):
        parser.error("--seconds or --steps is not positive. Pass more than 0.")
    if arguments.device == "gpu" and not mx.is_available(mx.gpu):
        print("There is no GPU here; `python -m ultramarine backends` says why.", file=sys.stderr)
        return 1
    mx.set_default_device(mx.gpu if arguments.device == "gpu" else mx.cpu)

    group = mx.distributed.init()
    if BATCH % group.size():
        parser.error(f"a batch has {BATCH} rows, which {group.size()} processes cannot share.")
    mx.random.seed(7)
    corpus = read_text()
    model = Writer(len(corpus.characters))
    if group.rank() > 0:
        train(model, corpus, arguments.seconds, arguments.steps)
        return 0
    count = sum(p.size for _, p in tree_flatten(model.parameters()))
    print(f"{len(corpus.train):,} characters to train on, {len(corpus.held_out):,} held out")
    print(f"A transformer of {LAYERS} layers, {count:,} parameters")
    curve = train(model, corpus, arguments.seconds, arguments.steps)
    uniform, unigram = corpus.guesses()
    bits = held_out_bits(model, corpus.held_out)
    curve.held_out.append((1.0, bits))
    print(draw(curve, [("all alike", uniform), ("by frequency", unigram)]))
    print(
        f"{curve.steps} steps of {BATCH * CONTEXT} characters in {curve.seconds:.1f} s, "
        f"{curve.steps / curve.seconds:.1f} steps a second."
    )
    print(
        f"Held-out loss: {bits:.3f} bits a character. Guessing by frequency takes {unigram:.3f}, "
        f"all characters alike {uniform:.3f}."
    )

    print("\nIt writes:")
    started, written = time.perf_counter(), 0
    for beginning in BEGINNINGS:
        numbers = write(model, corpus.encode(beginning), 300, 0.6)
        written += len(numbers) - len(beginning)
        print(f"  {corpus.decode(numbers).strip()}")
    seconds = time.perf_counter() - started
    print(f"{written} characters, {written / seconds:.0f} a second.\n")

    arguments.out.mkdir(parents=True, exist_ok=True)
    weights = arguments.out / "text.safetensors"
    model.save_weights(str(weights))
    print(f"Weights: {weights}")
    if bits >= unigram:
        print("That is no better than frequencies of characters.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
