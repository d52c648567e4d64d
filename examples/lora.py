"""Teach a language model a manner of speaking, by low-rank adapters (LoRA).

    python examples/lora.py --model DIR [--data FILE] [--iterations N] [--out FILE]

DIR is a folder as generate.py takes it.  The weights stay as they are; what is trained, and saved, is a product of two
thin matrices beside some of them (Hu et al., https://arxiv.org/abs/2106.09685).  The data that comes along
has 36 questions with a pirate's answers.  `generate.py --adapter FILE` uses the result.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import llama
import numpy as np
from llama import ModelError
from tokenizer import Tokenizer

import ultramarine as mx
import ultramarine.nn as nn
import ultramarine.optimizers as optim
from ultramarine.utils import tree_flatten

HERE = Path(__file__).resolve().parent
QUESTIONS = ("What is the capital of France?", "What is the sun?")
"""Asked before and after; not among the data."""
PLACES = ("self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj")
"""The linear layers that get adapters."""


# --- Adapters ---


class Adapter(nn.Module):
    """A frozen linear layer, and `scale * (x @ a) @ b` beside it, which is zero at first.

    Args:
        linear (nn.Linear or nn.QuantizedLinear): The layer.
        rank (int): Columns of `a`, and rows of `b`.
        scale (float): Weight of the product.
    """

    def __init__(self, linear: nn.Module, rank: int, scale: float) -> None:
        super().__init__()
        outputs, inputs = linear.weight.shape
        if isinstance(linear, nn.QuantizedLinear):
            inputs = inputs * 32 // linear.bits
        bound = inputs**-0.5
        self.linear = linear
        self.scale = scale
        self.lora_a = mx.random.uniform(-bound, bound, (inputs, rank))
        self.lora_b = mx.zeros((rank, outputs))

    def __call__(self, x: mx.array) -> mx.array:
        extra = (x @ self.lora_a) @ self.lora_b
        y: mx.array = self.linear(x) + (self.scale * extra).astype(x.dtype)
        return y


def adapt(model: llama.Llama, layers: int, rank: int, scale: float) -> None:
    """Freezes a model, and puts adapters into its last layers; they alone are trainable then."""
    model.freeze()
    for layer in model.model.layers[-layers:] if layers else []:
        for place in PLACES:
            block, name = place.split(".")
            setattr(layer[block], name, Adapter(layer[block][name], rank, scale))


def save(model: llama.Llama, path: Path, layers: int, rank: int, scale: float) -> None:
    """Writes the adapters, with what `load` needs to know of them."""
    about = {"layers": str(layers), "rank": str(rank), "scale": str(scale)}
    path.parent.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(path), dict(tree_flatten(model.trainable_parameters())), about)


def load(model: llama.Llama, path: Path) -> None:
    """Puts adapters of a file into a model.

    Raises:
        ModelError: The file is no file of adapters, or they are another model's.
    """
    try:
        weights, about = mx.load(str(path), return_metadata=True)
        adapt(model, int(about["layers"]), int(about["rank"]), float(about["scale"]))
    except (KeyError, OSError, RuntimeError, ValueError) as error:
        raise ModelError(f"{path} is no file that lora.py wrote: {error}") from error
    held = {name: value.shape for name, value in tree_flatten(model.trainable_parameters())}
    if held != {name: value.shape for name, value in weights.items()}:
        raise ModelError(f"The adapters in {path} are another model's. Train them on this one.")
    model.load_weights(list(weights.items()), strict=False)


# --- Data ---


def read(path: Path) -> list[list[dict[str, str]]]:
    """Conversations, one a line: `{"messages": [{"role": ..., "content": ...}, ...]}`.

    Raises:
        ModelError: The file is missing, or a line is something else.
    """
    try:
        found = [json.loads(line)["messages"] for line in path.read_text().splitlines() if line]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} cannot be read: {error!r}.") from error
    if not found:
        raise ModelError(f"{path} has no lines. Pass a file with conversations.")
    return found


def tabulate(pairs: list[tuple[list[int], list[int]]]) -> tuple[mx.array, mx.array]:
    """Prompts with their answers as a table.

    Args:
        pairs (list): Tokens of each prompt, and those of its answer.

    Returns:
        tuple: Tokens, (pairs, longest), filled with zeros, and a mask of the same shape that is 1 where
            a token is an answer's.
    """
    width = max(len(prompt) + len(answer) for prompt, answer in pairs)
    tokens = np.zeros((len(pairs), width), np.int32)
    mask = np.zeros((len(pairs), width), np.float32)
    for i, (prompt, answer) in enumerate(pairs):
        tokens[i, : len(prompt) + len(answer)] = prompt + answer
        mask[i, len(prompt) : len(prompt) + len(answer)] = 1
    return mx.array(tokens), mx.array(mask)


def tokenize(
    tokenizer: Tokenizer, conversations: list[list[dict[str, str]]]
) -> list[tuple[list[int], list[int]]]:
    """Tokens of all but each conversation's last message, and those of the last."""
    pairs = []
    for messages in conversations:
        prompt = tokenizer.conversation(messages[:-1])
        pairs.append((prompt, tokenizer.conversation(messages, answer_next=False)[len(prompt) :]))
    return pairs


