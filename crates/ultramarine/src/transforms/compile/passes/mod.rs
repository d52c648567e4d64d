//! Passes: functions that make a graph smaller. Results stay bitwise identical.

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

/// In the order in which they run.
const PASSES: &[fn(&mut Graph)] = &[
    dissolve::dissolve,
    constants::fold,
    exact::merge,
    common::merge,
    constants::keep,
    Graph::drop_unused,
    // Wider programs.
    views::raise,
    common::merge,
    Graph::drop_unused,
    // The last, for it copies what others would merge.
    rematerialise::rematerialise,
];

/// The graph after all passes. Transforms would not find their way through it: calls with rules of their
/// own, and barriers to derivatives, are gone.
pub(super) fn merged(recorded: &Graph) -> Graph {
    let mut graph = recorded.clone();
    PASSES.iter().for_each(|pass| pass(&mut graph));
    graph
}

/// Of each step whether its memory may be that of a result, whose owner may export it and write to it.
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

/// True if the result lies in memory of its own, row-major. Of operations that are not listed nothing is known.
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
