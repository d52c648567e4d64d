//! Rematerialisation: if several programs read the result of a cheap operation, each program
//! computes it again, provided this moves fewer bytes than writing the result and reading it back.
//!
//! The evaluator fuses a node into the group of its consumers if all of them are in one group
//! (`eval/grouping.rs`). This pass makes the same groups beforehand, from the last step to the
//! first. It copies a cheap step into each of its consumers' groups.

use super::Graph;
use super::views::{is_cheap, is_elementwise};
use crate::ops::{Op, shape::view::View};
use crate::shape::{self, Shape};
use crate::{stream::Stream, transforms::compile::graph::Step};
use smallvec::SmallVec;

/// Limit on the groups that compute a step.
const MOST_COPIES: usize = 4;
/// Limit on the copies in a group. They stay in registers, but each is one more instruction.
const MOST_TAKEN: usize = 8;
/// Limits on the operands and members of a group with copies. They are below the limits of all
/// backends' programs.
const MOST_INPUTS: usize = 8;
const MOST_MEMBERS: usize = 32;

/// Steps that will run as one program.
struct Group {
    /// Its iteration shape, if it can get more members.
    shape: Option<Shape>,
    stream: Stream,
    members: usize,
    taken: usize,
    /// Steps outside the group that it reads.
    inputs: SmallVec<[u32; 8]>,
    /// True if the group consists of a reduction only, so that it may write the reduction's
    /// operand.
    lone_reduction: bool,
}

type Groups = SmallVec<[u32; 2]>;

/// Copies steps into the programs that use them.
pub(super) fn rematerialise(graph: &mut Graph) {
    let Some(of) = groups(graph) else { return };
    let before = std::mem::take(&mut graph.steps);
    // For each old step: its new indices, by group.
    let mut now: Vec<SmallVec<[(u32, u32); 2]>> = Vec::with_capacity(before.len());
    for (i, step) in before.into_iter().enumerate() {
        let mut copies = SmallVec::new();
        for group in &of[i] {
            let mut copy = step.clone();
            for x in &mut copy.operands {
                let there = &now[*x as usize];
                let own = there.iter().find(|(g, _)| g == group).or(there.first());
                *x = own.map_or(u32::MAX, |(_, number)| *number);
            }
            copies.push((*group, graph.steps.len() as u32));
            graph.steps.push(copy);
        }
        now.push(copies);
    }
    graph.outputs.iter_mut().for_each(|o| *o = now[*o as usize].first().map_or(u32::MAX, |n| n.1));
}

/// Returns the groups of each step. There is one group, except for steps that are copied. `None` if
/// no step is copied.
fn groups(graph: &Graph) -> Option<Vec<Groups>> {
    let steps = &graph.steps;
    let mut of: Vec<Groups> = vec![Groups::new(); steps.len()];
    let mut readers: Vec<Groups> = vec![Groups::new(); steps.len()];
    let mut all: Vec<Group> = Vec::new();
    let mut any = false;
    for i in (0..steps.len()).rev() {
        let step = &steps[i];
        let result = graph.outputs.contains(&(i as u32));
        let mut into = Groups::new();
        if is_elementwise(step) && !readers[i].is_empty() && shape::size(&step.shape) > 0 {
            let fits = |g: &u32| {
                let group = &all[*g as usize];
                group.stream == step.place.stream && group.shape.as_ref() == Some(&step.shape)
            };
            if readers[i].iter().all(fits) {
                if readers[i].len() == 1 {
                    into = readers[i].clone();
                } else if !result && is_cheap(step) && pays(steps, i, &readers[i], &all) {
                    into = readers[i].clone();
                    any = true;
                    into.iter().for_each(|g| all[*g as usize].taken += 1);
                }
            }
        }
        if into.is_empty() {
            let epilogue = step.op().and_then(Op::rules).and_then(|r| r.epilogue()).is_some();
            let shape = match epilogue {
                true => Some(steps[step.operands[0] as usize].shape.clone()),
                false => is_elementwise(step).then(|| step.shape.clone()),
            };
            into.push(all.len() as u32);
            all.push(Group {
                shape,
                stream: step.place.stream,
                members: 0,
                taken: 0,
                inputs: SmallVec::new(),
                lone_reduction: epilogue,
            });
        } else {
            into.iter().for_each(|g| all[*g as usize].lone_reduction = false);
        }
        for g in &into {
            let group = &mut all[*g as usize];
            group.members += 1;
            group.inputs.retain(|x| *x != i as u32);
            for x in &step.operands {
                if steps[*x as usize].constant().is_none() && !group.inputs.contains(x) {
                    group.inputs.push(*x);
                }
                let seen = &mut readers[*x as usize];
                if !seen.contains(g) {
                    seen.push(*g);
                }
            }
        }
        of[i] = into;
    }
    any.then_some(of)
}

/// Number of bytes that reading a step moves.
fn bytes(steps: &[Step], i: u32) -> usize {
    let step = &steps[i as usize];
    match step.get() {
        Some(View::Broadcast) => bytes(steps, step.operands[0]),
        _ => step.dtype.bytes_of(shape::size(&step.shape)),
    }
}

/// Returns true if computing step `i` in each of several groups moves fewer bytes than writing it
/// once.
fn pays(steps: &[Step], i: usize, groups: &[u32], all: &[Group]) -> bool {
    if groups.len() > MOST_COPIES {
        return false;
    }
    let step = &steps[i];
    let own = bytes(steps, i as u32);
    let operands: SmallVec<[u32; 3]> = {
        let mut operands: SmallVec<[u32; 3]> = SmallVec::from_slice(&step.operands);
        operands.retain(|x| steps[*x as usize].constant().is_none());
        operands.sort_unstable();
        operands.dedup();
        operands
    };
    let read: usize = operands.iter().map(|x| bytes(steps, *x)).sum();
    // If the first group to run only reduces the step, it writes the step while it reduces it.
    let first = groups.iter().max().map_or(0, |g| *g as usize);
    let on_its_way = all[first].lone_reduction as usize;
    let written = read + own + (groups.len() - on_its_way) * own;
    let mut copied = 0usize;
    for g in groups {
        let group = &all[*g as usize];
        let more = operands.iter().filter(|x| !group.inputs.contains(x));
        copied += more.clone().map(|x| bytes(steps, *x)).sum::<usize>();
        if group.inputs.len() + more.count() > MOST_INPUTS
            || group.members >= MOST_MEMBERS
            || group.taken >= MOST_TAKEN
        {
            return false;
        }
    }
    copied < written
}
