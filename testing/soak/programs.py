"""Random programs over arrays of small whole numbers, beside NumPy: results are exact on every device."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import ultramarine as mx

# Numbers stay below this, so that float32 holds every sum of a program's arrays.
BOUND = 64
SIDE = 24


@dataclass(frozen=True)
class Pair:
    """An array and what it must be."""

    ours: mx.array
    wanted: np.ndarray[Any, Any]


Step = Callable[[random.Random, list[Pair], mx.Device], Pair]


def made(rng: random.Random, device: mx.Device, large: float = 0.0) -> Pair:
    """An array from NumPy's memory: on a GPU an upload."""
    shape = (512, 768) if rng.random() < large else (SIDE, SIDE)
    values = np.random.default_rng(rng.getrandbits(32)).integers(-BOUND, BOUND, shape)
    wanted = values.astype(np.float32)
    return Pair(mx.array(wanted).to_device(device), wanted)


def same_shape(rng: random.Random, pairs: list[Pair]) -> tuple[Pair, Pair]:
    x = rng.choice(pairs)
    return x, rng.choice([p for p in pairs if p.wanted.shape == x.wanted.shape])


def small(ours: mx.array, wanted: np.ndarray[Any, Any], device: mx.Device) -> Pair:
    """Brings numbers back below the bound."""
    half = mx.remainder(ours, float(BOUND), stream=device)
    return Pair(half, np.remainder(wanted, BOUND).astype(np.float32))


def elementwise(rng: random.Random, pairs: list[Pair], device: mx.Device) -> Pair:
    x, y = same_shape(rng, pairs)
    name = rng.choice(["add", "subtract", "multiply", "maximum", "minimum"])
    ours = getattr(mx, name)(x.ours.to_device(device), y.ours.to_device(device), stream=device)
    return small(ours, getattr(np, name)(x.wanted, y.wanted), device)


def chosen(rng: random.Random, pairs: list[Pair], device: mx.Device) -> Pair:
    x, y = same_shape(rng, pairs)
    a, b = x.ours.to_device(device), y.ours.to_device(device)
    ours = mx.where(mx.greater(a, b, stream=device), a, -b, stream=device)
    return Pair(ours, np.where(x.wanted > y.wanted, x.wanted, -y.wanted))


def product(rng: random.Random, pairs: list[Pair], device: mx.Device) -> Pair:
    x, y = (rng.choice([p for p in pairs if p.wanted.shape == (SIDE, SIDE)]) for _ in range(2))
    ours = mx.matmul(x.ours.to_device(device), y.ours.to_device(device), stream=device)
    return small(ours, x.wanted @ y.wanted, device)


def moved(rng: random.Random, pairs: list[Pair], device: mx.Device) -> Pair:
    x = rng.choice(pairs)
    rows = x.wanted.shape[0]
    order = np.array(rng.sample(range(rows), rows), dtype=np.int32)
    places = mx.array(order).to_device(device)
    return Pair(mx.take(x.ours.to_device(device), places, axis=0, stream=device), x.wanted[order])


def turned(rng: random.Random, pairs: list[Pair], device: mx.Device) -> Pair:
    x = rng.choice([p for p in pairs if p.wanted.shape == (SIDE, SIDE)])
    return Pair(mx.transpose(x.ours.to_device(device), stream=device), x.wanted.T)


def summed(rng: random.Random, pairs: list[Pair], device: mx.Device) -> Pair:
    x = rng.choice(pairs)
    a = x.ours.to_device(device)
    total = mx.sum(a, axis=1, keepdims=True, stream=device)
    ours = mx.add(a, total, stream=device)
    return small(ours, x.wanted + x.wanted.sum(axis=1, keepdims=True), device)


def sliced(rng: random.Random, pairs: list[Pair], device: mx.Device) -> Pair:
    x = rng.choice(pairs)
    at = rng.randrange(1, x.wanted.shape[0])
    a = x.ours.to_device(device)
    ours = mx.concatenate([a[at:], a[:at]], axis=0, stream=device)
    return Pair(ours, np.concatenate([x.wanted[at:], x.wanted[:at]]))


STEPS: list[Step] = [elementwise, elementwise, chosen, product, moved, turned, summed, sliced]


def program(seed: int, devices: list[mx.Device]) -> list[Pair]:
    """The arrays of a program, nothing of which is evaluated but by chance on the way."""
    rng = random.Random(seed)
    pairs = [made(rng, rng.choice(devices)) for _ in range(2)]
    pairs += [made(rng, rng.choice(devices), large=0.02) for _ in range(3)]
    for _ in range(rng.randrange(4, 24)):
        pairs.append(rng.choice(STEPS)(rng, pairs, rng.choice(devices)))
        if rng.random() < 0.1:
            mx.async_eval(rng.choice(pairs).ours)
    return pairs
