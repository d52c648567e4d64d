//! The end of all work, before the process exits.

use super::{StreamState, all};
use crate::backend;
use crate::device::DeviceType;
use crate::memory::deferred_deleters;
use crate::reads;

/// Ends all work on streams. Call it before a program exits while evaluations or accelerators may
/// be at work.
///
/// It waits for the work on the streams. From then on, new work for accelerators fails with
/// [`crate::Error::Runtime`]. Computed arrays can still be read, and the CPU computes as before.
/// Threads of streams stay asleep until the process ends. Memory on accelerators is left to the
/// system.
///
/// A program that exits without this call leaves threads inside drivers whose libraries are being
/// torn down. The runtime then waits for running calls, and makes no others, but drivers whose own
/// threads are at work may still crash. The Python package calls this function when the interpreter
/// exits.
///
/// Later calls have nothing to wait for. Inside an evaluation, it does nothing.
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
    // Work that began in the meantime ends soon, because its next backend call is refused.
    for (stream, state) in all() {
        if stream.device.kind == DeviceType::Gpu {
            state.drain();
        }
        state.finish_deleters();
    }
    for device in backend::gpus() {
        // Ignore failures, because no code is left that would handle them.
        let _ = device.drain();
    }
    backend::shutdown::quiesce();
}

impl StreamState {
    /// Waits for the current jobs, but not for jobs that are added meanwhile. Returns early if
    /// interrupted.
    fn finish_queued(&self) {
        let target = {
            let queue = self.lock();
            queue.finished + queue.jobs.len() as u64 + u64::from(queue.busy)
        };
        self.wait_until(|queue| queue.finished >= target || queue.is_idle());
    }

    /// Waits for foreign deleters that the stream's thread is running.
    fn finish_deleters(&self) {
        self.wait_until(|queue| queue.releasing == 0);
    }
}
