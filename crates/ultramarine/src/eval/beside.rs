//! Evaluations that communicate use two streams: the group's, and that of the computations.
//!
//! The nodes of both streams form one evaluation. One thread submits it to the device, and it can
//! have executables. The operations of a group form a chain, so that all processes submit them in
//! the same order. The backend's group runs each operation after the one before it, whatever
//! streams they are on.

use super::device_of;
use super::grouping::Task;
use crate::device::Device;
use crate::node::Node;
use crate::ops::rules::multi_output::MultiOutput;
use crate::stream::{self, Stream};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Messages of up to this many bytes go to the stream of the computations, because they take no
/// longer than a synchronisation of two streams. Larger messages go to the group's stream.
const MOST_BYTES: usize = 1 << 20;

/// The stream that evaluates both nodes, if one of them is on the stream of the only group and both
/// are on the same GPU.
pub(super) fn joint(a: Stream, b: Stream) -> Option<Stream> {
    if a.device != b.device || !may_share() || device_of(a).is_ok_and(|device| device.is_host()) {
        return None;
    }
    match (stream::is_off_callers(a), stream::is_off_callers(b)) {
        (_, true) => Some(a),
        (true, false) => Some(b),
        (false, false) => None,
    }
}

/// The stream of the computations among tasks of several streams.
pub(super) fn computations(tasks: &[Task]) -> Option<Stream> {
    let mut streams = tasks.iter().map(Task::stream);
    let first = streams.next()?;
    if streams.clone().all(|stream| stream == first) {
        return None;
    }
    streams
        .try_fold(first, |all, stream| if stream == all { Some(all) } else { joint(all, stream) })
}

/// The stream that a task goes to, beside computations on another stream.
pub(super) fn stream_of(task: &Task, computations: Stream) -> Stream {
    let node = task.root();
    let is_large = || {
        let operands = node.with_inputs(|inputs| inputs.iter().map(|i| i.bytes()).max());
        node.bytes().max(operands.unwrap_or(0)) > MOST_BYTES
    };
    match communicates(node) && (!may_share() || is_large()) {
        true => task.stream(),
        false => computations,
    }
}

/// Returns true if a thread and a stream may mix a group's operations with computations, because
/// only one group exists. Several groups must be kept apart: if two processes ordered the
/// operations of two groups differently, they would wait for each other. They would wait on the
/// stream, or on the host, where debug mode compares operations and NCCL connects the processes at
/// their first operation.
pub(crate) fn may_share() -> bool {
    stream::off_callers() <= 1
}

/// Returns true if an operation communicates with other processes.
pub(super) fn communicates(node: &Node) -> bool {
    node.op.get::<MultiOutput>().is_some_and(|multi| multi.rules().communicates())
}

/// Number of groups whose results count as done once the device has the operations. The device then
/// waits for the other processes.
static AHEAD: AtomicUsize = AtomicUsize::new(0);

/// Counts one such group more, or one fewer.
pub(crate) fn note_group_ahead(is_new: bool) {
    match is_new {
        true => AHEAD.fetch_add(1, Ordering::Relaxed),
        false => AHEAD.fetch_sub(1, Ordering::Relaxed),
    };
}

/// Returns true if the stream's waiting jobs have to stay in order. A value may count as done while
/// the device, and all later work on its stream, still waits for the value's memory.
pub(super) fn is_ordered(stream: Stream) -> bool {
    AHEAD.load(Ordering::Relaxed) > 0 && stream.device != Device::CPU
}
