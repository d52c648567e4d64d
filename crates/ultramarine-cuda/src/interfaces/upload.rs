//! `ultramarine.upload/1`: pinned memory that the host fills.

use crate::context;
use crate::launch::Device;
use crate::memory::Buffer;
use crate::streams::{Piece, Stream};
use core::ffi::c_void;
use ultramarine_abi::helper::{Failure, device_of, guard_value, handle, host_of, with_device};
use ultramarine_abi::interface::upload::{UploadInterface, UploadPiece};
use ultramarine_abi::{Error, Status};

/// The interface.
pub static TABLE: UploadInterface = UploadInterface {
    size: size_of::<UploadInterface>() as u32,
    flags: 0,
    lend: Some(lend),
    copy: Some(copy),
    give_back: Some(give_back),
};

// The safety of the functions below is the contract's: handles are this backend's, places NULL or writable. Lent memory is a
// box of its piece.

unsafe extern "C" fn lend(
    device: *mut c_void,
    stream: *mut c_void,
    bytes: u64,
    piece: *mut UploadPiece,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<Device>(device, error, |device| {
            let stream = device.stream_or_default(stream.cast::<Stream>().as_ref());
            let place =
                piece.as_mut().ok_or_else(|| Failure::invalid("no place for the memory"))?;
            let lent = device.staging.lend(stream, bytes as usize)?;
            let lent = lent.ok_or_else(|| Failure::unsupported("all pinned memory is in use"))?;
            (place.memory, place.bytes) = (lent.memory().cast(), lent.bytes() as u64);
            place.handle = Box::into_raw(Box::new(lent)).cast();
            Ok(())
        })
    }
}

unsafe extern "C" fn copy(
    device: *mut c_void,
    stream: *mut c_void,
    piece: *mut c_void,
    buffer: *mut c_void,
    offset: u64,
    bytes: u64,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the contract's; the piece is given back here.
    unsafe {
        with_device::<Device>(device, error, |device| {
            if piece.is_null() {
                return Err(Failure::invalid("no lent memory"));
            }
            let piece = *Box::from_raw(piece.cast::<Piece>());
            let stream = device.stream_or_default(stream.cast::<Stream>().as_ref());
            let to = (handle::<Buffer>(buffer, "the buffer")?, offset);
            device.staging.copy_lent(stream, piece, to, bytes as usize)
        })
    }
}

unsafe extern "C" fn give_back(device: *mut c_void, piece: *mut c_void) {
    if piece.is_null() || context::forked() {
        return;
    }
    // SAFETY: the contract's: lent memory, which is given back once, of an open device.
    let (host, device, piece) = unsafe {
        let piece = *Box::from_raw(piece.cast::<Piece>());
        (host_of::<Device>(device), device_of::<Device>(device), piece)
    };
    guard_value(host.as_ref(), (), || {
        if let Some(device) = device {
            device.staging.take_back(piece);
        }
    });
}
