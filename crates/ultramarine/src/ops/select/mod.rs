//! Choice between two arrays, element by element.

mod decompose;

use crate::error::{Error, Result};
use crate::ops::rules::{batching, shapeless::broadcast_with};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Elementwise, Jvp, Rules, Vjp, Vmap, attributes,
};
use crate::{array::Array, backend::Exec, dtype::Dtype, node::Value, shape};
use smallvec::smallvec;
use ultramarine_abi::fused::family;
use ultramarine_abi::schema::{NoAttrs, op};

/// `x` where `condition` is non-zero, else `y`; all three broadcast, the result in the
/// promoted dtype of `x` and `y`.
///
/// # Errors
/// [`Error::Value`] when the shapes cannot be broadcast.
pub fn where_(condition: &Array, x: &Array, y: &Array) -> Result<Array> {
    let dtype = x.dtype().promote(y.dtype());
    let mut shape = shape::broadcast_shapes(condition.shape(), x.shape())?;
    if shape[..] != *y.shape() {
        shape = shape::broadcast_shapes(&shape, y.shape())?;
    }
    condition.computable("where")?;
    let (c, p, q) = (condition.astype(Dtype::Bool), x.promoted(dtype), y.promoted(dtype));
    let condition = broadcast_with(&c, &shape, &[&p, &q])?;
    let x = broadcast_with(&p, &shape, &[&c, &q])?;
    let y = broadcast_with(&q, &shape, &[&c, &p])?;
    Array::try_of(Select, &[&condition, &x, &y], shape, dtype)
}

impl Array {
    /// The elements held between `min` and `max` (the upper one wins if they cross),
    /// broadcast and promoted.
    ///
    /// # Errors
    /// [`Error::Value`] when neither bound is given, or the shapes cannot be broadcast.
    pub fn clip(&self, min: Option<&Array>, max: Option<&Array>) -> Result<Array> {
        if min.is_none() && max.is_none() {
            return Err(Error::Value("At most one of a_min and a_max may be None".into()));
        }
        let mut a = self.clone();
        if let Some(min) = min {
            a = a.maximum(min)?;
        }
        if let Some(max) = max {
            a = a.minimum(max)?;
        }
        Ok(a)
    }
}

attributes! {
    /// Operands: condition (bool), x, y, all of the result's shape.
    #[derive(Clone, Debug)]
    pub(crate) struct Select;
}

impl Rules for Select {
    fn name(&self) -> &'static str {
        "where"
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise { family: family::SELECT, code: 0 })
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        call.elementwise(exec, op::SELECT, &NoAttrs::new())
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (condition, c) = (&v.primals[0], v.cotangent);
        let zero = c.like(0.0);
        let x = v.wanted[1].then(|| where_(condition, c, &zero)).transpose()?;
        let y = v.wanted[2].then(|| where_(condition, &zero, c)).transpose()?;
        Ok(smallvec![None, x, y])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        if j.tangents[1].is_none() && j.tangents[2].is_none() {
            return Ok(None);
        }
        let zero = j.output.like(0.0);
        let part = |i: usize| j.tangents[i].as_ref().unwrap_or(&zero);
        where_(&j.primals[0], part(1), part(2)).map(Some)
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        decompose::candidates(d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        batching::elementwise(Select, v)
    }
}
