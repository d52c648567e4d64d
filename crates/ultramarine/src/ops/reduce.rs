//! Reductions over axes.

use super::{Call, Closing, Rules};
use crate::{
    array::Array,
    backend::{Exec, Operand},
    dtype::{Dtype, Kind},
    error::{Error, Result},
    node::Value,
    scalar::Scalar,
    shape::{self, Shape},
};
use ultramarine_abi::schema::{NoAttrs, ReduceAttrs, op, reduce};

impl Array {
    /// The sum over `axes` (all of them if empty slices are wanted reduced: pass
    /// every axis). `keepdims` keeps reduced axes with size 1.
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range.
    pub fn sum_axes(&self, axes: &[isize], keepdims: bool) -> Result<Array> {
        let axes = shape::normalize_axes("sum", axes, self.ndim())?;
        let dtype = match self.dtype().kind() {
            Kind::Bool | Kind::Signed | Kind::Unsigned if self.itemsize() < 4 => Dtype::Int32,
            _ => self.dtype(),
        };
        let a = self.astype(dtype);
        let mask = axes.iter().fold(0u64, |m, a| m | 1 << a);
        let mut kept: Shape = Shape::from_slice(self.shape());
        axes.iter().for_each(|a| kept[*a] = 1);
        let out = Array::of(Reduce { code: reduce::SUM, axes: mask }, &[&a], kept, dtype);
        if keepdims {
            return Ok(out);
        }
        let left: Shape =
            (0..self.ndim()).filter(|i| mask >> i & 1 == 0).map(|i| self.shape()[i]).collect();
        out.reshape(&left)
    }
}

/// A reduction; the node's shape keeps reduced axes with size 1.
#[derive(Clone, Debug)]
pub(crate) struct Reduce {
    /// A code of [`reduce`].
    pub code: u32,
    /// Bit `i`: axis `i` is reduced.
    pub axes: u64,
}

impl Reduce {
    /// What a reduction of nothing gives.
    fn identity(&self, dtype: Dtype) -> Result<Scalar> {
        match self.code {
            reduce::SUM | reduce::ANY => Ok(Scalar::from_i64(dtype, 0)),
            reduce::PROD | reduce::ALL => Ok(Scalar::from_i64(dtype, 1)),
            _ => Err(Error::value(self.name(), "Cannot reduce over zero size array.")),
        }
    }
}

impl Rules for Reduce {
    fn name(&self) -> &'static str {
        reduce::NAMES[self.code as usize]
    }

    fn closing(&self) -> Option<Closing> {
        Some(Closing { code: self.code, axes: self.axes })
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let value = exec.alloc(call.shape, call.dtype)?;
        let out = Operand { value: &value, shape: call.shape, dtype: call.dtype };
        let (shape, dtype) = call.descs[0];
        if shape.contains(&0) {
            exec.run(op::FILL, &NoAttrs::new(), &[], &[out], &[self.identity(call.dtype)?])?;
            return Ok(value);
        }
        let input = Operand { value: &call.inputs[0], shape, dtype };
        exec.run(op::REDUCE, &ReduceAttrs::new(self.code, self.axes), &[input], &[out], &[])?;
        Ok(value)
    }
}
