"""Fourier transforms."""

from __future__ import annotations

import numpy as np

from ..draw import Case, Entry, Gen, e


def size_of_sum(c: Case) -> float:
    first = next(iter(c.inputs.values()), None)
    return (
        max(1.0, float(np.abs(first.data).sum())) if first is not None and first.data.size else 1.0
    )


def fft_one(g: Gen) -> str:
    x = g.arr(
        shape=g.of((8,), (7,), (1,), (3, 8), (2, 5, 4), (16,), (30,), (4, 0), (), (13,)), specials=0
    )
    return g.call(
        [x],
        pos=[
            ("n", g.maybe(0.4, "4", "1", "5", "12", "0", "None", "-1")),
            ("axis", g.maybe(0.5, g.axis(x))),
            ("norm", g.maybe(0.3, "'backward'", "'ortho'", "'forward'", "'up'", "None")),
        ],
        stream="positional",
    )


def fft_many(g: Gen) -> str:
    x = g.arr(shape=g.of((4, 6), (3, 5), (2, 4, 3), (8, 1), (5,), (2, 2, 2, 4)), specials=0)
    n = g.rank(x)
    count = g.r.randrange(1, n + 1)
    axes = repr([a - n if g.chance(0.5) else a for a in g.r.sample(range(n), count)])
    if g.chance(0.05):
        axes = g.of("[9]", "[]", "[0, 0]", "None")
    s = repr([g.of(1, 3, 4, 6) for _ in range(count)])
    with_axes = g.chance(0.6)
    with_s = g.chance(0.4)
    if with_s and not with_axes and "2" in g.entry.name:
        s = repr([g.of(2, 4, 5) for _ in range(2)])
    return g.call(
        [x],
        pos=[
            ("s", s if with_s else None),
            ("axes", axes if with_axes else None),
            ("norm", g.maybe(0.3, "'backward'", "'ortho'", "'forward'", "'up'")),
        ],
        stream="positional",
    )


def draw_shift(g: Gen) -> str:
    x = g.arr()
    return g.call([x], pos=[("axes", g.maybe(0.6, g.axes(x)))], stream="positional")


def draw_freq(g: Gen) -> str:
    return g.call(
        [g.of("0", "1", "2", "5", "8", "9", "-1")],
        pos=[("d", g.maybe(0.5, "0.5", "2", "0.1", "0"))],
        stream="positional",
    )


def draw_stft(g: Gen) -> str:
    n = g.of(4, 8, 16)
    x = g.arr(["float32"], g.of((40,), (2, 33)), specials=0)
    hop = g.of(2, 4)
    options = f"n_fft={n}, hop_length={hop}, center={g.flag()}, norm={g.of(repr('backward'), repr('ortho'))}"
    if g.chance(0.3):
        options += f", window=mx.hanning({n})"
    if g.entry.name.endswith("istft"):
        return f"mx.fft.istft(mx.fft.stft({x}, n_fft={n}, hop_length={hop}), n_fft={n}, hop_length={hop})"
    return f"mx.fft.stft({x}, {options})"


F = {"ulps": 64, "scale": size_of_sum}


ENTRIES: list[Entry] = [
    *(e(f"fft.{n}", fft_one, 0.7, **F) for n in ("fft", "ifft", "rfft", "irfft")),
    *(
        e(f"fft.{n}", fft_many, 0.6, **F)
        for n in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
    ),
    e("fft.fftshift", draw_shift, 0.5),
    e("fft.ifftshift", draw_shift, 0.5),
    e("fft.fftfreq", draw_freq, 0.2, ulps=4),
    e("fft.rfftfreq", draw_freq, 0.2, ulps=4),
    e("fft.stft", draw_stft, 0.3, **F),
    e("fft.istft", draw_stft, 0.3, ulps=512, scale=size_of_sum),
]
