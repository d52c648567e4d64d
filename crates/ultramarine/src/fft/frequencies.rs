//! Frequencies of a spectrum's elements, and the order of these elements.

use crate::error::{Result, ensure};
use crate::ops::rules::builders::like;
use crate::ops::shape::{axes::Axes, concatenate::concatenate};
use crate::{array::Array, dtype::Dtype, shape::normalize_axis};
use smallvec::SmallVec;

/// Moves the elements along `axes` (`..`: all) so that the zero frequency is in the middle.
///
/// # Errors
/// [`crate::Error::Index`] for an axis out of range.
pub fn fftshift(a: &Array, axes: impl Into<Axes>) -> Result<Array> {
    shifted("fftshift", a, axes.into(), |n| n / 2)
}

/// Undoes [`fftshift`]. The two differ for axes of odd size.
///
/// # Errors
/// [`crate::Error::Index`] for an axis out of range.
pub fn ifftshift(a: &Array, axes: impl Into<Axes>) -> Result<Array> {
    shifted("ifftshift", a, axes.into(), |n| -(n / 2))
}

fn shifted(op: &str, a: &Array, axes: Axes, by: impl Fn(isize) -> isize) -> Result<Array> {
    a.computable(op)?;
    let axes = axes.listed(a.ndim());
    let shifts = axes
        .iter()
        .map(|axis| Ok(by(a.shape()[normalize_axis(op, *axis, a.ndim())?] as isize)))
        .collect::<Result<SmallVec<[isize; 4]>>>()?;
    a.roll(&shifts, &axes)
}

/// Checks the arguments; returns the step between frequencies.
fn step(op: &str, n: usize, d: f64) -> Result<f64> {
    ensure!(n != 0, op, "`n` must be greater than 0. Pass the number of samples.");
    ensure!(d != 0.0, op, "`d` must be non-zero. Pass the distance of two samples.");
    Ok(1.0 / (n as f64 * d))
}

fn numbers(from: f64, to: f64, step: f64) -> Result<Array> {
    let all = Array::arange(from, to, 1.0, Dtype::Float32)?;
    all.multiply(like(&all, step))
}

/// Returns the frequency of each element of a transform of `n` samples at distance `d`, as float32:
/// first the frequencies from 0 on, then the negative ones.
///
/// # Errors
/// [`crate::Error::Value`] for no samples, or a distance of 0.
pub fn fftfreq(n: usize, d: f64) -> Result<Array> {
    let step = step("fftfreq", n, d)?;
    let negative = numbers(-((n / 2) as f64), 0.0, step)?;
    concatenate(&[numbers(0.0, n.div_ceil(2) as f64, step)?, negative], 0)
}

/// Returns the frequencies of the n / 2 + 1 elements of [`rfft`](crate::fft::rfft), as float32; see
/// [`fftfreq`].
///
/// # Errors
/// As [`fftfreq`].
pub fn rfftfreq(n: usize, d: f64) -> Result<Array> {
    let step = step("rfftfreq", n, d)?;
    numbers(0.0, (n / 2 + 1) as f64, step)
}
