//! Graph builders for rules: nodes of elementwise operations by their codes, and views along one axis.

use crate::ops::elementwise::{binary::Binary, unary::Unary};
use crate::ops::rules::shapeless::{
    SymbolicShape, SymbolicSize, broadcast_with, reshaped, shapeless,
};
use crate::ops::shape::{reshape::view, view::View};
use crate::shape::{self, Shape};
use crate::{array::Array, dtype::Dtype, error::Result, scalar::Scalar};
use ultramarine_abi::schema::binary;

/// A binary operation with a code of [`binary`], broadcast, in the promoted dtype.
pub(crate) fn bin(code: u32, a: &Array, b: &Array) -> Result<Array> {
    let dtype = a.dtype().promote(b.dtype());
    let shape = shape::broadcast(binary::NAMES[code as usize], a.shape(), b.shape())?;
    let out = match code {
        binary::EQUAL..=binary::LOGICAL_OR | binary::EQUAL_NAN => Dtype::Bool,
        _ => dtype,
    };
    let (x, y) = (a.promoted(dtype), b.promoted(dtype));
    let (a, b) = (broadcast_with(&x, &shape, &[b])?, broadcast_with(&y, &shape, &[a])?);
    Array::try_of(Binary { code }, &[&a, &b], shape, out)
}

/// A unary operation with a code of [`ultramarine_abi::schema::unary`] that keeps the dtype.
pub(crate) fn un(code: u32, a: &Array) -> Array {
    Array::of(Unary { code }, &[a], Shape::from_slice(a.shape()), a.dtype())
}

/// The dtype in which the composition of one operation computes: float32 for float16 and bfloat16, whose sums would
/// round and overflow.
pub(crate) fn compute_dtype(dtype: Dtype) -> Dtype {
    match dtype {
        Dtype::Float16 | Dtype::Bfloat16 => Dtype::Float32,
        _ => dtype,
    }
}

/// A constant of the dtype of `a`.
pub(crate) fn like(a: &Array, v: f64) -> Array {
    Array::scalar(Scalar::from_f64(a.dtype(), v))
}

/// `a * b`, broadcast.
pub(crate) fn times(a: &Array, b: &Array) -> Result<Array> {
    bin(binary::MULTIPLY, a, b)
}

/// `a + b` of two optional terms; `None` is zero.
pub(crate) fn plus(a: Option<Array>, b: Option<Array>) -> Result<Option<Array>> {
    Ok(match (a, b) {
        (Some(a), Some(b)) => Some(a.add(&b)?),
        (a, b) => a.or(b),
    })
}

/// The array with the axis `from` moved to `to`.
pub(crate) fn move_axis(a: &Array, from: usize, to: usize) -> Result<Array> {
    a.moveaxis(from as isize, to as isize)
}

/// The array flattened.
pub(crate) fn flat(a: &Array) -> Result<Array> {
    reshaped(a, SymbolicShape::from_elem(SymbolicSize::Product(0, a.ndim() as u8), 1), &[])
}

/// The array with a new axis of size 1 at `axis`.
pub(crate) fn with_axis(a: &Array, axis: usize) -> Result<Array> {
    if !shapeless() {
        let mut shape = Shape::from_slice(a.shape());
        shape.insert(axis, 1);
        shape::check("reshape", &shape)?;
        return view(View::Reshape, a, shape);
    }
    let mut sizes: SymbolicShape = (0..a.ndim()).map(SymbolicSize::own).collect();
    sizes.insert(axis, SymbolicSize::Fixed(1));
    reshaped(a, sizes, &[])
}

/// The array without the axis, which must have size 1.
pub(crate) fn without_axis(a: &Array, axis: usize) -> Result<Array> {
    if !shapeless() {
        let mut shape = Shape::from_slice(a.shape());
        shape.remove(axis);
        return view(View::Reshape, a, shape);
    }
    let mut sizes: SymbolicShape = (0..a.ndim()).map(SymbolicSize::own).collect();
    sizes.remove(axis);
    reshaped(a, sizes, &[])
}

/// `len` elements from `start` on along an axis.
pub(crate) fn slice_axis(a: &Array, axis: usize, start: usize, len: usize) -> Result<Array> {
    a.along(axis, start, start + len, 1)
}
