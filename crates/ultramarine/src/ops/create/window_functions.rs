//! Window functions: weights for the samples of a section of a signal. They are symmetric, with 1
//! in the middle.

use crate::ops::rules::builders::{bin, like};
use crate::{array::Array, dtype::Dtype, error::Result};
use std::f64::consts::TAU;
use ultramarine_abi::schema::binary;

/// Computes a window of `m` samples by `f`, from the sample numbers (float32) and the divisor `m -
/// 1`.
fn window(m: usize, f: impl Fn(&Array) -> Result<Array>) -> Result<Array> {
    if m == 1 {
        return Array::ones(&[1], Dtype::Float32);
    }
    let i = Array::arange(0.0, m as f64, 1.0, Dtype::Float32)?;
    f(&bin(binary::DIVIDE, &i, &like(&i, m.saturating_sub(1) as f64))?)
}

/// `a0 - a1 cos(2 pi t) + a2 cos(4 pi t)`.
fn cosines(m: usize, [a0, a1, a2]: [f64; 3]) -> Result<Array> {
    window(m, |t| {
        let wave = |factor: f64| t.multiply(like(t, factor))?.cos();
        let first = wave(TAU)?.multiply(like(t, a1))?;
        let sum = bin(binary::SUBTRACT, &like(t, a0), &first)?;
        if a2 == 0.0 { Ok(sum) } else { sum.add(&wave(2.0 * TAU)?.multiply(like(t, a2))?) }
    })
}

/// Returns Bartlett's window of `m` points, a triangle: `1 - |2 n / (m - 1) - 1|` for n from 0 to m
/// - 1, as float32 of shape `(m)`. One point is 1.
///
/// ```
/// assert_eq!(ultramarine::bartlett(5)?.to_vec::<f32>()?, [0.0, 0.5, 1.0, 0.5, 0.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
///
/// # Errors
/// [`Error::Value`](crate::Error::Value) for an absurd length.
pub fn bartlett(m: usize) -> Result<Array> {
    window(m, |t| {
        let off = bin(binary::SUBTRACT, &t.multiply(like(t, 2.0))?, &like(t, 1.0))?;
        bin(binary::SUBTRACT, &like(t, 1.0), &off.abs()?)
    })
}

/// Returns Blackman's window of `m` points: `0.42 - 0.5 cos(2 pi n / (m - 1)) + 0.08 cos(4 pi n /
/// (m - 1))`, as float32 of shape `(m)`.
///
/// # Errors
/// As [`bartlett`].
pub fn blackman(m: usize) -> Result<Array> {
    cosines(m, [0.42, 0.5, 0.08])
}

/// Returns Hamming's window of `m` points: `0.54 - 0.46 cos(2 pi n / (m - 1))`, as float32 of shape
/// `(m)`.
///
/// # Errors
/// As [`bartlett`].
pub fn hamming(m: usize) -> Result<Array> {
    cosines(m, [0.54, 0.46, 0.0])
}

/// Returns Hann's window of `m` points: `0.5 - 0.5 cos(2 pi n / (m - 1))`, as float32 of shape
/// `(m)`.
///
/// # Errors
/// As [`bartlett`].
pub fn hanning(m: usize) -> Result<Array> {
    cosines(m, [0.5, 0.5, 0.0])
}
