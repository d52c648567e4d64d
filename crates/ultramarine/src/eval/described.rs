//! Descriptions of tasks, for profiles and executables.

use super::{
    grouping::{Task, is_constant},
    lower::Entry,
};
use crate::backend::{Dispatch, Exec};
use crate::node::Node;
use crate::ops::rules::multi_output::MultiOutput;
use crate::profile::{Description, Recorder, Span, Tensor, Tensors};
use crate::stream::Stream;
use smallvec::SmallVec;
use std::sync::Arc;
use ultramarine_runtime::backend::executable;

/// Selects who is notified about the tasks of an evaluation.
#[derive(Clone, Copy)]
pub(super) struct Notes {
    /// The profile that was running when the evaluation began.
    pub profile: Option<Recorder>,
    /// True if the thread is recording an executable.
    pub recording: bool,
}

impl Notes {
    /// Notes for a profile only.
    pub fn of(profile: Option<Recorder>) -> Notes {
        Notes { profile, recording: false }
    }

    /// Returns true if anything has to be noted.
    #[inline]
    pub fn any(self) -> bool {
        self.profile.is_some() || self.recording
    }

    /// Notes that a task begins.
    pub fn begin(self, exec: &Exec, description: Description) -> Note<'_> {
        let recorded = self.recording.then(|| {
            executable::begin_task();
            recorded(&description)
        });
        let span = self.profile.map(|profile| Span::begin(profile, exec, description));
        Note { span, recorded }
    }
}

/// A running task. If it is dropped without [`Note::end`], nothing is noted, because the task
/// failed or was run in another way.
pub(super) struct Note<'a> {
    span: Option<Span<'a>>,
    recorded: Option<executable::Task>,
}

impl Note<'_> {
    /// Notes that the task has run.
    pub fn end(self) {
        self.span.into_iter().for_each(Span::end);
        self.recorded.into_iter().for_each(executable::end_task);
    }
}

fn recorded(task: &Description) -> executable::Task {
    let tensors = |all: &Tensors| all.iter().map(|t| (t.shape.clone(), t.dtype)).collect();
    executable::Task {
        op: task.op,
        fused: task.fused.clone().into(),
        inputs: tensors(&task.inputs),
        outputs: tensors(&task.outputs),
        decomposed: task.decomposed,
    }
}

/// A task of an executable.
pub(super) fn replayed(task: &executable::Task, stream: Stream) -> Description {
    let tensor = |(shape, dtype): &(_, _)| Tensor { shape: Clone::clone(shape), dtype: *dtype };
    Description {
        op: task.op,
        fused: task.fused.to_vec(),
        inputs: task.inputs.iter().map(tensor).collect(),
        outputs: task.outputs.iter().map(tensor).collect(),
        stream,
        decomposed: task.decomposed,
        replayed: true,
    }
}

fn tensor(node: &Node) -> Tensor {
    Tensor { shape: node.shape.clone(), dtype: node.dtype }
}

/// Returns true for an operation that was lowered, and for a part of such an operation.
fn is_lowered(entry: &Entry) -> bool {
    entry.dispatch() != Some(Dispatch::Native)
}

/// Describes an operation that runs by itself.
pub(super) fn single(exec: &Exec, entry: &Entry) -> Description {
    let (node, work) = (&entry.node, entry.work());
    let outputs = match work.op.get::<MultiOutput>() {
        Some(multi) => multi
            .results()
            .iter()
            .map(|(shape, dtype)| Tensor { shape: shape.clone(), dtype: *dtype })
            .collect(),
        None => Tensors::from_elem(tensor(node), 1),
    };
    Description {
        op: node.op.name(),
        fused: Vec::new(),
        inputs: work.with_inputs(|inputs| inputs.iter().map(|i| tensor(i)).collect()),
        outputs,
        stream: exec.program_stream().unwrap_or(node.place.stream),
        decomposed: is_lowered(entry),
        replayed: false,
    }
}

/// A fused program.
pub(super) fn program(task: &Task) -> Description {
    // Compare addresses: a further reference to an operand would prevent writing over its memory.
    let mut seen: SmallVec<[*const Node; 16]> =
        task.members.iter().map(|m| Arc::as_ptr(&m.entry.node)).collect();
    let mut inputs = Tensors::new();
    for member in &task.members {
        member.entry.work().with_inputs(|all| {
            for input in all {
                if !seen.contains(&Arc::as_ptr(input)) && !is_constant(input) {
                    seen.push(Arc::as_ptr(input));
                    inputs.push(tensor(input));
                }
            }
        });
    }
    let root = task.root();
    let written = task.members.iter().filter(|m| m.materialised).map(|m| &m.entry.node);
    let others = written.filter(|node| !Arc::ptr_eq(node, root));
    Description {
        op: root.op.name(),
        fused: match &task.members[..] {
            [_] => Vec::new(),
            all => all.iter().map(|m| m.entry.node.op.name()).collect(),
        },
        inputs,
        outputs: others.chain([root]).map(|node| tensor(node)).collect(),
        stream: task.stream(),
        decomposed: task.members.iter().any(|m| is_lowered(&m.entry)),
        replayed: false,
    }
}
