//! Optional interface: a list of commands captured once and replayed.

use crate::{Command, Error, Status};
use core::ffi::c_void;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.replay/1";

/// The interface's table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ReplayInterface {
    /// `size_of::<ReplayInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Captures commands without running them. Their plans and buffers stay
    /// alive for as long as the recording.
    pub capture: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            commands: *const Command,
            n_commands: u32,
            recording: *mut *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) Runs a recording once more, on the same buffers.
    pub replay: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            recording: *mut c_void,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Frees a recording that no stream runs any more.
    pub release: Option<unsafe extern "C" fn(device: *mut c_void, recording: *mut c_void)>,
}
