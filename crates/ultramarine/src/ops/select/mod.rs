//! Choice between two arrays, element by element.

mod decompose;

use crate::error::{Error, Result};
use crate::ops::rules::{batching, shapeless::broadcast_with};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Elementwise, Jvp, Rules, Vjp, Vmap, attributes,
    elementwise::operand::{Operand, OptionalOperand, pair},
};
use crate::{
    array::Array,
    backend::Exec,
    dtype::Dtype,
    node::Value,
    shape::{self, Show},
};
use smallvec::smallvec;
use ultramarine_abi::fused::family;
use ultramarine_abi::schema::{NoAttrs, op};

/// Returns `x` where `condition` is not 0, else `y`. All three are broadcast; the result has the
/// promoted dtype of `x` and `y`.
///
/// # Errors
/// [`Error::Value`] when the shapes cannot be broadcast.
///
/// ```
/// use ultramarine::{Array, where_};
/// let x = Array::from_slice(&[-1.0f32, 2.0], &[2])?;
/// assert_eq!(where_(&x.less(0)?, &x * 0.1, &x)?.to_vec::<f32>()?, [-0.1, 2.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn where_(condition: &Array, x: impl Operand, y: impl Operand) -> Result<Array> {
    let (x, y) = pair(&x, &y)?;
    select(condition, &x, &y)
}

fn select(condition: &Array, x: &Array, y: &Array) -> Result<Array> {
    let dtype = x.dtype().promote(y.dtype());
    let (c, p, q) = (condition.shape(), x.shape(), y.shape());
    let broadcast = |a: &[usize], b: &[usize]| {
        shape::broadcast_shapes(a, b).map_err(|_| {
            let (c, p, q) = (Show(c), Show(p), Show(q));
            Error::value(
                "where",
                format!("Shapes {c}, {p} and {q} cannot be broadcast. {}", shape::BROADCAST),
            )
        })
    };
    let mut shape = broadcast(c, p)?;
    if shape[..] != *q {
        shape = broadcast(&shape, q)?;
    }
    condition.computable("where")?;
    let (c, p, q) = (condition.promoted(Dtype::Bool), x.promoted(dtype), y.promoted(dtype));
    let condition = broadcast_with(&c, &shape, &[&p, &q])?;
    let x = broadcast_with(&p, &shape, &[&c, &q])?;
    let y = broadcast_with(&q, &shape, &[&c, &p])?;
    Array::try_of(Select, &[&condition, &x, &y], shape, dtype)
}

impl Array {
    /// Returns the elements, clamped to `min` and `max`: the lower bound, or the upper one, in
    /// place of elements outside. If the bounds cross, the upper one wins. Operands are broadcast
    /// and promoted; a bound may be `None`.
    ///
    /// # Errors
    /// [`Error::Value`] when neither bound is given, or the shapes cannot be broadcast.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[-1.0f32, 0.5, 2.0], &[3])?;
    /// assert_eq!(x.clip(0.0, 1.0)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// assert_eq!(x.clip(None, 1.0)?.to_vec::<f32>()?, [-1.0, 0.5, 1.0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    pub fn clip(&self, min: impl OptionalOperand, max: impl OptionalOperand) -> Result<Array> {
        let (min, max) = (min.if_given_beside(self)?, max.if_given_beside(self)?);
        if min.is_none() && max.is_none() {
            return Err(Error::Value(
                "[clip] At most one of a_min and a_max may be None. Pass one of them.".into(),
            ));
        }
        let mut a = self.clone();
        if let Some(min) = min {
            a = a.maximum(&*min)?;
        }
        if let Some(max) = max {
            a = a.minimum(&*max)?;
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

    fn admits(&self, node: &Draft<'_>) -> bool {
        node.is_elementwise(op::SELECT, None)
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
