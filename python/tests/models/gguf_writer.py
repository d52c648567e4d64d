"""Tiny GGUF files, and blocks of quantised numbers unpacked one number at a time."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

# Types of metadata values, by the type in Python. Floats are float32.
CODES = {bool: (7, "?"), int: (4, "I"), float: (6, "f")}
F32 = 0

# Bytes as the tokens of byte-level BPE show them: printable ones as they are, others from U+0100 on.
PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
LETTERS = {b: chr(b) for b in PRINTABLE}
LETTERS |= {b: chr(256 + i) for i, b in enumerate(set(range(256)) - set(PRINTABLE))}

# A word of five letters needs all of its merges.
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "1 2"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TOKENS = [*SPECIAL, *(LETTERS[b] for b in range(256)), *(m.replace(" ", "") for m in MERGES)]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
)

# Of the width, the inner width, heads, heads of keys.
WIDTH, INNER, HEADS, KEYS = 32, 64, 4, 2

METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "general.alignment": 64,
    "general.languages": ["en", "de"],
    "llama.block_count": 2,
    "llama.context_length": 128,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": INNER,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KEYS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 50000.0,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL)),
    "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.add_bos_token": False,
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.unknown_token_id": 0,
    "tokenizer.ggml.padding_token_id": 2,
    "tokenizer.chat_template": TEMPLATE,
}


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(content: Any) -> bytes:
    """A value of metadata behind its type."""
    if isinstance(content, str):
        return struct.pack("<I", 8) + string(content)
    if isinstance(content, list):
        items = [value(item) for item in content]
        kind = items[0][:4] if items else struct.pack("<I", 4)
        return (
            struct.pack("<I", 9)
            + kind
            + struct.pack("<Q", len(items))
            + b"".join(i[4:] for i in items)
        )
    code, letter = CODES[type(content)]
    return struct.pack(f"<I{letter}", code, content)


def write(
    path: Path,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, tuple[int, tuple[int, ...], bytes]],
    version: int = 3,
) -> int:
    """Writes a file; returns the number of bytes of its header.

    Args:
        path (Path): The file.
        metadata (Mapping): Values of metadata by key.
        tensors (Mapping): Of each name the number of its format, its shape with rows first, and its bytes.
        version (int): Version of the format.
    """
    header = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    header += b"".join(string(key) + value(content) for key, content in metadata.items())
    align = metadata.get("general.alignment", 32)
    data = b""
    for name, (code, shape, content) in tensors.items():
        sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        header += string(name) + sizes + struct.pack("<IQ", code, len(data))
        data += content + bytes(-len(content) % align)
    path.write_bytes(header + bytes(-len(header) % align) + data)
    return len(header)


def model(rng: np.random.Generator, tied: bool = True) -> dict[str, np.ndarray]:
    """Random tensors of the model that METADATA describes, float32, by their names in the file."""
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(TOKENS), WIDTH),
        "output_norm.weight": (WIDTH,),
    }
    if not tied:
        shapes["output.weight"] = (len(TOKENS), WIDTH)
    for i in range(METADATA["llama.block_count"]):
        shapes |= {
            f"blk.{i}.attn_norm.weight": (WIDTH,),
            f"blk.{i}.attn_q.weight": (WIDTH, WIDTH),
            f"blk.{i}.attn_k.weight": (WIDTH // HEADS * KEYS, WIDTH),
            f"blk.{i}.attn_v.weight": (WIDTH // HEADS * KEYS, WIDTH),
            f"blk.{i}.attn_output.weight": (WIDTH, WIDTH),
            f"blk.{i}.ffn_norm.weight": (WIDTH,),
            f"blk.{i}.ffn_gate.weight": (INNER, WIDTH),
            f"blk.{i}.ffn_up.weight": (INNER, WIDTH),
            f"blk.{i}.ffn_down.weight": (WIDTH, INNER),
        }
    return {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def plain(tensors: Mapping[str, np.ndarray]) -> dict[str, tuple[int, tuple[int, ...], bytes]]:
    """Tensors as `write` takes them, not quantised."""
    return {name: (F32, x.shape, x.astype("<f4").tobytes()) for name, x in tensors.items()}


def half(block: bytes, at: int) -> float:
    return float(struct.unpack_from("<e", block, at)[0])


def signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def unpacked(name: str, block: bytes) -> list[float]:
    """The numbers of one block, by the description of its format, one at a time."""
    match name:
        case "Q4_0":
            d, packed = half(block, 0), block[2:]
            return [d * (nibble(packed, i) - 8) for i in range(32)]
        case "Q4_1":
            d, m, packed = half(block, 0), half(block, 2), block[4:]
            return [d * nibble(packed, i) + m for i in range(32)]
        case "Q8_0":
            return [half(block, 0) * signed(block[2 + i]) for i in range(32)]
        case "Q6_K":
            return [q6_k(block, i) for i in range(256)]
        case "F16":
            return [half(block, 0)]
        case "BF16":
            return [struct.unpack("<f", b"\0\0" + block)[0]]
        case "F32":
            return [struct.unpack("<f", block)[0]]
    raise KeyError(name)


def nibble(packed: bytes, i: int) -> int:
    """Number `i` of 32: byte `i`'s low half, or byte `i - 16`'s high half."""
    return packed[i] & 15 if i < 16 else packed[i - 16] >> 4


def q6_k(block: bytes, i: int) -> float:
    """Number `i` of 256: four low bits, two high bits, and a scale for each 16 numbers."""
    upper, k = divmod(i, 128)
    run, j = divmod(k, 32)
    low = block[64 * upper + 32 * (run % 2) + j]
    low = low >> 4 if run >= 2 else low & 15
    high = block[128 + 32 * upper + j] >> 2 * run & 3
    scale = signed(block[192 + i // 16])
    return half(block, 208) * scale * ((low | high << 4) - 32)
