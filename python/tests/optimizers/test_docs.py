"""The program of docs/mixed-precision.md runs, and its losses are what the page says."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from support.paths import DOCS

import ultramarine as mx
from ultramarine import utils


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """The names that the page's blocks define, in one namespace from top to bottom."""
    page = DOCS / "mixed-precision.md"
    text = page.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert len(blocks) == 6
    found: dict[str, Any] = {}
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        exec(compile("\n" * line + block[1], str(page), "exec"), found)
    return found


def test_losses(names: dict[str, Any]) -> None:
    """Scaling reaches float32's loss; without it, the loss is that of the first step."""
    first = names["make_step"](mx.float32)[0]()[0].item()
    assert names["loss_float32"] < first / 40
    assert abs(names["loss_scaled"] / names["loss_float32"] - 1) < 0.2
    assert abs(names["loss_bfloat16"] / names["loss_float32"] - 1) < 0.3
    assert abs(names["loss_unscaled"] / first - 1) < 1e-3


def test_scaled_gradients_are_those_of_float32(names: dict[str, Any]) -> None:
    _, want = names["make_step"](mx.float32)[0]()
    _, got = names["make_scaled_step"](names["LossScale"](2.0**20))[0]()
    _, unscaled = names["make_step"](mx.float16)[0]()
    largest = max(mx.abs(w).max().item() for _, w in utils.tree_flatten(want))
    assert largest < 1e-6
    for (path, g), (_, w) in zip(utils.tree_flatten(got), utils.tree_flatten(want)):
        assert g.dtype == mx.float32
        # A bias's gradient is a sum over the batch in which most cancels.
        assert mx.abs(g - w).max().item() < 0.01 * largest, path
        assert path.endswith("bias") or mx.abs(g - w).max() < 0.02 * mx.abs(w).max(), path
    assert all(not mx.any(g).item() for _, g in utils.tree_flatten(unscaled))


def test_overflow_is_skipped(names: dict[str, Any]) -> None:
    """Every step halves the scale, and changes nothing else, until one is finite."""
    scaling = names["LossScale"](2.0**48)
    step, weights, optimizer = names["make_scaled_step"](scaling)
    start = {k: v.tolist() for k, v in utils.tree_flatten(weights)}
    skipped = 0
    while True:
        loss, grads = step()
        finite = all(mx.isfinite(g).all().item() for _, g in utils.tree_flatten(grads))
        if finite:
            break
        skipped += 1
        assert scaling.state["scale"].item() == 2.0 ** (48 - skipped)
        assert scaling.state["good_steps"].item() == 0 and optimizer.step.item() == 0
        assert {k: v.tolist() for k, v in utils.tree_flatten(weights)} == start
        moments = optimizer.state["layers"][0]["weight"]
        assert not mx.any(moments["m"]).item() and not mx.any(moments["v"]).item()
        assert math.isfinite(loss.item())
    assert 2 < skipped < 20
    assert optimizer.step.item() == 1 and scaling.state["good_steps"].item() == 1
    assert {k: v.tolist() for k, v in utils.tree_flatten(weights)} != start


def test_scale_grows(names: dict[str, Any]) -> None:
    scaling = names["LossScale"](4.0, interval=3)
    seen = []
    for finite in [True, True, True, True, False, True, True, True]:
        scaling.update(mx.array(finite))
        seen.append((scaling.state["scale"].item(), scaling.state["good_steps"].item()))
    assert seen == [(4, 1), (4, 2), (8, 0), (8, 1), (4, 0), (4, 1), (4, 2), (8, 0)]
