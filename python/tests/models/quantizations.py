"""Converts a model in each mode of quantisation, and generates from the results. Run with MLX's names; prints JSON.

    python -m ultramarine.as_mlx quantizations.py FOLDER

writes the folders to the working directory, named by their modes.
"""

from __future__ import annotations

import json
import sys

from mlx_lm import generate, load
from mlx_lm.convert import convert

MODES = [("affine", 8), ("mxfp4", 4), ("nvfp4", 4), ("mxfp8", 8)]
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


def main(folder: str) -> dict[str, str]:
    found = {}
    for mode, bits in MODES:
        name = f"{mode}-{bits}"
        convert(folder, name, quantize=True, q_bits=bits, q_mode=mode)
        model, tokenizer = load(name)
        prompt = tokenizer.apply_chat_template(QUESTION, add_generation_prompt=True)
        found[name] = generate(model, tokenizer, prompt, max_tokens=10)
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
