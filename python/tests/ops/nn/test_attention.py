"""Attention and cross entropy against float64 references, with their derivatives, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.harness import rng, um

# Units of the largest value: of the dtype that results are rounded to once.
TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 2e-6, "float64": 1e-14}


def weights(scores: np.ndarray, sinks: np.ndarray | None = None) -> np.ndarray:
    """Softmax of float64 scores, beside a sink for each head."""
    top = scores.max(-1, keepdims=True)
    column = None if sinks is None else sinks[None, :, None, None]
    top = top if column is None else np.maximum(top, column)
    e = np.exp(scores - top)
    return e / (e.sum(-1, keepdims=True) + (0 if column is None else np.exp(column - top)))


def expected(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: Any, sinks: np.ndarray | None
) -> np.ndarray:
    """Attention with a scale of 0.3, in float64."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, 1), v.repeat(group, 1)
    scores = 0.3 * q @ k.swapaxes(2, 3)
    t, s = scores.shape[2:]
    if isinstance(mask, str):
        mask = np.tri(t, s, s - t, dtype=bool)
    if mask is not None:
        scores = np.where(mask, scores, -1e30) if mask.dtype == bool else scores + mask
    return weights(np.maximum(scores, -1e30), sinks) @ v


def operands(dtype: str, *shapes: tuple[int, ...]) -> list[Any]:
    """Arrays of a dtype, and what they hold in float64."""
    g = rng("attention", dtype, *shapes)
    made = [um.array(g.normal(size=s)).astype(getattr(um, dtype)) for s in shapes]
    return [(a, np.array(a.astype(um.float64))) for a in made]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("mask", ["none", "causal", "bool", "numbers", "infinities"])
@pytest.mark.parametrize("with_sinks", [False, True], ids=["", "sinks"])
def test_attention(dtype: str, mask: str, with_sinks: bool) -> None:
    """Grouped heads, values of another size, keys that are no multiple of anything."""
    shapes = [(2, 6, 19, 8), (2, 2, 37, 8), (2, 2, 37, 5), (6, 1, 37), (6,)]
    (q, q64), (k, k64), (v, v64), (m, m64), (sinks, sinks64) = operands(dtype, *shapes)
    given, reference = {
        "none": (None, None),
        "causal": ("causal", "causal"),
        "bool": (m > 0, m64 > 0),
        "numbers": (m, m64),
        "infinities": (um.where(m > 0, m, -um.inf), np.where(m64 > 0, m64, -np.inf)),
    }[mask]
    chosen, chosen64 = (sinks, sinks64) if with_sinks else (None, None)
    y = um.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask=given, sinks=chosen)
    assert y.dtype == getattr(um, dtype) and y.shape == (2, 6, 19, 5)
    want = expected(q64, k64, v64, reference, chosen64)
    error = np.abs(np.array(y.astype(um.float64)) - want).max() / np.abs(v64).max()
    assert error <= TOLERANCE[dtype]


def slopes(
    scores: np.ndarray, v: np.ndarray, ct: np.ndarray, sinks: np.ndarray | None
) -> tuple[np.ndarray, ...]:
    """The cotangents of scores, values and sinks, in float64."""
    w = weights(scores, sinks)
    products = ct @ v.swapaxes(2, 3)
    delta = (w * products).sum(-1, keepdims=True)
    left = 1 - w.sum(-1, keepdims=True)
    return w * (products - delta), w.swapaxes(2, 3) @ ct, -(left * delta).sum((0, 2, 3))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("mask", ["none", "causal", "bool", "numbers"])
