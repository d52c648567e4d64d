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
        $(#[doc = $one_doc:literal])* $one:ident
        $(#[doc = $two_doc:literal])* $two:ident
        $(#[doc = $many_doc:literal])* $many:ident;
    )*) => {
        $(
        $(#[doc = $one_doc])*
        ///
        /// Args:
        ///     a (array): The array.
        ///     n (int, optional): The transform's length: the axis is cut off, or zeros are appended.
        ///     axis (int): The axis.
        ///     norm (str): Which transforms have a factor: "backward" (the inverse ones, 1 / n),
        ///         "ortho" (both, 1 / sqrt(n)) or "forward".
        ///
        /// Returns:
        ///     array: The transform.
        #[pyfunction]
        #[pyo3(signature = (a, n=None, axis=-1, norm="backward", stream=None))]
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
        ///     a (array): The array.
        ///     s (sequence of int, optional): The transforms' lengths: axes are cut off, or zeros are
        ///         appended.
        ///     axes (sequence of int, optional): The axes; None: all.
        ///     norm (str): Which transforms have a factor: "backward", "ortho" or "forward".
        ///
        /// Returns:
        ///     array: The transform.
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
        ///     a (array): The array.
        ///     s (sequence of int, optional): The transforms' lengths: axes are cut off, or zeros are
        ///         appended. Not without `axes`.
        ///     axes (sequence of int, optional): The axes; all by default.
        ///     norm (str): Which transforms have a factor: "backward", "ortho" or "forward".
        ///
        /// Returns:
        ///     array: The transform.
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
    /// The discrete Fourier transform along an axis, as complex64.
    fft
    /// The discrete Fourier transform along two axes, as complex64.
    fft2
    /// The discrete Fourier transform along several axes, as complex64.
    fftn;
    /// The inverse of `fft`.
    ifft
    /// The inverse of `fft2`.
    ifft2
    /// The inverse of `fftn`.
    ifftn;
    /// The discrete Fourier transform of real numbers along an axis, which gets n // 2 + 1
    /// elements: the others are their complex conjugates.
    rfft
    /// The discrete Fourier transform of real numbers along two axes, of which the last one gets
    /// n // 2 + 1 elements.
    rfft2
    /// The discrete Fourier transform of real numbers along several axes, of which the last one gets
    /// n // 2 + 1 elements.
    rfftn;
    /// The inverse of `rfft`: real numbers. The default length is 2 * (m - 1) for m elements, so an
    /// odd length must be given.
    irfft
    /// The inverse of `rfft2`: real numbers.
    irfft2
    /// The inverse of `rfftn`: real numbers.
    irfftn;
}

/// Moves the zero frequency to the middle.
///
/// Args:
///     a (array): A spectrum, in the order of `fft`.
///     axes (int or sequence of int, optional): The axes; all by default.
///
/// Returns:
///     array: The shifted array.
#[pyfunction]
#[pyo3(signature = (a, axes=None, stream=None))]
fn fftshift(a: ArrayArg, axes: Option<Ints>, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || core::fftshift(&a.0, axes.as_ref().map(|axes| &axes.0[..])))
}

/// The inverse of `fftshift`, from which it differs for axes of odd length.
///
/// Args:
///     a (array): A shifted spectrum.
///     axes (int or sequence of int, optional): The axes; all by default.
///
/// Returns:
///     array: The array in the order of `fft`.
#[pyfunction]
#[pyo3(signature = (a, axes=None, stream=None))]
fn ifftshift(a: ArrayArg, axes: Option<Ints>, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || core::ifftshift(&a.0, axes.as_ref().map(|axes| &axes.0[..])))
}

/// The frequencies of the elements of `fft`.
///
/// Args:
///     n (int): Samples of the signal.
///     d (float): Distance of the samples.
///
/// Returns:
///     array: n frequencies (float32): those from 0 on, then the negative ones.
#[pyfunction]
#[pyo3(signature = (n, d=1.0, stream=None))]
fn fftfreq(n: isize, d: f64, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || core::fftfreq(n.max(0) as usize, d))
}

/// The frequencies of the elements of `rfft`.
///
/// Args:
///     n (int): Samples of the signal.
///     d (float): Distance of the samples.
///
/// Returns:
///     array: n // 2 + 1 frequencies (float32), from 0 on.
#[pyfunction]
#[pyo3(signature = (n, d=1.0, stream=None))]
fn rfftfreq(n: isize, d: f64, stream: Option<StreamArg>) -> Res<PyArray> {
    made(stream, || core::rfftfreq(n.max(0) as usize, d))
}

/// The length of a window, which may be zero.
fn win_length_of(op: &str, n: Option<isize>) -> Res<Option<usize>> {
    let size = |n: isize| {
        usize::try_from(n).map_err(|_| value(format!("[{op}] win_length must not be negative.")))
    };
    n.map(size).transpose()
}

/// Spectra of overlapping frames of the last axis.
///
/// Args:
///     x (array): The signal, of the shape (..., samples).
///     n_fft (int): Samples of a frame.
///     hop_length (int, optional): Samples from the start of a frame to that of the next; n_fft // 4 by
///         default.
///     win_length (int, optional): Samples of the window of ones that is used without `window`; n_fft by
///         default.
///     window (array, optional): A window, which is put into the middle of the frame, with zeros
///         around it.
///     center (bool): Add half a frame at either end, so that frames are centered at their places.
///     pad_mode (str): What is added: "reflect", "constant" or "edge".
///     norm (str): As for `fft`.
///     onesided (bool, optional): Frequencies from 0 on only; by default so for real signals.
///
/// Returns:
///     array: complex64 of the shape (..., frequencies, frames).
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

/// The signal of which `stft` gives these spectra: the frames times the window, added where they
/// overlap, over the sum of the windows' squares.
///
/// Args:
///     stft_matrix (array): Spectra, of the shape (..., frequencies, frames).
///     n_fft (int, optional): Samples of a frame; by default as many as the spectra ask for, an even number
///         if they have only frequencies from 0 on.
///     hop_length (int, optional): Samples from the start of a frame to that of the next; n_fft // 4 by
///         default.
///     win_length (int, optional): Samples of the window of ones that is used without `window`; n_fft by
///         default.
///     window (array, optional): The window.
///     center (bool): Cut off half a frame at either end.
///     norm (str): As for `fft`.
///     onesided (bool, optional): The spectra have only frequencies from 0 on; True by default.
///     length (int, optional): Samples of the result: it is cut off, or zeros are appended.
///
/// Returns:
///     array: The signal (its real part, if it was complex), as float32.
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
