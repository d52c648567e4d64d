"""Tokens a second of a language model on the CPU: ours and mlx by mlx-lm's own benchmark, transformers, llama.cpp.

    python -m bench.models.speed DIR [--gguf FILE] [--cores 2] [--figures FILE]

DIR is a model in Hugging Face's layout, in float32, such as `examples/smollm2.py` writes. `mlx_lm convert -q` makes the model of 4 bits
beside it. llama.cpp (the wheel xllamacpp) reads the gguf, of 4 bits. Each library runs in processes of its own, one after the other, on
the same cores. Libraries that are missing are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from bench import record, table

PROMPT, GENERATION = 128, 64
TRIALS = 3
AVERAGES = re.compile(r"prompt_tps=([\d.]+), generation_tps=([\d.]+)")
MLX_LM = ("-m", "mlx_lm")
OURS = ("-m", "ultramarine.as_mlx", *MLX_LM)

Speed = tuple[float, float]


def run(words: list[str], cores: int) -> str:
    """The output of a Python process on some of the cores."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    environment = {**os.environ, "OMP_NUM_THREADS": str(cores), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env=environment,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()[-500:]}")
    return done.stdout


def by_mlx_lm(program: tuple[str, ...], folder: Path, cores: int, trials: int) -> Speed:
    """The best trial of `mlx_lm benchmark`."""
    sizes = ["-p", str(PROMPT), "-g", str(GENERATION), "-n", str(trials)]
    printed = run([*program, "benchmark", "--model", str(folder), *sizes], cores)
    found = [tuple(map(float, pair)) for pair in AVERAGES.findall(printed)]
    return max(prompt for prompt, _ in found), max(generation for _, generation in found)


def by_transformers(folder: Path, cores: int) -> Speed:
    sizes = ["--prompt", str(PROMPT), "--generation", str(GENERATION), "--threads", str(cores)]
    printed = run(["-m", "bench.models.with_transformers", str(folder), *sizes], cores)
    given = json.loads(printed.splitlines()[-1])
    return given["prompt"], given["generation"]


def by_llama_cpp(gguf: Path, cores: int) -> Speed:
    sizes = ["--prompt", str(PROMPT), "--generation", str(GENERATION), "--threads", str(cores)]
    printed = run(["-m", "bench.models.with_llama_cpp", str(gguf), *sizes], cores)
    given = json.loads(printed.splitlines()[-1])
    return given["prompt"], given["generation"]


def few_bits(folder: Path) -> Path:
    """The model of 4 bits, beside that of 32."""
    made = folder.with_name(folder.name + "-4bit")
    if not made.is_dir():
        run([*OURS, "convert", "--hf-path", str(folder), "--mlx-path", str(made), "-q"], 2)
    return made


def has(*packages: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in packages)


def measure(folder: Path, gguf: Path | None, cores: int) -> dict[str, dict[str, Speed]]:
    """Speeds by precision and library."""
    four = few_bits(folder)
    found: dict[str, dict[str, Speed]] = {"float32": {}, "4 bits": {}}
    for precision, model in (("float32", folder), ("4 bits", four)):
        found[precision]["ultramarine"] = by_mlx_lm(OURS, model, cores, TRIALS)
        if has("mlx"):
            # A trial takes it half a minute.
            found[precision]["mlx"] = by_mlx_lm(MLX_LM, model, cores, 1)
    if has("torch", "transformers"):
        found["float32"]["transformers"] = by_transformers(folder, cores)
    if gguf is not None and has("xllamacpp"):
        found["4 bits"]["llama.cpp"] = by_llama_cpp(gguf, cores)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--figures", type=Path, help="writes the figures there")
    given = parser.parse_args()
    found = measure(given.folder, given.gguf, given.cores)
    libraries = list(dict.fromkeys(name for speeds in found.values() for name in speeds))
    rows = [["tokens/s", "", *libraries]]
    figures = []
    for precision, speeds in found.items():
        for i, part in enumerate(("prompt", "generation")):
            each = [speeds[name][i] if name in speeds else None for name in libraries]
            rows.append([precision, part, *(table.number(value) for value in each)])
            for name, value in zip(libraries, each):
                if value is not None:
                    what = f"{part}, {precision}, {given.cores} cores"
                    figures.append(record.Figure("models", what, name, value, "tokens/s"))
    table.show(rows, left=(0, 1))
    if given.figures:
        record.save(given.figures, figures)


if __name__ == "__main__":
    main()
