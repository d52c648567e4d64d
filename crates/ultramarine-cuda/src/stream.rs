//! Streams, and copies between the host and the device.

use crate::allocator::Buffer;
use crate::context::{self, Context};
use crate::device::Device;
use crate::failure::cuda;
use crate::sys::driver::{Driver, StreamHandle};
use std::mem::MaybeUninit;
use std::sync::Arc;
use ultramarine_abi::helper::Result;

/// `CU_STREAM_NON_BLOCKING`: it does not wait for the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// An ordered queue of the device.
pub struct Stream {
    driver: &'static Driver,
    context: Arc<Context>,
    handle: StreamHandle,
}

// SAFETY: the driver's streams may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new one.
    pub fn new(driver: &'static Driver, context: Arc<Context>) -> Result<Self> {
        let entered = context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the place is valid; the context is current.
        unsafe { cuda!(driver.stream_create(&mut handle, NON_BLOCKING)) }?;
        drop(entered);
        Ok(Self { driver, context, handle })
    }

    /// The driver's handle.
    pub fn handle(&self) -> StreamHandle {
        self.handle
    }

    /// Blocks until all its work is done.
    pub fn synchronize(&self) -> Result<()> {
        let _entered = self.context.enter()?;
        let driver = self.driver;
        // SAFETY: a stream of this context.
        unsafe { cuda!(driver.stream_synchronize(self.handle)) }
    }

    /// Copies into a buffer; done on return.
    pub fn upload(
        &self,
        device: &Device,
        buffer: &Buffer,
        offset: u64,
        source: &[u8],
    ) -> Result<()> {
        let _entered = device.enter()?;
        let (driver, to) = (self.driver, buffer.part(offset, source.len())?);
        // SAFETY: the source is there until the copy is done, which is waited for; the target is
        // inside of the buffer.
        unsafe {
            cuda!(driver.copy_to_device(to, source.as_ptr().cast(), source.len(), self.handle))?;
            cuda!(driver.stream_synchronize(self.handle))
        }
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
        let (driver, from) = (self.driver, buffer.part(offset, target.len())?);
        // SAFETY: as in `upload`.
        unsafe {
            cuda!(driver.copy_to_host(
                target.as_mut_ptr().cast(),
                from,
                target.len(),
                self.handle
            ))?;
            cuda!(driver.stream_synchronize(self.handle))
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if context::forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: made once, destroyed once; the host says that it has drained.
            unsafe { (self.driver.stream_destroy)(self.handle) };
        }
    }
}
