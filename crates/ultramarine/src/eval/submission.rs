//! Evaluations that the calling thread gives to a device itself, although it does not wait for them.

use super::lower::Tape;
use super::repeated;
use crate::backend::DeviceState;
use crate::node::Node;
use crate::stream::Stream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most nodes of such an evaluation, unless they have an executable. Larger ones go to a worker, so that the caller builds
/// the next graph meanwhile.
const MOST_NODES: usize = 8;

/// Bytes of an operand in other memory that is brought to the device on the way.
const SMALL: usize = 16 << 10;

/// Returns true if it costs less to submit an evaluation than to hand it to a worker, and nothing in it makes the caller
/// wait: its device runs ahead, its operands are there, and it is a few elementwise operations, views and constants, or one
/// of its size just ran by its executable. (Other operations may have no kernel, and then wait for the device to run on the
/// host. A product costs its library so much time on the host that it is better spent by a worker.)
pub(super) fn is_cheap(tape: &Tape, stream: Stream) -> bool {
    let n = tape.entries.len();
    let repeats = repeated::is_likely(n);
    if n > MOST_NODES && !repeats {
        return false;
    }
    let Ok(device) = super::device_of(stream) else { return false };
    !device.is_host()
        && device.stream(stream).is_ok_and(|s| s.runs_ahead() && !s.event().is_null())
        && tape
            .entries
            .iter()
            .all(|e| (repeats || is_light(&e.node)) && has_operands(&e.node, tape, device))
}

fn is_light(node: &Node) -> bool {
    let op = &node.op;
    op.elementwise().is_some()
        || op.constant().is_some()
        || op.rules().is_some_and(|rules| rules.inherits_home())
}

/// Returns true if a node's operands are on the device, small, or claimed with it.
fn has_operands(node: &Node, tape: &Tape, device: &DeviceState) -> bool {
    let is_there = |operand: &Arc<Node>| match operand.value() {
        Some(value) => value.buffer.device() == device.device || value.buffer.bytes() <= SMALL,
        // Another evaluation's has to be waited for. (A failure is no wait.)
        None => operand.is_done() || operand.mark.load(Ordering::Relaxed) == tape.mark,
    };
    node.with_inputs(|inputs| inputs.iter().all(is_there))
}
