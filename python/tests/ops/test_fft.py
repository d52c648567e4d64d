"""Fourier transforms and short-time transforms: against mlx, and NumPy in float64."""

import itertools

import mlx.core as mlx
import numpy as np
import pytest
from support.harness import ALL, LAYOUTS, Tally, given, rng, sample

import ultramarine as um

ONE = ["fft", "ifft", "rfft", "irfft"]
TWO = [f"{name}2" for name in ONE]
MANY = [f"{name}n" for name in ONE]
NORMS = ["backward", "ortho", "forward"]
# Units in the last place of the largest result; both libraries have errors of a few.
ULPS = 64

SHAPES: list[tuple[int, ...]] = [(1,), (2,), (7,), (16,), (4, 5), (2, 1, 3), (3, 97), (0, 4)]


@pytest.fixture(autouse=True)
def on_the_cpu():
    """mlx has float64 there only."""
    with mlx.stream(mlx.cpu):
        yield


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ONE)
def test_one_axis(tally: Tally, name: str, dtype: str) -> None:
    cases = []
    for shape in SHAPES:
        for layout in LAYOUTS:
            for axis in range(-len(shape), len(shape)):
                for n, norm in itertools.product((None, 1, 2, 4, 9), NORMS):
                    cases.append((shape, layout, axis, n, norm))
    for shape, layout, axis, n, norm in sample(cases, 60, name, dtype):
        x = given(dtype, shape, layout)

        def case(mx, x, axis=axis, n=n, norm=norm):
            return getattr(mx.fft, name)(x, n=n, axis=axis, norm=norm)

        label = f"{shape} {layout.name} axis {axis} n {n} {norm}"
        tally.same(label, case, x, ulps=ULPS, scale="largest")


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex64"])
@pytest.mark.parametrize("name", TWO + MANY)
def test_several_axes(tally: Tally, name: str, dtype: str) -> None:
    arguments: list[dict] = [
        {},
        {"axes": None},
        {"axes": []},
        {"axes": (0,)},
        {"axes": [1, 0]},
        {"axes": (-1, 0)},
        {"axes": [0, 1, 2]},
        {"axes": [2, 0, 1]},
        {"axes": [0, 0]},
        {"axes": [1, -2]},
        {"axes": [3, 3]},
        {"axes": [3]},
        {"axes": 1},
        {"s": [2, 3]},
        {"s": [4, 3], "axes": [0, 1]},
        {"s": (4, 3), "axes": (2, 0)},
        {"s": [4], "axes": [0, 1]},
        {"s": [0, 2], "axes": [0, 1]},
        {"s": [-1, 2], "axes": [0, 1]},
        {"s": [], "axes": []},
        {"s": [2, 2], "axes": None},
        {"s": [5], "axes": [9]},
        {"norm": "ortho"},
        {"norm": "forward", "axes": [1]},
        {"norm": "none"},
        {"norm": None},
    ]
    for shape in [(3, 4, 5), (4, 6), (5,), (), (2, 0, 3), (0, 2)]:
        for keywords in arguments:
            x = given(dtype, shape)

            def case(mx, x, keywords=keywords):
                return getattr(mx.fft, name)(x, **keywords)

            tally.same(f"{shape} {keywords}", case, x, ulps=ULPS, scale="largest")


@pytest.mark.parametrize("name", ONE)
def test_arguments(tally: Tally, name: str) -> None:
    x = given("float32", (2, 3))
    scalar = given("float32", ())
    for arguments, keywords in [
        ((0,), {}),
        ((-1,), {}),
        ((4, 2), {}),
        ((4, -3), {}),
        ((4, 0, "ortho"), {}),
        ((None, 5), {}),
        ((2.0,), {}),
        (("2",), {}),
        ((), {"norm": "x"}),
        ((), {"norm": None}),
        ((), {"axis": None}),
        ((), {"axis": 1.0}),
        ((), {"axis": 0, "n": 3}),
        ((), {"nn": 3}),
    ]:

        def case(mx, x, arguments=arguments, keywords=keywords):
            return getattr(mx.fft, name)(x, *arguments, **keywords)

        tally.same(f"{arguments} {keywords}", case, x, ulps=ULPS, scale="largest")
        tally.same(f"0-d {arguments} {keywords}", case, scalar, ulps=ULPS, scale="largest")
    one = given("complex64", (2, 1))
    tally.same("one element", lambda mx, x: getattr(mx.fft, name)(x), one, ulps=ULPS)
    tally.same("a list", lambda mx: getattr(mx.fft, name)([1.0, 2.0]))
    tally.same(
        "a stream",
        lambda mx, x: getattr(mx.fft, name)(x, stream=mx.cpu),
        x,
        ulps=ULPS,
        scale="largest",
    )


