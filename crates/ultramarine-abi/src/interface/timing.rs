//! Optional interface: timestamps in the order of a stream, and named ranges in the vendor's profiler.
//!
//! A mark is work of its stream: the device notes the time at which everything that the stream was
//! given before it is done. So two marks around a command say how long the command took, whatever
//! the host did meanwhile. Nothing waits for a mark; it is resolved later. The host makes marks and
//! ranges while a profile runs, and never otherwise.

use crate::{Error, Status};
use core::ffi::{c_char, c_void};

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.timing/1";

/// The interface's table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TimingInterface {
    /// `size_of::<TimingInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (stream) Enqueues a timestamp behind the stream's earlier work. `slot` gets a handle for it,
    /// which is never NULL. Where streams are the host's (a CPU backend) `stream` is NULL, and all
    /// earlier work is done. UNSUPPORTED: this stream has no clock, and the host takes its own times.
    pub mark: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            slot: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Asks for a timestamp, without waiting. `ready` gets 0 if the stream has not got there;
    /// else 1, and `nanoseconds` the time on the device's clock. That clock never goes back, begins
    /// anywhere, and is one for all streams of an open device. Asked again, it is the same time.
    pub resolve: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            slot: *mut c_void,
            nanoseconds: *mut u64,
            ready: *mut u32,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Gives a slot back, resolved or not.
    pub release: Option<unsafe extern "C" fn(device: *mut c_void, slot: *mut c_void)>,
    /// (stream) Opens a range of the calling thread in the vendor's profiler; `name` is NUL-terminated
    /// UTF-8, valid during the call. NULL: the vendor has no ranges.
    pub range_push:
        Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void, name: *const c_char)>,
    /// (stream) Closes the range that the thread opened last. Both are there, or neither.
    pub range_pop: Option<unsafe extern "C" fn(device: *mut c_void, stream: *mut c_void)>,
}
