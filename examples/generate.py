"""Generate text with a language model of Llama's architecture.

    python examples/generate.py --model DIR [--prompt TEXT] [--max-tokens N] [--temperature T] [--bits 4|8]

DIR is a folder in Hugging Face's layout: config.json, *.safetensors and tokenizer.json.  smollm2.py makes a small one.
Beside Ultramarine, the package tokenizers is needed, and jinja2 for models that chat.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import llama
from llama import ModelError
from tokenizer import Tokenizer

import ultramarine as mx


def stream(
    model: llama.Llama, tokenizer: Tokenizer, prompt: list[int], limit: int, temperature: float
) -> tuple[int, float, float]:
    """Prints an answer as it comes; its tokens, and the seconds until the first and from there on."""
    piece = tokenizer.stream()
    started = time.perf_counter()
    first = ended = started
    count = 0
    for token in llama.generate(model, prompt, limit, temperature):
        ended = time.perf_counter()
        first = ended if count == 0 else first
        count += 1
        if token in tokenizer.stops:
            break
        print(piece(token), end="", flush=True)
    print()
    return count, first - started, ended - first


def main() -> int:
    """Answers one prompt; 0 where that works."""
    parser = argparse.ArgumentParser(description="Generate text with a model like Llama.")
    parser.add_argument("--model", type=Path, required=True, metavar="DIR", help="its folder")
    parser.add_argument("--prompt", default="What is the capital of France?", help="- reads it")
    parser.add_argument("--max-tokens", type=int, default=200, metavar="N")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T")
    parser.add_argument("--seed", type=int, default=0, help="of the draws at a temperature")
    parser.add_argument("--bits", type=int, choices=(4, 8), help="quantise the weights")
    parser.add_argument("--adapter", type=Path, metavar="FILE", help="that lora.py wrote")
    parser.add_argument("--raw", action="store_true", help="continue the prompt, do not chat")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="where it runs")
    arguments = parser.parse_args()
    if arguments.temperature < 0:
        parser.error("--temperature is negative. Pass 0 or more.")
    if arguments.max_tokens < 1:
        parser.error("--max-tokens is less than 1. Pass 1 or more.")
    if arguments.device == "gpu" and not mx.is_available(mx.gpu):
        print("There is no GPU here; `python -m ultramarine backends` says why.", file=sys.stderr)
        return 1
    mx.set_default_device(mx.gpu if arguments.device == "gpu" else mx.cpu)
    mx.random.seed(arguments.seed)
    text = sys.stdin.read() if arguments.prompt == "-" else arguments.prompt
    try:
        llama.Config.read(arguments.model)
        tokenizer = Tokenizer(arguments.model)
        model = llama.load(arguments.model, arguments.bits)
        if arguments.adapter:
            import lora

            lora.load(model, arguments.adapter)
        if arguments.raw or tokenizer.template is None:
            prompt = tokenizer.encode(text)
        else:
            prompt = tokenizer.conversation([{"role": "user", "content": text}])
        if not prompt:
            raise ModelError("The prompt has no tokens. Pass a text.")
        count, before, after = stream(
            model, tokenizer, prompt, arguments.max_tokens, arguments.temperature
        )
    except ModelError as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print()
        return 130
    rate = (count - 1) / after if count > 1 else 0.0
    print(
        f"Prompt: {len(prompt)} tokens, {len(prompt) / before:.1f} a second. "
        f"Generation: {count} tokens, {rate:.1f} a second.",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
