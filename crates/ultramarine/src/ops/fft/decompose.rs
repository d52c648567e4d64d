//! Decompositions of Fourier transforms into matrix products.

use crate::error::{Result, bail};
use crate::ops::fft::{Transform, half};
use crate::ops::rules::builders::{bin, like, move_axis, slice_axis};
use crate::ops::rules::decomposition::{Candidates, Decompose, complex, parts};
use crate::{array::Array, ops::shape::concatenate::concatenate};
use std::f64::consts::TAU;
use ultramarine_abi::schema::{binary, fft};

/// Length of the longest transform that is one matrix product. Longer transforms are split into two
/// shorter ones (Cooley and Tukey). If the length has a larger prime factor, the transform runs
/// elsewhere.
const MAX_MATRIX: usize = 256;

/// Real and imaginary part. `None` means that the imaginary part is zero.
struct Parts(Array, Option<Array>);

/// Candidates for a transform.
pub(crate) fn candidates(t: &Transform, d: &Decompose<'_>, candidates: &mut Candidates) {
    let [a] = d.inputs else { return };
    candidates.add(transformed(t, a));
}

fn transformed(t: &Transform, a: &Array) -> Result<Array> {
    let last = a.ndim() - 1;
    let a = move_axis(a, t.axis, last)?;
    let n = t.n;
    let sign = if matches!(t.code, fft::FORWARD | fft::REAL) { -1.0 } else { 1.0 };
    let from = match t.code {
        fft::REAL => Parts(a, None),
        fft::REAL_BACKWARD => {
            // The other half is the mirror image. Elements that are their own mirror images are
            // real.
            let (re, im) = parts(&a)?;
            let beside = n.div_ceil(2) - 1;
            let (mut im, mut re) = (slice_axis(&im, last, 1, beside)?, vec![re]);
            let mut all = vec![like(&im, 0.0).broadcast_to(&with_last(&im, 1))?];
            if beside > 0 {
                re.push(slice_axis(&re[0], last, 1, beside)?.flip(-1)?);
            }
            all.push(im.clone());
            if n.is_multiple_of(2) {
                all.push(all[0].clone());
            }
            im = bin(binary::SUBTRACT, &like(&im, 0.0), &im.flip(-1)?)?;
            all.push(im);
            Parts(concatenate(&re, -1)?, Some(concatenate(&all, -1)?))
        }
        _ => {
            let (re, im) = parts(&a)?;
            Parts(re, Some(im))
        }
    };
    let Parts(re, im) = lines(from, n, sign)?;
    let scaled = |a: Array| if t.scale == 1.0 { Ok(a) } else { a.multiply(like(&a, t.scale)) };
    let re = scaled(re)?;
    let whole = match (t.code, im) {
        (fft::REAL_BACKWARD, _) => re,
        (_, im) => {
            let im = scaled(im.unwrap_or(re.zeros_like()))?;
            let kept = if t.code == fft::REAL { half(n) } else { n };
            complex(&slice_axis(&re, last, 0, kept)?, &slice_axis(&im, last, 0, kept)?)?
        }
    };
    move_axis(&whole, last, t.axis)
}

/// The shape of `a`, with the last size replaced.
fn with_last(a: &Array, n: usize) -> Vec<usize> {
    let mut shape = a.shape().to_vec();
    shape[a.ndim() - 1] = n;
    shape
}

/// cos and sin of `sign tau j k / n` for j below `rows` and k below `columns`.
fn waves(rows: usize, columns: usize, n: usize, sign: f64) -> Result<(Array, Array)> {
    let angle = |i: usize| {
        let (j, k) = (i / columns, i % columns);
        // Exact: the product is far below 2^64.
        sign * TAU * ((j * k) % n) as f64 / n as f64
    };
    let table = |f: fn(f64) -> f64| -> Result<Array> {
        let values: Vec<f32> = (0..rows * columns).map(|i| f(angle(i)) as f32).collect();
        Array::from_slice(&values, &[rows, columns])
    };
    Ok((table(f64::cos)?, table(f64::sin)?))
}

/// The product of `a` and `re + i im`, each part computed by `f`.
fn times(
    a: &Parts,
    (re, im): &(Array, Array),
    f: impl Fn(&Array, &Array) -> Result<Array>,
) -> Result<Parts> {
    let Some(ai) = &a.1 else { return Ok(Parts(f(&a.0, re)?, Some(f(&a.0, im)?))) };
    let real = bin(binary::SUBTRACT, &f(&a.0, re)?, &f(ai, im)?)?;
    Ok(Parts(real, Some(bin(binary::ADD, &f(&a.0, im)?, &f(ai, re)?)?)))
}

fn each(a: &Parts, f: impl Fn(&Array) -> Result<Array>) -> Result<Parts> {
    Ok(Parts(f(&a.0)?, a.1.as_ref().map(f).transpose()?))
}

/// Transforms along the last axis, which has `n` elements.
fn lines(a: Parts, n: usize, sign: f64) -> Result<Parts> {
    if n <= MAX_MATRIX {
        return times(&a, &waves(n, n, n, sign)?, |a, w| a.matmul(w));
    }
    let divides = |m: &usize| n.is_multiple_of(*m);
    let Some(columns) = (2..=MAX_MATRIX).rev().find(divides) else {
        bail!("fft", "a length with a large prime factor");
    };
    // With j = columns j1 + j2 and k = k1 + rows k2: first the transforms of the columns (over j1),
    // then the twiddle factors w^(j2 k1), then the transforms over j2.
    let rows = n / columns;
    let last = a.0.ndim() - 1;
    let mut split = a.0.shape()[..last].to_vec();
    let whole = a.0.shape().to_vec();
    split.extend([rows, columns]);
    let a = each(&a, |a| a.reshape(&split)?.swapaxes(-1, -2))?;
    let a = lines(a, rows, sign)?;
    let a = times(&a, &waves(columns, rows, n, sign)?, |a, w| a.multiply(w))?;
    let a = each(&a, |a| a.swapaxes(-1, -2))?;
    let a = lines(a, columns, sign)?;
    each(&a, |a| a.swapaxes(-1, -2)?.reshape(&whole))
}
