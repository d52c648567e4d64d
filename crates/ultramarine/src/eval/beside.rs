//! Evaluations that communicate: the group's stream beside the one of the computations.
//!
//! Nodes of both are one evaluation, which one thread gives to the device, and which has executables. Whatever is called
//! in a group is a chain, so that it comes in one order on all processes, and the backend's group has each operation run behind
//! the one before, on whatever streams they are.

use super::device_of;
use super::grouping::Task;
use crate::device::Device;
use crate::node::Node;
use crate::ops::rules::multi_output::MultiOutput;
use crate::stream::{self, Stream};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a message up to which it goes to the stream of the computations: it takes no longer than two streams need to
/// wait for each other. A larger one goes beside them.
const MOST_BYTES: usize = 1 << 20;

/// The stream that two nodes are evaluated on, if one of them is on the stream of the only group, on the same GPU.
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

/// Returns true if a thread and a stream may have operations of a group beside computations: there is one group. With several,
/// each has its own: operations of two in another order on each process would wait for each other, on the stream, or on the host,
/// where debug mode compares them and NCCL connects the processes at the first ones.
pub(crate) fn may_share() -> bool {
    stream::off_callers() <= 1
}

/// Returns true if an operation communicates with other processes.
pub(super) fn communicates(node: &Node) -> bool {
    node.op.get::<MultiOutput>().is_some_and(|multi| multi.rules().communicates())
}

/// Groups whose operations have their results once they were given to a device, which waits for the other processes.
static AHEAD: AtomicUsize = AtomicUsize::new(0);

/// Notes that there is one more group of this kind, or one fewer.
pub(crate) fn note_group_ahead(is_new: bool) {
    match is_new {
        true => AHEAD.fetch_add(1, Ordering::Relaxed),
        false => AHEAD.fetch_sub(1, Ordering::Relaxed),
    };
}

/// Returns true if the jobs of a stream that wait for others stay in order: a value may be there whose memory the device still waits
/// for, with all work on the stream that comes behind.
pub(super) fn is_ordered(stream: Stream) -> bool {
    AHEAD.load(Ordering::Relaxed) > 0 && stream.device != Device::CPU
}
