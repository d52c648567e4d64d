"""NumPy in float64 under mlx's names: it decides where the libraries' values differ."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from .draw import Case

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _folded(name: str) -> Any:
    function = getattr(np, name)
    return lambda a, axis=None, keepdims=False: function(a, axis=axis, keepdims=keepdims)


def _scanned(name: str) -> Any:
    accumulate, first = getattr(np, name), {"cumsum": 0, "cumprod": 1}[name]

    def scan(
        a: np.ndarray,
        axis: int | None = None,
        reverse: bool = False,
        inclusive: bool = True,
        dtype: Any = None,
    ) -> np.ndarray:
        a = np.moveaxis(a.ravel() if axis is None else a, axis or 0, 0)
        found = accumulate(a[::-1] if reverse else a, axis=0)
        if not inclusive:
            found = np.concatenate([np.full_like(found[:1], first), found[:-1]])
        return np.moveaxis(found[::-1] if reverse else found, 0, axis or 0)

    return scan


def _unflattened(a: np.ndarray, axis: int, shape: Any) -> np.ndarray:
    axis += a.ndim if axis < 0 else 0
    return a.reshape(*a.shape[:axis], *shape, *a.shape[axis + 1 :])


OWN: dict[str, Any] = {
    **{n: _folded(n) for n in ("all", "any", "sum", "prod", "mean", "count_nonzero")},
    **{n: _scanned(n) for n in ("cumsum", "cumprod")},
    "addmm": lambda c, a, b, alpha=1.0, beta=1.0: alpha * (a @ b) + beta * c,
    "unflatten": _unflattened,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "erf": _erf,
    "logsumexp": lambda a, axis=None, keepdims=False: _logsumexp(a, axis, keepdims),
    "softmax": lambda a, axis=None, precise=False: np.exp(a - _logsumexp(a, axis, True)),
    "var": lambda a, axis=None, keepdims=False, ddof=0: np.var(
        a, axis=axis, keepdims=keepdims, ddof=ddof
    ),
    "std": lambda a, axis=None, keepdims=False, ddof=0: np.std(
        a, axis=axis, keepdims=keepdims, ddof=ddof
    ),
    "array": np.asarray,
}


def _logsumexp(a: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    axis = tuple(axis) if isinstance(axis, list) else axis
    top = np.max(a, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    out = np.log(np.sum(np.exp(a - top), axis=axis, keepdims=True)) + top
    return out if keepdims else np.squeeze(out, axis=tuple(range(a.ndim)) if axis is None else axis)


class Layers:
    """`mx.fast`."""

    @staticmethod
    def rms_norm(x: np.ndarray, weight: Any, eps: float, stream: Any = None) -> np.ndarray:
        x = np.asarray(x)
        y = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
        return y if weight is None else y * weight

    @staticmethod
    def layer_norm(
        x: np.ndarray, weight: Any, bias: Any, eps: float, stream: Any = None
    ) -> np.ndarray:
        y = Layers.rms_norm(x - np.mean(x, axis=-1, keepdims=True), weight, eps)
        return y if bias is None else y + bias

    @staticmethod
    def scaled_dot_product_attention(
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        *,
        scale: float,
        mask: Any = None,
        sinks: Any = None,
        force_fused: bool = False,
        stream: Any = None,
    ) -> np.ndarray:
        group = q.shape[1] // k.shape[1]
        k, v = (np.repeat(np.asarray(a), group, axis=1) for a in (k, v))
        scores = scale * np.asarray(q, np.float64) @ k.swapaxes(2, 3)
        lowest = np.finfo(np.float32).min
        if isinstance(mask, str):
            mask = np.tri(*scores.shape[2:], scores.shape[3] - scores.shape[2], dtype=bool)
        if mask is not None:
            mask = np.asarray(mask)
            kept = np.where(mask, scores, lowest) if mask.dtype == bool else scores + mask
            scores = np.maximum(kept, lowest)
        if sinks is not None:
            column = np.asarray(sinks, np.float64)[None, :, None, None]
            scores = np.concatenate(
                [np.broadcast_to(column, (*scores.shape[:3], 1)), scores], axis=3
            )
        # A row of the lowest numbers is even: its logsumexp would be rounded to them.
        weights = np.exp(scores - np.max(scores, axis=3, keepdims=True))
        weights /= np.sum(weights, axis=3, keepdims=True)
        return weights[..., scores.shape[3] - k.shape[2] :] @ v

    @staticmethod
    def cross_entropy(logits: np.ndarray, targets: Any, stream: Any = None) -> np.ndarray:
        logits = np.asarray(logits, np.float64)
        indices = np.asarray(targets).astype(np.int64)[..., None]
        own = np.take_along_axis(logits, indices, -1)[..., 0]
        return _logsumexp(logits, -1, False) - own

    @staticmethod
    def gated_delta_update(
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        gamma: np.ndarray,
        beta: np.ndarray,
        initial_state: Any = None,
        mask: Any = None,
        stream: Any = None,
    ) -> list[np.ndarray]:
        batch, steps, heads, size = v.shape
        q, k = (np.repeat(np.asarray(a, np.float64), heads // a.shape[2], axis=2) for a in (q, k))
        state = np.zeros((batch, heads, size, q.shape[3]))
        if initial_state is not None:
            state = state + np.asarray(initial_state)
        out = np.zeros(v.shape)
        for t in range(steps):
            turned = state * np.asarray(gamma)[:, t, :, None, None]
            surprise = np.asarray(v)[:, t] - np.einsum("bhvk,bhk->bhv", turned, k[:, t])
            surprise = surprise * np.asarray(beta)[:, t, :, None]
            turned = turned + surprise[..., None] * k[:, t, :, None]
            kept = np.ones(batch, bool) if mask is None else np.asarray(mask)[:, t] != 0
            state = np.where(kept[:, None, None, None], turned, state)
            found = np.einsum("bhvk,bhk->bhv", state, q[:, t])
            out[:, t] = np.where(kept[:, None, None], found, 0)
        return [out, state]

    @staticmethod
    def rope(
        a: np.ndarray,
        dims: int,
        *,
        traditional: bool,
        base: float | None,
        scale: float,
        offset: Any,
        freqs: Any = None,
        stream: Any = None,
    ) -> np.ndarray:
        n = dims // 2
        steps = base ** (-np.arange(n) / n) if base is not None else 1 / np.asarray(freqs)
        offset = np.frombuffer(offset, np.uint8) if isinstance(offset, bytes) else offset
        first = np.asarray(offset).reshape(-1, *[1] * (a.ndim - 2))
        angles = (((np.arange(a.shape[-2]) + first) * scale)[..., None] * steps).astype(np.float64)
        left, right = (
            (slice(0, dims, 2), slice(1, dims, 2)) if traditional else (slice(n), slice(n, dims))
        )
        x, y, out = a[..., left], a[..., right], np.array(a, np.float64)
        out[..., left] = x * np.cos(angles) - y * np.sin(angles)
        out[..., right] = x * np.sin(angles) + y * np.cos(angles)
        return out


class Numpy:
    """`mx`, as far as NumPy has it."""

    linalg = np.linalg
    fft = np.fft
    fast = Layers

    def __getattr__(self, name: str) -> Any:
        thing = OWN[name] if name in OWN else getattr(np, name)
        # Dtypes are types, which are no functions.
        return tuples(thing) if callable(thing) and not isinstance(thing, type) else thing


def tuples(function: Any) -> Any:
    """The function, with axes that NumPy wants as tuples, and without a stream."""

    def call(*args: Any, **named: Any) -> Any:
        named.pop("stream", None)
        fit = lambda a: tuple(a) if isinstance(a, list) else a
        return function(*map(fit, args), **{k: fit(a) for k, a in named.items()})

    return call


def answer(case: Case, space: dict[str, Any]) -> list[np.ndarray]:
    """The case's results with operands in float64 (complex128)."""
    values = {}
    for name, given in case.inputs.items():
        data = np.asarray(given.layout.view(np, given.data, given.shape))
        values[name] = data.astype(np.complex128 if data.dtype.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        # A method is the function.
        code = re.sub(
            r"^x\.(\w+)\(\)?", lambda m: f"mx.{m[1]}(x{', ' if m[0][-1] == '(' else ')'}", case.code
        )
        code = re.sub(r"stream=[^=]*\)$", "stream=None)", code)
        results = eval(code, {**space, "mx": Numpy(), **values})
        return [
            np.asarray(a) for a in (results if isinstance(results, (list, tuple)) else [results])
        ]
