//! Optional interface: memory that a backend lends for uploads, and that the host fills.
//!
//! The backend lends memory that its device can read, such as pinned memory. The host fills it, for
//! example from a file, and gives it back for a copy in the order of a stream. So the bytes are
//! written only once, and not first to the host's memory. The host asks for at most 4 MiB at a
//! time, from a few threads.

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
    /// The backend's handle of the memory, never NULL.
    pub handle: *mut c_void,
    /// Address of the memory for the host.
    pub memory: *mut c_void,
    /// Size of the memory in bytes.
    pub bytes: u64,
}

/// Functions of the interface.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UploadInterface {
    /// `size_of::<UploadInterface>()` of the backend.
    pub size: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// (any) Lends at least `bytes` bytes (not 0) for a copy in `stream`, and fills `piece`. The
    /// call may wait for earlier copies of that stream. UNSUPPORTED means that there is no memory
    /// now; the host then copies from its own memory.
    pub lend: Option<
        unsafe extern "C" fn(
            device: *mut c_void,
            stream: *mut c_void,
            bytes: u64,
            piece: *mut UploadPiece,
            error: *mut *mut Error,
        ) -> Status,
    >,
    /// (stream) Enqueues a copy of the first `bytes` bytes of lent memory (its handle is `piece`)
    /// to a buffer, from byte `offset` on. The stream's later work sees the bytes. The memory
    /// belongs to the backend again, even after a failure, and is not lent again before the copy is
    /// done.
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
    /// (any) Takes lent memory back without a copy.
    pub give_back: Option<unsafe extern "C" fn(device: *mut c_void, piece: *mut c_void)>,
}
