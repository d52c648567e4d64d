//! `ultramarine.stream_memory/1`. All memory is freed in the order of the single queue: see [`crate::memory`].

use crate::launch::Device;
use crate::memory::Buffer;
use core::ffi::c_void;
use ultramarine_abi::helper::{give, host_of, take, with_device};
use ultramarine_abi::interface::stream_memory::StreamMemoryInterface;
use ultramarine_abi::{Error, Status};

/// The interface.
pub static TABLE: StreamMemoryInterface = StreamMemoryInterface {
    size: size_of::<StreamMemoryInterface>() as u32,
    flags: 0,
    alloc: Some(alloc),
    free: Some(free),
};

// The safety of the functions below follows from the contract: handles are this backend's, and output
// pointers are NULL or writable.

unsafe extern "C" fn alloc(
    device: *mut c_void,
    _stream: *mut c_void,
    bytes: u64,
    buffer: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe { with_device::<Device>(device, error, |device| give(buffer, device.alloc(bytes)?)) }
}

unsafe extern "C" fn free(device: *mut c_void, _stream: *mut c_void, buffer: *mut c_void) {
    // SAFETY: guaranteed by the contract.
    unsafe { take::<Buffer>(host_of::<Device>(device), buffer) }
}
