"""Writes the tables that the Rust tests compare with, from the Python package.

    PYTHONPATH=python python crates/ultramarine-nn/tests/tables/make.py

Parameters are drawn after `seed(0)`, and then set to numbers of a formula, in float64, of which outputs and gradients are
computed. An array is written as its shape and two projections: its sums with `sin(1 + 0.3 i)` and `cos(2 + 0.7 i)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import ultramarine as mx
import ultramarine.nn as nn
import ultramarine.optimizers as optimizers
from ultramarine.utils import tree_flatten

HERE = Path(__file__).parent
STEPS = 3


def formula(number: int, shape: tuple[int, ...]) -> np.ndarray:
    """Elements of the parameter of a number, by name."""
    i = np.arange(math.prod(shape))
    return (0.5 * np.sin(1.3 * (number + 1) + 0.7 * i)).astype(np.float32).reshape(shape)


def wide(x: np.ndarray) -> mx.array:
    """A float64 array."""
    return mx.array(x.astype(np.float64), dtype=mx.float64)


def argument(number: int, shape: tuple[int, ...], kind: str) -> mx.array:
    """An input: floats between -1 and 1, positive ones, or integers below 5."""
    i = np.arange(math.prod(shape))
    if kind == "int":
        return mx.array(((7 * i + 3 + number) % 5).astype(np.int32).reshape(shape))
    floats = np.cos(0.5 + 0.9 * i + number).astype(np.float32)
    if kind == "positive":
        floats = np.abs(floats) * np.float32(0.9) + np.float32(0.05)
    return wide(floats.reshape(shape))


def described(x: Any) -> str:
    """Shape and projections of an array."""
    values = np.array(x.astype(mx.float64) if isinstance(x, mx.array) else x, dtype=np.float64)
    i = np.arange(values.size)
    flat = values.reshape(-1)
    sums = (flat @ np.sin(1 + 0.3 * i), flat @ np.cos(2 + 0.7 * i))
    shape = "x".join(map(str, values.shape)) or "-"
    return f"{shape} {sums[0]:.12g} {sums[1]:.12g}"


def total(y: Any) -> mx.array:
    """A scalar of a result, for gradients."""
    i = np.arange(y.size).reshape(y.shape)
    return mx.sum(y * wide(np.cos(0.2 + 1.1 * i)).astype(y.dtype))


Input = tuple[tuple[int, ...], str]


def floats(*shape: int) -> Input:
    return shape, "float"


class Table:
    """Lines of a file."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, *words: object) -> None:
        self.lines.append(" ".join(map(str, words)))

    def write(self, name: str) -> None:
        (HERE / name).write_text("\n".join(self.lines) + "\n")


def layer_case(
    table: Table,
    name: str,
    make: Callable[[], Any],
    inputs: list[Input],
    call: Callable[..., Any] | None = None,
    drawn: bool = False,
    evaluating: bool = False,
) -> None:
    """Writes a layer. `drawn`: computed with the parameters that were drawn, in float32."""
    mx.random.seed(0)
    layer = make()
    call = call or (lambda m, *x: m(*x))
    table.add("case", name)
    trained = {path for path, _ in tree_flatten(layer.trainable_parameters())}
    parameters = dict(sorted(tree_flatten(layer.parameters())))
    for path, x in parameters.items():
        table.add("param", path, "trained" if path in trained else "frozen", described(x))
    if not drawn:
        values = {
            path: formula(number, x.shape) + np.float64(1.5) * path.endswith("running_var")
            for number, (path, x) in enumerate(parameters.items())
        }
        layer.load_weights([(path, wide(x)) for path, x in values.items()])
    if evaluating:
        layer.eval()
    arrays = [argument(i, *x) for i, x in enumerate(inputs)]
    if drawn:
        arrays = [x.astype(mx.float32) if x.dtype == mx.float64 else x for x in arrays]
    for shape, kind in inputs:
        table.add("input", kind, "x".join(map(str, shape)) or "-")
    differentiable = [i for i, (_, kind) in enumerate(inputs) if kind != "int"]

    def loss(parameters: Any, chosen: list[mx.array]) -> Any:
        if parameters:
            layer.update(parameters)
        given = list(arrays)
        for i, x in zip(differentiable, chosen, strict=True):
            given[i] = x
        y = call(layer, *given)
        return total(y), y

    words = any(x.dtype == mx.uint32 for _, x in tree_flatten(layer.trainable_parameters()))
    present = {} if words else layer.trainable_parameters()
    chosen = [arrays[i] for i in differentiable]
    if present or chosen:
        both = mx.value_and_grad(loss, argnums=(0, 1))(present, chosen)
        (_, y), (of_parameters, of_inputs) = both
    else:
        y, of_parameters, of_inputs = call(layer, *arrays), {}, []
    table.add("output", described(y))
    for path, x in sorted(tree_flatten(of_parameters)):
        table.add("gradient", path, described(x))
    for i, x in zip(differentiable, of_inputs, strict=True):
        table.add("gradient", f"input{i}", described(x))
    for path, x in sorted(tree_flatten(layer.parameters())):
        if path not in trained and not drawn:
            table.add("state", path, described(x))


