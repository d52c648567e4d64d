//! Stream-ordered memory: see [`crate::memory`].

use crate::launch::Device;
use crate::memory::{Allocator, Buffer};
use crate::streams::Stream;
use core::ffi::c_void;
use ultramarine_abi::helper::{give, guard_value, handle, host_of, with_device};
use ultramarine_abi::interface::stream_memory::StreamMemoryInterface;
use ultramarine_abi::{Error, Status};

/// The interface.
pub static TABLE: StreamMemoryInterface = StreamMemoryInterface {
    size: size_of::<StreamMemoryInterface>() as u32,
    flags: 0,
    alloc: Some(alloc),
    free: Some(free),
};

unsafe extern "C" fn alloc(
    device: *mut c_void,
    stream: *mut c_void,
    bytes: u64,
    buffer: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: by the contract, handles are this backend's, and output pointers are NULL or
    // writable.
    unsafe {
        with_device::<Device>(device, error, |device| {
            let stream: &Stream = handle(stream, "the stream")?;
            give(buffer, Allocator::alloc_for(&device.allocator, stream.id(), bytes)?)
        })
    }
}

unsafe extern "C" fn free(device: *mut c_void, stream: *mut c_void, buffer: *mut c_void) {
    if buffer.is_null() {
        return;
    }
    // SAFETY: a buffer of this backend, which is a box that is given back once. Its device is open,
    // and the stream is alive.
    let (host, buffer, stream) = unsafe {
        (
            host_of::<Device>(device),
            Box::from_raw(buffer.cast::<Buffer>()),
            stream.cast::<Stream>().as_ref(),
        )
    };
    guard_value(host.as_ref(), (), || buffer.give_in_order(stream.map_or(0, Stream::id)));
}
