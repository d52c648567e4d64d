//! Optional interface: what a backend found on this machine, for people to read.

use core::ffi::{c_char, c_void};

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.about/1";

/// The interface's table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AboutInterface {
    /// `size_of::<AboutInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Writes up to `room` bytes of UTF-8 text, without a NUL at the end, and returns how
    /// many there are in all: lines such as `NVRTC 13.0 (/usr/lib/libnvrtc.so.13)`, one for each
    /// library, driver or setting that matters. It may look for what is only used later, so it
    /// may take a while.
    pub describe:
        Option<unsafe extern "C" fn(backend: *mut c_void, text: *mut c_char, room: u64) -> u64>,
}
