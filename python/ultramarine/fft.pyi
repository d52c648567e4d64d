"""Discrete Fourier transforms. They are computed in float32 and complex64, whatever the dtype of
their operands.
"""

# Made by python/tools/make_stubs.py of the module's docstrings: change those.

from collections.abc import Sequence
from typing import Literal

from ultramarine import StreamOrDevice, array

def fft(
    a: array,
    n: int | None = None,
    axis: int = -1,
    norm: str = "backward",
    stream: StreamOrDevice = None,
) -> array:
    """Computes the discrete Fourier transform along an axis, as complex64.

    Args:
        a (array): Array of numbers; other dtypes are converted.
        n (int | None): Length of the transform: the axis is cut off, or zeros are appended.
        axis (int): Axis to transform.
        norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
            1 / sqrt(n)) or "forward" (the others, 1 / n).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Transform.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If a length is not positive, or `norm` is another word.

    Example:
        >>> mx.fft.fft(mx.array([1.0, 2.0, 3.0, 4.0]))
        array([10+0j, -2+2j, -2+0j, -2-2j], dtype=complex64)
    """

def fft2(
    a: array,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = ...,
    norm: str = "backward",
    stream: StreamOrDevice = None,
) -> array:
    """Computes the discrete Fourier transform along two axes, as complex64.

    Args:
        a (array): Array of numbers; other dtypes are converted.
        s (Sequence[int] | None): Lengths of the transforms: axes are cut off, or zeros are appended.
        axes (Sequence[int] | None): Axes to transform; None for all.
        norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
            1 / sqrt(n)) or "forward" (the others, 1 / n).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Transform.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If a length is not positive, or `norm` is another word.

    Example:
        >>> mx.fft.fft2(mx.ones((2, 2)))
        array([[4+0j, 0+0j],
               [0+0j, 0+0j]], dtype=complex64)
    """

def fftfreq(n: int, d: float = 1.0, stream: StreamOrDevice = None) -> array:
    """Computes the frequencies of the elements of `fft`.

    Args:
        n (int): Number of samples of the signal.
        d (float): Distance of the samples.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: n frequencies as float32: those from 0 on, then the negative ones.

    Example:
        >>> mx.fft.fftfreq(4)
        array([0, 0.25, -0.5, -0.25], dtype=float32)
    """

def fftn(
    a: array,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    stream: StreamOrDevice = None,
) -> array:
    """Computes the discrete Fourier transform along several axes, as complex64.

    Args:
        a (array): Array of numbers; other dtypes are converted.
        s (Sequence[int] | None): Lengths of the transforms, given with `axes`: axes are cut off, or
            zeros are appended.
        axes (Sequence[int] | None): Axes to transform; by default all.
        norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
            1 / sqrt(n)) or "forward" (the others, 1 / n).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Transform.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If a length is not positive, or `norm` is another word.

    Example:
        >>> mx.fft.fftn(mx.ones((2, 2, 2)))[0]
        array([[8+0j, 0+0j],
               [0+0j, 0+0j]], dtype=complex64)
    """

def fftshift(
    a: array, axes: int | Sequence[int] | None = None, stream: StreamOrDevice = None
) -> array:
    """Moves the zero frequency to the middle.

    Args:
        a (array): Spectrum, in the order of `fft`.
        axes (int | Sequence[int] | None): Axes to shift; by default all of them.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Shifted spectrum, in shape and dtype of `a`.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.fft.fftshift(mx.arange(4))
        array([2, 3, 0, 1], dtype=int32)
    """

def ifft(
    a: array,
    n: int | None = None,
    axis: int = -1,
    norm: str = "backward",
    stream: StreamOrDevice = None,
) -> array:
    """Computes the inverse of `fft` along an axis, as complex64.

    Args:
        a (array): Array of numbers; other dtypes are converted.
        n (int | None): Length of the transform: the axis is cut off, or zeros are appended.
        axis (int): Axis to transform.
        norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
            1 / sqrt(n)) or "forward" (the others, 1 / n).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Transform.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If a length is not positive, or `norm` is another word.

    Example:
        >>> mx.fft.ifft(mx.array([4.0, 0.0, 0.0, 0.0]))
        array([1+0j, 1+0j, 1+0j, 1+0j], dtype=complex64)
    """

def ifft2(
    a: array,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = ...,
    norm: str = "backward",
    stream: StreamOrDevice = None,
) -> array:
    """Computes the inverse of `fft2` along two axes, as complex64.

    Args:
        a (array): Array of numbers; other dtypes are converted.
        s (Sequence[int] | None): Lengths of the transforms: axes are cut off, or zeros are appended.
        axes (Sequence[int] | None): Axes to transform; None for all.
        norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
            1 / sqrt(n)) or "forward" (the others, 1 / n).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Transform.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If a length is not positive, or `norm` is another word.

    Example:
        >>> mx.fft.ifft2(mx.fft.fft2(mx.ones((2, 2))))
        array([[1+0j, 1+0j],
               [1+0j, 1+0j]], dtype=complex64)
    """

