//! Reductions, and where extremes are.

use super::{Decompose, Ways, binary::combining, bits, numbered, pairs, signed, unpaired, wider};
use crate::{
    array::Array,
    dtype::Dtype,
    error::Result,
    ops::{
        arg_reduce::ArgReduce,
        assemble::concatenate,
        lean::{bin, slice_axis},
        reduce::{Reduce, joined},
        select::where_,
    },
    scalar::Scalar,
    shape,
};
use ultramarine_abi::schema::{arg_reduce, binary, reduce};

/// The ways of a reduction.
pub(crate) fn ways(of: &Reduce, d: &Decompose<'_>, ways: &mut Ways) {
    let x = &d.inputs[0];
    let from = x.dtype();
    let truth = matches!(of.code, reduce::ALL | reduce::ANY);
    let as_dtype = |dtype: Dtype| of.of(&x.astype(dtype)).astype(d.dtype);
    if truth {
        if from != Dtype::Bool {
            ways.add(Ok(as_dtype(Dtype::Bool)));
        } else {
            let code = if of.code == reduce::ALL { reduce::MIN } else { reduce::MAX };
            let extreme = Reduce { code, axes: of.axes };
            ways.add(Ok(extreme.of(x)));
            ways.add(Ok(bits(&extreme.of(&bits(x, Dtype::Uint8)), Dtype::Bool)));
            ways.add(Ok(extreme.of(&x.astype(Dtype::Int32)).astype(Dtype::Bool)));
        }
    } else if let Some(wide) = wider(from) {
        ways.add(Ok(as_dtype(wide)));
    }
    if let Some(s) = signed(from).filter(|_| matches!(of.code, reduce::SUM | reduce::PROD)) {
        ways.add(Ok(bits(&of.of(&bits(x, s)), from)));
    }
    if from.is_complex() && of.code == reduce::SUM {
        ways.add(pairs(x).and_then(|p| unpaired(&of.of(&p))));
    }
    let axes: Vec<usize> = (0..x.ndim()).filter(|i| of.axes >> i & 1 == 1).collect();
    if axes.len() > 1 || axes.first().is_some_and(|a| a + 1 < x.ndim()) {
        ways.add(joined(x, &axes).and_then(|flat| {
            let last = flat.ndim() - 1;
            Reduce { code: of.code, axes: 1 << last }.of(&flat).reshape(d.shape)
        }));
    }
    // Halves sum in float32; complex extremes have an order of their own.
    let folds = if truth { from == Dtype::Bool } else { from.size() > 2 && !from.is_complex() };
    if folds || from.is_complex() && matches!(of.code, reduce::SUM | reduce::PROD) {
        ways.add(joined(x, &axes).and_then(|flat| folded(&flat, of.code)?.reshape(d.shape)));
    }
}

/// The last axis reduced by halves: each step combines one half with the other.
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

/// The ways of an index of an extreme.
pub(crate) fn arg_ways(of: &ArgReduce, d: &Decompose<'_>, ways: &mut Ways) {
    let x = &d.inputs[0];
    let wide = wider(x.dtype()).or((x.dtype() == Dtype::Bool).then_some(Dtype::Int32));
    if let Some(wide) = wide {
        ways.add(Ok(of.of(&x.astype(wide))));
    }
    if !x.dtype().is_complex() {
        ways.add(first_extreme(of, x));
    }
}

/// The smallest of the positions at which the extreme is, or a NaN.
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
