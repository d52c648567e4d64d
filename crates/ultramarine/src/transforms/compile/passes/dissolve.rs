//! Removes steps that only transforms read.

use super::Graph;
use crate::ops::rules::multi_output::{MultiOutput, OutputOf};
use crate::{ops::copy::identity::Identity, transforms::compile::graph::Step};

/// Uses the operand of stand-ins and barriers in their place, and what a call with rules of its own
/// computes in that of its results.
pub(super) fn dissolve(graph: &mut Graph) {
    graph.rewrite(|steps, step| {
        step.hidden = false;
        use Identity::{StopGradient, Traced, Underivable};
        if let Some(Traced | StopGradient | Underivable) = step.get() {
            return Some(step.operands[0]);
        }
        let output: &OutputOf = step.get()?;
        let bundle: &Step = &steps[step.operands[0] as usize];
        let multi: &MultiOutput = bundle.get()?;
        // The results themselves are the last operands.
        let first = bundle.operands.len().checked_sub(multi.len())?;
        multi.rules().forwards_operands().then(|| bundle.operands[first + output.index])
    });
}
