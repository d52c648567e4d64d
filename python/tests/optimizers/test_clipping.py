"""`clip_grad_norm`: values, dtypes, and what mlx computes differently."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.compare import assert_close
from support.harness import EPS

import ultramarine as mx
from ultramarine import optimizers as optim

from .trees import BOTH, tree

DTYPES = [
    ("float32", "float32"),
    ("bfloat16", "bfloat16"),
    ("float16", "float16"),
    ("float32", "bfloat16"),
    ("float16", "bfloat16"),
    ("float32", "float16"),
    ("int32", "float32"),
]


@pytest.mark.parametrize("limit", [0.0, 0.5, 1e3])
@pytest.mark.parametrize("dtypes", DTYPES)
def test_values(dtypes: tuple[str, str], limit: float) -> None:
    outcomes = []
    for lib, o in BOTH:
        first, second = dtypes
        grads = {"a": tree(lib, first, "a"), "b": [tree(lib, second, "b")]}
        outcomes.append(o.clip_grad_norm(grads, limit))
    assert_close(*outcomes, rtol=4 * max(EPS[d] for d in dtypes if d in EPS))


def test_norm() -> None:
    grads = {"a": mx.array([3.0, 0.0]), "b": [(mx.array(4.0),)]}
    clipped, norm = optim.clip_grad_norm(grads, 2.5)
    assert norm.item() == 5.0
    assert isinstance(clipped["b"][0], tuple)
    assert_close(clipped, {"a": mx.array([1.5, 0]), "b": [(mx.array(2.0),)]}, rtol=1e-6)
    unchanged, _ = optim.clip_grad_norm(grads, 5.1)
    assert_close(unchanged, grads)


def test_float16_does_not_overflow() -> None:
    for lib, o in BOTH:
        grads = {"a": lib.full((4,), 300.0, lib.float16)}
        clipped, norm = o.clip_grad_norm(grads, 300.0)
        assert norm.item() == 600.0 and norm.dtype == lib.float32
        assert clipped["a"].dtype == lib.float16 and clipped["a"].tolist() == [150.0] * 4


def test_complex_gradients() -> None:
    """mlx sums squares instead of squared absolute values, which gives a complex norm."""
    clipped, norm = optim.clip_grad_norm({"a": mx.array([3 + 4j])}, 1.0)
    assert norm.dtype == mx.float32 and norm.item() == 5.0
    np.testing.assert_allclose(clipped["a"].tolist(), [0.6 + 0.8j], rtol=1e-6)


def test_empty_and_limit_as_an_array() -> None:
    for lib, o in BOTH:
        clipped, norm = o.clip_grad_norm({}, 1.0)
        assert clipped == {} and norm.item() == 0.0
        clipped, _ = o.clip_grad_norm(lib.array([3.0, 4.0]), lib.array(1.0))
        np.testing.assert_allclose(clipped.tolist(), [0.6, 0.8], rtol=1e-6)


def test_negative_limit() -> None:
    for _, o in BOTH:
        with pytest.raises(ValueError, match="-1"):
            o.clip_grad_norm({}, -1)


def test_in_a_compiled_function() -> None:
    grads: Any = tree(mx, "float32", "a")
    clip = mx.compile(lambda g: optim.clip_grad_norm(g, 0.5))
    assert_close(clip(grads), optim.clip_grad_norm(grads, 0.5), rtol=1e-6)
