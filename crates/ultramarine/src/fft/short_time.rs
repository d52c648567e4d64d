//! Short-time transforms: spectra of overlapping frames of a signal, and the reverse.

use super::{Norm, fft, ifft, irfft, rfft};
use crate::error::{Error, Result, bail, ensure};
use crate::ops::rules::builders::{like, plus, slice_axis};
use crate::shape::{Shape, contiguous_strides};
use crate::{array::Array, dtype::Dtype, ops::shape::pad::PadMode, placement::follow};

/// Options of the frames of a signal, for [`stft`]. Defaults are in parentheses. `None` selects a default that depends
/// on other fields.
#[derive(Clone, Debug)]
pub struct StftOptions {
    /// Samples of a frame (2048).
    pub n_fft: usize,
    /// Samples between the starts of consecutive frames (a quarter of a frame).
    pub hop_length: Option<usize>,
    /// Length of the window of ones that is used if there is no `window` (a frame).
    pub win_length: Option<usize>,
    /// A 1-d window. It is placed in the middle of the frame, with zeros around it.
    pub window: Option<Array>,
    /// If set, half a frame is added at either end, so that frames are centered at their positions (true).
    pub center: bool,
    /// The mode by which the added samples are filled (reflected elements).
    pub pad_mode: PadMode,
    /// Factors of the transforms.
    pub norm: Norm,
    /// If set, returns only the frequencies from 0 on (true for real signals).
    pub onesided: Option<bool>,
}

impl Default for StftOptions {
    fn default() -> StftOptions {
        StftOptions {
            n_fft: 2048,
            hop_length: None,
            win_length: None,
            window: None,
            center: true,
            pad_mode: PadMode::Reflect,
            norm: Norm::Backward,
            onesided: None,
        }
    }
}

/// Options of the frames of a signal, for [`istft`]. Pass the values that [`stft`] had in its [`StftOptions`], because
/// the spectra do not contain them.
#[derive(Clone, Debug)]
pub struct IstftOptions {
    /// Samples of a frame (computed from the spectra's size; an odd number must be given).
    pub n_fft: Option<usize>,
    /// Samples between the starts of consecutive frames (a quarter of a frame).
    pub hop_length: Option<usize>,
    /// Length of the window of ones that is used if there is no `window` (a frame).
    pub win_length: Option<usize>,
    /// The 1-d window.
    pub window: Option<Array>,
    /// If set, half a frame is cut off at either end (true).
    pub center: bool,
    /// Factors of the transforms.
    pub norm: Norm,
    /// If set, the spectra contain only frequencies from 0 on (true).
    pub onesided: Option<bool>,
    /// Samples of the result, which is cut off or padded with zeros to this length.
    pub length: Option<usize>,
}

impl Default for IstftOptions {
    fn default() -> IstftOptions {
        IstftOptions {
            n_fft: None,
            hop_length: None,
            win_length: None,
            window: None,
            center: true,
            norm: Norm::Backward,
            onesided: None,
            length: None,
        }
    }
}

/// Where the sum of the windows' squares is below this, the signal is not divided by it.
const LEAST: f64 = 1e-8;

/// Checks the sizes of frames; returns the samples between the starts of consecutive frames.
fn hop(op: &str, n_fft: usize, hop: Option<usize>) -> Result<usize> {
    ensure!(n_fft != 0, op, "n_fft must be positive but is 0. Pass the size of a frame.");
    match hop.unwrap_or(n_fft / 4) {
        0 => Err(Error::value(
            op,
            "hop_length must be positive but is 0. Pass the distance of two frames.",
        )),
        hop => Ok(hop),
    }
}

/// The window with zeros around it.
fn window(op: &str, given: Option<&Array>, length: Option<usize>, n_fft: usize) -> Result<Array> {
    let window = match given {
        Some(window) => {
            window.computable(op)?;
            ensure!(
                window.ndim() == 1,
                op,
                "window must be a one-dimensional array but has {} dimensions. Reshape it.",
                window.ndim()
            );
            window.clone()
        }
        None => {
            let length = length.unwrap_or(n_fft);
            Array::ones(&[length.min(n_fft.saturating_add(1))], Dtype::Float32)?
        }
    };
    let n = window.size();
    ensure!(
        n <= n_fft,
        op,
        "window length must not exceed n_fft, but they are {n} and {n_fft}. Shorten the window, or raise n_fft."
    );
    let left = (n_fft - n) / 2;
    window.pad(&[(left, n_fft - n - left)], PadMode::Constant, like(&window, 0.0))
}

