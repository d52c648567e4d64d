//! Ranges, in other dtypes or as running sums.

use crate::ops::rules::decomposition::{Candidates, Decompose, wider};
use crate::{array::Array, dtype::Dtype, ops::rules::builders::bin, scalar::Scalar};
use ultramarine_abi::schema::binary;

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
    // Integers that the floating-point type has too.
    if d.dtype.is_inexact() && exact(2f64.powi(24)) {
        candidates.add(range(Dtype::Int32).map(|r| r.astype(d.dtype)));
    }
    if d.dtype.is_integer() {
        let scalar = |v: f64| Scalar::from_i64(d.dtype, v as i64);
        let steps =
            Array::full(d.shape, scalar(step)).and_then(|s| s.cumsum(Some(0), false, false));
        candidates.add(steps.and_then(|s| bin(binary::ADD, &s, &Array::scalar(scalar(start)))));
    }
}
