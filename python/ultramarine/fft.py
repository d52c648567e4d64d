"""Discrete Fourier transforms. They are computed in float32 and complex64, whatever the dtype of
their operands."""

from ultramarine import _core

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "irfft",
    "irfft2",
    "irfftn",
    "istft",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
    "stft",
]

fft = _core._fft.fft
fft2 = _core._fft.fft2
fftfreq = _core._fft.fftfreq
fftn = _core._fft.fftn
fftshift = _core._fft.fftshift
ifft = _core._fft.ifft
ifft2 = _core._fft.ifft2
ifftn = _core._fft.ifftn
ifftshift = _core._fft.ifftshift
irfft = _core._fft.irfft
irfft2 = _core._fft.irfft2
irfftn = _core._fft.irfftn
istft = _core._fft.istft
rfft = _core._fft.rfft
rfft2 = _core._fft.rfft2
rfftfreq = _core._fft.rfftfreq
rfftn = _core._fft.rfftn
stft = _core._fft.stft
