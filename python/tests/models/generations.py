"""Programs' interface in Python: the same greedy text in many ways. Run with MLX's names; prints JSON.

    python -m ultramarine.as_mlx generations.py FOLDER QUANTIZED TOKENS LOGITS

reads the numbers of some text's tokens from the file TOKENS and writes their logits to LOGITS.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm import batch_generate, load, stream_generate
from mlx_lm.models.cache import (
    load_prompt_cache,
    make_prompt_cache,
    save_prompt_cache,
    trim_prompt_cache,
)

QUESTIONS = [
    "What is the capital of France?",
    "Write one sentence about the sea.",
    "Name three colours, one a line.",
]
TOKENS = 16


def main(folder: str, quantized: str, tokens: str, logits: str) -> dict[str, Any]:
    model, tokenizer = load(folder)
    draft, _ = load(quantized)
    numbers = mx.array(np.load(tokens))
    np.save(logits, np.array(model(numbers[None])[0]))

    prompts = [
        tokenizer.apply_chat_template([{"role": "user", "content": q}], add_generation_prompt=True)
        for q in QUESTIONS
    ]
    prompt = prompts[1]

    def answer(prompt: list[int] = prompt, **options: Any) -> list[int]:
        made = stream_generate(model, tokenizer, prompt, max_tokens=TOKENS, **options)
        return [r.token for r in made if r.token not in tokenizer.eos_token_ids]

    def whole() -> list[int]:
        """Without any cache: all tokens again for each new one."""
        known = list(prompt)
        for _ in range(TOKENS):
            best: Any = mx.argmax(model(mx.array(known)[None])[0, -1]).item()
            known.append(best)
        return known[len(prompt) :]

    def from_file() -> list[int]:
        """The first half of the prompt by way of a file."""
        cache = make_prompt_cache(model)
        half = len(prompt) // 2
        model(mx.array(prompt[:half])[None], cache=cache)
        save_prompt_cache("half.safetensors", cache, {"from": "test"})
        cache, metadata = load_prompt_cache("half.safetensors", return_metadata=True)
        assert metadata == {"from": "test"} and cache[0].offset == half
        return answer(prompt[half:], prompt_cache=cache)

    def trimmed() -> list[int]:
        """With a cache that another continuation has been cut from."""
        cache = make_prompt_cache(model)
        model(mx.array([*prompt[:20], *prompts[2]])[None], cache=cache)
        assert trim_prompt_cache(cache, len(prompts[2])) == len(prompts[2])
        return answer(prompt[20:], prompt_cache=cache)

    ways: dict[str, Callable[[], list[int]]] = {
        "whole": whole,
        "small steps of the prompt": lambda: answer(prefill_step_size=5),
        "cache in a file": from_file,
        "cache trimmed": trimmed,
        "cache of 8 bits": lambda: answer(kv_bits=8, kv_group_size=32),
        "cache that rotates": lambda: answer(max_kv_size=32),
        "with a draft": lambda: answer(draft_model=draft, num_draft_tokens=3),
    }
    batch = batch_generate(model, tokenizer, prompts, max_tokens=TOKENS)
    singles = [answer(p) for p in prompts]
    return {
        "prompt": prompt,
        "greedy": singles[1],
        "ways": {name: way() for name, way in ways.items()},
        "batch": batch.texts,
        "singles": [tokenizer.decode(tokens) for tokens in singles],
    }


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
