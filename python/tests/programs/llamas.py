"""Tiny models of Llama's architecture: folders with random weights, and what they compute, in float64 NumPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

Weights = dict[str, np.ndarray]

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
    "eos_token_id": 1,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
STOP = "<|end|>"
TEMPLATE = (
    "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)


def weights(config: dict[str, Any]) -> Weights:
    """Random weights by their names in Hugging Face's files."""
    rng = np.random.default_rng(21)
    dims, hidden = config["hidden_size"], config["intermediate_size"]
    head = config.get("head_dim", dims // config["num_attention_heads"])
    queries, keys = (config[f"num_{kind}_heads"] * head for kind in ("attention", "key_value"))
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], dims)}
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        shapes |= {
            f"{layer}.self_attn.q_proj.weight": (queries, dims),
            f"{layer}.self_attn.k_proj.weight": (keys, dims),
            f"{layer}.self_attn.v_proj.weight": (keys, dims),
            f"{layer}.self_attn.o_proj.weight": (dims, queries),
            f"{layer}.mlp.gate_proj.weight": (hidden, dims),
            f"{layer}.mlp.up_proj.weight": (hidden, dims),
            f"{layer}.mlp.down_proj.weight": (dims, hidden),
        }
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], dims)
    made = {name: rng.normal(0, shape[1] ** -0.5, shape) for name, shape in shapes.items()}
    norms = ["model.norm.weight"] + [
        f"model.layers.{i}.{kind}_layernorm.weight"
        for i in range(config["num_hidden_layers"])
        for kind in ("input", "post_attention")
    ]
    made |= {name: rng.uniform(0.5, 1.5, dims) for name in norms}
    return {name: value.astype(np.float32) for name, value in made.items()}


def frequencies(config: dict[str, Any]) -> np.ndarray:
    """Angles of each pair at position 1, one pair at a time."""
    half = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"]) // 2
    found = []
    for i in range(half):
        angle = config["rope_theta"] ** (-i / half)
        scaling = config.get("rope_scaling")
        if scaling:
            low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
            turns = scaling["original_max_position_embeddings"] * angle / (2 * np.pi)
            if turns < low:
                angle /= scaling["factor"]
            elif turns < high:
                kept = (turns - low) / (high - low)
                angle = (1 - kept) * angle / scaling["factor"] + kept * angle
        found.append(angle)
    return np.array(found)


def logits(config: dict[str, Any], found: Weights, tokens: list[int]) -> np.ndarray:
    """Scores after each token, (tokens, vocabulary), head by head."""
    w = {name: value.astype(np.float64) for name, value in found.items()}
    angles = np.arange(len(tokens))[:, None] * frequencies(config)
    half = angles.shape[1]
    hidden_from_past = np.triu(np.full((len(tokens), len(tokens)), -np.inf), 1)

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        size = np.sqrt((x**2).mean(-1, keepdims=True) + config["rms_norm_eps"])
        normed: np.ndarray = x / size * w[name]
        return normed

    def turn(x: np.ndarray) -> np.ndarray:
        a, b = x[:, :half], x[:, half:]
        cos, sin = np.cos(angles), np.sin(angles)
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=1)

    x = w["model.embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}"
        y = norm(x, f"{at}.input_layernorm.weight")
        q, k, v = (y @ w[f"{at}.self_attn.{n}_proj.weight"].T for n in "qkv")
        heads = []
        for h in range(config["num_attention_heads"]):
            g = h * config["num_key_value_heads"] // config["num_attention_heads"]
            qh, kh = (
                turn(q[:, 2 * half * h :][:, : 2 * half]),
                turn(k[:, 2 * half * g :][:, : 2 * half]),
            )
            shares = np.exp(qh @ kh.T / np.sqrt(2 * half) + hidden_from_past)
            heads.append(
                shares / shares.sum(1, keepdims=True) @ v[:, 2 * half * g :][:, : 2 * half]
            )
        x = x + np.concatenate(heads, axis=1) @ w[f"{at}.self_attn.o_proj.weight"].T
        y = norm(x, f"{at}.post_attention_layernorm.weight")
        gate = y @ w[f"{at}.mlp.gate_proj.weight"].T
        up = y @ w[f"{at}.mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[f"{at}.mlp.down_proj.weight"].T
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    scores: np.ndarray = norm(x, "model.norm.weight") @ head.T
    return scores


def write(folder: Path, config: dict[str, Any], found: Weights, shards: int = 1) -> Path:
    """A folder with a model, in one file or several with an index."""
    import ultramarine as mx

    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    arrays = {name: mx.array(value) for name, value in found.items()}
    if shards == 1:
        mx.save_safetensors(str(folder / "model.safetensors"), arrays)
        return folder
    index: dict[str, str] = {}
    for i in range(shards):
        name = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        part = {key: arrays[key] for key in sorted(arrays)[i::shards]}
        mx.save_safetensors(str(folder / name), part)
        index |= dict.fromkeys(part, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return folder


def write_tokenizer(folder: Path, library: Any) -> None:
    """A tokenizer of characters, 64 of them with the stop, and a chat template."""
    characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ?!.,:;-"
    tokens = ["<|unknown|>", STOP, *characters]
    assert len(tokens) <= CONFIG["vocab_size"]
    made = library.Tokenizer(
        library.models.BPE(
            vocab={token: i for i, token in enumerate(tokens)}, merges=[], unk_token=tokens[0]
        )
    )
    made.decoder = library.decoders.Fuse()
    made.add_special_tokens([STOP])
    made.save(str(folder / "tokenizer.json"))
    settings = {"eos_token": STOP, "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
