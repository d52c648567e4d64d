"""A step of training a GPT beside torch, in which the same network has the same weights and sees the same tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import ultramarine as mx
import ultramarine.nn as nn
import ultramarine.optimizers as optim
from bench.gpu.timing import close, compiled, row, theirs, torch, warmed


class Size(NamedTuple):
    layers: int
    dim: int
    batch: int
    context: int
    tokens: int
    dtype: str
    precision: str = "highest"


SIZES = [
    Size(4, 512, 8, 256, 8192, "float32"),
    Size(4, 512, 8, 256, 8192, "float32", "high"),
    Size(12, 768, 8, 1024, 32768, "bfloat16"),
]


class Block(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.heads = heads

    def __call__(self, x: mx.array) -> mx.array:
        b, n, d = x.shape
        split = self.qkv(self.norm1(x)).reshape(b, n, 3, self.heads, -1).transpose(2, 0, 3, 1, 4)
        scale = (d // self.heads) ** -0.5
        a = mx.fast.scaled_dot_product_attention(*split, scale=scale, mask="causal")
        x = x + self.o(a.transpose(0, 2, 1, 3).reshape(b, n, d))
        return x + self.down(nn.gelu_approx(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, size: Size) -> None:
        super().__init__()
        dim = size.dim
        self.tokens, self.places = nn.Embedding(size.tokens, dim), nn.Embedding(size.context, dim)
        self.blocks = [Block(dim, dim // 64) for _ in range(size.layers)]
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, size.tokens)

    def __call__(self, ids: mx.array) -> mx.array:
        x = self.tokens(ids) + self.places(mx.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def torch_gpt(model: Gpt, size: Size) -> Any:
    """The same network with the same weights."""
    f, tnn, dim, heads = torch.nn.functional, torch.nn, size.dim, size.dim // 64

    class TorchBlock(tnn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = tnn.LayerNorm(dim), tnn.LayerNorm(dim)
            self.qkv, self.o = tnn.Linear(dim, 3 * dim), tnn.Linear(dim, dim)
            self.up, self.down = tnn.Linear(dim, 4 * dim), tnn.Linear(4 * dim, dim)

        def forward(self, x: Any) -> Any:
            b, n, d = x.shape
            split = self.qkv(self.norm1(x)).view(b, n, 3, heads, -1).permute(2, 0, 3, 1, 4)
            a = f.scaled_dot_product_attention(*split, is_causal=True)
            x = x + self.o(a.transpose(1, 2).reshape(b, n, d))
            return x + self.down(f.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class TorchGpt(tnn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = (
                tnn.Embedding(size.tokens, dim),
                tnn.Embedding(size.context, dim),
            )
            self.blocks = tnn.ModuleList([TorchBlock() for _ in range(size.layers)])
            self.norm, self.head = tnn.LayerNorm(dim), tnn.Linear(dim, size.tokens)

        def forward(self, ids: Any) -> Any:
            x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    from ultramarine.utils import tree_flatten

    other = TorchGpt()
    other.load_state_dict(
        {
            name: torch.from_numpy(np.array(w.astype(mx.float32)))
            for name, w in tree_flatten(model.parameters())
        }
    )
    return other.cuda().to(getattr(torch, size.dtype))


def train(size: Size) -> None:
    mx.random.seed(0)
    model = Gpt(size)
    model.set_dtype(getattr(mx, size.dtype))
    mx.eval(model.parameters())
    other = torch_gpt(model, size) if torch is not None else None
    shape = (size.batch, size.context + 1)
    host = np.random.default_rng(0).integers(0, size.tokens, shape, dtype=np.int64)
    ids, targets = mx.array(host[:, :-1]), mx.array(host[:, 1:])
    optimizer = optim.Adam(learning_rate=1e-4)

    def loss_of(model: Gpt) -> mx.array:
        return nn.losses.cross_entropy(model(ids), targets, reduction="mean")

    def step() -> mx.array:
        loss, gradients = nn.value_and_grad(model, loss_of)(model)
        optimizer.update(model, gradients)
        return loss

    state = [model.state, optimizer.state]
    whole = mx.compile(step, inputs=state, outputs=state)

    def update(f: Callable[[], mx.array]) -> None:
        mx.async_eval(f(), state)

    first = step()
    mx.eval(first, state)
    eager = fast = None
    if other is not None:
        torch.backends.cuda.matmul.allow_tf32 = size.precision == "high"
        tids, ttargets = (torch.from_numpy(a.copy()).cuda() for a in (host[:, :-1], host[:, 1:]))
        adam = torch.optim.Adam(other.parameters(), lr=1e-4, fused=True)

        def torch_step(net: Any) -> Any:
            adam.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(net(tids).flatten(0, 1), ttargets.flatten())
            loss.backward()
            adam.step()
            return loss

        rtol = 1e-2 if size.dtype == "bfloat16" or size.precision == "high" else 1e-4
        close("loss of a GPT", first, torch_step(other).detach(), rtol)
        eager = theirs(lambda: torch_step(other))
        if (net := compiled(other)) is not None:
            fast = theirs(lambda: torch_step(net))
        torch.backends.cuda.matmul.allow_tf32 = False
    kind = "float32 by TF32" if size.precision == "high" else size.dtype
    name = f"Adam step, GPT {size.layers} x {size.dim}, {size.batch} x {size.context}, {kind}"
    row("training", name, warmed(lambda: update(step), mx.synchronize), eager)
    row("training", f"{name}, compiled", warmed(lambda: update(whole), mx.synchronize), fast)


def training() -> None:
    for size in SIZES:
        with mx.matmul_precision(size.precision):
            train(size)
