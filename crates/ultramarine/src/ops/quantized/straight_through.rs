//! Rounded arrays whose derivatives ignore the rounding.

use crate::array::Array;
use crate::backend::Exec;
use crate::dtype::Dtype;
use crate::error::Result;
use crate::graph::tracing::Tracing;
use crate::node::Value;
use crate::ops::rules::batching::all_batched;
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputRules, MultiOutputVjp};
use crate::ops::{Call, Cotangents, Draft, Vmap, attributes};
use crate::shape::Shape;
use smallvec::smallvec;

attributes! {
    /// Returns the second operand, with the derivatives of the first (Bengio, Leonard, Courville: Estimating or
    /// propagating gradients through stochastic neurons, 2013).
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct StraightThrough;
}

/// `rounded`, with the derivatives of `x`. Both have the same shape and dtype. No derivative flows through `rounded`.
pub(super) fn straight_through(x: &Array, rounded: &Array) -> Array {
    if !Tracing::active() {
        return rounded.clone();
    }
    Array::forwarded(StraightThrough, &[x], std::slice::from_ref(rounded)).swap_remove(0)
}

impl MultiOutputRules for StraightThrough {
    fn name(&self) -> &'static str {
        "straight_through"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        node.inputs.len() == 2
            && node.outputs.len() == 1
            && node.inputs.iter().all(|i| *i == node.outputs[0])
    }

    fn forwards_operands(&self) -> bool {
        true
    }

    fn has_own_derivatives(&self) -> bool {
        true
    }

    fn eval(&self, _: &Exec, call: &Call<'_>, _: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        Ok(call.inputs[1..].to_vec())
    }

    fn vjp(&self, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        Ok(smallvec![v.cotangents[0].clone(), None])
    }

    fn jvp(&self, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
        Ok(vec![j.tangents[0].clone()])
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        let operands = all_batched(v)?;
        Ok(vec![(straight_through(&operands[0], &operands[1]), Some(0))])
    }
}
