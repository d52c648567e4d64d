"""Folders of models in Hugging Face's layout, with random weights: for speed alone, which does not depend on their values.

python -m bench.models.folder DIR [--shape llama-1b] [--dtype bfloat16]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import ultramarine as mx

# The sizes of Llama-3.2-1B, and a model that any machine runs in a moment.
SHAPES: dict[str, dict[str, Any]] = {
    "llama-1b": {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "vocab_size": 128256,
    },
    "tiny": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 512,
    },
}
COMMON: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "mlp_bias": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
}


def weights(config: dict[str, Any], dtype: mx.Dtype) -> dict[str, mx.array]:
    """Random weights by Hugging Face's names, of a standard deviation that keeps values in range."""
    d, size = config["hidden_size"], config["head_dim"]
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    inner = config["intermediate_size"]
    matrices = {
        "self_attn.q_proj": (heads * size, d),
        "self_attn.k_proj": (groups * size, d),
        "self_attn.v_proj": (groups * size, d),
        "self_attn.o_proj": (d, heads * size),
        "mlp.gate_proj": (inner, d),
        "mlp.up_proj": (inner, d),
        "mlp.down_proj": (d, inner),
    }
    shapes = {"embed_tokens": (config["vocab_size"], d)}
    ones = ["norm"]
    for i in range(config["num_hidden_layers"]):
        shapes |= {f"layers.{i}.{name}": shape for name, shape in matrices.items()}
        ones += [f"layers.{i}.input_layernorm", f"layers.{i}.post_attention_layernorm"]
    made = {
        f"model.{name}.weight": (0.02 * mx.random.normal(shape)).astype(dtype)
        for name, shape in shapes.items()
    }
    return made | {f"model.{name}.weight": mx.ones((d,), dtype) for name in ones}


def tokenizer(words: int, folder: Path) -> None:
    """A tokenizer of as many made-up words."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({f"w{i}": i for i in range(words)}, unk_token="w2"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.save(str(folder / "tokenizer.json"))
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "w0", "eos_token": "w1"}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))


def make(folder: Path, shape: str, dtype: str) -> None:
    """Writes a model's folder."""
    config = COMMON | SHAPES[shape]
    folder.mkdir(parents=True, exist_ok=True)
    mx.random.seed(0)
    mx.save_safetensors(
        str(folder / "model.safetensors"), weights(config, getattr(mx, dtype)), {"format": "pt"}
    )
    (folder / "config.json").write_text(json.dumps(config | {"torch_dtype": dtype}, indent=1))
    tokenizer(config["vocab_size"], folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="llama-1b")
    parser.add_argument("--dtype", choices=["bfloat16", "float16", "float32"], default="bfloat16")
    given = parser.parse_args()
    make(given.folder, given.shape, given.dtype)


if __name__ == "__main__":
    main()
