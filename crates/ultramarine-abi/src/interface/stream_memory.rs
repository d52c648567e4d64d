//! Optional interface: memory that is given back in the order of a stream, for devices that run
//! ahead of the host.
//!
//! A buffer that only one stream's work uses need not wait for that work: what is enqueued to the
//! stream later comes after it, and may have the memory at once. So a chain of temporaries takes
//! no more memory than its widest place, however far ahead the host is. Buffers are the same in
//! all else: any that [`crate::BackendTable::buffer_alloc`] or [`StreamMemoryInterface::alloc`]
//! made can be given back in either way.

use crate::{Error, Status};
use core::ffi::c_void;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.stream_memory/1";

/// The interface's table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct StreamMemoryInterface {
    /// `size_of::<StreamMemoryInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) As [`crate::BackendTable::buffer_alloc`]; the memory may be some that was given back
    /// in the order of `stream`. Work of the stream may use the buffer at once; the host has all
    /// other work wait for what the stream had been given when it last took memory back.
    pub alloc: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            bytes: u64,
            buffer: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Gives back a buffer that nothing may still use but work of `stream`, all of which has
    /// been submitted, and work of other streams that `stream` waits for already. The backend hands the memory to others than that stream only when the
    /// stream has passed what it was given before this call.
    pub free:
        Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, buffer: *mut c_void)>,
}
