//! Ending all work before the process exits.

use super::{StreamState, all};
use crate::backend;
use crate::device::DeviceType;
use crate::memory::deferred_deleters;
use crate::reads;

/// Ends all work on streams. It is for programs that exit while evaluations or accelerators may
/// still be working.
///
/// Waits for the work that was given to the streams. From then on accelerators get no new work:
/// submitting some is an [`crate::Error::Runtime`]. Computed arrays can still be read, and the CPU
/// computes as before. The threads of streams stay, asleep, until the process has ended. Memory on
/// accelerators is left to the operating system.
///
/// If a program exits without this call, threads may be inside of drivers whose libraries are being
/// unloaded. The runtime then lets the calls in progress end, and makes no others. A driver whose
/// own threads are working may still crash. In Python the package calls this function when the
/// interpreter exits.
///
/// Later calls have nothing to wait for. Inside of an evaluation this does nothing.
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
    // Work that began meanwhile ends soon, because its next call of a backend is refused.
    for (stream, state) in all() {
        if stream.device.kind == DeviceType::Gpu {
            state.drain();
        }
        state.finish_deleters();
    }
    for device in backend::gpus() {
        // Ignore the error, because nothing can handle it any more.
        let _ = device.drain();
    }
    backend::shutdown::quiesce();
}

impl StreamState {
    /// Waits for the jobs that are queued now, and not for later ones. An interrupt ends the wait.
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
