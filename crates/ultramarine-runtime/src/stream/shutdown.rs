//! The end of all work, before the process exits.

use super::{StreamState, all};
use crate::backend;
use crate::device::DeviceType;
use crate::memory::deferred_deleters;
use crate::reads;

/// Ends all work on streams: for programs that exit while evaluations, or accelerators, may be at work.
///
/// Waits for the work that was given to the streams. From then on accelerators get no new work, which is an
/// [`crate::Error::Runtime`]; arrays that are computed can still be read, and the CPU computes as before. Threads of
/// streams stay, asleep, until the process is gone. Memory on accelerators is left to the system.
///
/// A program that exits without this call leaves threads inside of drivers whose libraries are being torn down. The
/// runtime then lets the calls that are under way end, and makes no others; drivers whose own threads are at work may
/// still crash. In Python the package calls it when the interpreter exits.
///
/// Calls after the first have nothing to wait for. Inside of an evaluation it does nothing.
pub fn shutdown() {
    if deferred_deleters::in_job() {
        return;
    }
    for (_, state) in all() {
        state.finish_queued();
    }
    reads::rest();
    if backend::shutdown::is_forked() {
        return;
    }
    backend::shutdown::close();
    // Work that began meanwhile ends soon: its next call of a backend is refused.
    for (stream, state) in all() {
        if stream.device.kind == DeviceType::Gpu {
            state.drain();
        }
        state.finish_deleters();
    }
    for device in backend::gpus() {
        // Nobody is left to learn of a failure.
        let _ = device.drain();
    }
    backend::shutdown::quiesce();
}

impl StreamState {
    /// Waits for the jobs that are there now, not for those that come meanwhile; less long if that is interrupted.
    fn finish_queued(&self) {
        let target = {
            let queue = self.lock();
            queue.finished + queue.jobs.len() as u64 + u64::from(queue.busy)
        };
        self.wait_until(|queue| queue.finished >= target || queue.is_idle());
    }

    /// Waits for foreign deleters that the stream's thread runs.
    fn finish_deleters(&self) {
        self.wait_until(|queue| queue.releasing == 0);
    }
}