def layers() -> None:
    table = Table()

    def case(name: str, make: Callable[[], Any], *inputs: Input, **options: Any) -> None:
        layer_case(table, name, make, list(inputs), **options)

    case("Identity", lambda: nn.Identity(), floats(2, 3))
    case("Linear(3, 2)", lambda: nn.Linear(3, 2), floats(4, 3))
    case("Linear(3, 2) without bias", lambda: nn.Linear(3, 2, bias=False), floats(2, 4, 3))
    case("Bilinear(3, 2, 4)", lambda: nn.Bilinear(3, 2, 4), floats(5, 3), floats(5, 2))
    case("Embedding(5, 3)", lambda: nn.Embedding(5, 3), ((2, 3), "int"))
    as_linear = lambda m, x: m.as_linear(x)
    case("Embedding(5, 3) as linear", lambda: nn.Embedding(5, 3), floats(2, 3), call=as_linear)

    case("Conv1d(4, 6, 3)", lambda: nn.Conv1d(4, 6, 3), floats(2, 7, 4))
    case(
        "Conv1d(4, 6, 3) stride 2 padding 1 dilation 2",
        lambda: nn.Conv1d(4, 6, 3, 2, 1, 2),
        floats(2, 9, 4),
    )
    case("Conv2d(3, 4, 3) padding 1", lambda: nn.Conv2d(3, 4, 3, padding=1), floats(1, 5, 4, 3))
    case(
        "Conv2d(3, 4, (2, 3)) stride (2, 1) padding (0, 1) without bias",
        lambda: nn.Conv2d(3, 4, (2, 3), (2, 1), (0, 1), bias=False),
        floats(2, 6, 5, 3),
    )
    case("Conv3d(2, 3, 2)", lambda: nn.Conv3d(2, 3, 2), floats(1, 3, 4, 3, 2))
    case("ConvTranspose1d(3, 2, 3)", lambda: nn.ConvTranspose1d(3, 2, 3), floats(2, 5, 3))
    case(
        "ConvTranspose2d(3, 2, 3) stride 2 padding 1 output_padding 1",
        lambda: nn.ConvTranspose2d(3, 2, 3, 2, 1, output_padding=1),
        floats(1, 4, 3, 3),
    )
    case("ConvTranspose3d(2, 2, 2)", lambda: nn.ConvTranspose3d(2, 2, 2), floats(1, 2, 3, 2, 2))

    case("Dropout(0.5) in evaluation", lambda: nn.Dropout(0.5), floats(2, 3), evaluating=True)
    case("LayerNorm(6)", lambda: nn.LayerNorm(6), floats(3, 6))
    case("LayerNorm(6) without bias", lambda: nn.LayerNorm(6, bias=False), floats(3, 6))
    case("LayerNorm(6) without affine", lambda: nn.LayerNorm(6, 1e-3, affine=False), floats(3, 6))
    case("RMSNorm(6)", lambda: nn.RMSNorm(6), floats(2, 3, 6))
    case("InstanceNorm(3)", lambda: nn.InstanceNorm(3), floats(2, 4, 3))
    case("InstanceNorm(3) affine", lambda: nn.InstanceNorm(3, affine=True), floats(2, 4, 2, 3))
    case("GroupNorm(2, 6)", lambda: nn.GroupNorm(2, 6), floats(2, 3, 6))
    case(
        "GroupNorm(2, 6) as PyTorch",
        lambda: nn.GroupNorm(2, 6, pytorch_compatible=True),
        floats(2, 3, 2, 6),
    )
    case("GroupNorm(2, 6) of two axes", lambda: nn.GroupNorm(2, 6), floats(2, 6))
    case("BatchNorm(3)", lambda: nn.BatchNorm(3), floats(4, 3))
    case("BatchNorm(3) in evaluation", lambda: nn.BatchNorm(3), floats(2, 4, 3), evaluating=True)
    case(
        "BatchNorm(3) without statistics",
        lambda: nn.BatchNorm(3, momentum=0.2, affine=False, track_running_stats=False),
        floats(4, 2, 3),
    )

    for name in ("Max", "Avg"):
        pool = lambda n, *a, name=name: getattr(nn, f"{name}Pool{n}d")(*a)
        case(f"{name}Pool1d(3) stride 2 padding 1", lambda p=pool: p(1, 3, 2, 1), floats(2, 9, 3))
        case(f"{name}Pool1d(11) stride 2", lambda p=pool: p(1, 11, 2), floats(1, 20, 2))
        case(f"{name}Pool1d(13) stride 1", lambda p=pool: p(1, 13, 1), floats(1, 20, 2))
        case(f"{name}Pool2d(2)", lambda p=pool: p(2, 2), floats(1, 4, 5, 2))
        case(f"{name}Pool2d(4, 5)", lambda p=pool: p(2, (4, 5)), floats(1, 9, 11, 2))
        case(f"{name}Pool3d(2) stride 1", lambda p=pool: p(3, 2, 1), floats(1, 3, 3, 4, 2))

    case("RoPE(4)", lambda: nn.RoPE(4), floats(1, 2, 3, 6))
    case(
        "RoPE(6) traditional base 100 scale 0.5 at 3",
        lambda: nn.RoPE(6, True, 100, 0.5),
        floats(1, 2, 3, 6),
        call=lambda m, x: m(x, offset=3),
    )
    case(
        "SinusoidalPositionalEncoding(6)",
        lambda: nn.SinusoidalPositionalEncoding(6),
        floats(2, 3),
    )
    case(
        "SinusoidalPositionalEncoding(4) otherwise",
        lambda: nn.SinusoidalPositionalEncoding(4, 0.1, 2.0, 1.0, True, True),
        floats(5),
    )
    case("ALiBi", lambda: nn.ALiBi(), floats(1, 6, 3, 3))
    case("ALiBi at 2", lambda: nn.ALiBi(), floats(1, 3, 2, 4), call=lambda m, x: m(x, offset=2))

    case("RNN(3, 4)", lambda: nn.RNN(3, 4), floats(2, 3, 3))
    case("RNN(3, 4) with relu", lambda: nn.RNN(3, 4, False, nn.relu), floats(3, 3))
    hidden = lambda m, x, h: m(x, h)
    case("GRU(3, 4)", lambda: nn.GRU(3, 4), floats(2, 3, 3))
    case("GRU(3, 4) from a state", lambda: nn.GRU(3, 4), floats(2, 2, 3, 3), floats(4), call=hidden)
    case("GRU(3, 4) without bias", lambda: nn.GRU(3, 4, bias=False), floats(3, 3))
    both = lambda m, *x: mx.concatenate(m(*x), -1)
    case("LSTM(3, 4)", lambda: nn.LSTM(3, 4), floats(2, 3, 3), call=both)
    case(
        "LSTM(3, 4) from a state",
        lambda: nn.LSTM(3, 4, bias=False),
        floats(3, 3),
        floats(4),
        floats(4),
        call=both,
    )

    case(
        "MultiHeadAttention(8, 2)",
        lambda: nn.MultiHeadAttention(8, 2),
        floats(1, 3, 8),
        floats(1, 4, 8),
        floats(1, 4, 8),
    )
    case(
        "MultiHeadAttention(8, 2) of other sizes",
        lambda: nn.MultiHeadAttention(8, 2, 5, 6, 7, 4, 3, bias=True),
        floats(1, 3, 5),
        floats(1, 3, 6),
        floats(1, 3, 7),
        call=lambda m, q, k, v: m(q, k, v, "causal"),
    )
    unmasked = lambda m, x: m(x, None)
    encoder = nn.TransformerEncoderLayer
    case("TransformerEncoderLayer(8, 2)", lambda: encoder(8, 2), floats(1, 3, 8), call=unmasked)
    case(
        "TransformerEncoderLayer(8, 2) otherwise",
        lambda: encoder(8, 2, 5, activation=nn.gelu, norm_first=False),
        floats(1, 3, 8),
        call=lambda m, x: m(x, "causal"),
    )
    case(
        "TransformerEncoder(2, 8, 2) checkpointed",
        lambda: nn.TransformerEncoder(2, 8, 2, 6, checkpoint=True),
        floats(1, 3, 8),
        call=lambda m, x: m(x, nn.MultiHeadAttention.create_additive_causal_mask(3, mx.float64)),
    )
    case(
        "TransformerDecoderLayer(8, 2)",
        lambda: nn.TransformerDecoderLayer(8, 2, 6),
        floats(1, 3, 8),
        floats(1, 4, 8),
        call=lambda m, x, memory: m(x, memory, "causal", None),
    )
    case(
        "TransformerDecoder(2, 8, 2) checkpointed",
        lambda: nn.TransformerDecoder(2, 8, 2, 6, norm_first=False, checkpoint=True),
        floats(1, 3, 8),
        floats(1, 4, 8),
        call=lambda m, x, memory: m(x, memory, "causal", None),
    )
    case(
        "Transformer(8, 2, 1, 2)",
        lambda: nn.Transformer(8, 2, 1, 2, 6),
        floats(1, 3, 8),
        floats(1, 2, 8),
        call=lambda m, source, target: m(source, target, None, "causal", None),
    )

    for mode in ("nearest", "linear", "cubic"):
        case(f"Upsample(2) {mode}", lambda m=mode: nn.Upsample(2, m), floats(1, 3, 4, 2))
        case(f"Upsample(0.6) {mode}", lambda m=mode: nn.Upsample(0.6, m), floats(1, 7, 2))
        case(
            f"Upsample(1.5, 3) {mode}",
            lambda m=mode: nn.Upsample((1.5, 3.0), m),
            floats(1, 4, 3, 2),
        )
        if mode != "nearest":
            corners = lambda m=mode: nn.Upsample(1.7, m, align_corners=True)
            case(f"Upsample(1.7) {mode} with corners", corners, floats(1, 5, 2))
            smooth = lambda m=mode: nn.Upsample(0.4, m, antialias=True)
            case(f"Upsample(0.4) {mode} antialiased", smooth, floats(1, 9, 2))
            case(
                f"Upsample(1.5) {mode} of a long axis",
                lambda m=mode: nn.Upsample(1.5, m),
                floats(1, 300, 1),
            )

    case(
        "Sequential",
        lambda: nn.Sequential(
            nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.PReLU(), nn.tanh), nn.Linear(4, 2)
        ),
        floats(5, 3),
    )
    for mode, group, bits in (("affine", 32, 8), ("affine", 64, 4), ("mxfp4", 32, 4)):
        quantized = lambda m=mode, g=group, b=bits: nn.QuantizedLinear(64, 4, True, g, b, m)
        case(f"QuantizedLinear(64, 4) {mode} {bits}", quantized, floats(2, 64), drawn=True)
    from_linear = lambda: nn.QuantizedLinear.from_linear(nn.Linear(64, 4), 32, 4)
    case("QuantizedLinear from Linear", from_linear, floats(2, 64), drawn=True)
    embedding = lambda: nn.QuantizedEmbedding(5, 64)
    case("QuantizedEmbedding(5, 64)", embedding, ((2, 3), "int"), drawn=True)
    case(
        "QuantizedEmbedding(5, 64) as linear", embedding, floats(2, 64), call=as_linear, drawn=True
    )
    case("QQLinear(64, 4)", lambda: nn.QQLinear(64, 4), floats(2, 64), drawn=True)
    case(
        "QQLinear(64, 4) in evaluation",
        lambda: nn.QQLinear(64, 4).eval(),
        floats(2, 64),
        drawn=True,
    )

    activations: dict[str, Callable[[], Any]] = {
        name: getattr(nn, name)
        for name in [
            "Sigmoid",
            "Tanh",
            "ReLU",
            "ReLU2",
            "ReLU6",
            "LeakyReLU",
            "PReLU",
            "ELU",
            "CELU",
            "SELU",
            "SiLU",
            "GELU",
            "GLU",
            "Softplus",
            "Mish",
            "LogSigmoid",
            "Softsign",
            "Hardswish",
            "HardTanh",
            "HardShrink",
            "Softshrink",
            "Softmax",
            "Softmin",
            "LogSoftmax",
        ]
    }
    activations |= {
        "LeakyReLU(0.3)": lambda: nn.LeakyReLU(0.3),
        "PReLU(4)": lambda: nn.PReLU(4),
        "ELU(0.5)": lambda: nn.ELU(0.5),
        "CELU(0.5)": lambda: nn.CELU(0.5),
        "GELU tanh": lambda: nn.GELU("tanh"),
        "GELU fast": lambda: nn.GELU("fast"),
        "HardShrink(0.2)": lambda: nn.HardShrink(0.2),
        "Softshrink(0.2)": lambda: nn.Softshrink(0.2),
        "GLU(0)": lambda: nn.GLU(0),
    }
    for name, make in activations.items():
        case(name, make, floats(2, 4), call=lambda m, x: m(4 * x))
    table.write("layers.txt")


