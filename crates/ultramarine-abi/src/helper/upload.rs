//! The table of `ultramarine.upload/1`, made from a trait.

use super::{Device, Failure, Result, device_of, give, guard_value, handle, host_of, with_device};
use crate::interface::upload::{UploadInterface, UploadPiece};
use crate::{Error, Status};
use core::ffi::c_void;

/// A device that lends memory for uploads, as `ultramarine.upload/1` describes it. [`upload_table`]
/// makes the interface's table.
pub trait Lender: Device {
    /// Lent memory.
    type Piece: Send + 'static;

    /// (any) Lends at least `bytes` bytes for a copy in a stream. Returns the memory's handle, its
    /// address and its size. It may wait for earlier copies of that stream.
    ///
    /// # Errors
    /// [`Failure::unsupported`] if there is no memory now: the host then copies from its own
    /// memory.
    fn lend(
        &self,
        stream: Option<&Self::Stream>,
        bytes: u64,
    ) -> Result<(Self::Piece, *mut u8, u64)>;

    /// (stream) Enqueues a copy of the first `bytes` bytes of lent memory to a part of a buffer.
    /// This call gives the lent memory back to the device, even if it fails.
    ///
    /// # Errors
    /// A [`Failure`] if the copy cannot be enqueued.
    fn copy_lent(
        &self,
        stream: Option<&Self::Stream>,
        piece: Self::Piece,
        to: (&Self::Buffer, u64),
        bytes: u64,
    ) -> Result<()>;

    /// (any) Takes lent memory back without a copy.
    fn take_back(&self, piece: Self::Piece);
}

/// Returns the table of the interface for a device, for a `static`.
pub const fn upload_table<D: Lender>() -> UploadInterface {
    UploadInterface {
        size: size_of::<UploadInterface>() as u32,
        flags: 0,
        lend: Some(lend::<D>),
        copy: Some(copy::<D>),
        give_back: Some(give_back::<D>),
    }
}

// The safety of the functions below is that of the contract: handles are those of the device's
// type, pointers are NULL or writable, and lent memory, which is a boxed piece, is given back once.

unsafe extern "C" fn lend<D: Lender>(
    device: *mut c_void,
    stream: *mut c_void,
    bytes: u64,
    piece: *mut UploadPiece,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<D>(device, error, |device| {
            let place = piece
                .as_mut()
                .ok_or_else(|| Failure::invalid("the pointer to the memory is NULL"))?;
            let (lent, memory, size) = device.lend(stream.cast::<D::Stream>().as_ref(), bytes)?;
            (place.memory, place.bytes) = (memory.cast(), size);
            give(&mut place.handle, lent)
        })
    }
}

unsafe extern "C" fn copy<D: Lender>(
    device: *mut c_void,
    stream: *mut c_void,
    piece: *mut c_void,
    buffer: *mut c_void,
    offset: u64,
    bytes: u64,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<D>(device, error, |device| {
            if piece.is_null() {
                return Err(Failure::invalid("the lent memory is NULL"));
            }
            let piece = *Box::from_raw(piece.cast::<D::Piece>());
            let to = match handle::<D::Buffer>(buffer, "the buffer") {
                Ok(buffer) => (buffer, offset),
                Err(failure) => {
                    device.take_back(piece);
                    return Err(failure);
                }
            };
            device.copy_lent(stream.cast::<D::Stream>().as_ref(), piece, to, bytes)
        })
    }
}

unsafe extern "C" fn give_back<D: Lender>(device: *mut c_void, piece: *mut c_void) {
    if piece.is_null() {
        return;
    }
    // SAFETY: the contract's.
    let (host, device, piece) = unsafe {
        let piece = Box::from_raw(piece.cast::<D::Piece>());
        (host_of::<D>(device), device_of::<D>(device), piece)
    };
    guard_value(host.as_ref(), (), || {
        if let Some(device) = device {
            device.take_back(*piece);
        }
    });
}
