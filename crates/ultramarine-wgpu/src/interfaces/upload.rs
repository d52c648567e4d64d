//! `ultramarine.upload/1`: memory that both sides reach, which the host fills.

use crate::launch::Device;
use crate::memory::{Block, Buffer};
use crate::streams::Stream;
use core::ffi::c_void;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, handle, host_of, take, with_device};
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
// box of a reference to its block, which the pool lends to nobody else meanwhile.

unsafe extern "C" fn lend(
    device: *mut c_void,
    _stream: *mut c_void,
    bytes: u64,
    piece: *mut UploadPiece,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<Device>(device, error, |device| {
            let place =
                piece.as_mut().ok_or_else(|| Failure::invalid("no place for the memory"))?;
            let block = device.scheduler.lend(bytes)?;
            let memory =
                block.address().ok_or_else(|| Failure::new("memory without an address"))?;
            (place.memory, place.bytes) = (memory.cast(), block.bytes());
            place.handle = Box::into_raw(Box::new(block)).cast();
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
    // SAFETY: the contract's; the lent memory goes back here.
    unsafe {
        with_device::<Device>(device, error, |device| {
            if piece.is_null() {
                return Err(Failure::invalid("no lent memory"));
            }
            let block = *Box::from_raw(piece.cast::<Arc<Block>>());
            let lane = device.lane(stream.cast::<Stream>().as_ref());
            let to = (&handle::<Buffer>(buffer, "the buffer")?.0, offset);
            device.scheduler.copy_lent(lane, block, to, bytes)
        })
    }
}

unsafe extern "C" fn give_back(device: *mut c_void, piece: *mut c_void) {
    // SAFETY: the contract's: lent memory, which goes back once.
    unsafe { take::<Arc<Block>>(host_of::<Device>(device), piece) }
}