def losses() -> None:
    table = Table()

    def case(name: str, of: Callable[..., Any], *inputs: Input) -> None:
        table.add("case", name)
        arrays = [argument(i, *x) for i, x in enumerate(inputs)]
        for shape, kind in inputs:
            table.add("input", kind, "x".join(map(str, shape)))

        def scalar(x: mx.array) -> Any:
            y = of(x, *arrays[1:])
            return total(y), y

        (_, y), gradient = mx.value_and_grad(scalar)(arrays[0])
        table.add("output", described(y))
        table.add("gradient", "input0", described(gradient))

    x, loss = floats(3, 5), nn.losses
    positive = ((3, 5), "positive")
    classes = ((3,), "int")
    case("cross_entropy", lambda x, t: loss.cross_entropy(x, t), x, classes)
    case("cross_entropy mean", lambda x, t: loss.cross_entropy(x, t, reduction="mean"), x, classes)
    case("cross_entropy of probabilities", lambda x, t: loss.cross_entropy(x, t), x, positive)
    case(
        "cross_entropy otherwise",
        lambda x, t, w: loss.cross_entropy(x, t, w, axis=0, label_smoothing=0.1, reduction="sum"),
        floats(5, 3),
        classes,
        ((3,), "positive"),
    )
    case("binary_cross_entropy", lambda x, t: loss.binary_cross_entropy(x, t), x, positive)
    case(
        "binary_cross_entropy of probabilities",
        lambda x, t, w: loss.binary_cross_entropy(x, t, w, False, "none"),
        positive,
        positive,
        positive,
    )
    case("l1_loss", lambda x, t: loss.l1_loss(x, t), x, x)
    case("mse_loss", lambda x, t: loss.mse_loss(x, t), x, x)
    case("nll_loss", lambda x, t: loss.nll_loss(x, t), x, classes)
    case("gaussian_nll_loss", lambda x, t, v: loss.gaussian_nll_loss(x, t, v), x, x, positive)
    case(
        "gaussian_nll_loss full",
        lambda x, t, v: loss.gaussian_nll_loss(x, t, v, True, 0.3, "none"),
        x,
        x,
        positive,
    )
    case("kl_div_loss", lambda x, t: loss.kl_div_loss(x, t), x, x)
    case("smooth_l1_loss", lambda x, t: loss.smooth_l1_loss(x, t), x, x)
    case("smooth_l1_loss 0.5", lambda x, t: loss.smooth_l1_loss(x, t, 0.5, "none"), x, x)
    case("huber_loss", lambda x, t: loss.huber_loss(x, t), x, x)
    case("huber_loss 0.5", lambda x, t: loss.huber_loss(x, t, 0.5, "sum"), x, x)
    case("log_cosh_loss", lambda x, t: loss.log_cosh_loss(x, t), x, x)
    case("hinge_loss", lambda x, t: loss.hinge_loss(x, t), x, x)
    case("margin_ranking_loss", lambda a, b, t: loss.margin_ranking_loss(a, b, t, 0.2), x, x, x)
    case("cosine_similarity_loss", lambda a, b: loss.cosine_similarity_loss(a, b), x, x)
    case("triplet_loss", lambda a, p, n: loss.triplet_loss(a, p, n), x, x, x)
    case(
        "triplet_loss otherwise",
        lambda a, p, n: loss.triplet_loss(a, p, n, 0, 3, 0.5, 1e-3),
        x,
        x,
        x,
    )
    table.write("losses.txt")


