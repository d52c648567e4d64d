"""Losses: values, gradients, reductions and errors as in mlx."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.compare import assert_close
from support.harness import name_of, rng, to_numpy

import ultramarine as mx
from ultramarine import nn

from .pairs import OURS, THEIRS, Case, converted, same

REDUCTIONS = ["none", "mean", "sum"]


def data(*key: object) -> dict[str, np.ndarray]:
    """Arrays by what they are for, of the shape (4, 5)."""
    random = rng((4, 5), *key)
    logits = random.standard_normal((4, 5)).astype(np.float32)
    logp = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    other = random.standard_normal((4, 5)).astype(np.float32)
    logq = other - np.log(np.exp(other).sum(-1, keepdims=True))
    return {
        "x": 2 * logits,
        "y": other,
        "z": random.standard_normal((4, 5)).astype(np.float32),
        "p": np.exp(logp),
        "q": np.exp(logq),
        "logp": logp,
        "logq": logq,
        "sign": np.sign(random.standard_normal((4, 5))).astype(np.float32),
        "rows": random.integers(0, 5, 4).astype(np.int32),
        "columns": random.integers(0, 4, 5).astype(np.int32),
        "w4": random.random(4).astype(np.float32),
        "w5": random.random(5).astype(np.float32),
        "w": random.random((4, 5)).astype(np.float32),
    }


# Calls with a reduction; the first array is the one that gradients are taken by.
LOSSES: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "cross_entropy": (lambda f, x, t, **r: f.cross_entropy(x, t, **r), ["x", "rows"]),
    "cross_entropy of axis 0": (lambda f, x, t, **r: f.cross_entropy(x, t, axis=0, **r), ["x", "columns"]),
    "cross_entropy of axis 1": (lambda f, x, t, **r: f.cross_entropy(x, t, axis=1, **r), ["x", "rows"]),
    "cross_entropy, weights": (lambda f, x, t, w, **r: f.cross_entropy(x, t, w, **r), ["x", "rows", "w4"]),
    "cross_entropy, smoothed": (lambda f, x, t, **r: f.cross_entropy(x, t, label_smoothing=0.2, **r), ["x", "rows"]),
    "cross_entropy, smoothed axis 0": (
        lambda f, x, t, w, **r: f.cross_entropy(x, t, w, 0, 0.1, **r), ["x", "columns", "w5"]),
    "cross_entropy, probabilities": (lambda f, x, t, **r: f.cross_entropy(x, t, **r), ["x", "p"]),
    "cross_entropy, no probabilities": (lambda f, x, t, **r: f.cross_entropy(x, t, **r), ["x", "y"]),
    "cross_entropy, probabilities of axis 0": (lambda f, x, t, **r: f.cross_entropy(x, t, axis=0, **r), ["x", "p"]),
    "cross_entropy, smoothed probabilities": (
        lambda f, x, t, w, **r: f.cross_entropy(x, t, w, label_smoothing=0.3, **r), ["x", "p", "w4"]),
    "binary_cross_entropy": (lambda f, x, t, **r: f.binary_cross_entropy(x, t, **r), ["x", "p"]),
    "binary_cross_entropy, weights": (
        lambda f, x, t, w, **r: f.binary_cross_entropy(x, t, weights=w, **r), ["x", "p", "w"]),
    "binary_cross_entropy of probabilities": (
        lambda f, x, t, **r: f.binary_cross_entropy(x, t, with_logits=False, **r), ["p", "q"]),
    "l1_loss": (lambda f, x, t, **r: f.l1_loss(x, t, **r), ["x", "y"]),
    "mse_loss": (lambda f, x, t, **r: f.mse_loss(x, t, **r), ["x", "y"]),
    "nll_loss": (lambda f, x, t, **r: f.nll_loss(x, t, **r), ["logp", "rows"]),
    "nll_loss of axis 0": (lambda f, x, t, **r: f.nll_loss(x, t, axis=0, **r), ["logp", "columns"]),
    "gaussian_nll_loss": (lambda f, x, t, v, **r: f.gaussian_nll_loss(x, t, v, **r), ["x", "y", "w"]),
    "gaussian_nll_loss, full": (
        lambda f, x, t, v, **r: f.gaussian_nll_loss(x, t, v, full=True, eps=0.5, **r), ["x", "y", "w"]),
    "gaussian_nll_loss by variance": (lambda f, v, x, t, **r: f.gaussian_nll_loss(x, t, v, **r), ["w", "x", "y"]),
    "kl_div_loss": (lambda f, x, t, **r: f.kl_div_loss(x, t, **r), ["logp", "logq"]),
    "kl_div_loss of axis 0": (lambda f, x, t, **r: f.kl_div_loss(x, t, axis=0, **r), ["logp", "logq"]),
    "smooth_l1_loss": (lambda f, x, t, **r: f.smooth_l1_loss(x, t, **r), ["x", "y"]),
    "smooth_l1_loss 0.3": (lambda f, x, t, **r: f.smooth_l1_loss(x, t, beta=0.3, **r), ["x", "y"]),
    "huber_loss": (lambda f, x, t, **r: f.huber_loss(x, t, **r), ["x", "y"]),
    "huber_loss 0.3": (lambda f, x, t, **r: f.huber_loss(x, t, delta=0.3, **r), ["x", "y"]),
    "log_cosh_loss": (lambda f, x, t, **r: f.log_cosh_loss(x, t, **r), ["x", "y"]),
    "hinge_loss": (lambda f, x, t, **r: f.hinge_loss(x, t, **r), ["x", "sign"]),
    "margin_ranking_loss": (lambda f, x, y, t, **r: f.margin_ranking_loss(x, y, t, **r), ["x", "y", "sign"]),
    "margin_ranking_loss 0.5": (
        lambda f, x, y, t, **r: f.margin_ranking_loss(x, y, t, margin=0.5, **r), ["x", "y", "sign"]),
    "cosine_similarity_loss": (lambda f, x, y, **r: f.cosine_similarity_loss(x, y, **r), ["x", "y"]),
    "cosine_similarity_loss of axis 0": (
        lambda f, x, y, **r: f.cosine_similarity_loss(x, y, axis=0, eps=100.0, **r), ["x", "y"]),
    "triplet_loss": (lambda f, a, p, n, **r: f.triplet_loss(a, p, n, **r), ["x", "y", "z"]),
    "triplet_loss of other norms": (
        lambda f, a, p, n, **r: f.triplet_loss(a, p, n, axis=0, p=3, margin=0.5, eps=0.1, **r), ["x", "y", "z"]),
}  # fmt: skip


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", LOSSES)
def test_values_and_gradients(name: str, reduction: str) -> None:
    call, operands = LOSSES[name]
    arrays = data(name)
    found = []
    for lib in (OURS, THEIRS):
        first, *others = (lib.mx.array(arrays[operand]) for operand in operands)

        def loss(x: Any, lib: Any = lib, others: Any = others) -> Any:
            out = call(lib.nn.losses, x, *others, reduction=reduction)
            return (out * lib.mx.arange(1, out.size + 1).reshape(out.shape)).sum(), out

        (_, value), gradient = lib.mx.value_and_grad(loss)(first)
        found.append((value, gradient))
    assert_close(*found, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", LOSSES)
def test_16_bit_floats(name: str, dtype: str) -> None:
    call, operands = LOSSES[name]
    arrays = data(name)
    found = []
    for lib in (OURS, THEIRS):
        inputs = [lib.mx.array(arrays[operand]) for operand in operands]
        inputs = [
            a.astype(getattr(lib.mx, dtype)) if lib.mx.issubdtype(a.dtype, lib.mx.floating) else a
            for a in inputs
        ]
        found.append(call(lib.nn.losses, *inputs, reduction="none"))
    bound = 8e-3 if dtype == "float16" else 6e-2
    assert_close(*found, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", LOSSES)
def test_defaults(name: str) -> None:
    """The reduction is the mean for some losses, and none for others."""
    call, operands = LOSSES[name]
    arrays = data(name)
    same(lambda lib: call(lib.nn.losses, *(lib.mx.array(arrays[o]) for o in operands)).shape)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", ["other", None, "MEAN"])
def test_unknown_reductions(name: str, reduction: Any) -> None:
    call, operands = LOSSES[name]
    inputs = [mx.array(data(name)[operand]) for operand in operands]
    with pytest.raises(ValueError, match=r"Invalid reduction .*'none', 'mean', 'sum'"):
        call(nn.losses, *inputs, reduction=reduction)


def losses(case: Callable[[Any, Any], Any]) -> Case:
    """A case of losses as one of a library."""
    return lambda lib: case(lib.nn.losses, lib.mx)


@pytest.mark.parametrize(
    "case",
    [
        lambda f, mx: f.cross_entropy(mx.ones((2, 3)), mx.array([1, 2, 0])),
        lambda f, mx: f.cross_entropy(mx.ones((2, 3)), mx.ones((2, 2))),
        lambda f, mx: f.cross_entropy(mx.ones((2, 3)), mx.array([1, 2]), mx.ones((3,))),
        lambda f, mx: f.cross_entropy(mx.ones((2, 3)), mx.array([1, 2]), label_smoothing=1.0),
        lambda f, mx: f.cross_entropy(mx.ones((2, 3)), mx.array([1, 2]), label_smoothing=-0.1),
        lambda f, mx: f.cross_entropy(mx.ones((2, 3)), mx.array([1, 2]), axis=2),
        lambda f, mx: f.cross_entropy(mx.ones((2, 3)), mx.array([1, 2]), axis=0),
        lambda f, mx: f.cross_entropy(mx.ones((2, 3)), [1, 2]),
        lambda f, mx: f.cross_entropy(mx.ones((2, 3), dtype=mx.int32), mx.array([1, 2])).dtype,
        lambda f, mx: f.cross_entropy(mx.ones((2, 3), dtype=mx.float16), mx.array([1, 2])).dtype,
        lambda f, mx: f.cross_entropy(mx.ones((2, 3), dtype=mx.float64), mx.array([1, 2])).dtype,
        lambda f, mx: f.cross_entropy(mx.ones((3,)), mx.array(1)).shape,
        lambda f, mx: f.cross_entropy(mx.ones((2, 3, 4)), mx.array([[1, 2, 0]] * 2)).shape,
        lambda f, mx: f.cross_entropy(mx.ones((2, 3, 4)), mx.zeros((2, 4), mx.uint8), axis=1).shape,
        lambda f, mx: f.binary_cross_entropy(mx.ones((2, 3)), mx.ones((3,))),
        lambda f, mx: f.binary_cross_entropy(mx.ones((2, 3)), mx.ones((2, 3)), mx.ones((3,))),
        lambda f, mx: f.binary_cross_entropy(mx.ones((2,)), mx.array([True, False])).dtype,
        lambda f, mx: f.l1_loss(mx.ones((2, 3)), mx.ones((3,))),
        lambda f, mx: f.mse_loss(mx.ones((2, 3)), mx.ones((2, 1))),
        lambda f, mx: f.smooth_l1_loss(mx.ones((2, 3)), mx.ones((3,))),
        lambda f, mx: f.huber_loss(mx.ones((2, 3)), mx.ones((3,))),
        lambda f, mx: f.log_cosh_loss(mx.ones((2, 3)), mx.zeros((2, 1))).shape,
        lambda f, mx: f.hinge_loss(mx.ones((2, 3)), mx.ones((3,))),
        lambda f, mx: f.hinge_loss(mx.array([1, 2]), mx.array([1, -1])),
        lambda f, mx: f.nll_loss(mx.ones((2, 3)), mx.array([1, 2, 0])),
        lambda f, mx: f.gaussian_nll_loss(mx.ones((2, 3)), mx.ones((3,)), mx.ones((2, 3))),
        lambda f, mx: f.gaussian_nll_loss(mx.ones((2, 3)), mx.ones((2, 3)), mx.ones((3,))),
        lambda f, mx: f.margin_ranking_loss(mx.ones((2,)), mx.ones((2,)), mx.ones((1,))),
        lambda f, mx: f.margin_ranking_loss(mx.ones((2,)), mx.ones((3,)), mx.ones((2,))),
        lambda f, mx: f.kl_div_loss(mx.ones((2, 3)), mx.ones((2, 4))),
        lambda f, mx: f.cosine_similarity_loss(mx.zeros((2, 3)), mx.ones((2, 3))),
        lambda f, mx: f.mse_loss(mx.array([1, 2]), mx.array([3, 5])),
        lambda f, mx: f.l1_loss(mx.array([1, 2]), mx.array([3, 5]), "none"),
    ],
)
def test_odd_calls(case: Callable[[Any, Any], Any]) -> None:
    same(losses(case))


def test_probabilities_0_and_1() -> None:
    """Logarithms are at least -100."""
    p, t = [0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]
    same(
        lambda lib: lib.nn.losses.binary_cross_entropy(
            lib.mx.array(p), lib.mx.array(t), with_logits=False, reduction="none"
        )
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_cross_entropy_of_large_logits(dtype: str) -> None:
    """Computed in float32, and rounded to the dtype of the logits at the end."""
    logits = mx.array([[1000.0, 0.0, 990.0], [-500.0, -500.0, -500.0]], getattr(mx, dtype))
    exact = to_numpy(logits).astype(np.float64)
    low = exact - exact.max(-1, keepdims=True)
    for targets in ([0, 1], [2, 2], [1, 0]):
        want = np.log(np.exp(low).sum(-1)) - low[np.arange(2), targets]
        got = nn.losses.cross_entropy(logits, mx.array(targets))
        assert name_of(got.dtype) == dtype
        # The logarithm of the sum is rounded at the size of the logits.
        assert_close(got, mx.array(want).astype(got.dtype), ulps=1, scale=1024.0)


def test_smooth_l1_loss_of_beta_0_has_gradients() -> None:
    """It is the absolute error. In mlx its gradient is NaN."""
    x, y = mx.array([1.0, -2.0]), mx.array([0.5, 0.5])
    value, gradient = mx.value_and_grad(lambda x: nn.losses.smooth_l1_loss(x, y, 0.0, "sum"))(x)
    assert value.item() == 3.0 and gradient.tolist() == [1.0, -1.0]


def test_classes_of_many_rows() -> None:
    """The fused operation and the one of parts agree, as do gradients."""
    x = mx.random.normal((64, 100), key=mx.random.key(0))
    t = mx.random.randint(0, 100, (64,), key=mx.random.key(1))
    one_hot = (mx.expand_dims(t, 1) == mx.arange(100)).astype(mx.float32)
    found = [
        mx.value_and_grad(lambda x: nn.losses.cross_entropy(x, target, reduction="mean"))(x)
        for target in (t, one_hot)
    ]
    assert_close(found[0], found[1], rtol=1e-5, atol=1e-7)
    theirs = THEIRS.mx.value_and_grad(
        lambda x: THEIRS.nn.losses.cross_entropy(x, converted(t, THEIRS.mx), reduction="mean")
    )(converted(x, THEIRS.mx))
    assert_close(found[0], theirs, rtol=1e-5, atol=1e-7)
