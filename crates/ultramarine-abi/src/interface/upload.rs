//! Optional interface: memory that a backend lends for uploads, which the host fills, as from a file.
//!
//! A backend copies to its device by way of memory that the device can read, pinned memory on most. So bytes that the host
//! has to fetch first would be written twice. The host reads them into such memory instead, and gives it back for a copy
//! in the order of a stream. The host asks for at most 4 MiB at a time, from a few threads.

use crate::{Error, Status};
use core::ffi::c_void;

/// Id for [`crate::BackendTable::interface`].
pub const INTERFACE: &core::ffi::CStr = c"ultramarine.upload/1";

/// Most bytes that the host asks for at a time.
pub const MOST_BYTES: u64 = 4 << 20;

/// Memory that is lent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct UploadPiece {
    /// `size_of::<UploadPiece>()` of the host.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// The backend's handle of it, which is never NULL.
    pub handle: *mut c_void,
    /// Its address for the host.
    pub memory: *mut c_void,
    /// Its bytes.
    pub bytes: u64,
}

/// The interface's table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UploadInterface {
    /// `size_of::<UploadInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Lends memory of at least `bytes` bytes, which are not 0, for a copy in `stream`. It may wait for earlier
    /// copies of that stream. UNSUPPORTED: there is none now, and the host copies from memory of its own.
    pub lend: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            bytes: u64,
            piece: *mut UploadPiece,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) Enqueues a copy of the first `bytes` bytes of lent memory to a buffer, behind the stream's earlier work:
    /// they are there for its later work. The memory is the backend's again, also after a failure, and is not lent until
    /// the copy is done.
    pub copy: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            piece: *mut c_void,
            buffer: *mut c_void,
            offset: u64,
            bytes: u64,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (any) Takes lent memory back of which nothing is to be copied.
    pub give_back: Option<unsafe extern "C" fn(device: *mut c_void, piece: *mut c_void)>,
}
