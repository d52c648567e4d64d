"""Fourier transforms, windows."""

from typing import Any

from .case import Case, case, parts, real


def spectrum(um: Any, x: Any, y: Any) -> Any:
    """A complex operand of its parts."""
    return um.array(x) + um.array(y) * um.array(1j)


def forward(name: str, *arguments: Any, **keywords: Any) -> Case:
    """A transform of real numbers to a spectrum."""
    return case(
        f"fft.{name}",
        lambda um, x: parts(um, getattr(um.fft, name)(x, *arguments, **keywords)),
        real(3, 4),
        single=True,
    )


def complex_forward(name: str, *arguments: Any) -> Case:
    """A transform of complex numbers to complex ones."""
    return case(
        f"fft.{name}, of complex numbers",
        lambda um, x, y: parts(um, getattr(um.fft, name)(spectrum(um, x, y), *arguments)),
        real(3, 4),
        real(3, 4),
        single=True,
    )


def back(name: str, *arguments: Any, **keywords: Any) -> Case:
    """A transform of a spectrum to real numbers."""
    return case(
        f"fft.{name}",
        lambda um, x, y: getattr(um.fft, name)(spectrum(um, x, y), *arguments, **keywords),
        real(3, 4),
        real(3, 4),
        single=True,
    )


CASES: list[Case] = [
    forward("fft", 5, 0),
    complex_forward("fft"),
    complex_forward("ifft", 3),
    forward("ifft"),
    forward("rfft"),
    forward("fft2", norm="ortho"),
    forward("ifft2"),
    forward("rfft2", [4, 3], [1, 0]),
    forward("fftn"),
    complex_forward("fftn"),
    forward("ifftn", axes=[0]),
    forward("rfftn"),
    back("irfft"),
    back("irfft2", (3, 5)[::-1], (0, 1)),
    back("irfftn", axes=[1]),
    forward("stft", 4),
    back("istft", 5, 2, center=False),
    case("fft.fftshift", lambda um, x: um.fft.fftshift(x), real(3, 4)),
    case("fft.ifftshift", lambda um, x: um.fft.ifftshift(x, 1), real(3, 5)),
    case("fft.rfft, real parts", lambda um, x: um.real(um.fft.rfft(x)), real(3, 4), single=True),
]

EXEMPT = dict.fromkeys(
    ("bartlett", "blackman", "hamming", "hanning", "fft.fftfreq", "fft.rfftfreq"),
    "no function of arrays",
)
