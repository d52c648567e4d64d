//! Creation: filled arrays and ranges.

use super::{Call, Cotangents, Jvp, Rules, Vjp, Vmap};
use crate::{
    array::Array,
    backend::{Exec, Operand},
    dtype::Dtype,
    error::{Error, Result},
    node::Value,
    scalar::Scalar,
    shape::{self, Shape},
};
use ultramarine_abi::schema::{NoAttrs, op};

/// An array with every element equal to `value`.
pub(crate) fn filled(shape: Shape, value: Scalar) -> Array {
    Array::of(Fill { value }, &[], shape, value.dtype())
}

impl Array {
    /// An array filled with `value`, in the dtype of the value.
    ///
    /// # Errors
    /// [`Error::Value`] when the shape is too large.
    pub fn full(shape: &[usize], value: impl Into<Scalar>) -> Result<Array> {
        let value = value.into();
        shape::check("full", shape, value.dtype().size())?;
        Ok(filled(Shape::from_slice(shape), value))
    }

    /// An array of zeros.
    ///
    /// # Errors
    /// [`Error::Value`] when the shape is too large.
    pub fn zeros(shape: &[usize], dtype: Dtype) -> Result<Array> {
        Array::full(shape, Scalar::from_i64(dtype, 0))
    }

    /// An array of ones.
    ///
    /// # Errors
    /// [`Error::Value`] when the shape is too large.
    pub fn ones(shape: &[usize], dtype: Dtype) -> Result<Array> {
        Array::full(shape, Scalar::from_i64(dtype, 1))
    }

    /// `start`, `start + step` ... below `stop`, as a 1-d array.
    ///
    /// # Errors
    /// [`Error::Value`] when `step` is zero or an argument is not finite, or the
    /// length is absurd.
    pub fn arange(start: f64, stop: f64, step: f64, dtype: Dtype) -> Result<Array> {
        if ![start, stop, step].iter().all(|v| v.is_finite()) {
            return Err(Error::value("arange", "Cannot compute length."));
        }
        if step == 0.0 {
            return Err(Error::value("arange", "The step must not be zero."));
        }
        let n = ((stop - start) / step).ceil().max(0.0);
        if n > i32::MAX as f64 {
            return Err(Error::value("arange", "Maximum size exceeded."));
        }
        if dtype == Dtype::Bool {
            return Err(Error::value("arange", "bool is not supported."));
        }
        Ok(Array::of(Arange { start, step }, &[], Shape::from_elem(n as usize, 1), dtype))
    }
}

/// Every element is `value`. Never fused as a node: programs take it as a constant.
#[derive(Clone, Debug)]
pub(crate) struct Fill {
    pub value: Scalar,
}

impl Rules for Fill {
    fn name(&self) -> &'static str {
        "full"
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let value = exec.alloc(call.shape, call.dtype)?;
        let out = Operand { value: &value, shape: call.shape, dtype: call.dtype };
        exec.run(op::FILL, &NoAttrs::new(), &[], &[out], &[self.value])?;
        Ok(value)
    }

    fn vjp(&self, _: &Vjp<'_>) -> Result<Cotangents> {
        Ok(Cotangents::new())
    }

    fn jvp(&self, _: &Jvp<'_>) -> Result<Option<Array>> {
        Ok(None)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        Ok((filled(Shape::from_slice(v.shape), self.value), None))
    }
}

/// `start + i * step`.
#[derive(Clone, Debug)]
pub(crate) struct Arange {
    start: f64,
    step: f64,
}

impl Rules for Arange {
    fn name(&self) -> &'static str {
        "arange"
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let value = exec.alloc(call.shape, call.dtype)?;
        let out = Operand { value: &value, shape: call.shape, dtype: call.dtype };
        let scalar = |v: f64| {
            if call.dtype.is_inexact() {
                Scalar::from_f64(Dtype::Float64, v)
            } else {
                Scalar::from_f64(Dtype::Int64, v)
            }
        };
        let scalars = [scalar(self.start), scalar(self.step)];
        exec.run(op::ARANGE, &NoAttrs::new(), &[], &[out], &scalars)?;
        Ok(value)
    }

    fn vjp(&self, _: &Vjp<'_>) -> Result<Cotangents> {
        Ok(Cotangents::new())
    }

    fn jvp(&self, _: &Jvp<'_>) -> Result<Option<Array>> {
        Ok(None)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        Ok((Array::of(self.clone(), &[], Shape::from_slice(v.shape), v.dtype), None))
    }
}