def ifftn(
    a: array,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    stream: StreamOrDevice = None,
) -> array:
    """Computes the inverse of `fftn` along several axes, as complex64.

    Args:
        a (array): Array of numbers; other dtypes are converted.
        s (Sequence[int] | None): Lengths of the transforms, given with `axes`: axes are cut off, or
            zeros are appended.
        axes (Sequence[int] | None): Axes to transform; by default all.
        norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
            1 / sqrt(n)) or "forward" (the others, 1 / n).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Transform.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If a length is not positive, or `norm` is another word.

    Example:
        >>> mx.fft.ifftn(mx.ones((2, 2, 2)))[0]
        array([[1+0j, 0+0j],
               [0+0j, 0+0j]], dtype=complex64)
    """

def ifftshift(
    a: array, axes: int | Sequence[int] | None = None, stream: StreamOrDevice = None
) -> array:
    """Moves the zero frequency from the middle to the front: the inverse of `fftshift`.

    The two differ for axes of odd length.

    Args:
        a (array): Shifted spectrum.
        axes (int | Sequence[int] | None): Axes to shift; by default all of them.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Spectrum in the order of `fft`.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.fft.ifftshift(mx.fft.fftshift(mx.arange(5)))
        array([0, 1, 2, 3, 4], dtype=int32)
    """

def irfft(
    a: array,
    n: int | None = None,
    axis: int = -1,
    norm: str = "backward",
    stream: StreamOrDevice = None,
) -> array:
    """Computes the inverse of `rfft` along an axis: real numbers, as float32.

    The default length is 2 * (m - 1) for m elements, so an odd length must be given.

    Args:
        a (array): Array of numbers; other dtypes are converted.
        n (int | None): Length of the transform: the axis is cut off, or zeros are appended.
        axis (int): Axis to transform.
        norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
            1 / sqrt(n)) or "forward" (the others, 1 / n).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Transform.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If a length is not positive, or `norm` is another word.

    Example:
        >>> mx.fft.irfft(mx.array([4.0, 0.0, 0.0]))
        array([1, 1, 1, 1], dtype=float32)
    """

def irfft2(
    a: array,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = ...,
    norm: str = "backward",
    stream: StreamOrDevice = None,
) -> array:
    """Computes the inverse of `rfft2` along two axes: real numbers, as float32.

    Args:
        a (array): Array of numbers; other dtypes are converted.
        s (Sequence[int] | None): Lengths of the transforms: axes are cut off, or zeros are appended.
        axes (Sequence[int] | None): Axes to transform; None for all.
        norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
            1 / sqrt(n)) or "forward" (the others, 1 / n).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Transform.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If a length is not positive, or `norm` is another word.

    Example:
        >>> mx.fft.irfft2(mx.fft.rfft2(mx.ones((5, 4, 6)))).shape
        (5, 4, 6)
    """

def irfftn(
    a: array,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    stream: StreamOrDevice = None,
) -> array:
    """Computes the inverse of `rfftn` along several axes: real numbers, as float32.

    Args:
        a (array): Array of numbers; other dtypes are converted.
        s (Sequence[int] | None): Lengths of the transforms, given with `axes`: axes are cut off, or
            zeros are appended.
        axes (Sequence[int] | None): Axes to transform; by default all.
        norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
            1 / sqrt(n)) or "forward" (the others, 1 / n).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Transform.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If a length is not positive, or `norm` is another word.

    Example:
        >>> mx.fft.irfftn(mx.fft.rfftn(mx.ones((4, 4, 6)))).shape
        (4, 4, 6)
    """