def test_gradients(dtype: str, mask: str) -> None:
    """By queries, keys, values, a mask that was broadcast, and sinks; more queries than one block has."""
    shapes = [(2, 4, 35, 8), (2, 2, 70, 8), (2, 2, 70, 5), (4, 1, 70), (4,), (2, 4, 35, 5)]
    (q, q64), (k, k64), (v, v64), (m, m64), (s, s64), (ct, ct64) = operands(dtype, *shapes)
    keys, values = k64.repeat(2, 1), v64.repeat(2, 1)
    scores = 0.3 * q64 @ keys.swapaxes(2, 3)
    given: Any = {"none": None, "causal": "causal", "bool": m > 0, "numbers": m}[mask]
    seen = {"causal": np.tri(35, 70, 35, dtype=bool), "bool": m64 > 0}.get(mask, True)
    scores = np.where(seen, scores + (m64 if mask == "numbers" else 0), -1e30)
    by_scores, by_values, by_sinks = slopes(scores, values, ct64, s64)
    halves = lambda a: a.reshape(2, 2, 2, *a.shape[2:]).sum(2)
    want = [
        0.3 * by_scores @ keys,
        halves(0.3 * by_scores.swapaxes(2, 3) @ q64),
        halves(by_values),
        by_sinks,
    ]

    def attend(q: Any, k: Any, v: Any, sinks: Any, mask: Any = given) -> Any:
        y = um.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask=mask, sinks=sinks)
        return (y * ct).astype(um.float64).sum()

    got = list(um.grad(attend, argnums=(0, 1, 2, 3))(q, k, v, s))
    if mask == "numbers":
        got.append(um.grad(attend, argnums=4)(q, k, v, s, m))
        want.append(by_scores.sum((0, 2))[:, None, :])
    for g, w in zip(got, want, strict=True):
        assert g.dtype == q.dtype and g.shape == w.shape
        error = np.abs(np.array(g.astype(um.float64)) - w).max() / np.abs(w).max()
        assert error <= 8 * TOLERANCE[dtype]


@pytest.mark.parametrize("mask", [None, "causal"])
@pytest.mark.parametrize("queries", [1, 3])
def test_lengths(mask: str | None, queries: int) -> None:
    """A cache of fixed size: keys behind the length are as if they were not there."""
    shapes = [(3, 4, queries, 8), (3, 2, 90, 8), (3, 2, 90, 8)]
    (q, _), (k, _), (v, _) = operands("float32", *shapes)
    counts = [70, 90, 12]
    attend = um.fast.scaled_dot_product_attention
    y = attend(q, k, v, scale=0.3, mask=mask, lengths=um.array(counts))
    for b, n in enumerate(counts):
        one = slice(b, b + 1)
        want = attend(q[one], k[one, :, :n], v[one, :, :n], scale=0.3, mask=mask)
        np.testing.assert_allclose(y[one], want, atol=2e-6)
    with pytest.raises(ValueError, match=r"lengths \(2\)|lengths \(2,\)"):
        attend(q, k, v, scale=1.0, lengths=um.array([1, 2]))
    with pytest.raises(ValueError, match="lengths must be integers"):
        attend(q, k, v, scale=1.0, lengths=um.zeros(3))


@pytest.mark.host("the emulated driver would take minutes")
def test_memory_is_linear_in_the_length() -> None:
    """The scores of 16k queries and keys would take 1 GiB. Counted: a result, the logarithms, and gradients."""
    x = um.random.normal((1, 1, 16384, 16))
    um.eval(x)
    attend = lambda x: um.fast.scaled_dot_product_attention(x, x, x, scale=0.25, mask="causal")
    for f, copies in [(attend, 2), (um.grad(lambda x: attend(x).sum()), 12)]:
        before = um.get_active_memory()
        um.reset_peak_memory()
        um.eval(f(x))
        assert um.get_peak_memory() - before <= copies * x.nbytes


def test_rows_without_keys() -> None:
    """A query whose keys are all masked gets the mean of the values, and with a finite sink zeros; gradients are finite."""
    ((q, _), (k, _), (v, v64)) = operands("float32", (1, 1, 5, 4), (1, 1, 3, 4), (1, 1, 3, 2))
    nothing = um.zeros((5, 3), dtype=um.bool_)
    masks = ["causal", nothing, um.where(nothing, um.array(0.0), -um.inf)]
    for mask in masks:

        def attend(q: Any, k: Any, v: Any, sinks: Any = None, mask: Any = mask) -> Any:
            return um.fast.scaled_dot_product_attention(q, k, v, scale=1.0, mask=mask, sinks=sinks)

        np.testing.assert_allclose(attend(q, k, v)[0, 0, 0], v64[0, 0].mean(0), rtol=1e-6)
        assert np.all(np.array(attend(q, k, v, um.zeros(1))[0, 0, 0]) == 0)
        total = lambda *a, f=attend: f(*a).square().sum()
        for gradient in um.grad(total, argnums=(0, 1, 2))(q, k, v):
            assert np.all(np.isfinite(np.array(gradient)))