def init() -> None:
    table = Table()

    def case(name: str, initializer: Callable[[], Any], shape: tuple[int, ...] = (4, 6)) -> None:
        mx.random.seed(7)
        table.add("case", name, described(initializer()(mx.zeros(shape))))

    i = nn.init
    case("constant(0.5)", lambda: i.constant(0.5))
    case("normal(1, 2)", lambda: i.normal(1, 2))
    case("uniform(-1, 3)", lambda: i.uniform(-1, 3))
    case("identity", lambda: i.identity(), (4, 4))
    case("glorot_normal", lambda: i.glorot_normal(), (4, 3, 6))
    case("glorot_uniform(2)", lambda: lambda a: i.glorot_uniform()(a, 2.0))
    case("he_normal", lambda: i.he_normal(), (4, 3, 6))
    case("he_uniform(out)", lambda: lambda a: i.he_uniform()(a, "fan_out", 0.5), (4, 3, 6))
    case("sparse(0.4)", lambda: i.sparse(0.4, 1.0, 0.5))
    case("orthogonal(2)", lambda: i.orthogonal(2.0))
    table.write("init.txt")


SHAPES = {"deep.0.bias": (3,), "deep.0.weight": (3, 2), "deep.1.kernel": (4, 2, 3)}


def tree(values: Iterable[np.ndarray]) -> dict[str, Any]:
    from ultramarine.utils import tree_unflatten

    return tree_unflatten([(name, wide(x)) for name, x in zip(SHAPES, values, strict=True)])


