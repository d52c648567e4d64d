//! Elementwise functions of two arrays, broadcast against each other.

use super::{Call, Elementwise, Rules};
use crate::{
    array::Array,
    backend::Exec,
    dtype::Dtype,
    error::Result,
    node::Value,
    scalar::Scalar,
    shape::{self, Shape},
};
use ultramarine_abi::{
    fused::family,
    schema::{BinaryAttrs, binary, op},
};

/// Both operands with the promoted dtype and the common shape.
fn operands(a: &Array, b: &Array, dtype: Dtype) -> Result<(Array, Array, Shape)> {
    let (a, b) = (a.astype(dtype), b.astype(dtype));
    if a.shape() == b.shape() {
        let shape = Shape::from_slice(a.shape());
        return Ok((a, b, shape));
    }
    let shape = shape::broadcast_shapes(a.shape(), b.shape())?;
    Ok((a.broadcast_to(&shape)?, b.broadcast_to(&shape)?, shape))
}

/// A binary op in the promoted dtype of its operands.
fn arithmetic(code: u32, a: &Array, b: &Array) -> Result<Array> {
    let dtype = a.dtype().promote(b.dtype());
    let (a, b, shape) = operands(a, b, dtype)?;
    Ok(Array::of(Binary { code }, &[&a, &b], shape, dtype))
}

impl Array {
    /// `self + other`, broadcast, in the promoted dtype.
    ///
    /// # Errors
    /// [`crate::Error::Value`] when the shapes cannot be broadcast.
    pub fn add(&self, other: &Array) -> Result<Array> {
        arithmetic(binary::ADD, self, other)
    }

    /// `self * other`, broadcast, in the promoted dtype.
    ///
    /// # Errors
    /// [`crate::Error::Value`] when the shapes cannot be broadcast.
    pub fn multiply(&self, other: &Array) -> Result<Array> {
        arithmetic(binary::MULTIPLY, self, other)
    }
}

impl std::ops::Mul<f64> for &Array {
    type Output = Result<Array>;

    /// Times a number, which takes the array's dtype (float32 for integers).
    fn mul(self, other: f64) -> Result<Array> {
        self.multiply(&Array::scalar(Scalar::from_f64(self.dtype().to_inexact(), other)))
    }
}

/// A function of a code of [`binary`].
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub code: u32,
}

impl Rules for Binary {
    fn name(&self) -> &'static str {
        binary::NAMES[self.code as usize]
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise { family: family::BINARY, code: self.code as u8 })
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        exec.elementwise(op::BINARY, &BinaryAttrs::new(self.code), call)
    }
}
