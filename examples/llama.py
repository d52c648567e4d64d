"""Llama, as generate.py and lora.py use it: the model, its weights, and the generation of tokens.

The model's modules are named as in Hugging Face's files, so that weights load by their names.  Meta describes it
in https://arxiv.org/abs/2407.21783; SmolLM2, TinyLlama and others have the same architecture.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ultramarine as mx
import ultramarine.nn as nn

PREFILL = 512
"""Tokens of a prompt that are computed at a time: bounds the memory that scores take."""


class ModelError(ValueError):
    """A folder that contains no model that this program can run."""


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        ModelError: The file is missing or is no JSON object.
    """
    if not path.is_file():
        raise ModelError(f"{path} is missing. Pass a folder in Hugging Face's layout.")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{path} is no JSON: {error}.") from error
    if not isinstance(found, dict):
        raise ModelError(f"{path} contains a {type(found).__name__}, not an object.")
    return found


# --- Configuration ---


@dataclass(frozen=True)
class Config:
    """Sizes of a model, from `config.json`."""

    vocabulary: int
    dims: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dims: int
    eps: float
    tied: bool
    """Whether the embedding is the output layer, too."""
    attention_bias: bool
    mlp_bias: bool
    rope: dict[str, Any]
    """`rope_theta`, `rope_type`, and the parameters of that type."""

    @staticmethod
    def read(folder: Path) -> Config:
        """The configuration of a folder.

        Raises:
            ModelError: `config.json` is missing, lacks a key, or describes another architecture.
        """
        path = folder / "config.json"
        found = read_json(path)
        if found.get("model_type") != "llama":
            raise ModelError(
                f"{path} describes a model of type {found.get('model_type')!r}. "
                "Pass a folder whose model_type is 'llama'."
            )
        if found.get("hidden_act", "silu") != "silu":
            raise ModelError(f"{path}: hidden_act is {found['hidden_act']!r}; only 'silu' is here.")
        try:
            heads, dims = int(found["num_attention_heads"]), int(found["hidden_size"])
            # Transformers 5 writes all of rope's parameters in one object.
            rope = found.get("rope_parameters") or found.get("rope_scaling") or {}
            rope = {"rope_theta": found.get("rope_theta", 10000.0)} | rope
            rope["rope_type"] = rope.get("rope_type", rope.get("type", "default"))
            return Config(
                vocabulary=int(found["vocab_size"]),
                dims=dims,
                hidden=int(found["intermediate_size"]),
                layers=int(found["num_hidden_layers"]),
                heads=heads,
                kv_heads=int(found.get("num_key_value_heads") or heads),
                head_dims=int(found.get("head_dim") or dims // heads),
                eps=float(found.get("rms_norm_eps", 1e-6)),
                tied=bool(found.get("tie_word_embeddings", False)),
                attention_bias=bool(found.get("attention_bias", False)),
                mlp_bias=bool(found.get("mlp_bias", False)),
                rope=rope,
            )
        except KeyError as error:
            raise ModelError(f"{path} lacks the key {error}.") from error


def wavelengths(config: Config) -> mx.array:
    """Positions in which each pair of a head's elements turns by the angle 1; (head_dims / 2,).

    The type "llama3" stretches slow turns by a factor, leaves fast ones as they are, and goes smoothly from one to
    the other between two limits (Llama 3.1, section 3.4 and its published code).

    Raises:
        ModelError: The type is not supported.
    """
    rope = config.rope
    half = config.head_dims // 2
    plain: mx.array = float(rope["rope_theta"]) ** (mx.arange(half, dtype=mx.float32) / half)
    try:
        if rope["rope_type"] == "default":
            return plain
        if rope["rope_type"] == "linear":
            return plain * float(rope["factor"])
        if rope["rope_type"] == "llama3":
            low, high = rope["low_freq_factor"], rope["high_freq_factor"]
            turns = rope["original_max_position_embeddings"] / (2 * math.pi * plain)
            kept = mx.clip((turns - low) / (high - low), 0, 1)
            return 1 / (kept / plain + (1 - kept) / (plain * float(rope["factor"])))
    except KeyError as error:
        raise ModelError(f"config.json: rope's parameters lack {error}.") from error
    raise ModelError(
        f"config.json: rope of type {rope['rope_type']!r} is not supported. "
        "There are default, linear and llama3."
    )


# --- Model ---


class Cache:
    """Keys and values of one layer at all positions so far.

    Memory grows in steps, so that most updates write in place.
    """

    STEP = 256

    def __init__(self) -> None:
        self.length = 0
        self.keys: mx.array | None = None
        self.values: mx.array | None = None

    def update(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Appends keys and values, (batch, heads, positions, size); all of them so far."""
        start, self.length = self.length, self.length + keys.shape[2]
        self.keys = self.written(self.keys, keys, start)
        self.values = self.written(self.values, values, start)
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def written(self, store: mx.array | None, new: mx.array, start: int) -> mx.array:
        """The store with new positions from `start` on, larger where it has to be."""
        held = 0 if store is None else store.shape[2]
        if self.length > held:
            more = -(-(self.length - held) // self.STEP) * self.STEP
            room = mx.zeros((*new.shape[:2], more, new.shape[3]), new.dtype)
            store = room if store is None else mx.concatenate([store, room], axis=2)
        assert store is not None
        store[:, :, start : self.length] = new
        return store


class Attention(nn.Module):
    """Causal attention in which several heads of queries share one of keys and values."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        dims, head, bias = config.dims, config.head_dims, config.attention_bias
        self.heads, self.kv_heads = config.heads, config.kv_heads
        self.q_proj = nn.Linear(dims, config.heads * head, bias=bias)
        self.k_proj = nn.Linear(dims, config.kv_heads * head, bias=bias)
        self.v_proj = nn.Linear(dims, config.kv_heads * head, bias=bias)
        self.o_proj = nn.Linear(config.heads * head, dims, bias=bias)
        self.head_dims = head
        # A name with an underscore: no parameter.
        self._wavelengths = wavelengths(config)

    def __call__(self, x: mx.array, cache: Cache | None) -> mx.array:
        batch, positions, _ = x.shape

        def split(y: mx.array, heads: int) -> mx.array:
            return y.reshape(batch, positions, heads, self.head_dims).swapaxes(1, 2)

        def turn(y: mx.array) -> mx.array:
            return mx.fast.rope(
                y,
                self.head_dims,
                traditional=False,
                base=None,
                scale=1.0,
                offset=cache.length if cache else 0,
                freqs=self._wavelengths,
            )

        queries = turn(split(self.q_proj(x), self.heads))
        keys = turn(split(self.k_proj(x), self.kv_heads))
        values = split(self.v_proj(x), self.kv_heads)
        if cache is not None:
            keys, values = cache.update(keys, values)
        y = mx.fast.scaled_dot_product_attention(
            queries,
            keys,
            values,
            scale=self.head_dims**-0.5,
            mask="causal" if positions > 1 else None,
        )
        joined: mx.array = self.o_proj(y.swapaxes(1, 2).reshape(batch, positions, -1))
        return joined


class MLP(nn.Module):
    """Two projections, one of which gates the other, and one back (SwiGLU)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        dims, hidden, bias = config.dims, config.hidden, config.mlp_bias
        self.gate_proj = nn.Linear(dims, hidden, bias=bias)
        self.up_proj = nn.Linear(dims, hidden, bias=bias)
        self.down_proj = nn.Linear(hidden, dims, bias=bias)

    def __call__(self, x: mx.array) -> mx.array:
        y: mx.array = self.down_proj(nn.silu(self.gate_proj(x)) * self.up_proj(x))
        return y


class Layer(nn.Module):
    """Attention and MLP, each behind a norm and added to its input."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = MLP(config)
        self.input_layernorm = nn.RMSNorm(config.dims, eps=config.eps)
        self.post_attention_layernorm = nn.RMSNorm(config.dims, eps=config.eps)

    def __call__(self, x: mx.array, cache: Cache | None) -> mx.array:
        x = x + self.self_attn(self.input_layernorm(x), cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """From tokens to the last layer's output."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocabulary, config.dims)
        self.layers = [Layer(config) for _ in range(config.layers)]
        self.norm = nn.RMSNorm(config.dims, eps=config.eps)

    def __call__(self, tokens: mx.array, caches: list[Cache] | None) -> mx.array:
        x = self.embed_tokens(tokens)
        for i, layer in enumerate(self.layers):
            x = layer(x, caches[i] if caches else None)
        y: mx.array = self.norm(x)
        return y


class Llama(nn.Module):
    """The language model: tokens, (batch, positions), to logits, (batch, positions, vocabulary)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.model = Decoder(config)
        if not config.tied:
            self.lm_head = nn.Linear(config.dims, config.vocabulary, bias=False)

    def new_caches(self) -> list[Cache]:
        """Empty caches, one a layer."""
        return [Cache() for _ in self.model.layers]

    def logits(self, x: mx.array) -> mx.array:
        """Scores of all tokens from the decoder's output."""
        head = self.lm_head if "lm_head" in self else self.model.embed_tokens.as_linear
        y: mx.array = head(x)
        return y

    def __call__(self, tokens: mx.array, caches: list[Cache] | None = None) -> mx.array:
        return self.logits(self.model(tokens, caches))

    def last(self, tokens: mx.array, caches: list[Cache]) -> mx.array:
        """Logits at the last position alone, (batch, vocabulary)."""
        return self.logits(self.model(tokens, caches)[:, -1])


# --- Weights ---


def weight_files(folder: Path) -> list[Path]:
    """The files with the weights: those that the index names, or all there are.

    Raises:
        ModelError: There are none, or one is missing.
    """
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        names = sorted(set(read_json(index).get("weight_map", {}).values()))
        files = [folder / name for name in names]
    else:
        files = sorted(folder.glob("*.safetensors"))
    missing = [file.name for file in files if not file.is_file()]
    if missing or not files:
        what = f"lacks {', '.join(missing)}" if missing else "has no *.safetensors"
        raise ModelError(f"{folder} {what}. Download the folder again, or convert its weights.")
    return files


def load(folder: Path, bits: int | None = None) -> Llama:
    """Reads a model.

    Args:
        folder (Path): A folder in Hugging Face's layout, or one that `mlx_lm convert -q` quantised.
        bits (int, optional): Quantises the weights to 4 or 8 bits, in groups of 64.

    Returns:
        Llama: The model, in evaluation mode, with the dtype of the files.

    Raises:
        ModelError: A file is missing, or weights and configuration do not fit.
    """
    if not folder.is_dir():
        raise ModelError(f"{folder} is no folder. Pass one with config.json and *.safetensors.")
    config = Config.read(folder)
    model = Llama(config)
    weights: dict[str, mx.array] = {}
    try:
        for file in weight_files(folder):
            weights |= mx.load(str(file))
    except (RuntimeError, ValueError) as error:
        raise ModelError(str(error)) from error
    for name in [name for name in weights if name.endswith("rotary_emb.inv_freq")]:
        del weights[name]
    if config.tied:
        weights.pop("lm_head.weight", None)
    held = read_json(folder / "config.json").get("quantization")
    if held:
        nn.quantize(
            model,
            held["group_size"],
            held["bits"],
            mode=held.get("mode", "affine"),
            class_predicate=lambda path, _: f"{path}.scales" in weights,
        )
    try:
        model.load_weights(list(weights.items()))
    except ValueError as error:
        raise ModelError(f"{folder}: weights and config.json do not fit. {error}") from error
    if bits and not held:
        quantize(model, bits)
    model.eval()
    mx.eval(model.parameters())
    return model


def quantize(model: nn.Module, bits: int, group: int = 64) -> None:
    """Quantises layers whose rows are whole groups; others stay as they are."""

    def fits(_: str, layer: nn.Module) -> bool:
        return hasattr(layer, "to_quantized") and layer.weight.shape[-1] % group == 0

    nn.quantize(model, group, bits, class_predicate=fits)


# --- Generation ---


def sample(logits: mx.array, temperature: float) -> mx.array:
    """The next tokens: the most probable ones, or drawn at a temperature."""
    if temperature == 0:
        return mx.argmax(logits, axis=-1)
    return mx.random.categorical(logits.astype(mx.float32) / temperature)


def generate(
    model: Llama, prompt: list[int], max_tokens: int, temperature: float = 0.0
) -> Iterator[int]:
    """Tokens that follow a prompt.

    While a token is computed, Python prepares the graph of the next: `async_eval` starts work without waiting.

    Args:
        model (Llama): The model.
        prompt (list): Tokens, one at least.
        max_tokens (int): Number of tokens.
        temperature (float): 0 takes the most probable token; 1 samples as the model says.

    Yields:
        int: The next token.
    """
    if max_tokens < 1:
        return
    caches = model.new_caches()
    tokens = mx.array(prompt)[None]
    while tokens.shape[1] > PREFILL:
        model.model(tokens[:, :PREFILL], caches)
        mx.eval([[cache.keys, cache.values] for cache in caches])
        tokens = tokens[:, PREFILL:]
    token = sample(model.last(tokens, caches), temperature)
    mx.async_eval(token)
    for _ in range(max_tokens - 1):
        following = sample(model.last(token[:, None], caches), temperature)
        mx.async_eval(following)
        yield int(token.item())
        token = following
    yield int(token.item())
