//! Decompositions: simpler operations that replace one which the device rejected at run time. Each family has its own
//! in `decompose.rs`, called by [`crate::ops::Rules::decompose`]. This file has the shared parts. (The composition of a
//! [`Composite`](crate::ops::Composite) is chosen earlier, when the evaluation is planned.)
//!
//! Decompositions keep the operation's number rules: NaN, signed zeros, wrapping integers and rounding. Only sums in
//! another order, and transcendental functions computed by identities, may differ in the last bits. If an identity
//! would lose more precision, there is no decomposition, and the operation runs on the CPU.

pub(crate) use crate::graph::rules::{Candidates, Decompose};

use crate::dtype::{Dtype, Kind};
use crate::ops::shape::{concatenate::concatenate, view::View};
use crate::{array::Array, error::Result, ops::rules::builders, scalar::Scalar, shape::Shape};

/// The dtype that computes for a narrower one with the same results. float16 and bfloat16 are computed in float32 and
/// rounded once in any case. Integers that wrap at 32 bits also wrap correctly at fewer bits.
pub(crate) fn wider(dtype: Dtype) -> Option<Dtype> {
    match dtype.kind() {
        Kind::Floating if dtype.size() == 2 => Some(Dtype::Float32),
        Kind::Signed | Kind::Unsigned if dtype.size() < 4 => Some(Dtype::Int32),
        _ => None,
    }
}

/// The signed integer dtype for an unsigned one of at least 32 bits.
pub(crate) fn signed(dtype: Dtype) -> Option<Dtype> {
    match dtype {
        Dtype::Uint32 => Some(Dtype::Int32),
        Dtype::Uint64 => Some(Dtype::Int64),
        _ => None,
    }
}

/// Other dtypes of the same size, for operations that only move elements.
pub(crate) fn same_size(dtype: Dtype) -> impl Iterator<Item = Dtype> {
    let all = match dtype.size() {
        1 => &[Dtype::Uint8, Dtype::Int8][..],
        2 => &[Dtype::Uint16, Dtype::Int16],
        4 => &[Dtype::Int32, Dtype::Uint32, Dtype::Float32],
        _ => &[Dtype::Int64, Dtype::Uint64],
    };
    all.iter().copied().filter(move |d| *d != dtype)
}

/// The same bytes under another dtype of the same size. (For bool the bytes must be 0 or 1.)
pub(crate) fn bitcast(a: &Array, dtype: Dtype) -> Array {
    if a.dtype() == dtype {
        return a.clone();
    }
    Array::of(View::Bitcast, &[a], Shape::from_slice(a.shape()), dtype)
}

/// A 0-d integer in the dtype of `a`.
pub(crate) fn int(a: &Array, v: i64) -> Array {
    Array::scalar(Scalar::from_i64(a.dtype(), v))
}

/// Real and imaginary parts side by side in a last axis of size 2.
pub(crate) fn pairs(a: &Array) -> Result<Array> {
    let mut shape = Shape::from_slice(a.shape());
    shape.push(1);
    a.reshape(&shape)?.view(Dtype::Float32)
}

/// Complex numbers from the output of [`pairs`].
pub(crate) fn unpaired(p: &Array) -> Result<Array> {
    let rest = Shape::from_slice(&p.shape()[..p.ndim() - 1]);
    p.contiguous().view(Dtype::Complex64)?.reshape(&rest)
}

/// Real and imaginary part.
pub(crate) fn parts(a: &Array) -> Result<(Array, Array)> {
    let p = pairs(a)?;
    let part = |i: usize| builders::slice_axis(&p, a.ndim(), i, 1)?.reshape(a.shape());
    Ok((part(0)?, part(1)?))
}

/// Complex numbers from their real and imaginary parts.
pub(crate) fn complex(re: &Array, im: &Array) -> Result<Array> {
    let n = re.ndim();
    let column = |a: &Array| builders::with_axis(a, n);
    unpaired(&concatenate(&[column(re)?, column(im)?], n as isize)?)
}

/// `0, 1, ..` along `axis` in the given shape, as int32, or as int64 if int32 is too small.
pub(crate) fn numbered(shape: &[usize], axis: usize) -> Result<Array> {
    let n = shape[axis];
    let dtype = if i32::try_from(n).is_ok() { Dtype::Int32 } else { Dtype::Int64 };
    let mut line = Shape::from_elem(1, shape.len());
    line[axis] = n;
    Array::arange(0.0, n as f64, 1.0, dtype)?.reshape(&line)?.broadcast_to(shape)
}
