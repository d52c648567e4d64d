//! Evaluations that the calling thread submits to a device itself, although it does not wait for
//! them.

use super::lower::Tape;
use super::repeated;
use crate::backend::DeviceState;
use crate::node::Node;
use crate::stream::Stream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Limit on the nodes of such an evaluation, unless it has an executable. Larger ones go to a
/// worker, so that the caller can build the next graph in the meantime.
const MOST_NODES: usize = 8;

/// Limit on the bytes of an operand that has to be copied to the device first.
const SMALL: usize = 16 << 10;

/// Returns true if submitting an evaluation costs less than handing it to a worker, and the caller
/// would not have to wait. The conditions are:
/// - The device runs asynchronously.
/// - The operands have values.
/// - The evaluation is a few elementwise operations, views and constants, or an evaluation of its
///   size has just run by its executable.
///
/// Other operations may have no kernel, and would then wait for the device in order to run on the
/// host. A matrix product takes the library so much time on the host that a worker should spend it.
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

/// Returns true if each operand is on the device, small, or claimed by the same evaluation.
fn has_operands(node: &Node, tape: &Tape, device: &DeviceState) -> bool {
    let is_there = |operand: &Arc<Node>| match operand.value() {
        Some(value) => value.buffer.device() == device.device || value.buffer.bytes() <= SMALL,
        // An operand of another evaluation would have to be waited for. A failed operand needs no
        // wait.
        None => operand.is_done() || operand.mark.load(Ordering::Relaxed) == tape.mark,
    };
    node.with_inputs(|inputs| inputs.iter().all(is_there))
}
