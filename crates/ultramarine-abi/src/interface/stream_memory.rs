//! Optional interface: memory that is freed in the order of a stream, for devices that run ahead of
//! the host.
//!
//! A buffer that only one stream uses can be freed before that work is done. Later work of the
//! stream runs after it, and may have the memory at once. So a chain of temporaries never takes
//! more memory than its widest point, however far ahead the host is. Buffers of
//! [`crate::BackendTable::buffer_alloc`] and [`StreamMemoryInterface::alloc`] are alike, and both
//! functions that free accept both.

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
    /// (any) Allocates as [`crate::BackendTable::buffer_alloc`] does, but may return memory that
    /// was freed in the order of `stream`. Work of that stream may use the buffer at once. The host
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
    /// (any) Frees a buffer in the order of `stream`. The buffer is used by submitted work of
    /// `stream`, and by work of other streams for which `stream` already waits. The backend gives
    /// the memory to other users only when the stream has completed its earlier work.
    pub free:
        Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, buffer: *mut c_void)>,
}