@pytest.mark.parametrize(
    "shapes",
    [
        [(0, 2, 3, 4), (0, 2, 3, 4), (0, 2, 3, 4)],
        [(1, 2, 0, 4), (1, 2, 3, 4), (1, 2, 3, 4)],
        [(1, 0, 3, 4), (1, 0, 3, 4), (1, 0, 3, 4)],
        [(1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 0)],
        [(1, 2, 3, 4), (1, 2, 0, 4), (1, 2, 0, 4)],
        [(1, 2, 3, 0), (1, 2, 3, 0), (1, 2, 3, 4)],
    ],
)
def test_attention_of_nothing(shapes: list[tuple[int, ...]]) -> None:
    """Without keys results are 0; without a head size they are the mean of the values."""
    (q, _), (k, _), (v, v64) = operands("float32", *shapes)
    y = um.fast.scaled_dot_product_attention(q, k, v, scale=1.0)
    assert y.shape == (*q.shape[:3], v.shape[3])
    want = v64.mean(2, keepdims=True) if v.shape[2] else np.zeros((1, 1, 1, 1))
    np.testing.assert_allclose(y, np.broadcast_to(want, y.shape), atol=1e-6)


def test_attention_takes_strided_operands() -> None:
    """Heads that lie between the positions, as projections leave them."""
    made = operands("float32", (2, 9, 4, 8), (2, 11, 2, 8), (2, 11, 2, 8))
    (q, q64), (k, k64), (v, v64) = [(a.swapaxes(1, 2), n.swapaxes(1, 2)) for a, n in made]
    y = um.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask="causal")
    np.testing.assert_allclose(y, expected(q64, k64, v64, "causal", None), atol=2e-6)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_cross_entropy(dtype: str) -> None:
    """Losses, and gradients in the dtype of the logits."""
    ((x, x64),) = operands(dtype, (3, 4, 1000))
    targets = rng("classes").integers(-1000, 1000, (3, 4))
    loss = um.fast.cross_entropy(x, um.array(targets))
    assert loss.dtype == um.float32
    top = x64.max(-1)
    total = np.log(np.exp(x64 - top[..., None]).sum(-1)) + top
    own = np.take_along_axis(x64, targets[..., None] % 1000, -1)[..., 0]
    np.testing.assert_allclose(loss, total - own, rtol=2e-6)

    g = um.grad(lambda x: um.fast.cross_entropy(x, um.array(targets)).sum())(x)
    assert g.dtype == x.dtype
    want = np.exp(x64 - total[..., None])
    np.put_along_axis(want, targets[..., None] % 1000, np.exp(own - total)[..., None] - 1, -1)
    error = np.abs(np.array(g.astype(um.float64)) - want).max()
    assert error <= max(TOLERANCE[dtype], 1e-6)


@pytest.mark.host("devices without the kernel compose it")
def test_cross_entropy_of_many_words_copies_no_logits() -> None:
    """128k classes in bfloat16: the loss needs less than a row, and its gradient itself alone."""
    x = um.random.normal((8, 131072)).astype(um.bfloat16)
    targets = um.arange(8)
    um.eval(x, targets)
    loss = lambda x: um.fast.cross_entropy(x, targets).sum()
    for f, most in ((loss, x.nbytes // 8), (um.grad(loss), x.nbytes * 9 // 8)):
        before = um.get_active_memory()
        um.reset_peak_memory()
        um.eval(f(x))
        assert um.get_peak_memory() - before <= most


def test_cross_entropy_of_no_rows() -> None:
    loss = um.fast.cross_entropy(um.zeros((0, 3)), um.zeros((0,), dtype=um.int32))
    assert loss.shape == (0,) and loss.dtype == um.float32
    with pytest.raises(ValueError, match="have no classes"):
        um.fast.cross_entropy(um.zeros((2, 0)), um.zeros((2,), dtype=um.int32))


def test_a_fused_kernel_may_be_forced() -> None:
    """A device without one raises MLX's error. The Vulkan backend has one where it runs kernels for GPUs."""
    x = um.zeros((1, 1, 2, 2), dtype=um.bfloat16)
    attend = lambda: um.fast.scaled_dot_product_attention(x, x, x, scale=1.0, force_fused=True)
    backend = str(um.device_info()["backend"])
    if um.default_device().type == um.cpu or "cuda" in backend:
        assert attend().shape == x.shape
        return
    try:
        fused = attend()
    except ValueError as error:
        assert "no fused kernel is available" in str(error)
    else:
        assert "vulkan" in backend and fused.shape == x.shape
