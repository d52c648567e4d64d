//! Optional interface: named ranges in the vendor's profiler.

use core::ffi::{c_char, c_void};

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.profile/1";

/// The interface's table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProfileInterface {
    /// `size_of::<ProfileInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (stream) Opens a range; `name` is NUL-terminated UTF-8, valid during the call.
    pub range_push:
        Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, name: *const c_char)>,
    /// (stream) Closes the range opened last.
    pub range_pop: Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void)>,
}
