//! Removes steps that only transforms need.

use super::Graph;
use crate::ops::rules::multi_output::{MultiOutput, OutputOf};
use crate::{ops::copy::identity::Identity, transforms::compile::graph::Step};

/// Replaces placeholders and barriers by their operands, and the results of a call with its own
/// rules by the steps that compute them.
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
