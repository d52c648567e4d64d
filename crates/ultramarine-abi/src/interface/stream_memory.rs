//! Optional interface: memory that is given back in the order of a stream, for devices that run
//! ahead of the host.
//!
//! A buffer that only one stream uses can be given back before that work is done: later work of the
//! stream comes after it, and may have the memory at once. So a chain of temporaries takes no more
//! memory than its widest place, however far ahead the host is. Buffers of
//! [`crate::BackendTable::buffer_alloc`] and [`StreamMemoryInterface::alloc`] are alike, and both
//! functions that free take both.

use crate::{Error, Status};
use core::ffi::c_void;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.stream_memory/1";

/// Functions of the interface.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct StreamMemoryInterface {
    /// `size_of::<StreamMemoryInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Allocates as [`crate::BackendTable::buffer_alloc`] does, perhaps memory that was given
    /// back in the order of `stream`. Work of that stream may use the buffer at once. The host
    /// makes all other work wait for the work that the stream had at its last `free`.
    pub alloc: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            bytes: u64,
            buffer: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Gives a buffer back in the order of `stream`. Its users are submitted work of
    /// `stream`, and work of other streams that `stream` already waits for. The backend gives the
    /// memory to other users only when the stream has completed its earlier work.
    pub free:
        Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, buffer: *mut c_void)>,
}
