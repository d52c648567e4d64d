//! Decompositions of reductions: into other reductions, or by halving the axis.

use crate::ops::reduce::{Reduce, joined};
use crate::ops::rules::builders::{bin, slice_axis};
use crate::ops::rules::decomposition::{
    Candidates, Decompose, bitcast, pairs, signed, unpaired, wider,
};
use crate::{array::Array, dtype::Dtype, error::Result, ops::shape::concatenate::concatenate};
use ultramarine_abi::schema::{binary, reduce};

/// Candidates for a reduction.
pub(crate) fn candidates(of: &Reduce, d: &Decompose<'_>, candidates: &mut Candidates) {
    let x = &d.inputs[0];
    let from = x.dtype();
    let truth = matches!(of.code, reduce::ALL | reduce::ANY);
    let as_dtype = |dtype: Dtype| of.of(&x.astype(dtype)).astype(d.dtype);
    if truth {
        if from != Dtype::Bool {
            candidates.add(Ok(as_dtype(Dtype::Bool)));
        } else {
            let code = if of.code == reduce::ALL { reduce::MIN } else { reduce::MAX };
            let extreme = Reduce { code, axes: of.axes };
            candidates.add(Ok(extreme.of(x)));
            candidates.add(Ok(bitcast(&extreme.of(&bitcast(x, Dtype::Uint8)), Dtype::Bool)));
            candidates.add(Ok(extreme.of(&x.astype(Dtype::Int32)).astype(Dtype::Bool)));
        }
    } else if let Some(wide) = wider(from) {
        candidates.add(Ok(as_dtype(wide)));
    }
    if let Some(s) = signed(from).filter(|_| matches!(of.code, reduce::SUM | reduce::PROD)) {
        candidates.add(Ok(bitcast(&of.of(&bitcast(x, s)), from)));
    }
    if from.is_complex() && of.code == reduce::SUM {
        candidates.add(pairs(x).and_then(|p| unpaired(&of.of(&p))));
    }
    let axes: Vec<usize> = (0..x.ndim()).filter(|i| of.axes >> i & 1 == 1).collect();
    if axes.len() > 1 || axes.first().is_some_and(|a| a + 1 < x.ndim()) {
        candidates.add(joined(x, &axes).and_then(|flat| {
            let last = flat.ndim() - 1;
            Reduce { code: of.code, axes: 1 << last }.of(&flat).reshape(d.shape)
        }));
    }
    // float16 and bfloat16 sum in float32; complex extremes have an order of their own.
    let folds = if truth { from == Dtype::Bool } else { from.size() > 2 && !from.is_complex() };
    if folds || from.is_complex() && matches!(of.code, reduce::SUM | reduce::PROD) {
        candidates.add(joined(x, &axes).and_then(|flat| folded(&flat, of.code)?.reshape(d.shape)));
    }
}

/// The last axis, reduced by halving: each step combines one half with the other.
fn folded(x: &Array, code: u32) -> Result<Array> {
    let axis = x.ndim() - 1;
    let mut x = x.clone();
    while x.shape()[axis] > 1 {
        let n = x.shape()[axis];
        let half = n / 2;
        let part = |from: usize, len: usize| slice_axis(&x, axis, from, len);
        let sum = bin(combining(code), &part(0, half)?, &part(n - half, half)?)?;
        x = match n % 2 {
            0 => sum,
            _ => concatenate(&[sum, part(half, 1)?], axis as isize)?,
        };
    }
    Ok(x)
}

/// The function of two arrays that combines two results of a reduction.
pub(crate) fn combining(code: u32) -> u32 {
    match code {
        reduce::SUM => binary::ADD,
        reduce::PROD => binary::MULTIPLY,
        reduce::MIN => binary::MINIMUM,
        reduce::MAX => binary::MAXIMUM,
        reduce::ALL => binary::LOGICAL_AND,
        reduce::ANY => binary::LOGICAL_OR,
        _ => binary::LOGADDEXP,
    }
}
