//! A buffer of the hal.

use crate::context::{Context, of_hal};
use crate::hal::{self, Place};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use ultramarine_abi::helper::{Failure, Result};
use wgpu_hal::Device as _;

/// A buffer of the hal. It is destroyed with the last reference to it. Each command in flight that
/// uses it holds a reference.
pub struct Block {
    context: Arc<Context>,
    buffer: Option<hal::Buffer>,
    id: u64,
    bytes: u64,
    mapped: Option<NonNull<u8>>,
    handle: u64,
    /// Number of barriers before its last use.
    used: AtomicU64,
    /// Notified when another library's buffer is no longer used.
    #[cfg(target_vendor = "apple")]
    owner: Option<hal::foreign::Owner>,
}

// SAFETY: the mapped memory belongs to the block; the functions below state who may write and read it,
// and when.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Makes a buffer of exactly the given size.
    pub fn new(context: &Arc<Context>, bytes: u64, place: Place) -> Result<Arc<Self>> {
        context.usable()?;
        let made = hal::create_buffer(&context.device, bytes.max(1), place);
        let made = made.map_err(|why| of_hal(&format!("a buffer of {bytes} bytes"), why))?;
        let mut block = Self::of(context, made, bytes);
        if let (false, Some(buffer)) = (place == Place::Device, &block.buffer) {
            // SAFETY: the buffer was made for mapping, and is mapped once.
            let mapping = unsafe { block.context.device.map_buffer(buffer, 0..bytes) };
            let mapping = mapping.map_err(|why| of_hal("memory that the host reaches", why))?;
            if !mapping.is_coherent {
                return Err(Failure::new(
                    "the device has no coherent memory for the host. Update its driver",
                ));
            }
            block.mapped = Some(mapping.ptr);
        }
        Ok(Arc::new(block))
    }

    fn of(context: &Arc<Context>, made: hal::Made, bytes: u64) -> Self {
        Self {
            context: context.clone(),
            buffer: Some(made.buffer),
            id: context.new_id(),
            bytes,
            mapped: None,
            handle: made.handle,
            used: AtomicU64::new(0),
            #[cfg(target_vendor = "apple")]
            owner: None,
        }
    }

    /// Makes a block of a foreign buffer.
    #[cfg(target_vendor = "apple")]
    pub fn foreign(
        context: &Arc<Context>,
        made: hal::Made,
        bytes: u64,
        owner: hal::foreign::Owner,
    ) -> Arc<Self> {
        let mut block = Self::of(context, made, bytes);
        block.owner = Some(owner);
        Arc::new(block)
    }

    /// Returns true for a buffer of another library.
    pub fn is_foreign(&self) -> bool {
        cfg_select! {
            target_vendor = "apple" => self.owner.is_some(),
            _ => false,
        }
    }

    /// The buffer's address for other libraries; 0 if they cannot use it.
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// The hal's buffer.
    pub fn raw(&self) -> Result<&hal::Buffer> {
        self.buffer.as_ref().ok_or_else(|| Failure::new("a buffer was destroyed"))
    }

    /// An id that no other buffer of the device ever has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Records that the command being recorded uses the block.
    pub fn mark_used(&self) {
        self.used.store(self.context.barriers(), Ordering::Relaxed);
    }

    /// Returns true if a command has used the block since the last barrier. A command that writes it now
    /// would need another barrier.
    pub fn is_hot(&self) -> bool {
        self.used.load(Ordering::Relaxed) == self.context.barriers()
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its address for the host, if it has one.
    pub fn address(&self) -> Option<*mut u8> {
        self.mapped.map(|mapped| mapped.as_ptr())
    }

    /// Checks that a range lies inside the buffer.
    pub fn check(&self, offset: u64, len: u64) -> Result<()> {
        match offset.checked_add(len).is_some_and(|end| end <= self.bytes) {
            true => Ok(()),
            false => Err(Failure::invalid(format!(
                "{len} bytes at {offset} of a buffer of {}",
                self.bytes
            ))),
        }
    }

    /// Writes bytes.
    ///
    /// # Safety
    /// Nothing else uses the range of this block meanwhile, including the device.
    pub unsafe fn write(&self, offset: u64, source: &[u8]) -> Result<()> {
        self.check(offset, source.len() as u64)?;
        let to =
            self.mapped.ok_or_else(|| Failure::new("the memory has no address for the host"))?;
        // SAFETY: the range is in the mapped memory, as checked above.
        unsafe {
            let to = to.as_ptr().add(offset as usize);
            core::ptr::copy_nonoverlapping(source.as_ptr(), to, source.len());
        }
        Ok(())
    }

    /// Reads bytes, and fills all of `target`.
    ///
    /// # Safety
    /// Nothing writes the range of this block meanwhile, including the device.
    pub unsafe fn read(&self, offset: u64, target: &mut [MaybeUninit<u8>]) -> Result<()> {
        self.check(offset, target.len() as u64)?;
        let from =
            self.mapped.ok_or_else(|| Failure::new("the memory has no address for the host"))?;
        // SAFETY: the range is in the mapped memory, as checked above.
        unsafe {
            let from = from.as_ptr().add(offset as usize).cast::<c_void>();
            core::ptr::copy_nonoverlapping(from.cast(), target.as_mut_ptr(), target.len());
        }
        Ok(())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some(buffer) = self.buffer.take() else { return };
        if self.context.forked() {
            std::mem::forget(buffer);
            return;
        }
        let device = &self.context.device;
        // SAFETY: it was mapped at most once; commands that use it hold a reference until they have
        // completed.
        unsafe {
            if self.mapped.is_some() {
                device.unmap_buffer(&buffer);
            }
            device.destroy_buffer(buffer);
        }
        self.context.count_destroyed();
    }
}
