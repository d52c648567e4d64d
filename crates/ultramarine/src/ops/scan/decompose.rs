//! Decompositions of running reductions.

use crate::dtype::{Dtype, iinfo};
use crate::ops::rules::builders::{bin, slice_axis};
use crate::ops::rules::decomposition::{
    Candidates, Decompose, bitcast, pairs, signed, unpaired, wider,
};
use crate::ops::{reduce::combining, scan::Scan, shape::concatenate::concatenate};
use crate::{array::Array, error::Result, scalar::Scalar, shape::Shape};
use ultramarine_abi::schema::reduce;

/// Candidates for a running reduction.
pub(crate) fn candidates(of: &Scan, d: &Decompose<'_>, candidates: &mut Candidates) {
    let x = &d.inputs[0];
    let sums = matches!(of.code, reduce::SUM | reduce::PROD);
    if let Some(wide) = wider(x.dtype()) {
        // The first element of an exclusive extreme depends on the dtype.
        if sums || of.inclusive || x.dtype().is_inexact() {
            candidates.add(Ok(of.of(&x.astype(wide)).astype(d.dtype)));
        }
        if x.dtype().is_inexact() {
            return;
        }
    }
    if let Some(s) = signed(x.dtype()).filter(|_| sums) {
        candidates.add(Ok(bitcast(&of.of(&bitcast(x, s)), d.dtype)));
    }
    if x.dtype().is_complex() && of.code == reduce::SUM {
        candidates.add(pairs(x).and_then(|p| unpaired(&of.of(&p))));
    }
    if sums || !x.dtype().is_complex() {
        candidates.add(doubled(of, x));
    }
}

/// Each step combines every element with the element at the distance that the previous steps have
/// covered.
fn doubled(of: &Scan, x: &Array) -> Result<Array> {
    let (axis, n) = (of.axis, x.shape()[of.axis]);
    // Cut to the length of the result, in the direction of the axis.
    let in_order = |x: &Array| if of.reverse { x.along(axis, 0, n, -1) } else { Ok(x.clone()) };
    let mut x = in_order(x)?;
    let mut reach = 1;
    while reach < n {
        let part = |from: usize, len: usize| slice_axis(&x, axis, from, len);
        // The earlier element comes first, because it is the running value.
        let sum = bin(combining(of.code), &part(0, n - reach)?, &part(reach, n - reach)?)?;
        x = concatenate(&[part(0, reach)?, sum], axis as isize)?;
        reach *= 2;
    }
    if !of.inclusive && n > 0 {
        let mut first = Shape::from_slice(x.shape());
        first[axis] = 1;
        let first = Array::full(&first, start(of.code, x.dtype()))?;
        x = concatenate(&[first, slice_axis(&x, axis, 0, n - 1)?], axis as isize)?;
    }
    in_order(&x)
}

/// The first element of an exclusive running reduction.
fn start(code: u32, dtype: Dtype) -> Scalar {
    let limits = iinfo(dtype).map(|i| (i.min as i64, i.max as i64));
    match (code, limits) {
        (reduce::SUM, _) => Scalar::from_i64(dtype, 0),
        (reduce::PROD, _) => Scalar::from_i64(dtype, 1),
        (reduce::MIN, Some((_, max))) => Scalar::from_i64(dtype, max),
        (reduce::MIN, None) => Scalar::from_f64(dtype, f64::INFINITY),
        (_, Some((min, _))) => Scalar::from_i64(dtype, min),
        (_, None) => Scalar::from_f64(dtype, f64::NEG_INFINITY),
    }
}