def istft(
    stft_matrix: array,
    n_fft: int | None = None,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: array | None = None,
    center: bool = True,
    norm: str = "backward",
    onesided: bool | None = None,
    length: int | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the signal whose `stft` is given.

    It is the sum of the frames times the window where they overlap, over the sum of the
    windows' squares.

    Args:
        stft_matrix (array): Spectra, of the shape (..., frequencies, frames).
        n_fft (int | None): Number of samples of a frame; by default what the spectra ask for,
            an even number if they are one-sided.
        hop_length (int | None): Number of samples from one frame to the next; n_fft // 4 by
            default.
        win_length (int | None): Number of samples of the window of ones that is used without
            `window`; n_fft by default.
        window (array | None): Window that the spectra were computed with.
        center (bool): Cuts off half a frame at either end.
        norm (str): Transform that is scaled, as for `fft`.
        onesided (bool | None): The spectra lack negative frequencies; True by default.
        length (int | None): Number of samples of the result: it is cut off, or zeros are
            appended.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Signal (its real part, if it was complex) as float32.

    Raises:
        ValueError: If the window is longer than the frame, or the spectra have less than two
            dimensions.

    Example:
        >>> x = mx.random.normal((1024,), key=mx.random.key(0))
        >>> y = mx.fft.istft(mx.fft.stft(x, n_fft=256), n_fft=256)
        >>> mx.allclose(x, y, atol=1e-4)
        array(True, dtype=bool)
    """

def rfft(
    a: array,
    n: int | None = None,
    axis: int = -1,
    norm: str = "backward",
    stream: StreamOrDevice = None,
) -> array:
    """Computes the discrete Fourier transform of real numbers along an axis, as complex64.

    The axis gets n // 2 + 1 elements: the others are their complex conjugates.

    Args:
        a (array): Array of numbers; other dtypes are converted.
        n (int | None): Length of the transform: the axis is cut off, or zeros are appended.
        axis (int): Axis to transform.
        norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
            1 / sqrt(n)) or "forward" (the others, 1 / n).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Transform.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If a length is not positive, or `norm` is another word.

    Example:
        >>> mx.fft.rfft(mx.array([1.0, 2.0, 3.0, 4.0]))
        array([10+0j, -2+2j, -2+0j], dtype=complex64)
    """

def rfft2(
    a: array,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = ...,
    norm: str = "backward",
    stream: StreamOrDevice = None,
) -> array:
    """Computes the discrete Fourier transform of real numbers along two axes, as complex64.

    The last one gets n // 2 + 1 elements.

    Args:
        a (array): Array of numbers; other dtypes are converted.
        s (Sequence[int] | None): Lengths of the transforms: axes are cut off, or zeros are appended.
        axes (Sequence[int] | None): Axes to transform; None for all.
        norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
            1 / sqrt(n)) or "forward" (the others, 1 / n).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Transform.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If a length is not positive, or `norm` is another word.

    Example:
        >>> mx.fft.rfft2(mx.ones((5, 4, 6))).shape
        (5, 4, 4)
    """

def rfftfreq(n: int, d: float = 1.0, stream: StreamOrDevice = None) -> array:
    """Computes the frequencies of the elements of `rfft`.

    Args:
        n (int): Number of samples of the signal.
        d (float): Distance of the samples.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: n // 2 + 1 frequencies as float32, from 0 on.

    Example:
        >>> mx.fft.rfftfreq(4)
        array([0, 0.25, 0.5], dtype=float32)
    """

def rfftn(
    a: array,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str = "backward",
    stream: StreamOrDevice = None,
) -> array:
    """Computes the discrete Fourier transform of real numbers along several axes, as complex64.

    The last one gets n // 2 + 1 elements.

    Args:
        a (array): Array of numbers; other dtypes are converted.
        s (Sequence[int] | None): Lengths of the transforms, given with `axes`: axes are cut off, or
            zeros are appended.
        axes (Sequence[int] | None): Axes to transform; by default all.
        norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
            1 / sqrt(n)) or "forward" (the others, 1 / n).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Transform.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If a length is not positive, or `norm` is another word.

    Example:
        >>> mx.fft.rfftn(mx.ones((4, 4, 6))).shape
        (4, 4, 4)
    """

def stft(
    x: array,
    n_fft: int = 2048,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: array | None = None,
    center: bool = True,
    pad_mode: Literal["reflect", "constant", "edge", "symmetric"] = "reflect",
    norm: str = "backward",
    onesided: bool | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the spectra of overlapping frames of a signal.

    Args:
        x (array): Signal, of the shape (..., samples).
        n_fft (int): Number of samples of a frame.
        hop_length (int | None): Number of samples from one frame to the next; n_fft // 4 by
            default.
        win_length (int | None): Number of samples of the window of ones that is used without
            `window`; n_fft by default.
        window (array | None): Window, which is put into the middle of the frame, with zeros
            around it.
        center (bool): Adds half a frame at either end, so that frames are centered at their
            positions.
        pad_mode (Literal["reflect", "constant", "edge", "symmetric"]): Mode of `pad` for what
            is added.
        norm (str): Transform that is scaled, as for `fft`.
        onesided (bool | None): Leaves out negative frequencies; by default so for real signals.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: complex64 of the shape (..., frequencies, frames).

    Raises:
        ValueError: If the window is longer than the frame.

    Example:
        >>> mx.fft.stft(mx.ones(1024), n_fft=256).shape
        (129, 17)
    """
