//! Tasks as a profile records them.

use super::{
    grouping::{Task, is_constant},
    lower::Entry,
};
use crate::backend::Dispatch;
use crate::node::Node;
use crate::ops::rules::multi_output::MultiOutput;
use crate::profile::{Description, Tensor, Tensors};
use smallvec::SmallVec;
use std::sync::Arc;

fn tensor(node: &Node) -> Tensor {
    Tensor { shape: node.shape.clone(), dtype: node.dtype }
}

/// Returns true for an operation that was lowered, and for a part of one.
fn is_lowered(entry: &Entry) -> bool {
    entry.dispatch() != Some(Dispatch::Native)
}

/// An operation by itself.
pub(super) fn single(entry: &Entry) -> Description {
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
        stream: node.place.stream,
        decomposed: is_lowered(entry),
    }
}

/// A fused program.
pub(super) fn program(task: &Task) -> Description {
    // Addresses: another reference to an operand would keep its memory from being written over.
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
    }
}
