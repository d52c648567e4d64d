//! Streams, and copies between the host and the device.

use crate::allocator::{Allocator, Buffer, StreamId};
use crate::context::{self, Context};
use crate::device::Device;
use crate::failure::cuda;
use crate::suspects::Log;
use crate::sys::driver::StreamHandle;
use std::mem::MaybeUninit;
use std::sync::Arc;
use ultramarine_abi::helper::Result;

/// `CU_STREAM_NON_BLOCKING`: it does not wait for the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// An ordered queue of the device.
pub struct Stream {
    context: Arc<Context>,
    allocator: Arc<Allocator>,
    handle: StreamHandle,
    id: StreamId,
    log: Arc<Log>,
}

// SAFETY: the driver's streams may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new one.
    pub fn new(context: Arc<Context>, allocator: Arc<Allocator>) -> Result<Self> {
        let entered = context.enter()?;
        let (driver, mut handle) = (context.driver(), std::ptr::null_mut());
        // SAFETY: the place is valid; the context is current.
        unsafe { cuda!(driver.stream_create(&mut handle, NON_BLOCKING)) }?;
        drop(entered);
        let log = Arc::new(Log::default());
        context.watch(&log);
        let id = allocator.stream_begins(handle);
        Ok(Self { context, allocator, handle, id, log })
    }

    /// The driver's handle.
    pub fn handle(&self) -> StreamHandle {
        self.handle
    }

    /// What the allocator knows it by.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// The operations that it was given.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Blocks until all its work is done.
    pub fn synchronize(&self) -> Result<()> {
        let _entered = self.context.enter()?;
        self.drain()
    }

    /// As [`Stream::synchronize`], in the context.
    pub(crate) fn drain(&self) -> Result<()> {
        let (driver, count) = (self.context.driver(), self.log.count());
        // SAFETY: a stream of this context.
        unsafe { cuda!(driver.stream_synchronize(self.handle)) }?;
        self.log.finished(count);
        Ok(())
    }

    /// Copies into a buffer, in the stream's order; the source has been read on return.
    pub fn upload(
        &self,
        device: &Device,
        buffer: &Buffer,
        offset: u64,
        source: &[u8],
    ) -> Result<()> {
        let _entered = device.enter()?;
        let to = buffer.part(offset, source.len())?;
        if source.is_empty() {
            return Ok(());
        }
        device.staging.upload(device, self, to, source)?;
        if context::blocking() { self.drain() } else { Ok(()) }
    }

    /// Copies from a buffer, and fills all of `target`; done on return.
    pub fn download(
        &self,
        device: &Device,
        buffer: &Buffer,
        offset: u64,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        let _entered = device.enter()?;
        let from = buffer.part(offset, target.len())?;
        if target.is_empty() {
            return Ok(());
        }
        if let Some(done) = device.staging.download(device, self, from, target) {
            return done;
        }
        let (driver, to) = (device.driver, target.as_mut_ptr().cast());
        // SAFETY: the target is there until the copy is done, which is waited for also after a
        // failure; the source is inside of the buffer.
        let begun = unsafe { cuda!(driver.copy_to_host(to, from, target.len(), self.handle)) };
        let drained = self.drain();
        begun.and(drained)
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