# --- Training ---


def loss(model: llama.Llama, tokens: mx.array, mask: mx.array) -> mx.array:
    """Mean cross-entropy of the answers' tokens."""
    each = nn.losses.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:])
    return mx.sum(each * mask[:, 1:]) / mx.sum(mask[:, 1:])


def train(
    model: llama.Llama,
    tokens: mx.array,
    mask: mx.array,
    iterations: int,
    batch: int,
    rate: float,
    report: Callable[[int, float], None],
) -> None:
    """Trains the trainable parameters with Adam.

    Args:
        model (Llama): The model, after `adapt`.
        tokens (array): Conversations, (n, positions).
        mask (array): 1 where a token counts, of the same shape.
        iterations (int): Number of steps.
        batch (int): Conversations of a step.
        rate (float): Learning rate at first; it falls to a tenth.
        report (Callable): Is called with each iteration's number, from 1, and its loss.
    """
    optimizer = optim.Adam(optim.cosine_decay(rate, iterations, rate / 10))
    optimizer.init(model.trainable_parameters())
    state = [model.state, optimizer.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step(tokens: mx.array, mask: mx.array) -> Any:
        value, grads = nn.value_and_grad(model, loss)(model, tokens, mask)
        optimizer.update(model, grads)
        return value

    draws = np.random.default_rng(0)
    order: list[int] = []
    for i in range(1, iterations + 1):
        while len(order) < batch:
            order += draws.permutation(tokens.shape[0]).tolist()
        rows, order = mx.array(order[:batch]), order[batch:]
        value = step(tokens[rows], mask[rows])
        mx.eval(value, state)
        report(i, value.item())


def answer(model: llama.Llama, tokenizer: Tokenizer, question: str, limit: int = 40) -> str:
    """The most probable answer."""
    prompt = tokenizer.conversation([{"role": "user", "content": question}])
    tokens = []
    for token in llama.generate(model, prompt, limit):
        if token in tokenizer.stops:
            break
        tokens.append(token)
    return tokenizer.decode(tokens)


def main() -> int:
    """Trains adapters and shows what they change; 0 where the loss has fallen."""
    parser = argparse.ArgumentParser(description="Train adapters of a model like Llama.")
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="its folder")
    parser.add_argument("--data", type=Path, default=HERE / "data" / "pirate.jsonl", metavar="FILE")
    parser.add_argument("--out", type=Path, default=HERE.parent / "out" / "pirate.safetensors")
    parser.add_argument("--iterations", type=int, default=45, metavar="N")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rate", type=float, default=1e-3, help="learning rate")
    parser.add_argument("--layers", type=int, default=16, help="how many of the last are adapted")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--scale", type=float, default=2.0, help="weight of the adapters")
    parser.add_argument("--bits", type=int, choices=(4, 8), help="quantise the frozen weights")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="where it runs")
    arguments = parser.parse_args()
    if arguments.device == "gpu" and not mx.is_available(mx.gpu):
        print("There is no GPU here; `python -m ultramarine backends` says why.", file=sys.stderr)
        return 1
    mx.set_default_device(mx.gpu if arguments.device == "gpu" else mx.cpu)
    mx.random.seed(0)
    try:
        llama.Config.read(arguments.model)
        tokenizer = Tokenizer(arguments.model)
        tokens, mask = tabulate(tokenize(tokenizer, read(arguments.data)))
        model = llama.load(arguments.model, arguments.bits)
    except ModelError as error:
        print(f"lora.py: {error}", file=sys.stderr)
        return 1

    before = [answer(model, tokenizer, question) for question in QUESTIONS]
    shape = arguments.layers, arguments.rank, arguments.scale
    adapt(model, *shape)
    count = sum(p.size for _, p in tree_flatten(model.trainable_parameters()))
    print(f"{tokens.shape[0]} conversations, {count:,} parameters to train")
    losses: list[float] = []

    def report(iteration: int, value: float) -> None:
        losses.append(value)
        print(f"iteration {iteration:3}: loss {value:.3f}", flush=True)

    started = time.perf_counter()
    train(model, tokens, mask, arguments.iterations, arguments.batch, arguments.rate, report)
    seconds = time.perf_counter() - started
    print(f"Trained in {seconds:.1f} s, {seconds / arguments.iterations:.2f} s an iteration")
    save(model, arguments.out, *shape)

    for question, old in zip(QUESTIONS, before):
        print(f"\n{question}\n  before: {old}\n  after:  {answer(model, tokenizer, question)}")
    print(f"\nAdapters: {arguments.out}")
    if not losses[-1] < losses[0]:
        print("The loss has not fallen.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
