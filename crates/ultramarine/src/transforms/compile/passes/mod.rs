//! Passes: functions that simplify a graph. Results stay bitwise identical.

mod common;
mod constants;
mod dissolve;
mod exact;
mod rematerialise;
mod views;

use super::graph::Graph;
use crate::ops::copy::{Fresh, storage::Recode};
use crate::ops::create::fill::{Arange, Fill};
use crate::ops::elementwise::{binary::Binary, unary::Unary};
use crate::ops::index::dynamic_slice::{DynamicSlice, DynamicSliceUpdate};
use crate::ops::index::gather::{Gather, GatherAxis};
use crate::ops::index::scatter::{Scatter, ScatterAxis};
use crate::ops::{
    Op, arg_reduce::ArgReduce, index::update::Update, matmul::Matmul, random::RandomBits,
    reduce::Reduce, scan::Scan, select::Select, shape::concatenate::Concatenate, sort::Sort,
};

/// The passes in the order in which they run.
const PASSES: &[fn(&mut Graph)] = &[
    dissolve::dissolve,
    constants::fold,
    exact::merge,
    common::merge,
    constants::keep,
    Graph::drop_unused,
    // Makes wider programs possible.
    views::raise,
    common::merge,
    Graph::drop_unused,
    // Must be last, because it makes copies that other passes would merge.
    rematerialise::rematerialise,
];

/// Returns the graph after all passes. Transforms cannot use it, because calls with their own rules
/// and barriers to derivatives are removed.
pub(super) fn merged(recorded: &Graph) -> Graph {
    let mut graph = recorded.clone();
    PASSES.iter().for_each(|pass| pass(&mut graph));
    graph
}

/// Returns for each step whether its memory may be a result's. The owner of a result may export it
/// and write to it.
fn escaping(graph: &Graph) -> Vec<bool> {
    let mut escapes = vec![false; graph.steps.len()];
    graph.outputs.iter().for_each(|o| escapes[*o as usize] = true);
    for i in (0..graph.steps.len()).rev() {
        let step = &graph.steps[i];
        let forwards = step.op().is_some_and(|op| !makes_memory(op));
        if escapes[i] && forwards {
            step.operands.iter().for_each(|x| escapes[*x as usize] = true);
        }
    }
    escapes
}

/// Returns true if the result lies in new, row-major memory. Operations that are not listed may
/// return existing memory.
fn makes_memory(op: &Op) -> bool {
    macro_rules! is_one_of {
        ($($attributes:ty),* $(,)?) => { $(op.is::<$attributes>())||* };
    }
    is_one_of!(
        Binary,
        Unary,
        Recode,
        Fill,
        Arange,
        Reduce,
        ArgReduce,
        Scan,
        Matmul,
        Sort,
        RandomBits,
        DynamicSlice,
        DynamicSliceUpdate,
        Gather,
        GatherAxis,
        Scatter,
        ScatterAxis,
        Select,
        Update,
        Concatenate,
        Fresh,
    )
}
