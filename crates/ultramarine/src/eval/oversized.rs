//! Refuses results that do not fit in any memory, before their operands are computed.

use super::{device_of, grouping::Task, run};
use crate::backend::DeviceState;
use crate::error::Error;
use crate::node::Node;
use crate::shape::Show;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ultramarine_runtime::memory;

/// Smaller results are left to the allocator, because computing their operands costs no more than
/// the results.
const LARGE: usize = 1 << 30;

/// Fails tasks whose results are larger than their device's memory. Removes earlier tasks whose
/// results are needed by these tasks only, and makes their nodes lazy again.
#[inline]
pub(super) fn refuse(tasks: &mut Vec<Task>) {
    let large = |task: &Task| task.members.iter().any(|m| m.entry.node.bytes() >= LARGE);
    if tasks.len() > 1 && tasks.iter().any(large) {
        refuse_large(tasks);
    }
}

#[cold]
fn refuse_large(tasks: &mut Vec<Task>) {
    let errors: Vec<Option<Error>> = tasks.iter().map(too_large).collect();
    if errors.iter().all(Option::is_none) {
        return;
    }
    let mut needed: HashSet<*const Node> = HashSet::new();
    let mut kept = Vec::new();
    for (task, error) in std::mem::take(tasks).into_iter().zip(errors).rev() {
        if let Some(error) = error {
            run::fail(vec![task], error);
            continue;
        }
        let wanted = task.members.iter().any(|m| {
            let node = &m.entry.node;
            node.handles.load(Ordering::Acquire) > 0 || needed.contains(&Arc::as_ptr(node))
        });
        if wanted {
            for member in &task.members {
                member.entry.each_reference(|input| needed.extend([Arc::as_ptr(input)]));
            }
            kept.push(task);
        } else {
            task.members.iter().for_each(|m| m.entry.node.release_claim());
        }
    }
    kept.reverse();
    *tasks = kept;
}

/// The error of a task that writes more bytes than its device's memory holds.
fn too_large(task: &Task) -> Option<Error> {
    let device = device_of(task.stream()).ok()?;
    let most = capacity(device)?;
    let written = task.members.iter().filter(|m| m.materialised);
    let node = written.map(|m| &m.entry.node).find(|n| is_allocated(n) && n.bytes() > most)?;
    Some(Error::Memory(format!(
        "[{}] cannot allocate {} bytes for a result of shape {} and {}: the memory of {} is {most} bytes. Use smaller arrays, or another device.",
        node.op.name(),
        node.bytes(),
        Show(&node.shape),
        node.dtype,
        device.device,
    ).into()))
}

/// Returns true if the node's value needs memory of its own: it is not a view, a constant or an
/// operand's memory.
fn is_allocated(node: &Node) -> bool {
    let op = &node.op;
    if node.constant().is_some() {
        return false;
    }
    let views = op.forwards_operands() || op.rules().is_some_and(|r| r.inherits_home());
    op.elementwise().is_some() || !views
}

/// The bytes of a device's memory. `None` if unknown.
fn capacity(device: &DeviceState) -> Option<usize> {
    if device.is_host() {
        return Some(memory::capacity());
    }
    usize::try_from(device.properties().1).ok().filter(|bytes| *bytes > 0)
}
