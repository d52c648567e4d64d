//! Memory that is lent for uploads: a few pieces, each of which its copy reads when the stream gets there.

use super::*;
use ultramarine_abi::helper::with_device;
use ultramarine_abi::interface::upload::{UploadInterface, UploadPiece};

/// True makes the mock offer the interface; set before the devices are registered.
pub static OFFERED: AtomicBool = AtomicBool::new(false);
/// Pieces that are lent or read by a copy; most of them at one time; and how many were lent, copied and given back.
pub static OUT: AtomicUsize = AtomicUsize::new(0);
pub static MOST_OUT: AtomicUsize = AtomicUsize::new(0);
pub static LENT: AtomicUsize = AtomicUsize::new(0);
pub static COPIED: AtomicUsize = AtomicUsize::new(0);
pub static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);
/// Pieces that may be out.
pub const PIECES: usize = 3;

pub static TABLE: UploadInterface = UploadInterface {
    size: size_of::<UploadInterface>() as u32,
    flags: 0,
    lend: Some(lend),
    copy: Some(copy),
    give_back: Some(give_back),
};

unsafe extern "C" fn lend(
    device: *mut c_void,
    _: *mut c_void,
    bytes: u64,
    piece: *mut UploadPiece,
    error: *mut *mut Error,
) -> Status {
    let lent = || {
        let out = OUT.fetch_add(1, Ordering::SeqCst) + 1;
        if out > PIECES {
            OUT.fetch_sub(1, Ordering::SeqCst);
            return Err(Failure::unsupported("all pieces are out"));
        }
        MOST_OUT.fetch_max(out, Ordering::SeqCst);
        LENT.fetch_add(1, Ordering::SeqCst);
        let mut memory = Box::new(vec![0xa5u8; bytes as usize]);
        // SAFETY: the host's place.
        let place = unsafe { &mut *piece };
        (place.memory, place.bytes) = (memory.as_mut_ptr().cast(), bytes);
        place.handle = Box::into_raw(memory).cast();
        Ok(())
    };
    // SAFETY: the host's arguments.
    unsafe { with_device::<Mock>(device, error, |_| lent()) }
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
    COPIED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the host's arguments: lent memory, a live buffer and a live stream.
    unsafe {
        let memory = Box::from_raw(piece.cast::<Vec<u8>>());
        let to = handle::<Buffer>(buffer, "the buffer").map(|buffer| buffer.at(offset));
        with_device::<Mock>(device, error, |_| {
            let to = to?;
            handle::<Stream>(stream, "the stream")?.run(move || {
                let to = to;
                if to.is_live() {
                    to.0.cast::<u8>().copy_from(memory.as_ptr(), bytes as usize);
                }
                OUT.fetch_sub(1, Ordering::SeqCst);
                true
            })
        })
    }
}

unsafe extern "C" fn give_back(_: *mut c_void, piece: *mut c_void) {
    GIVEN_BACK.fetch_add(1, Ordering::SeqCst);
    OUT.fetch_sub(1, Ordering::SeqCst);
    // SAFETY: lent memory, which goes back once.
    drop(unsafe { Box::from_raw(piece.cast::<Vec<u8>>()) });
}
