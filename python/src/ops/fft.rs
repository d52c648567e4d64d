//! Fourier transforms: the module `ultramarine.fft`.

use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints, Sequence};
use crate::error::{Res, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use ultramarine::fft::{self as core, IstftOptions, Norm, StftOptions};
use ultramarine::{Array, PadMode, Result};

fn made(stream: Option<StreamArg>, f: impl FnOnce() -> Result<Array>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, f)?))
}

fn norm_of(name: &str) -> Res<Norm> {
    Ok(name.parse::<Norm>()?)
}

/// Sizes of transforms. A negative one is as wrong as 0.
fn sizes(s: &[isize]) -> Vec<usize> {
    s.iter().map(|n| usize::try_from(*n).unwrap_or(0)).collect()
}

macro_rules! transforms {
    ($(
        $(#[doc = $one_doc:literal])* $one:ident $($one_example:literal)+
        $(#[doc = $two_doc:literal])* $two:ident $($two_example:literal)+
        $(#[doc = $many_doc:literal])* $many:ident $($many_example:literal)+;
    )*) => {
        $(
        $(#[doc = $one_doc])*
        ///
        /// Args:
        ///     a (array): Array of numbers; other dtypes are converted.
        ///     n (int | None): Length of the transform: the axis is cut off, or zeros are appended.
        ///     axis (int): Axis to transform.
        ///     norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
        ///         1 / sqrt(n)) or "forward" (the others, 1 / n).
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        ///     array: Transform.
        ///
        /// Raises:
        ///     IndexError: If an axis is out of range.
        ///     ValueError: If a length is not positive, or `norm` is another word.
        ///
        /// Example:
        $(#[doc = $one_example])+
        #[pyfunction]
        #[pyo3(signature = (a, n=None, axis=-1, norm="backward", stream=None),
            text_signature = "(a, n=None, axis=-1, norm='backward', stream=None)")]
        fn $one(
            a: ArrayArg,
            n: Option<isize>,
            axis: isize,
            norm: &str,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            let norm = norm_of(norm)?;
            let n = n.map(|n| sizes(&[n])[0]);
            made(stream, || core::$one(&a.0, n, axis, norm))
        }

        $(#[doc = $two_doc])*
        ///
        /// Args:
        ///     a (array): Array of numbers; other dtypes are converted.
        ///     s (Sequence[int] | None): Lengths of the transforms: axes are cut off, or zeros are appended.
        ///     axes (Sequence[int] | None): Axes to transform; None for all.
        ///     norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
        ///         1 / sqrt(n)) or "forward" (the others, 1 / n).
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        ///     array: Transform.
        ///
        /// Raises:
        ///     IndexError: If an axis is out of range.
        ///     ValueError: If a length is not positive, or `norm` is another word.
        ///
        /// Example:
        $(#[doc = $two_example])+
        #[pyfunction]
        #[pyo3(signature = (a, s=None, axes=Some(Sequence(vec![-2, -1])), norm="backward", stream=None),
            text_signature = "(a, s=None, axes=[-2, -1], norm='backward', stream=None)")]
        fn $two(
            a: ArrayArg,
            s: Option<Sequence>,
            axes: Option<Sequence>,
            norm: &str,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            $many(a, s, axes, norm, stream)
        }

        $(#[doc = $many_doc])*
        ///
        /// Args:
        ///     a (array): Array of numbers; other dtypes are converted.
        ///     s (Sequence[int] | None): Lengths of the transforms, given with `axes`: axes are cut off, or
        ///         zeros are appended.
        ///     axes (Sequence[int] | None): Axes to transform; by default all.
        ///     norm (str): Transforms with a factor: "backward" (the inverse ones, 1 / n), "ortho" (both,
        ///         1 / sqrt(n)) or "forward" (the others, 1 / n).
        ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
        ///         else the default device.
        ///
        /// Returns:
        ///     array: Transform.
        ///
        /// Raises:
        ///     IndexError: If an axis is out of range.
        ///     ValueError: If a length is not positive, or `norm` is another word.
        ///
        /// Example:
        $(#[doc = $many_example])+
        #[pyfunction]
        #[pyo3(signature = (a, s=None, axes=None, norm="backward", stream=None))]
        fn $many(
            a: ArrayArg,
            s: Option<Sequence>,
            axes: Option<Sequence>,
            norm: &str,
            stream: Option<StreamArg>,
        ) -> Res<PyArray> {
            let norm = norm_of(norm)?;
            let s = s.map(|s| sizes(&s.0));
            let axes = axes.as_ref().map(|axes| &axes.0[..]);
            made(stream, || core::$many(&a.0, s.as_deref(), axes, norm))
        }
        )*
    };
}

transforms! {
    /// Computes the discrete Fourier transform along an axis, as complex64.
    fft
        "     >>> mx.fft.fft(mx.array([1.0, 2.0, 3.0, 4.0]))"
        "     array([10+0j, -2+2j, -2+0j, -2-2j], dtype=complex64)"
    /// Computes the discrete Fourier transform along two axes, as complex64.
    fft2
        "     >>> mx.fft.fft2(mx.ones((2, 2)))"
        "     array([[4+0j, 0+0j]," "            [0+0j, 0+0j]], dtype=complex64)"
    /// Computes the discrete Fourier transform along several axes, as complex64.
    fftn
        "     >>> mx.fft.fftn(mx.ones((2, 2, 2)))[0]"
        "     array([[8+0j, 0+0j]," "            [0+0j, 0+0j]], dtype=complex64)";
    /// Computes the inverse of `fft` along an axis, as complex64.
    ifft
        "     >>> mx.fft.ifft(mx.array([4.0, 0.0, 0.0, 0.0]))"
        "     array([1+0j, 1+0j, 1+0j, 1+0j], dtype=complex64)"
    /// Computes the inverse of `fft2` along two axes, as complex64.
    ifft2
        "     >>> mx.fft.ifft2(mx.fft.fft2(mx.ones((2, 2))))"
        "     array([[1+0j, 1+0j]," "            [1+0j, 1+0j]], dtype=complex64)"
    /// Computes the inverse of `fftn` along several axes, as complex64.
    ifftn
        "     >>> mx.fft.ifftn(mx.ones((2, 2, 2)))[0]"
        "     array([[1+0j, 0+0j]," "            [0+0j, 0+0j]], dtype=complex64)";
    /// Computes the discrete Fourier transform of real numbers along an axis, as complex64.
    ///
    /// The axis gets n // 2 + 1 elements: the others are their complex conjugates.
    rfft
        "     >>> mx.fft.rfft(mx.array([1.0, 2.0, 3.0, 4.0]))"
        "     array([10+0j, -2+2j, -2+0j], dtype=complex64)"
    /// Computes the discrete Fourier transform of real numbers along two axes, as complex64.
    ///
    /// The last one gets n // 2 + 1 elements.
    rfft2
        "     >>> mx.fft.rfft2(mx.ones((5, 4, 6))).shape"
        "     (5, 4, 4)"
    /// Computes the discrete Fourier transform of real numbers along several axes, as complex64.
    ///
    /// The last one gets n // 2 + 1 elements.
    rfftn
        "     >>> mx.fft.rfftn(mx.ones((4, 4, 6))).shape"
        "     (4, 4, 4)";
    /// Computes the inverse of `rfft` along an axis: real numbers, as float32.
    ///
    /// The default length is 2 * (m - 1) for m elements, so an odd length must be given.
    irfft
        "     >>> mx.fft.irfft(mx.array([4.0, 0.0, 0.0]))"
        "     array([1, 1, 1, 1], dtype=float32)"
    /// Computes the inverse of `rfft2` along two axes: real numbers, as float32.
    irfft2
        "     >>> mx.fft.irfft2(mx.fft.rfft2(mx.ones((5, 4, 6)))).shape"
        "     (5, 4, 6)"
    /// Computes the inverse of `rfftn` along several axes: real numbers, as float32.
    irfftn
        "     >>> mx.fft.irfftn(mx.fft.rfftn(mx.ones((4, 4, 6)))).shape"
        "     (4, 4, 6)";
}

/// Moves the zero frequency to the middle.
///
/// Args:
///     a (array): Spectrum, in the order of `fft`.
///     axes (int | Sequence[int] | None): Axes to shift; by default all of them.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Shifted spectrum, in shape and dtype of `a`.
///
/// Raises:
///     IndexError: If an axis is out of range.
///
/// Example:
///     >>> mx.fft.fftshift(mx.arange(4))
///     array([2, 3, 0, 1], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, axes=None, stream=None))]
fn fftshift(a: ArrayArg, axes: Option<Ints>, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || core::fftshift(&a.0, axes.as_ref().map(|axes| &axes.0[..])))
}

/// Moves the zero frequency from the middle to the front: the inverse of `fftshift`.
///
/// The two differ for axes of odd length.
///
/// Args:
///     a (array): Shifted spectrum.
///     axes (int | Sequence[int] | None): Axes to shift; by default all of them.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Spectrum in the order of `fft`.
///
/// Raises:
///     IndexError: If an axis is out of range.
///
/// Example:
///     >>> mx.fft.ifftshift(mx.fft.fftshift(mx.arange(5)))
///     array([0, 1, 2, 3, 4], dtype=int32)
#[pyfunction]
#[pyo3(signature = (a, axes=None, stream=None))]
fn ifftshift(a: ArrayArg, axes: Option<Ints>, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || core::ifftshift(&a.0, axes.as_ref().map(|axes| &axes.0[..])))
}

/// Computes the frequencies of the elements of `fft`.
///
/// Args:
///     n (int): Number of samples of the signal.
///     d (float): Distance of the samples.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: n frequencies as float32: those from 0 on, then the negative ones.
///
/// Example:
///     >>> mx.fft.fftfreq(4)
///     array([0, 0.25, -0.5, -0.25], dtype=float32)
#[pyfunction]
#[pyo3(signature = (n, d=1.0, stream=None))]
fn fftfreq(n: isize, d: f64, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || core::fftfreq(n.max(0) as usize, d))
}

/// Computes the frequencies of the elements of `rfft`.
///
/// Args:
///     n (int): Number of samples of the signal.
///     d (float): Distance of the samples.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: n // 2 + 1 frequencies as float32, from 0 on.
///
/// Example:
///     >>> mx.fft.rfftfreq(4)
///     array([0, 0.25, 0.5], dtype=float32)
#[pyfunction]
#[pyo3(signature = (n, d=1.0, stream=None))]
fn rfftfreq(n: isize, d: f64, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || core::rfftfreq(n.max(0) as usize, d))
}

/// The length of a window, which may be zero.
fn win_length_of(op: &str, n: Option<isize>) -> Res<Option<usize>> {
    let size = |n: isize| {
        usize::try_from(n)
            .map_err(|_| value(format!("[{op}] win_length must not be negative. Pass 1 or more.")))
    };
    n.map(size).transpose()
}

/// Computes the spectra of overlapping frames of a signal.
///
/// Args:
///     x (array): Signal, of the shape (..., samples).
///     n_fft (int): Number of samples of a frame.
///     hop_length (int | None): Number of samples from one frame to the next; n_fft // 4 by
///         default.
///     win_length (int | None): Number of samples of the window of ones that is used without
///         `window`; n_fft by default.
///     window (array | None): Window, which is put into the middle of the frame, with zeros
///         around it.
///     center (bool): Adds half a frame at either end, so that frames are centered at their
///         positions.
///     pad_mode (Literal["reflect", "constant", "edge", "symmetric"]): Mode of `pad` for what
///         is added.
///     norm (str): Transform that is scaled, as for `fft`.
///     onesided (bool | None): Leaves out negative frequencies; by default so for real signals.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: complex64 of the shape (..., frequencies, frames).
///
/// Raises:
///     ValueError: If the window is longer than the frame.
///
/// Example:
///     >>> mx.fft.stft(mx.ones(1024), n_fft=256).shape
///     (129, 17)
#[pyfunction]
#[pyo3(signature = (x, n_fft=2048, hop_length=None, win_length=None, window=None, center=true,
    pad_mode="reflect", norm="backward", onesided=None, stream=None))]