/// Returns the spectra of overlapping frames of the last axis, each multiplied by a window: complex64 of shape `(...,
/// frequencies, frames)`.
///
/// # Errors
/// [`Error::Value`] when the signal is 0-d or shorter than a frame, a length is 0, or the window is not 1-d or longer
/// than a frame.
///
/// # Example
/// ```
/// use ultramarine::{Array, Dtype, fft, hanning};
/// let signal = Array::arange(0.0, 400.0, 1.0, Dtype::Float32)?.multiply(&Array::scalar(0.1f32))?.sin()?;
/// let window = Some(hanning(64)?);
/// let options = fft::StftOptions { n_fft: 64, window: window.clone(), ..Default::default() };
/// let spectra = fft::stft(&signal, &options)?;
/// assert_eq!(spectra.shape(), [33, 26]);
/// let options = fft::IstftOptions { window, length: Some(400), ..Default::default() };
/// let back = fft::istft(&spectra, &options)?;
/// assert!(back.subtract(&signal)?.abs()?.max(None)?.item::<f32>()? < 1e-4);
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn stft(x: &Array, options: &StftOptions) -> Result<Array> {
    x.computable("stft")?;
    let _home = follow(&[x]);
    let n_fft = options.n_fft;
    let Some(last) = x.ndim().checked_sub(1) else {
        bail!("stft", "Input must have at least one dimension. Reshape it to (1,).");
    };
    let hop = hop("stft", n_fft, options.hop_length)?;
    let window = window("stft", options.window.as_ref(), options.win_length, n_fft)?;
    let mut x = x.clone();
    if options.center {
        let mut widths = vec![(0, 0); x.ndim()];
        widths[last] = (n_fft / 2, n_fft / 2);
        x = x.pad(&widths, options.pad_mode, like(&x, 0.0))?;
    }
    let length = x.shape()[last];
    ensure!(
        length >= n_fft,
        "stft",
        "Input is too short for the given n_fft: {length} samples for frames of {n_fft}. Pad it, or lower n_fft."
    );
    let mut shape = Shape::from_slice(x.shape());
    let mut strides = contiguous_strides(&shape);
    shape[last] = (length - n_fft) / hop + 1;
    shape.push(n_fft);
    strides[last] = hop as isize;
    strides.push(1);
    let frames = x.as_strided(&shape, &strides, 0)?.multiply(&window)?;
    let onesided = options.onesided.unwrap_or(!x.dtype().is_complex());
    let transform = if onesided { rfft } else { fft };
    transform(&frames, None, -1, options.norm)?.swapaxes(-1, -2)
}

/// Returns the signal for which [`stft`] gives these spectra, `(..., frequencies, frames)`. Frames times the window are
/// added where they overlap, and divided by the sum of the windows' squares. The result is real; for a complex signal
/// it is the real part.
///
/// # Errors
/// [`Error::Value`] when the spectra are empty, a length is 0, or the window is not 1-d or longer than a frame.
pub fn istft(spectra: &Array, options: &IstftOptions) -> Result<Array> {
    spectra.computable("istft")?;
    let _home = follow(&[spectra]);
    let Some(last) = spectra.ndim().checked_sub(1).filter(|last| *last > 0) else {
        bail!(
            "istft",
            "Input must have at least two dimensions (freq, frames). Reshape or expand it."
        );
    };
    let (rows, frames) = (spectra.shape()[last - 1], spectra.shape()[last]);
    let onesided = options.onesided.unwrap_or(true);
    let own = if onesided { 2 * rows.saturating_sub(1) } else { rows };
    let n_fft = options.n_fft.unwrap_or(own);
    let hop = hop("istft", n_fft, options.hop_length)?;
    let window = window("istft", options.window.as_ref(), options.win_length, n_fft)?;
    ensure!(
        rows != 0 && frames != 0,
        "istft",
        "Input has no elements. Pass at least one frame and one frequency."
    );
    let parts = spectra.swapaxes(-1, -2)?;
    let parts = match onesided {
        true => irfft(&parts, Some(n_fft), -1, options.norm)?,
        false => ifft(&parts, Some(n_fft), -1, options.norm)?.real()?,
    };
    let parts = parts.multiply(&window)?;
    let signal = overlapped(&parts, hop)?;
    let squares = window.square()?.broadcast_to(&[frames, n_fft])?;
    let envelope = overlapped(&squares, hop)?;
    let signal = signal.divide(&envelope.maximum(like(&envelope, LEAST))?)?;
    let axis = signal.ndim() - 1;
    let whole = signal.shape()[axis];
    let start = if options.center { n_fft / 2 } else { 0 };
    let Some(length) = options.length else {
        return slice_axis(&signal, axis, start, whole.saturating_sub(2 * start));
    };
    let there = length.min(whole - start);
    let mut widths = vec![(0, 0); signal.ndim()];
    widths[axis].1 = length - there;
    slice_axis(&signal, axis, start, there)?.pad(&widths, PadMode::Constant, like(&signal, 0.0))
}

/// Up to this many parts of a frame are added as whole arrays. If there are more, elements are scattered.
const MAX_PARTS: usize = 16;

/// Adds up frames `(..., frames, n)`, each shifted by `hop` samples from the one before.
fn overlapped(frames: &Array, hop: usize) -> Result<Array> {
    let lead = frames.ndim() - 2;
    let [count, n] = [frames.shape()[lead], frames.shape()[lead + 1]];
    let length = (count - 1) * hop + n;
    let mut shape = Shape::from_slice(&frames.shape()[..lead]);
    let parts = n.div_ceil(hop);
    if parts > MAX_PARTS {
        shape.push(count * n);
        let all = frames.reshape(&shape)?;
        shape[lead] = length;
        let place = |i: usize| (i / n * hop + i % n) as i64;
        let positions =
            Array::from_slice(&(0..count * n).map(place).collect::<Vec<_>>(), &[count * n])?;
        let positions = positions.broadcast_to(all.shape())?;
        return Array::zeros(&shape, frames.dtype())?.scatter_add_axis(&positions, &all, lead);
    }
    // Part i of frame f is added to part f + i of the result.
    let mut whole: Option<Array> = None;
    shape.push((count + parts - 1) * hop);
    for i in 0..parts {
        let part = frames.along(lead + 1, i * hop, n.min((i + 1) * hop), 1)?;
        let mut widths = vec![(0, 0); lead + 2];
        widths[lead] = (i, parts - 1 - i);
        widths[lead + 1].1 = hop - part.shape()[lead + 1];
        let part = part.pad(&widths, PadMode::Constant, like(&part, 0.0))?.reshape(&shape)?;
        whole = plus(whole, Some(part))?;
    }
    let whole = whole.unwrap_or(Array::zeros(&shape, frames.dtype())?);
    slice_axis(&whole, lead, 0, length)
}
