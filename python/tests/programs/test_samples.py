"""Unmodified programs for MLX print the same numbers with mlx and with Ultramarine in its place."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from .children import AS_MLX, output

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.py"))

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")

# Relative distance of numbers, and distance of small ones. Steps of training add up differences in the last place.
RELATIVE, ABSOLUTE = 3e-4, 3e-5


def parts(text: str) -> tuple[str, list[float]]:
    """The text without its numbers, and these."""
    return NUMBER.sub("#", text), [float(n) for n in NUMBER.findall(text)]


@pytest.mark.parametrize("sample", [p.name for p in SAMPLES])
def test_same_numbers(sample: str) -> None:
    path = next(p for p in SAMPLES if p.name == sample)
    want_text, want = parts(output(str(path)))
    text, have = parts(output(*AS_MLX, str(path)))
    assert text == want_text
    assert len(want) > 10
    apart = [
        (w, h)
        for w, h in zip(want, have, strict=True)
        if not math.isclose(w, h, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    ]
    assert not apart


def test_with_arguments() -> None:
    """Arguments are the program's own."""
    path = next(p for p in SAMPLES if p.stem == "mlp")
    assert "loss 3 " in output(*AS_MLX, str(path), "--steps", "3")


def test_comparison_can_fail() -> None:
    assert parts("loss 1 -0.5e-3 a1 (2, 3.5)") == ("loss # # a1 (#, #)", [1, -0.5e-3, 2, 3.5])
