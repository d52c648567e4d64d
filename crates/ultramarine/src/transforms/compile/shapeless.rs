//! Adapts a graph that was traced shapeless to arguments of other sizes.

use super::graph::{Graph, Source, Step};
use crate::ops::rules::multi_output::{MultiOutput, OutputOf};
use crate::ops::{Fitted, Op, Refit};
use crate::{error::Result, scalar::Scalar, shape::Shape};
use smallvec::SmallVec;

/// Returns the graph for arguments of these shapes. Its steps keep their indices.
///
/// # Errors
/// [`Error::Value`](crate::Error::Value) if the shape of a result does not follow from the
/// operands' shapes, or the shapes do not match.
pub(crate) fn fitted(graph: &Graph, shapes: &[&[usize]]) -> Result<Graph> {
    let mut steps: Vec<Step> = Vec::with_capacity(graph.steps.len());
    for step in &graph.steps {
        let mut now = step.clone();
        match &step.source {
            Source::Input(i) => now.shape = Shape::from_slice(shapes[*i as usize]),
            Source::Constant(_) => (),
            Source::Op(op) => refit(op, step, graph, &steps, &mut now)?,
        }
        steps.push(now);
    }
    Ok(Graph { steps, outputs: graph.outputs.clone() })
}

/// Adapts one operation. `steps` are the adapted steps before it.
fn refit(op: &Op, step: &Step, graph: &Graph, steps: &[Step], now: &mut Step) -> Result<()> {
    let operands = || step.operands.iter().map(|i| *i as usize);
    if let Some(output) = op.get::<OutputOf>() {
        if let Some(multi) = steps[step.operands[0] as usize].get::<MultiOutput>() {
            now.shape = multi.results()[output.index].0.clone();
        }
        return Ok(());
    }
    let traced: SmallVec<[&[usize]; 4]> = operands().map(|i| &graph.steps[i].shape[..]).collect();
    let inputs: SmallVec<[&[usize]; 4]> = operands().map(|i| &steps[i].shape[..]).collect();
    let constants: SmallVec<[Option<Scalar>; 4]> =
        operands().map(|i| steps[i].constant()).collect();
    let r =
        Refit { op, traced: &traced, inputs: &inputs, constants: &constants, shape: &step.shape };
    if let Some(multi) = op.get::<MultiOutput>() {
        let multi = multi.refit(&r)?;
        now.shape = multi.results().first().map(|r| r.0.clone()).unwrap_or_default();
        now.source = Source::Op(multi.into());
        return Ok(());
    }
    let Fitted { op, operands, shape } = op.refit(&r)?;
    (now.source, now.shape) = (Source::Op(op), shape);
    if let Some(kept) = operands {
        now.operands = kept.iter().map(|i| step.operands[*i]).collect();
    }
    Ok(())
}
