//! Streams, and copies between the host and the device.

mod pinned;
mod staging;

pub use pinned::Piece;
pub use staging::Staging;

use crate::context::failure::cuda;
use crate::context::submission_log::SubmissionLog;
use crate::context::{self, Context};
use crate::memory::{Allocator, StreamId};
use crate::sys::driver::StreamHandle;
use std::sync::Arc;
use ultramarine_abi::helper::Result;

/// `CU_STREAM_NON_BLOCKING`: the stream does not wait for the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// An ordered queue of the device, with the log of its recent operations. Copies from and to the
/// host are made by [`Staging`].
pub struct Stream {
    context: Arc<Context>,
    allocator: Arc<Allocator>,
    handle: StreamHandle,
    id: StreamId,
    log: Arc<SubmissionLog>,
}

// SAFETY: the driver's streams may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// Makes a stream.
    pub fn new(context: Arc<Context>, allocator: Arc<Allocator>) -> Result<Self> {
        let entered = context.enter()?;
        let (driver, mut handle) = (context.driver(), std::ptr::null_mut());
        // SAFETY: the output pointer is valid; the context is current.
        unsafe { cuda!(driver.stream_create(&mut handle, NON_BLOCKING)) }?;
        drop(entered);
        let log = Arc::new(SubmissionLog::default());
        context.watch(&log);
        let id = allocator.stream_begins(handle);
        Ok(Self { context, allocator, handle, id, log })
    }

    /// The driver's handle.
    pub fn handle(&self) -> StreamHandle {
        self.handle
    }

    /// The allocator's id of this stream.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// The log of operations that it was given.
    pub fn log(&self) -> &Arc<SubmissionLog> {
        &self.log
    }

    /// Blocks until all its work has completed.
    pub fn synchronize(&self) -> Result<()> {
        let _entered = self.context.enter()?;
        self.drain()
    }

    /// Like [`Stream::synchronize`], with the context already current.
    pub(crate) fn drain(&self) -> Result<()> {
        let (driver, count) = (self.context.driver(), self.log.count());
        // SAFETY: a stream of this context.
        unsafe { cuda!(driver.stream_synchronize(self.handle)) }?;
        self.log.finished(count);
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if context::forked() {
            return;
        }
        self.allocator.stream_ends(self.id);
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: made once, destroyed once; the host says that it has drained.
            unsafe { (self.context.driver().stream_destroy)(self.handle) };
        }
    }
}
