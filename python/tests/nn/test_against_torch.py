"""Layers, losses and activations against PyTorch, with the same parameters: a second opinion beside mlx's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.harness import rng, to_numpy

import ultramarine as mx
from ultramarine import nn

torch: Any = pytest.importorskip("torch")
F: Any = torch.nn.functional


def drawn(shape: tuple[int, ...], *key: object) -> np.ndarray:
    return rng(shape, *key).standard_normal(shape).astype(np.float32)


def channels_first(x: np.ndarray) -> np.ndarray:
    """(N, ..., C) as (N, C, ...)."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1)) if x.ndim > 2 else x


def channels_last(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, 1, -1) if x.ndim > 2 else x


def kernel(weight: mx.array) -> np.ndarray:
    """A weight (out, ..., in) as PyTorch's (out, in, ...)."""
    return np.ascontiguousarray(np.moveaxis(to_numpy(weight), -1, 1))


def transposed_kernel(weight: mx.array) -> np.ndarray:
    """A weight (out, ..., in) as that of PyTorch's transposed convolution, (in, out, ...)."""
    return np.ascontiguousarray(np.moveaxis(to_numpy(weight), (-1, 0), (0, 1)))


def load(module: Any, **parameters: np.ndarray) -> Any:
    """A module of PyTorch with parameters."""
    module.load_state_dict({k: torch.tensor(v) for k, v in parameters.items()}, strict=False)
    return module


def assert_as_torch(
    ours: Callable[[mx.array], mx.array],
    theirs: Callable[[Any], Any],
    x: np.ndarray,
    *,
    images: bool = False,
    bound: float = 2e-5,
) -> None:
    """Asserts that values are the same, and gradients of a weighted sum of them by the input.

    With `images` PyTorch gets the channels second.
    """
    change, back = (channels_first, channels_last) if images else (np.asarray, np.asarray)
    leaf = torch.tensor(change(x), requires_grad=True)
    want = theirs(leaf)
    weights = drawn(tuple(back(want.detach().numpy()).shape), "weights")
    (want * torch.tensor(change(weights))).sum().backward()

    def loss(x: mx.array) -> tuple[mx.array, mx.array]:
        out = ours(x)
        return (out * mx.array(weights)).sum(), out

    (_, got), gradient = mx.value_and_grad(loss)(mx.array(x))
    np.testing.assert_allclose(to_numpy(got), back(want.detach().numpy()), bound, bound)
    np.testing.assert_allclose(to_numpy(gradient), back(leaf.grad.numpy()), bound, bound)


ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "celu": (lambda x: nn.celu(x, 1.5), lambda x: F.celu(x, 1.5)),
    "elu": (nn.elu, F.elu),
    "gelu": (nn.gelu, F.gelu),
    "gelu_approx": (nn.gelu_approx, lambda x: F.gelu(x, approximate="tanh")),
    "glu": (nn.glu, F.glu),
    "hard_shrink": (nn.hard_shrink, F.hardshrink),
    "hard_tanh": (nn.hard_tanh, F.hardtanh),
    "hardswish": (nn.hardswish, F.hardswish),
    "leaky_relu": (nn.leaky_relu, F.leaky_relu),
    "log_sigmoid": (nn.log_sigmoid, F.logsigmoid),
    "log_softmax": (nn.log_softmax, lambda x: F.log_softmax(x, -1)),
    "mish": (nn.mish, F.mish),
    "prelu": (lambda x: nn.prelu(x, mx.array([0.3])), lambda x: F.prelu(x, torch.tensor([0.3]))),
    "relu": (nn.relu, F.relu),
    "relu6": (nn.relu6, F.relu6),
    "sigmoid": (nn.sigmoid, torch.sigmoid),
    "silu": (nn.silu, F.silu),
    "softmax": (nn.softmax, lambda x: F.softmax(x, -1)),
    "softmin": (nn.softmin, lambda x: F.softmin(x, -1)),
    "softplus": (nn.softplus, F.softplus),
    "softshrink": (nn.softshrink, F.softshrink),
    "softsign": (nn.softsign, F.softsign),
    "tanh": (nn.tanh, torch.tanh),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    ours, theirs = ACTIVATIONS[name]
    assert_as_torch(ours, theirs, 4 * drawn((6, 8), name))


