//! Optional interface: copies between buffers of one backend, without the host.

use crate::{Error, Status};
use core::ffi::c_void;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.peer/1";

/// Functions of the interface.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PeerInterface {
    /// `size_of::<PeerInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (stream) Copies `bytes` bytes between buffers of two devices, or of one. Offsets are in
    /// bytes. The copy is work of `stream`, a stream of the target's device. The host has made this
    /// stream wait for the source.
    pub copy: Option<
        unsafe extern "C" fn(
            target_device: *mut c_void,
            stream: *mut c_void,
            target: *mut c_void,
            target_offset: u64,
            source_device: *mut c_void,
            source: *mut c_void,
            source_offset: u64,
            bytes: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
}
