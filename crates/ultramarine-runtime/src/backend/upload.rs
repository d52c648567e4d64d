//! Uploads of bytes that the host fetches for a device. They are written into memory that the
//! backend lends, so that the host keeps no copy.

use super::{DeviceState, interface_of, shutdown, stats, transfer};
use crate::backend::buffer::Buffer;
use crate::error::{Error, Result};
use crate::host_table;
use core::ffi::c_void;
use std::cell::Cell;
use std::iter;
use ultramarine_abi::interface::upload::{INTERFACE, MOST_BYTES, UploadInterface, UploadPiece};
use ultramarine_abi::{BackendTable, Error as ErrorObject, Status, status};

/// The most bytes of a part.
pub const PART: usize = MOST_BYTES as usize;

type Lend = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    u64,
    *mut UploadPiece,
    *mut *mut ErrorObject,
) -> Status;
type Copy = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    u64,
    u64,
    *mut *mut ErrorObject,
) -> Status;

/// The functions of `ultramarine.upload/1`.
#[derive(Clone, Copy)]
pub(super) struct Upload {
    lend: Lend,
    copy: Copy,
    give_back: unsafe extern "C" fn(*mut c_void, *mut c_void),
}

impl Upload {
    /// Returns the functions, if the backend has all of them.
    pub fn of(table: &BackendTable) -> Option<Upload> {
        let found: UploadInterface = interface_of(table, INTERFACE)?;
        Some(Upload { lend: found.lend?, copy: found.copy?, give_back: found.give_back? })
    }
}

thread_local! {
    /// Staging memory of a thread, for uploads for which the backend lends no memory.
    static OWN: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl DeviceState {
    /// Writes `bytes` bytes, at most [`PART`], into a buffer of the device that nothing else uses
    /// yet. `fill` makes the bytes; the memory that it gets has arbitrary content.
    ///
    /// # Errors
    /// Those of `fill` and of the backend.
    pub fn upload(
        &'static self,
        to: &Buffer,
        offset: usize,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        shutdown::check(self)?;
        if let Some(upload) = self.upload
            && let Some(stream) = self.uploads()?
        {
            let mut piece = UploadPiece {
                size: size_of::<UploadPiece>() as u32,
                flags: 0,
                handle: std::ptr::null_mut(),
                memory: std::ptr::null_mut(),
                bytes: 0,
            };
            let mut error = std::ptr::null_mut();
            // SAFETY: the device is open, the stream is its own, and the pointers are valid for
            // writing.
            let code = unsafe {
                (upload.lend)(self.handle, stream.handle(), bytes as u64, &mut piece, &mut error)
            };
            if code != status::UNSUPPORTED {
                host_table::check("lend", code, error)?;
                return self.fill_lent(upload, piece, (to, offset, bytes), fill);
            }
            // Ignore the reason: if there is no loan, the bytes go through the host's memory.
            let _ = host_table::check("lend", code, error);
        }
        let mut own = OWN.take();
        if own.len() < bytes {
            own.resize(bytes.max(PART.min(to.bytes())), 0);
        }
        let outcome = fill(&mut own[..bytes])
            .and_then(|()| transfer::part_to_device(&own[..bytes], self, to, offset));
        OWN.set(own);
        outcome
    }

    fn fill_lent(
        &'static self,
        upload: Upload,
        piece: UploadPiece,
        (to, offset, bytes): (&Buffer, usize, usize),
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        // Dropping this gives the memory back, unless the copy has taken it.
        let lent = Lent { device: self, upload, piece: Cell::new(piece.handle) };
        if piece.memory.is_null() || piece.bytes < bytes as u64 {
            let text = format!(
                "lend returned {} bytes instead of {bytes}. Report it to the authors of the backend.",
                piece.bytes
            );
            return Err(Error::runtime(&self.backend, text));
        }
        // SAFETY: the backend lends that many bytes, and nothing else uses them. They have some
        // content, because they are foreign memory.
        fill(unsafe { std::slice::from_raw_parts_mut(piece.memory.cast(), bytes) })?;
        let Some(stream) = self.uploads()? else { return Err(self.lacks("event_create")) };
        stats::count_to_device(bytes);
        stream.submit("load", iter::empty(), iter::once(to), |stream| {
            let (piece, mut error) = (lent.piece.take(), std::ptr::null_mut());
            // SAFETY: the handles are the device's. The piece is lent and goes back here, and the
            // buffer has `bytes` bytes from the offset on.
            let code = unsafe {
                let (offset, bytes) = (offset as u64, bytes as u64);
                (upload.copy)(self.handle, stream, piece, to.handle(), offset, bytes, &mut error)
            };
            host_table::check("copy", code, error)
        })
    }
}

/// Lent memory. Dropping this gives it back, unless a copy has taken it.
struct Lent {
    device: &'static DeviceState,
    upload: Upload,
    piece: Cell<*mut c_void>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        let piece = self.piece.take();
        if !piece.is_null() && shutdown::check(self.device).is_ok() {
            // SAFETY: this device lent the memory, and it was not returned before.
            unsafe { (self.upload.give_back)(self.device.handle, piece) }
        }
    }
}
