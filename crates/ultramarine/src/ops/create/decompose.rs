//! Decompositions of ranges: in another dtype, or made on the host.

use crate::error::{Error, Result};
use crate::ops::copy::fresh;
use crate::ops::rules::decomposition::{Candidates, Decompose, wider};
use crate::{array::Array, dtype::Dtype, scalar::Scalar};

/// Candidates for `start + i * step`.
pub(crate) fn candidates(start: f64, step: f64, d: &Decompose<'_>, candidates: &mut Candidates) {
    let n = d.shape[0];
    let range = |dtype: Dtype| Array::arange(start, start + step * n as f64, step, dtype);
    if let Some(wide) = wider(d.dtype).filter(|_| !d.dtype.is_inexact()) {
        candidates.add(range(wide).map(|r| r.astype(d.dtype)));
    }
    let exact = |limit: f64| {
        let last = start + step * n as f64;
        [start, step, last].iter().all(|v| v.fract() == 0.0 && v.abs() <= limit)
    };
    // Integers that the floating-point type represents exactly.
    if d.dtype.is_inexact() && exact(2f64.powi(24)) {
        candidates.add(range(Dtype::Int32).map(|r| r.astype(d.dtype)));
    }
    candidates.add(uploaded(start, step, d));
}

/// The numbers as the CPU computes them, copied to the device. The copy works even if the device has no kernels for the
/// dtype.
fn uploaded(start: f64, step: f64, d: &Decompose<'_>) -> Result<Array> {
    let n = d.shape[0];
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(n.saturating_mul(d.dtype.size())).map_err(|_| {
        Error::Memory(
            format!("[arange] No memory for {n} elements. Free arrays, or make a smaller one.")
                .into(),
        )
    })?;
    let (first, by) = (start as i64, step as i64);
    for i in 0..n {
        let element = if d.dtype.is_inexact() {
            Scalar::from_f64(d.dtype, start + i as f64 * step)
        } else {
            Scalar::from_i64(d.dtype, first.wrapping_add(by.wrapping_mul(i as i64)))
        };
        bytes.extend_from_slice(&element.bits().to_le_bytes()[..d.dtype.size()]);
    }
    // Copy the numbers, because recorded commands that are replayed must not write to them.
    Ok(fresh(&Array::from_bytes(&bytes, d.shape, d.dtype)?))
}