#[allow(clippy::too_many_arguments, reason = "MLX has them")]
fn stft(
    x: ArrayArg,
    n_fft: isize,
    hop_length: Option<isize>,
    win_length: Option<isize>,
    window: Option<ArrayArg>,
    center: bool,
    pad_mode: &str,
    norm: &str,
    onesided: Option<bool>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let options = StftOptions {
        n_fft: n_fft.max(0) as usize,
        hop_length: hop_length.map(|n| n.max(0) as usize),
        win_length: win_length_of("stft", win_length)?,
        window: window.map(|w| w.0),
        center,
        pad_mode: if center { PadMode::from_name(pad_mode)? } else { PadMode::Constant },
        norm: norm_of(norm)?,
        onesided,
    };
    made(stream, || core::stft(&x.0, &options))
}

/// Computes the signal whose `stft` is given.
///
/// It is the sum of the frames times the window where they overlap, over the sum of the
/// windows' squares.
///
/// Args:
///     stft_matrix (array): Spectra, of the shape (..., frequencies, frames).
///     n_fft (int | None): Number of samples of a frame; by default what the spectra ask for,
///         an even number if they are one-sided.
///     hop_length (int | None): Number of samples from one frame to the next; n_fft // 4 by
///         default.
///     win_length (int | None): Number of samples of the window of ones that is used without
///         `window`; n_fft by default.
///     window (array | None): Window that the spectra were computed with.
///     center (bool): Cuts off half a frame at either end.
///     norm (str): Transform that is scaled, as for `fft`.
///     onesided (bool | None): The spectra lack negative frequencies; True by default.
///     length (int | None): Number of samples of the result: it is cut off, or zeros are
///         appended.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Signal (its real part, if it was complex) as float32.
///
/// Raises:
///     ValueError: If the window is longer than the frame, or the spectra have less than two
///         dimensions.
///
/// Example:
///     >>> x = mx.random.normal((1024,), key=mx.random.key(0))
///     >>> y = mx.fft.istft(mx.fft.stft(x, n_fft=256), n_fft=256)
///     >>> mx.allclose(x, y, atol=1e-4)
///     array(True, dtype=bool)
#[pyfunction]
#[pyo3(signature = (stft_matrix, n_fft=None, hop_length=None, win_length=None, window=None,
    center=true, norm="backward", onesided=None, length=None, stream=None))]
#[allow(clippy::too_many_arguments, reason = "MLX has them")]
fn istft(
    stft_matrix: ArrayArg,
    n_fft: Option<isize>,
    hop_length: Option<isize>,
    win_length: Option<isize>,
    window: Option<ArrayArg>,
    center: bool,
    norm: &str,
    onesided: Option<bool>,
    length: Option<isize>,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let options = IstftOptions {
        n_fft: n_fft.map(|n| n.max(0) as usize),
        hop_length: hop_length.map(|n| n.max(0) as usize),
        win_length: win_length_of("istft", win_length)?,
        window: window.map(|w| w.0),
        center,
        norm: norm_of(norm)?,
        onesided,
        length: length.map(|n| n.max(0) as usize),
    };
    made(stream, || core::istft(&stft_matrix.0, &options))
}

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = &PyModule::new(parent.py(), "ultramarine.fft")?;
    crate::functions!(m: fft ifft rfft irfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn fftshift
        ifftshift fftfreq rfftfreq stft istft);
    parent.add("_fft", m)
}