def test_selu() -> None:
    """mlx's constants, which are ours, have fewer digits."""
    assert_as_torch(nn.selu, F.selu, drawn((6, 8)), bound=1e-4)


LOSSES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "cross_entropy": (
        lambda x, y, r: nn.losses.cross_entropy(x, mx.array([1, 0, 3]), reduction=r),
        lambda x, y, r: F.cross_entropy(x, torch.tensor([1, 0, 3]), reduction=r)),
    "smoothed cross_entropy": (
        lambda x, y, r: nn.losses.cross_entropy(x, mx.array([1, 0, 3]), label_smoothing=0.2, reduction=r),
        lambda x, y, r: F.cross_entropy(x, torch.tensor([1, 0, 3]), label_smoothing=0.2, reduction=r)),
    "cross_entropy of probabilities": (
        lambda x, y, r: nn.losses.cross_entropy(x, mx.softmax(y, -1), reduction=r),
        lambda x, y, r: F.cross_entropy(x, torch.softmax(y, -1), reduction=r)),
    "binary_cross_entropy": (
        lambda x, y, r: nn.losses.binary_cross_entropy(x, mx.sigmoid(y), reduction=r),
        lambda x, y, r: F.binary_cross_entropy_with_logits(x, torch.sigmoid(y), reduction=r)),
    "binary_cross_entropy of probabilities": (
        lambda x, y, r: nn.losses.binary_cross_entropy(mx.sigmoid(x), mx.sigmoid(y), None, False, r),
        lambda x, y, r: F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(y), reduction=r)),
    "l1_loss": (
        lambda x, y, r: nn.losses.l1_loss(x, y, r), lambda x, y, r: F.l1_loss(x, y, reduction=r)),
    "mse_loss": (
        lambda x, y, r: nn.losses.mse_loss(x, y, r), lambda x, y, r: F.mse_loss(x, y, reduction=r)),
    "nll_loss": (
        lambda x, y, r: nn.losses.nll_loss(x, mx.array([1, 0, 3]), reduction=r),
        lambda x, y, r: F.nll_loss(x, torch.tensor([1, 0, 3]), reduction=r)),
    "gaussian_nll_loss": (
        lambda x, y, r: nn.losses.gaussian_nll_loss(x, y, mx.exp(y), full=True, reduction=r),
        lambda x, y, r: F.gaussian_nll_loss(x, y, torch.exp(y), full=True, reduction=r)),
    "smooth_l1_loss": (
        lambda x, y, r: nn.losses.smooth_l1_loss(x, y, 0.5, r),
        lambda x, y, r: F.smooth_l1_loss(x, y, beta=0.5, reduction=r)),
    "huber_loss": (
        lambda x, y, r: nn.losses.huber_loss(x, y, 0.7, r),
        lambda x, y, r: F.huber_loss(x, y, delta=0.7, reduction=r)),
    "margin_ranking_loss": (
        lambda x, y, r: nn.losses.margin_ranking_loss(x, y, mx.sign(y), 0.3, r),
        lambda x, y, r: F.margin_ranking_loss(x, y, torch.sign(y), 0.3, reduction=r)),
}  # fmt: skip


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str, reduction: str) -> None:
    ours, theirs = LOSSES[name]
    y = drawn((3, 5), name, "y")
    assert_as_torch(
        lambda x: ours(x, mx.array(y), reduction),
        lambda x: theirs(x, torch.tensor(y), reduction),
        drawn((3, 5), name),
    )


def test_cosine_similarity_and_divergence() -> None:
    y = drawn((3, 5), "y")
    assert_as_torch(
        lambda x: nn.losses.cosine_similarity_loss(x, mx.array(y)),
        lambda x: F.cosine_similarity(x, torch.tensor(y)),
        drawn((3, 5)),
    )
    log: Callable[[Any], Any] = lambda x: F.log_softmax(x, -1)
    assert_as_torch(
        lambda x: nn.losses.kl_div_loss(nn.log_softmax(x), nn.log_softmax(mx.array(y))),
        lambda x: F.kl_div(log(x), log(torch.tensor(y)), reduction="none", log_target=True).sum(-1),
        drawn((3, 5)),
    )


