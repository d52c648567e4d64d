//! Optional interface: a description of a backend's libraries and drivers, as text for people.

use core::ffi::{c_char, c_void};

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.about/1";

/// Functions of the interface `ultramarine.about/1`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AboutInterface {
    /// `size_of::<AboutInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Writes up to `room` bytes of UTF-8 text, without a NUL at the end, and returns the
    /// length of the whole text. It has a line for each library, driver or setting that matters,
    /// such as `NVRTC 13.0 (/usr/lib/libnvrtc.so.13)`. The call may take a while.
    pub describe:
        Option<unsafe extern "C" fn(backend: *mut c_void, text: *mut c_char, room: u64) -> u64>,
}
