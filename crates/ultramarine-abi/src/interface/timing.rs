//! Optional interface: timestamps in the order of a stream, and named ranges in the vendor's
//! profiler.
//!
//! A mark is work of its stream: the device notes the time at which the stream's earlier work is
//! done. Two marks around a command give its duration, even if the host was busy meanwhile. Nothing
//! waits for a mark; it is resolved later. The host makes marks and ranges only while a profile
//! runs.

use crate::{Error, Status};
use core::ffi::{c_char, c_void};

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.timing/1";

/// Functions of the interface.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TimingInterface {
    /// `size_of::<TimingInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (stream) Enqueues a timestamp after the stream's earlier work, and sets `slot` to its
    /// handle, never NULL. `stream` is NULL if streams are the host's (a CPU backend); all earlier
    /// work is then done. UNSUPPORTED means that this stream has no clock, and the host uses its
    /// own.
    pub mark: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            slot: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Reads a timestamp, without waiting. Sets `ready` to 0 if the stream has not reached it
    /// yet. Otherwise sets `ready` to 1, and `nanoseconds` to the time. The clock never goes back
    /// and has an arbitrary origin. All streams of an open device have the same clock. A later call
    /// gives the same time.
    pub resolve: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            slot: *mut c_void,
            nanoseconds: *mut u64,
            ready: *mut u32,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Frees a timestamp, resolved or not.
    pub release: Option<unsafe extern "C" fn(device: *mut c_void, slot: *mut c_void)>,
    /// (stream) Opens a range of the calling thread in the vendor's profiler. `name` is
    /// NUL-terminated UTF-8. NULL if the profiler has no ranges.
    pub range_push:
        Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, name: *const c_char)>,
    /// (stream) Closes the range that the thread opened last. It is NULL if and only if
    /// `range_push` is.
    pub range_pop: Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void)>,
}
