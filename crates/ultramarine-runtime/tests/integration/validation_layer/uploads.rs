//! Memory that is lent for uploads, through a watched table.

use super::*;
pub(super) use ultramarine_abi::interface::upload::INTERFACE;
use ultramarine_abi::interface::upload::{MOST_BYTES, UploadInterface, UploadPiece};

/// Bytes that the mock lends; 0: as many as it is asked for.
static BYTES: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn lend(
    _: Handle,
    _: Handle,
    bytes: u64,
    piece: *mut UploadPiece,
    _: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the caller's place.
    let piece = unsafe { &mut *piece };
    let lent = BYTES.load(Ordering::SeqCst) as u64;
    (piece.memory, piece.bytes) = (0x10 as Handle, if lent > 0 { lent } else { bytes });
    // SAFETY: a place for the handle.
    unsafe { give(&mut piece.handle) }
}

unsafe extern "C" fn copy(
    _: Handle,
    _: Handle,
    _: Handle,
    _: Handle,
    _: u64,
    _: u64,
    _: *mut *mut abi::Error,
) -> Status {
    status::OK
}

pub(super) static TABLE: UploadInterface = UploadInterface {
    size: size_of::<UploadInterface>() as u32,
    flags: 0,
    lend: Some(lend),
    copy: Some(copy),
    give_back: Some(end),
};

#[test]
fn lent_memory() {
    let t = Watched::new();
    let find = t.table.interface.expect("the mock has it");
    // SAFETY: the id's own struct, which is static.
    let i = unsafe { &*find(t.table.backend, INTERFACE.as_ptr()).cast::<UploadInterface>() };
    let lend = |stream: Handle, bytes: u64| {
        let mut piece = UploadPiece {
            size: size_of::<UploadPiece>() as u32,
            flags: 0,
            handle: std::ptr::null_mut(),
            memory: std::ptr::null_mut(),
            bytes: 0,
        };
        let mut error = std::ptr::null_mut();
        // SAFETY: the places are valid.
        let code =
            unsafe { (i.lend.expect("it"))(t.device, stream, bytes, &mut piece, &mut error) };
        host_table::check("lend", code, error).map(|()| piece.handle)
    };
    let buffer = make!(t, buffer_alloc, 64).expect("a buffer");
    let copy = |piece: Handle, offset: u64, bytes: u64| {
        let mut error = std::ptr::null_mut();
        // SAFETY: the mock does nothing with handles.
        let code = unsafe {
            (i.copy.expect("it"))(t.device, t.stream, piece, buffer, offset, bytes, &mut error)
        };
        host_table::check("copy", code, error)
    };
    let give_back = |piece: Handle| {
        let before = validation_findings();
        // SAFETY: the mock does nothing with handles.
        unsafe { (i.give_back.expect("it"))(t.device, piece) };
        validation_findings() - before
    };
    assert_found(lend(t.stream, 0), "0 bytes are asked for");
    assert_found(lend(t.stream, MOST_BYTES + 1), "bytes are asked for");
    assert_found(lend(0x5 as Handle, 16), "is unknown");
    BYTES.store(8, Ordering::SeqCst);
    assert_found(lend(t.stream, 16), "it lent 8 bytes instead of 16");
    BYTES.store(0, Ordering::SeqCst);
    let first = lend(t.stream, 16).expect("memory");
    assert_found(copy(first, 60, 16), "16 bytes at 60 of a buffer of 64");
    assert!(copy(first, 48, 16).is_ok());
    assert_found(copy(first, 48, 16), "is gone already");
    assert_eq!(give_back(first), 1);
    let second = lend(t.stream, 16).expect("memory");
    assert_eq!((give_back(second), give_back(second)), (0, 1));
    let third = lend(t.stream, 16).expect("memory");
    assert_found(copy(third, 0, 17), "17 bytes are copied of 16 that were lent");
}
