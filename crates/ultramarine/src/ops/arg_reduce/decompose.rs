//! Decompositions of `argmin` and `argmax`: they compare the elements with the extreme value.

use crate::ops::rules::decomposition::{Candidates, Decompose, numbered, wider};
use crate::ops::{arg_reduce::ArgReduce, reduce::Reduce, rules::builders::bin, select::where_};
use crate::{array::Array, dtype::Dtype, error::Result, scalar::Scalar, shape};
use ultramarine_abi::schema::{arg_reduce, binary, reduce};

/// Candidates for the index of an extreme (smallest or largest) element.
pub(crate) fn candidates(of: &ArgReduce, d: &Decompose<'_>, candidates: &mut Candidates) {
    let x = &d.inputs[0];
    let wide = wider(x.dtype()).or((x.dtype() == Dtype::Bool).then_some(Dtype::Int32));
    if let Some(wide) = wide {
        candidates.add(Ok(of.of(&x.astype(wide))));
    }
    if !x.dtype().is_complex() {
        candidates.add(first_extreme(of, x));
    }
}

/// The smallest position at which the element equals the extreme value or is NaN.
fn first_extreme(of: &ArgReduce, x: &Array) -> Result<Array> {
    let code = if of.code == arg_reduce::ARGMIN { reduce::MIN } else { reduce::MAX };
    let axes = 1 << of.axis;
    let mut hit = bin(binary::EQUAL, x, &Reduce { code, axes }.of(x))?;
    if x.dtype().is_inexact() {
        hit = bin(binary::LOGICAL_OR, &hit, &bin(binary::NOT_EQUAL, x, x)?)?;
    }
    let at = numbered(x.shape(), of.axis)?;
    let beyond = Array::scalar(Scalar::from_i64(at.dtype(), x.shape()[of.axis] as i64));
    let first = Reduce { code: reduce::MIN, axes }.of(&where_(&hit, &at, &beyond)?);
    debug_assert_eq!(shape::size(first.shape()) * x.shape()[of.axis], x.size());
    Ok(first.astype(Dtype::Uint32))
}