def parameters(offset: int) -> list[np.ndarray]:
    return [formula(offset + j, s) for j, s in enumerate(SHAPES.values())]


def optimizer_states() -> None:
    table = Table()

    def case(name: str, optimizer: Any) -> None:
        table.add("case", name)
        current = tree(parameters(0))
        for step in range(STEPS):
            current = optimizer.apply_gradients(tree(parameters(10 * (step + 1))), current)
        for path, x in sorted(tree_flatten(current)):
            table.add("param", path, described(x))
        for path, x in sorted(tree_flatten(optimizer.state)):
            table.add("state", path, str(x.dtype).removeprefix("ultramarine."), described(x))

    o = optimizers
    case("SGD", o.SGD(0.1))
    case("SGD momentum", o.SGD(0.1, 0.9, 0.01, 0.1))
    case("SGD nesterov", o.SGD(0.1, 0.9, nesterov=True))
    case("RMSprop", o.RMSprop(0.1))
    case("RMSprop(0.5, 1e-3)", o.RMSprop(0.1, 0.5, 1e-3))
    case("Adagrad", o.Adagrad(0.1))
    case("AdaDelta", o.AdaDelta(0.1))
    case("AdaDelta(0.5, 1e-3)", o.AdaDelta(0.1, 0.5, 1e-3))
    case("Adam", o.Adam(0.1))
    case("Adam corrected", o.Adam(0.1, [0.8, 0.95], 1e-4, True))
    case("AdamW", o.AdamW(0.1))
    case("AdamW corrected", o.AdamW(0.1, weight_decay=0.2, bias_correction=True))
    case("Adamax", o.Adamax(0.1))
    case("Lion", o.Lion(0.1))
    case("Lion decay", o.Lion(0.1, [0.8, 0.9], 0.1))
    case("Adafactor", o.Adafactor())
    case("Adafactor warmup", o.Adafactor(beta_1=0.9, weight_decay=0.1, warmup_init=True))
    case(
        "Adafactor absolute",
        o.Adafactor(0.1, (1e-8, 1e-2), 0.5, -0.5, scale_parameter=False, relative_step=False),
    )
    case("Muon", o.Muon(0.1))
    case("Muon plain", o.Muon(0.1, 0.8, 0.0, False, 3))
    case("Adam scheduled", o.Adam(o.linear_schedule(0.0, 0.1, 5)))
    matrices = lambda _, g: g.ndim >= 2
    case("MultiOptimizer", o.MultiOptimizer([o.Lion(0.1), o.SGD(0.2, 0.9)], [matrices]))

    clipped, norm = o.clip_grad_norm(tree(parameters(0)), 0.5)
    table.add("case", "clip_grad_norm")
    table.add("norm", described(norm))
    for path, x in sorted(tree_flatten(clipped)):
        table.add("param", path, described(x))

    schedules = {
        "exponential_decay": o.exponential_decay(0.1, 0.9),
        "step_decay": o.step_decay(0.1, 0.9, 3),
        "cosine_decay": o.cosine_decay(0.1, 8, 0.01),
        "linear_schedule": o.linear_schedule(0.01, 0.1, 5),
        "join_schedules": o.join_schedules(
            [o.linear_schedule(0.0, 0.1, 4), o.exponential_decay(0.1, 0.9)], [4]
        ),
    }
    for name, schedule in schedules.items():
        table.add("case", name)
        rates = [schedule(mx.array(step, mx.uint64)) for step in range(12)]
        table.add("rates", described(mx.stack(rates)))
    table.write("optimizers.txt")


def files() -> None:
    mx.random.seed(3)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm(4), nn.Linear(4, 2, bias=False))
    optimizer = optimizers.Adam(0.1)
    x = argument(0, (5, 3), "float").astype(mx.float32)
    _, gradients = nn.value_and_grad(model, lambda x: mx.mean(mx.square(model(x))))(x)
    optimizer.update(model, gradients)
    model.save_weights(str(HERE / "model.safetensors"))
    model.save_weights(str(HERE / "model.npz"))
    mx.save_safetensors(str(HERE / "adam.safetensors"), dict(tree_flatten(optimizer.state)))


if __name__ == "__main__":
    layers()
    losses()
    init()
    optimizer_states()
    files()
