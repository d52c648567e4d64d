"""Tokens a second of transformers (torch): a prompt, and a generation after it. Prints one JSON line.

python -m bench.models.with_transformers DIR --prompt 2048 --generation 128 [--device cuda] [--dtype bfloat16] [--compile]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import AutoModelForCausalLM, StaticCache


def seconds(f: Callable[[], Any], device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    f()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


class Program:
    """A model with a cache of fixed size, whose decoding step may be compiled."""

    def __init__(self, given: argparse.Namespace) -> None:
        dtype = getattr(torch, given.dtype)
        self.model = AutoModelForCausalLM.from_pretrained(given.folder, dtype=dtype)
        self.model = self.model.to(given.device).eval()
        self.room, self.device, self.count = (
            given.prompt + given.generation,
            given.device,
            given.generation,
        )
        generator = torch.Generator().manual_seed(0)
        words = self.model.config.vocab_size
        self.prompt = torch.randint(0, words, (1, given.prompt), generator=generator)
        self.prompt = self.prompt.to(given.device)
        self.step: Callable[..., Any] = self.decode
        if given.compile:
            self.step = torch.compile(self.decode, mode="reduce-overhead", fullgraph=True)

    def decode(self, token: torch.Tensor, position: torch.Tensor, cache: Any) -> torch.Tensor:
        out = self.model(
            token,
            position_ids=position[None],
            cache_position=position,
            past_key_values=cache,
            use_cache=True,
        )
        return out.logits[:, -1].argmax(-1, keepdim=True)

    def run(self) -> tuple[float, float]:
        """Tokens a second of the prompt and of the generation."""
        cache = StaticCache(config=self.model.config, max_cache_len=self.room)
        token = None

        def prompt() -> None:
            nonlocal token
            out = self.model(
                self.prompt,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
                cache_position=torch.arange(self.prompt.shape[1], device=self.device),
            )
            token = out.logits[:, -1].argmax(-1, keepdim=True)
            token.tolist()

        def generation() -> None:
            nonlocal token
            for i in range(self.count - 1):
                at = torch.tensor([self.prompt.shape[1] + i], device=self.device)
                token = self.step(token, at, cache).clone()
                token.tolist()

        with torch.inference_mode():
            first = seconds(prompt, self.device)
            rest = seconds(generation, self.device)
        return self.prompt.shape[1] / first, (self.count - 1) / rest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generation", type=int, default=128)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--trials", type=int, default=3)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    program = Program(given)
    program.run()
    program.run()
    best = [max(all) for all in zip(*(program.run() for _ in range(given.trials)))]
    print(json.dumps({"prompt": best[0], "generation": best[1]}))


if __name__ == "__main__":
    main()
