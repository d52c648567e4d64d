//! A buffer of the hal.

use crate::context::{Context, of_hal, size_for};
use crate::vulkan;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;
use wgpu_hal::{BufferDescriptor, Device as _, MemoryFlags};
use wgpu_types::BufferUses;

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where the device is fastest; the host has no address of it.
    Device,
    /// Mapped for the host, all the time.
    Host,
}

/// The part of the device's memory that free buffers may hold.
const KEPT: u64 = 8;

/// A buffer, which is free when the last reference to it is gone: commands under way hold one.
pub struct Block {
    context: Arc<Context>,
    buffer: Option<vulkan::Buffer>,
    bytes: u64,
    mapped: Option<NonNull<u8>>,
}

// SAFETY: the mapped memory is the block's own; who writes and reads it when is said at the functions.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Allocates at least so many bytes.
    pub fn new(context: &Arc<Context>, bytes: u64, place: Place) -> Result<Arc<Self>> {
        context.usable()?;
        let most = context.properties.max_buffer;
        let Some(size) = size_for(bytes, most) else {
            let text = format!(
                "a buffer of {bytes} bytes is larger than {} can bind, {most} bytes (maxStorageBufferRange). \
                 Use smaller arrays, or split this one",
                context.properties.name
            );
            return Err(Failure { code: status::OUT_OF_MEMORY, text });
        };
        if place == Place::Device
            && let Some(buffer) = context.free.take(size)
        {
            let (context, buffer) = (context.clone(), Some(buffer));
            return Ok(Arc::new(Self { context, buffer, bytes: size, mapped: None }));
        }
        let mut usage =
            BufferUses::STORAGE_READ_WRITE | BufferUses::COPY_SRC | BufferUses::COPY_DST;
        if place == Place::Host {
            usage |= BufferUses::MAP_READ | BufferUses::MAP_WRITE;
        }
        let descriptor = BufferDescriptor {
            label: None,
            size,
            usage,
            memory_flags: MemoryFlags::PREFER_COHERENT,
        };
        // SAFETY: the size is not 0.
        let buffer = unsafe { context.device.create_buffer(&descriptor) };
        let buffer = buffer.map_err(|why| of_hal(&format!("a buffer of {bytes} bytes"), why))?;
        let mut block =
            Self { context: context.clone(), buffer: Some(buffer), bytes: size, mapped: None };
        if let (Place::Host, Some(buffer)) = (place, &block.buffer) {
            // SAFETY: it was made for that, and is mapped once.
            let mapping = unsafe { context.device.map_buffer(buffer, 0..size) };
            let mapping = mapping.map_err(|why| of_hal("memory that the host writes", why))?;
            if !mapping.is_coherent {
                return Err(Failure::new("the device has no coherent memory for the host"));
            }
            block.mapped = Some(mapping.ptr);
        }
        Ok(Arc::new(block))
    }

    /// The hal's buffer.
    pub fn raw(&self) -> Result<&vulkan::Buffer> {
        self.buffer.as_ref().ok_or_else(|| Failure::new("a buffer was destroyed"))
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Checks that a range lies inside of it.
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
    /// Nobody else uses the range of this block meanwhile, the device neither.
    pub unsafe fn write(&self, offset: u64, source: &[u8]) -> Result<()> {
        self.check(offset, source.len() as u64)?;
        let to = self.mapped.ok_or_else(|| Failure::new("memory without an address"))?;
        // SAFETY: the range is in the mapped memory, by the check.
        unsafe {
            let to = to.as_ptr().add(offset as usize);
            core::ptr::copy_nonoverlapping(source.as_ptr(), to, source.len());
        }
        Ok(())
    }

    /// Reads bytes; fills all of `target`.
    ///
    /// # Safety
    /// Nobody writes the range of this block meanwhile, the device neither.
    pub unsafe fn read(&self, offset: u64, target: &mut [MaybeUninit<u8>]) -> Result<()> {
        self.check(offset, target.len() as u64)?;
        let from = self.mapped.ok_or_else(|| Failure::new("memory without an address"))?;
        // SAFETY: the range is in the mapped memory, by the check.
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
        if self.mapped.is_some() {
            // SAFETY: it was mapped once; commands that use it hold a reference until they are done.
            unsafe {
                device.unmap_buffer(&buffer);
                device.destroy_buffer(buffer);
            }
            return;
        }
        let most = self.context.properties.memory / KEPT;
        if let Some(buffer) = self.context.free.put(buffer, self.bytes, most) {
            // SAFETY: commands that use it hold a reference until they are done.
            unsafe { device.destroy_buffer(buffer) };
        }
    }
}