@pytest.mark.parametrize("n", [*range(1, 41), 97, 101, 1024, 2187, 65536, 65537])
def test_numpy(n: int) -> None:
    """All lengths, against float64."""
    r = rng("fft", n)
    z = (r.standard_normal((2, n)) + 1j * r.standard_normal((2, n))).astype(np.complex64)
    half = z[:, : n // 2 + 1]
    for got, want in [
        (um.fft.fft(um.array(z)), np.fft.fft(z.astype(np.complex128))),
        (um.fft.ifft(um.array(z)), np.fft.ifft(z.astype(np.complex128))),
        (um.fft.rfft(um.array(z.real)), np.fft.rfft(z.real.astype(np.float64))),
        (um.fft.irfft(um.array(half), n), np.fft.irfft(half.astype(np.complex128), n)),
    ]:
        off = np.linalg.norm(np.array(got) - want) / np.linalg.norm(want)
        assert off < 1e-6, off


def test_numpy_several_axes() -> None:
    r = rng("several axes")
    x = r.standard_normal((4, 6, 5)).astype(np.float32)
    z = (x + 1j * r.standard_normal(x.shape)).astype(np.complex64)
    for axes in [(0, 1), (2, 0), (0, 1, 2), (1,)]:
        for norm in NORMS:
            s = [x.shape[a] for a in axes]
            for got, want in [
                (
                    um.fft.fftn(um.array(z), axes=axes, norm=norm),
                    np.fft.fftn(z, axes=axes, norm=norm),
                ),
                (
                    um.fft.ifftn(um.array(z), axes=axes, norm=norm),
                    np.fft.ifftn(z, axes=axes, norm=norm),
                ),
                (
                    um.fft.rfftn(um.array(x), axes=axes, norm=norm),
                    np.fft.rfftn(x, axes=axes, norm=norm),
                ),
                (
                    um.fft.irfftn(um.fft.rfftn(um.array(x), axes=axes), s=s, axes=axes),
                    x,
                ),
            ]:
                np.testing.assert_allclose(np.array(got), want, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("dtype", ["bool_", "int32", "float32", "complex64"])
@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(tally: Tally, name: str, dtype: str) -> None:
    for shape in [(), (0,), (1,), (4,), (5,), (3, 4), (2, 3, 5), (2, 0)]:
        x = given(dtype, shape)
        for axes in (None, 0, -1, 1, (0,), (0, 1), [1, -2], [], 7, (0, 9), 1.5):

            def case(mx, x, axes=axes):
                return getattr(mx.fft, name)(x, axes=axes)

            tally.same(f"{shape} {axes}", case, x)


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(tally: Tally, name: str) -> None:
    for n in (-1, 0, 1, 2, 3, 4, 5, 100, 101, 4.0, None):
        for arguments in ((), (0.1,), (2,), (-3.0,), (0,), (None,)):

            def case(mx, n=n, arguments=arguments):
                return getattr(mx.fft, name)(n, *arguments)

            tally.same(f"{n} {arguments}", case, ulps=4)
    got = np.array(getattr(um.fft, name)(101, 0.3))
    np.testing.assert_allclose(got, getattr(np.fft, name)(101, 0.3), rtol=3e-7)


SIGNAL = given("float32", (2, 64))


def windows(mx) -> dict:
    # Values from the host follow the signal, wherever it is.
    def hanning(n: int):
        return mx.array(np.hanning(n).astype(np.float32))

    return {
        "none": None,
        "hann": hanning(16),
        "short": hanning(7),
        "long": hanning(20),
        "ints": mx.ones(16, dtype=mx.int32),
        "complex": mx.ones(16).astype(mx.complex64),
        "half": mx.ones(16, dtype=mx.float16),
        "2-d": mx.ones((2, 8)),
        "0-d": mx.array(1.0),
        "empty": mx.zeros((0,)),
    }


STFT: list[dict] = [
    {},
    {"n_fft": 15},
    {"n_fft": 64},
    {"n_fft": 128},
    {"n_fft": 0},
    {"n_fft": -1},
    {"n_fft": 2},
    {"n_fft": None},
    {"hop_length": 5},
    {"hop_length": 16},
    {"hop_length": 40},
    {"hop_length": 0},
    {"hop_length": -2},
    {"win_length": 9},
    {"win_length": 0},
    {"win_length": -1},
    {"win_length": 20},
    {"center": False},
    {"n_fft": 100, "center": False},
    {"pad_mode": "constant"},
    {"pad_mode": "edge"},
    {"pad_mode": "other"},
    {"pad_mode": "other", "center": False},
    {"norm": "ortho"},
    {"norm": "forward"},
    {"norm": "other"},
    {"onesided": False},
    {"onesided": True},
]


def test_stft(tally: Tally) -> None:
    for keywords in STFT:

        def case(mx, x, keywords=keywords):
            return mx.fft.stft(x, **{"n_fft": 16, **keywords})

        tally.same(f"{keywords}", case, SIGNAL, ulps=ULPS, scale="largest")
        tally.same(
            f"complex {keywords}", case, given("complex64", (50,)), ulps=ULPS, scale="largest"
        )
    for window in windows(mlx):

        def case(mx, x, window=window):
            return mx.fft.stft(x, n_fft=16, window=windows(mx)[window])

        tally.same(f"window {window}", case, SIGNAL, ulps=ULPS, scale="largest")
    for dtype in ALL:
        x = given(dtype, (40,), domain="unit")
        tally.same(dtype, lambda mx, x: mx.fft.stft(x, 8, 3), x, ulps=ULPS, scale="largest")
    for shape in [(), (0,), (1,), (8,), (0, 32), (2, 1, 32), (3, 0)]:
        x = given("float32", shape)
        tally.same(f"{shape}", lambda mx, x: mx.fft.stft(x, n_fft=8), x, ulps=ULPS, scale="largest")
    tally.same(
        "default",
        lambda mx, x: mx.fft.stft(x),
        given("float32", (4000,)),
        ulps=ULPS,
        scale="largest",
    )


ISTFT: list[dict] = [
    {},
    {"n_fft": 16},
    {"n_fft": 15},
    {"n_fft": 12},
    {"n_fft": 40},
    {"n_fft": 0},
    {"n_fft": -3},
    {"hop_length": 1},
    {"hop_length": 5},
    {"hop_length": 8},
    {"hop_length": 30},
    {"hop_length": 0},
    {"win_length": 9},
    {"win_length": 0},
    {"win_length": -1},
    {"win_length": 20},
    {"center": False},
    {"norm": "ortho"},
    {"norm": "forward"},
    {"norm": "other"},
    {"onesided": False},
    {"onesided": False, "n_fft": 5},
    {"length": 0},
    {"length": -4},
    {"length": 30},
    {"length": 63},
    {"length": 200},
    {"length": 200, "center": False},
]


def test_istft(tally: Tally) -> None:
    spectra = given("complex64", (9, 17))
    for keywords in ISTFT:

        def case(mx, x, keywords=keywords):
            return mx.fft.istft(x, **keywords)

        tally.same(f"{keywords}", case, spectra, ulps=8 * ULPS, scale="largest")
    for window in windows(mlx):

        def case(mx, x, window=window):
            return mx.fft.istft(x, window=windows(mx)[window])

        tally.same(f"window {window}", case, spectra, ulps=8 * ULPS, scale="largest")
    for shape in [(), (9,), (9, 1), (9, 2), (2, 9, 17), (9, 0), (0, 9), (1, 9), (0, 9, 4)]:
        for dtype in ("float32", "int32", "float16", "complex64"):
            x = given(dtype, shape)
            tally.same(
                f"{shape} {dtype}", lambda mx, x: mx.fft.istft(x), x, ulps=8 * ULPS, scale="largest"
            )


def test_there_and_back() -> None:
    x = rng("there and back").standard_normal((3, 500)).astype(np.float32)
    for n_fft, hop in [(64, 16), (64, 10), (63, 20), (32, 1)]:
        window = um.hanning(n_fft)
        spectra = um.fft.stft(um.array(x), n_fft=n_fft, hop_length=hop, window=window)
        back = um.fft.istft(spectra, n_fft=n_fft, hop_length=hop, window=window, length=500)
        # The last samples may be in no frame.
        np.testing.assert_allclose(np.array(back)[:, :470], x[:, :470], atol=1e-4)


GRADIENTS = {
    "fft": lambda mx, x: mx.fft.fft(x, n=7),
    "ifft": lambda mx, x: mx.fft.ifft(x, axis=0, norm="ortho"),
    "rfft": lambda mx, x: mx.fft.rfft(x),
    "rfft odd": lambda mx, x: mx.fft.rfft(x, n=5, axis=0),
    "irfft": lambda mx, x: mx.fft.irfft(x),
    "irfft odd": lambda mx, x: mx.fft.irfft(x, n=5),
    "fftn": lambda mx, x: mx.fft.fftn(x),
    "rfft2": lambda mx, x: mx.fft.rfft2(x),
    "irfft2": lambda mx, x: mx.fft.irfft2(x, norm="forward"),
    "diff": lambda mx, x: mx.diff(x, n=2),
    "fftshift": lambda mx, x: mx.fft.fftshift(x),
}


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_transformed(tally: Tally, name: str, dtype: str) -> None:
    """vjp, jvp and vmap, as mlx has them."""
    f = GRADIENTS[name]
    x = given(dtype, (4, 6))

    def vjp(mx, x):
        def run(x):
            return f(mx, x)

        out = run(x)
        ct = mx.arange(out.size, dtype=mx.float32).reshape(out.shape).astype(out.dtype)
        if out.dtype == mx.complex64:
            ct = ct * (1 - 0.5j)
        return mx.vjp(run, [x], [ct])[1]

    tally.same("vjp", vjp, x, ulps=ULPS, scale="largest")

    def jvp(mx, x):
        return mx.jvp(lambda x: f(mx, x), [x], [x * x])[1]

    tally.same("jvp", jvp, x, ulps=ULPS, scale="largest")
    batch = given(dtype, (3, 4, 6))
    for axis in (0, 1, 2):
        moved = (3 if axis == 0 else 4, 3 if axis == 1 else 4, 6)
        batch = given(dtype, moved)

        def mapped(mx, x, axis=axis):
            return mx.vmap(lambda x: f(mx, x), in_axes=axis)(x)

        tally.same(f"vmap {axis}", mapped, batch, ulps=ULPS, scale="largest")
