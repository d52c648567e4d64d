//! Removes steps that only transforms read.

use super::Graph;
use crate::{
    ops::{Op, copy::identity::Identity},
    transforms::compile::graph::Step,
};

/// Uses the operand of stand-ins and barriers in their place, and what a call with rules of its own
/// computes in that of its results.
pub(super) fn dissolve(graph: &mut Graph) {
    graph.rewrite(|steps, step| {
        step.hidden = false;
        match step.op()? {
            Op::Identity(Identity::Traced | Identity::StopGradient) => Some(step.operands[0]),
            Op::Part(part) => {
                let bundle: &Step = &steps[step.operands[0] as usize];
                let Some(Op::Many(many)) = bundle.op() else { return None };
                // The results themselves are the last operands.
                let first = bundle.operands.len().checked_sub(many.len())?;
                many.rules().hands_on().then(|| bundle.operands[first + part.index])
            }
            _ => None,
        }
    });
}
