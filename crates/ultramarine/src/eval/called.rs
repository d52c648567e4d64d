//! Runs an operation that stands for a graph. The first run with operands of a given binding
//! records an executable, and later runs use it.

use super::beside;
use super::binding::{self, Bound};
use super::described::{self, Notes};
use super::grouping::group_into_tasks;
use super::lower::{Entry, Tape};
use super::run;
use crate::backend::Exec;
use crate::error::Result;
use crate::node::{Inputs, Node, Value, next_mark};
use crate::ops::rules::{
    multi_output::MultiOutput,
    subgraph::{Binding, Subgraph},
};
use crate::profile::{self, Recorder, Span};
use crate::{array::Array, shape::Shape, stream::Stream};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ultramarine_runtime::backend::executable::{
    Executable, Failure, Recorded, Recording, Task, Watch,
};
use ultramarine_runtime::interrupt;

/// Runs the node of a multi-output operation that stands for a graph.
pub(super) fn run(
    exec: &Exec,
    entry: &Entry,
    (multi, graph): (&MultiOutput, &dyn Subgraph),
    profile: Option<Recorder>,
) -> Result<()> {
    let node = &entry.node;
    let mut operands = entry.work().inputs();
    for operand in &mut operands {
        let value = run::value_of(operand)?;
        // A program would contain the constant's number, but another operand of the same layout may
        // have another number.
        if value.buffer.device() != exec.device.device || operand.op.is_constant() {
            let value = run::operand(exec, operand)?;
            let shape = Shape::from_slice(&operand.shape);
            *operand = Array::given(value, shape, operand.dtype).node().clone();
        }
    }
    // Not before all operands have values, because an evaluation that is given up needs the
    // operands again. But before the references are counted, so that operands that only this node
    // needs count as ours.
    entry.release_inputs();
    let (binding, taken) = bound(node, &operands, exec.device.plan_generation());
    let known = match super::executables() {
        true => graph.executables().get(&binding),
        false => Some(None),
    };
    if profile.is_some() {
        profile::compiled(matches!(known, Some(Some(_))));
    }
    let watch = profile.map(|profile| Replayed::new(profile, exec, node.place.stream));
    let values = match known {
        Some(Some(executable)) => match run_executable(exec, &executable, &operands, watch) {
            Ok(values) => values,
            Err(_) if interrupt::is_cut() => {
                node.restore(operands);
                return Err(run::interrupted());
            }
            Err(error) => return Err(error),
        },
        Some(None) => evaluated(graph, operands, Notes::of(profile))?,
        None => {
            let values =
                operands.iter().zip(taken).filter_map(|(o, taken)| Some((o.value()?, taken)));
            let recording = Recording::new(exec.device, values);
            let notes = Notes { profile, recording: true };
            let (values, recorded) = recording.run(|| evaluated(graph, operands, notes))?;
            match recorded {
                Recorded::Executable(made) => graph.executables().insert(binding, Some(made)),
                Recorded::Never => graph.executables().insert(binding, None),
                Recorded::NotYet => {}
            }
            values
        }
    };
    let first = multi.keep(exec, values)?;
    exec.settle()?;
    node.finish(Ok(first));
    Ok(())
}

fn run_executable(
    exec: &Exec,
    executable: &Executable,
    operands: &Inputs,
    mut watch: Option<Replayed<'_>>,
) -> Result<Vec<Value>> {
    let values: SmallVec<[&Value; 8]> =
        operands.iter().map(run::value_of).collect::<Result<_>>()?;
    let watch = watch.as_mut().map(|watch| watch as &mut dyn Watch);
    executable.run(exec, &values, &[], watch).map_err(Failure::poisoned)
}

/// Records the operations of an executable's run in a profile.
struct Replayed<'a> {
    profile: Recorder,
    exec: &'a Exec,
    stream: Stream,
    /// Open spans, the outermost first.
    open: Vec<Span<'a>>,
}

impl<'a> Replayed<'a> {
    fn new(profile: Recorder, exec: &'a Exec, stream: Stream) -> Replayed<'a> {
        Replayed { profile, exec, stream, open: Vec::new() }
    }
}

impl Watch for Replayed<'_> {
    fn begin(&mut self, task: &Task) {
        let description = described::replayed(task, self.stream);
        self.open.push(Span::begin(self.profile, self.exec, description));
    }

    fn end(&mut self, given: [u64; 3]) {
        if let Some(span) = self.open.pop() {
            span.end_replayed(given);
        }
    }
}

/// The binding of the operands, and the operands whose memory may be overwritten. Shapes and dtypes
/// are left out, because a graph has only one set of them.
fn bound(node: &Node, operands: &Inputs, generation: u64) -> (Binding, SmallVec<[bool; 16]>) {
    let mut words = Binding::new();
    // Loading a backend invalidates older plans.
    words.push(generation);
    // Operands sorted by node, because one node may occur at several places, each with a reference
    // of its own.
    let mut places: SmallVec<[usize; 16]> = (0..operands.len()).collect();
    places.sort_by_key(|i| (Arc::as_ptr(&operands[*i]), *i));
    let mut distinct: SmallVec<[(usize, usize); 16]> = SmallVec::new();
    for same in places.chunk_by(|a, b| Arc::ptr_eq(&operands[*a], &operands[*b])) {
        distinct.push((same[0], same.len()));
        same[1..].iter().for_each(|i| words.push((*i as u64) << 32 | same[0] as u64));
    }
    // Sorted, so that the order does not depend on addresses.
    words[1..].sort_unstable();
    distinct.sort_unstable();
    let kept = node.is_traced();
    let each = distinct.iter().filter_map(|(i, references)| {
        let node = &operands[*i];
        Some(Bound { node, value: node.value()?, references: if kept { 0 } else { *references } })
    });
    let mut taken = SmallVec::from_elem(false, operands.len());
    for ((i, _), sharers) in distinct.iter().zip(binding::describe(each, |word| words.push(word))) {
        taken[*i] = sharers > 0;
    }
    (words, taken)
}

/// Evaluates the nodes of the graph task by task, and returns their results.
fn evaluated(graph: &dyn Subgraph, operands: Inputs, notes: Notes) -> Result<Vec<Value>> {
    // The operands are released by this evaluation, so it must not be given up.
    interrupt::hold();
    let built = graph.build(&operands);
    drop(operands);
    let mark = next_mark();
    let mut tape = Tape::new(mark, built.nodes.len());
    for node in built.nodes {
        let claimed = node.claim();
        debug_assert!(claimed, "nobody else knows the node");
        node.mark.store(mark, Ordering::Relaxed);
        tape.push(node);
    }
    // Give the results handles, so that the planner treats them as requested.
    let outputs: Vec<Array> = built.outputs.into_iter().map(Array::from_node).collect();
    let mut streams = tape.entries.iter().map(|entry| entry.node.place.stream);
    let joint = |a, b| if a == b { Some(a) } else { beside::joint(a, b) };
    let alone = streams.next().is_none_or(|first| streams.try_fold(first, joint).is_some());
    run::run(group_into_tasks(tape), notes, alone);
    outputs.iter().map(|o| run::value_of(o.node()).cloned()).collect()
}