CONVOLUTIONS: dict[str, tuple[Any, Any, tuple[int, ...]]] = {
    "1d": (nn.Conv1d(4, 6, 3, 2, 1, 2, 2), lambda: torch.nn.Conv1d(4, 6, 3, 2, 1, 2, 2), (2, 9, 4)),
    "2d": (
        nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 2), 2),
        lambda: torch.nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 2), 2), (2, 7, 6, 4)),
    "3d": (
        nn.Conv3d(2, 3, (2, 1, 3), (1, 2, 1), (1, 0, 1)),
        lambda: torch.nn.Conv3d(2, 3, (2, 1, 3), (1, 2, 1), (1, 0, 1)), (1, 3, 4, 4, 2)),
    "transposed 1d": (
        nn.ConvTranspose1d(3, 4, 3, 2, 1, 1, 1),
        lambda: torch.nn.ConvTranspose1d(3, 4, 3, 2, 1, 1), (2, 5, 3)),
    "transposed 2d": (
        nn.ConvTranspose2d(3, 4, (3, 2), (2, 1), (1, 0), 1, (1, 0)),
        lambda: torch.nn.ConvTranspose2d(3, 4, (3, 2), (2, 1), (1, 0), (1, 0)), (2, 4, 3, 3)),
    "transposed 3d": (
        nn.ConvTranspose3d(2, 3, 2, 2, 1), lambda: torch.nn.ConvTranspose3d(2, 3, 2, 2, 1), (1, 3, 2, 3, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    ours, make, shape = CONVOLUTIONS[name]
    ours.bias = mx.array(drawn(ours.bias.shape, name, "bias"))
    weight = transposed_kernel if name.startswith("transposed") else kernel
    theirs = load(make(), weight=weight(ours.weight), bias=to_numpy(ours.bias))
    assert_as_torch(ours, theirs, drawn(shape, name), images=True)


NORMS: dict[str, tuple[Any, Any, tuple[int, ...]]] = {
    "layer": (nn.LayerNorm(8), lambda: torch.nn.LayerNorm(8), (2, 5, 8)),
    "rms": (nn.RMSNorm(8), lambda: torch.nn.RMSNorm(8, eps=1e-5), (2, 5, 8)),
    "batch": (nn.BatchNorm(8), lambda: torch.nn.BatchNorm1d(8), (6, 8)),
    "batch 2d": (nn.BatchNorm(8, 1e-3, 0.3), lambda: torch.nn.BatchNorm2d(8, 1e-3, 0.3), (2, 3, 4, 8)),
    "group": (nn.GroupNorm(2, 8, pytorch_compatible=True), lambda: torch.nn.GroupNorm(2, 8), (2, 3, 4, 8)),
    "instance": (nn.InstanceNorm(8, affine=True), lambda: torch.nn.InstanceNorm2d(8, affine=True), (2, 3, 4, 8)),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_norms(name: str) -> None:
    ours, make, shape = NORMS[name]
    for key in ("weight", "bias"):
        if key in ours:
            ours[key] = mx.array(drawn(ours[key].shape, name, key))
    theirs = load(make(), **{k: to_numpy(ours[k]) for k in ("weight", "bias") if k in ours})
    images = name not in ("layer", "rms")
    assert_as_torch(ours, theirs, drawn(shape, name), images=images)
    if "batch" in name:
        for key in ("running_mean", "running_var"):
            np.testing.assert_allclose(to_numpy(ours[key]), getattr(theirs, key).numpy(), 1e-5)
        assert_as_torch(ours.eval(), theirs.eval(), drawn(shape, name), images=images)


@pytest.mark.parametrize(
    "size", [(2,), (3, 2), (3, 2, 1), (3, 1, 1), (4, 4), (5, 2, 2), (9, 1, 4), (7,)]
)
@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
def test_pooling(kind: str, ndim: int, size: tuple[int, ...]) -> None:
    name = f"{kind}{ndim}d"
    ours, theirs = getattr(nn, name)(*size), getattr(torch.nn, name)(*size)
    x = drawn((1, *(11, 10, 9)[:ndim], 2), name)
    assert_as_torch(ours, theirs, x, images=True)
    if kind == "MaxPool" and size[0] < 4:
        # Of equal elements the first has the gradient.
        assert_as_torch(ours, theirs, np.round(x), images=True)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers(name: str) -> None:
    ours: Any = getattr(nn, name)(3, 4)
    zeros = np.zeros(4, np.float32)
    if name == "RNN":
        weights, bias, other = (ours.Wxh, ours.Whh), to_numpy(ours.bias), zeros
    elif name == "GRU":
        weights, bias = (ours.Wx, ours.Wh), to_numpy(ours.b)
        other = np.concatenate([zeros, zeros, to_numpy(ours.bhn)])
    else:
        weights, bias = (ours.Wx, ours.Wh), to_numpy(ours.bias)
        other = np.zeros(16, np.float32)
    theirs = load(
        getattr(torch.nn, name)(3, 4, batch_first=True),
        weight_ih_l0=to_numpy(weights[0]),
        weight_hh_l0=to_numpy(weights[1]),
        bias_ih_l0=bias,
        bias_hh_l0=other,
    )
    states = lambda x: ours(x)[0] if name == "LSTM" else ours(x)
    assert_as_torch(states, lambda x: theirs(x)[0], drawn((2, 6, 3), name), bound=5e-5)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("scale", [2, 3, 0.5, 1.5, 2.5])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_upsampling(mode: str, scale: float, align_corners: bool) -> None:
    """Sizes are such that the factor is exact: others are rounded differently."""
    theirs = torch.nn.Upsample(scale_factor=scale, mode=f"bi{mode}", align_corners=align_corners)
    ours = nn.Upsample(scale, mode, align_corners)  # type: ignore[arg-type]
    assert_as_torch(ours, theirs, drawn((1, 4, 6, 2), mode), images=True, bound=5e-5)


@pytest.mark.parametrize("scale", [2, 0.5, 0.25])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialiased_upsampling(mode: str, scale: float) -> None:
    assert_as_torch(
        nn.Upsample(scale, mode, antialias=True),  # type: ignore[arg-type]
        lambda x: F.interpolate(x, scale_factor=scale, mode=f"bi{mode}", antialias=True),
        drawn((1, 8, 12, 2), mode),
        images=True,
        bound=5e-5,
    )


@pytest.mark.parametrize("scale", [2, 3, 0.5])
def test_nearest_upsampling(scale: float) -> None:
    theirs = torch.nn.Upsample(scale_factor=scale, mode="nearest")
    assert_as_torch(nn.Upsample(scale), theirs, drawn((1, 4, 6, 2)), images=True)


@pytest.mark.parametrize("norm_first", [True, False])
def test_encoder_layers(norm_first: bool) -> None:
    ours = nn.TransformerEncoderLayer(8, 2, 12, norm_first=norm_first)
    attention = ours.attention
    projections = [attention.query_proj, attention.key_proj, attention.value_proj]
    parameters = {
        "self_attn.in_proj_weight": np.concatenate([to_numpy(p.weight) for p in projections]),
        "self_attn.out_proj.weight": to_numpy(attention.out_proj.weight),
        "self_attn.in_proj_bias": np.zeros(24, np.float32),
        "self_attn.out_proj.bias": np.zeros(8, np.float32),
    }
    for name in ("linear1", "linear2"):
        parameters[f"{name}.weight"] = to_numpy(getattr(ours, name).weight)
        parameters[f"{name}.bias"] = to_numpy(getattr(ours, name).bias)
    theirs = torch.nn.TransformerEncoderLayer(
        8, 2, 12, 0.0, norm_first=norm_first, batch_first=True
    )
    load(theirs, **parameters)
    mask = nn.MultiHeadAttention.create_additive_causal_mask(5)
    assert_as_torch(
        lambda x: ours(x, mask),
        lambda x: theirs(x, torch.tensor(to_numpy(mask))),
        drawn((2, 5, 8)),
        bound=5e-5,
    )


@pytest.mark.parametrize("name", ["he_normal", "he_uniform", "glorot_normal", "glorot_uniform"])
def test_initial_deviations(name: str) -> None:
    """The widths of distributions; PyTorch's gain of ReLU is the root of 2."""
    mx.random.seed(0)
    torch.manual_seed(0)
    kind, form = name.split("_")
    theirs = torch.empty(200, 300)
    gain = 2**0.5
    if kind == "he":
        getattr(torch.nn.init, f"kaiming_{form}_")(theirs, nonlinearity="relu")
    else:
        getattr(torch.nn.init, f"xavier_{form}_")(theirs, gain=gain)
    ours = to_numpy(getattr(nn.init, name)()(mx.zeros((200, 300)), gain=gain))
    assert abs(ours.std() / theirs.numpy().std() - 1) < 0.02
