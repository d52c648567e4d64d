//! Device memory.

use crate::context::{self, Context};
use crate::device::Facts;
use crate::failure::cuda;
use crate::memory::Release;
use crate::sys::driver::Driver;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};

/// Every buffer begins at a multiple of so many bytes.
pub const ALIGNMENT: u64 = 256;

/// The memory of one device.
pub struct Allocator {
    driver: &'static Driver,
    context: Arc<Context>,
}

/// A piece of memory that the device sees; dropping it gives it back.
pub struct Buffer {
    address: u64,
    bytes: u64,
    owner: Owner,
}

/// Whose the memory is.
enum Owner {
    Ours(Arc<Allocator>),
    /// Held for its drop.
    Foreign(Release),
}

impl Allocator {
    /// The memory of a device.
    pub fn new(driver: &'static Driver, context: Arc<Context>, _facts: &Facts) -> Self {
        Self { driver, context }
    }

    /// A buffer of at least that many bytes.
    pub fn alloc(this: &Arc<Self>, bytes: u64) -> Result<Buffer> {
        let _entered = this.context.enter()?;
        let driver = this.driver;
        let size = usize::try_from(bytes.max(1)).map_err(|_| Failure::out_of_memory(bytes))?;
        let mut address = 0;
        // SAFETY: the place is valid; the context is current.
        unsafe { cuda!(driver.memory_alloc(&mut address, size)) }?;
        Ok(Buffer { address, bytes, owner: Owner::Ours(this.clone()) })
    }
}

impl Buffer {
    /// A buffer over somebody else's memory, who is told when it is dropped.
    pub fn foreign(address: u64, bytes: u64, release: Release) -> Self {
        Self { address, bytes, owner: Owner::Foreign(release) }
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The address of `bytes` bytes from `offset`, if they are inside.
    pub fn part(&self, offset: u64, bytes: usize) -> Result<u64> {
        match offset.checked_add(bytes as u64) {
            Some(end) if end <= self.bytes => Ok(self.address + offset),
            _ => Err(Failure::invalid(format!(
                "a copy beyond the buffer: {bytes} bytes at {offset} of {}",
                self.bytes
            ))),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let allocator = match &mut self.owner {
            Owner::Foreign(release) => return release.now(),
            Owner::Ours(allocator) => allocator,
        };
        if context::forked() {
            return;
        }
        if let Ok(_entered) = allocator.context.enter() {
            // SAFETY: allocated once, freed once; the host says that no stream uses it.
            unsafe { (allocator.driver.memory_free)(self.address) };
        }
    }
}
