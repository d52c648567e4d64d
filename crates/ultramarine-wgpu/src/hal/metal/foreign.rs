//! Foreign `MTLBuffer`s.

use super::{Api, Device, Made};
use crate::hal::foreign::{self, Storage};
use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLBuffer, MTLDevice as _, MTLResource as _, MTLStorageMode};
use wgpu_hal::Device as _;

/// Takes a buffer of which a tensor needs the first bytes. Returns it with its length.
///
/// # Safety
/// `handle` is the address of a live `MTLBuffer`.
pub unsafe fn take(device: &Device, handle: u64, bytes: u64) -> Result<(Made, u64), String> {
    let address = handle as usize as *mut ProtocolObject<dyn MTLBuffer>;
    // SAFETY: by this function's contract.
    let raw = unsafe { Retained::retain(address) }.ok_or("there is no buffer")?;
    let storage = match raw.storageMode() {
        MTLStorageMode::Shared => Storage::Shared,
        MTLStorageMode::Managed => Storage::Managed,
        MTLStorageMode::Private => Storage::Private,
        _ => Storage::Memoryless,
    };
    let (length, ours) = (raw.length() as u64, device.raw_device().registryID());
    foreign::check(storage, raw.device().registryID() == ours, length, bytes)?;
    // SAFETY: the buffer has that length, and belongs to this device.
    let buffer = unsafe { <Api as wgpu_hal::Api>::Device::buffer_from_raw(raw, length) };
    // SAFETY: the buffer is the device's.
    unsafe { device.add_raw_buffer(&buffer) };
    Ok((Made { buffer, handle }, length))
}
