"""Tokens a second of llama.cpp (the wheel xllamacpp): a prompt, and a generation after it. Prints one JSON line.

python -m bench.models.with_llama_cpp FILE.gguf --prompt 512 --generation 128 --threads 2
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import xllamacpp


def server(given: argparse.Namespace) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = given.file
    parameters.n_ctx = given.prompt + given.generation + 64
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = given.threads
    parameters.cpuparams_batch.n_threads = given.threads
    return xllamacpp.Server(parameters)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generation", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--trials", type=int, default=3)
    given = parser.parse_args()
    runs = server(given)
    speeds = []
    for trial in range(given.trials + 1):
        request = {
            # Another prompt each time, of which no cache knows the beginning.
            "prompt": list(range(1000 + trial, 1000 + trial + given.prompt)),
            "n_predict": given.generation,
            "ignore_eos": True,
            "cache_prompt": False,
            "temperature": 0,
        }
        answer = runs.handle_completions(request)
        timings = (answer if isinstance(answer, dict) else json.loads(answer))["timings"]
        speeds.append((timings["prompt_per_second"], timings["predicted_per_second"]))
    prompt, generation = (max(all) for all in zip(*speeds[1:]))
    print(json.dumps({"prompt": prompt, "generation": generation}))


if __name__ == "__main__":
    main()
