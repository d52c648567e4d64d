//! The interface `ultramarine.upload/1` of a wrapped backend. Checks that lent memory is given back
//! once, by a copy into a buffer or without one.

use super::calls::{ErrorOut, Handle, context, copies, open_context};
use super::state::{State, key};
use super::{Context, replaced};
use core::ffi::c_void;
use ultramarine_abi::interface::upload::{MOST_BYTES, UploadInterface, UploadPiece};
use ultramarine_abi::{Status, ensure, status};

fn interface(cx: &Context) -> Option<&UploadInterface> {
    cx.upload.get().map(|(real, _)| real)
}

unsafe fn lend(
    slot: usize,
    device: Handle,
    stream: Handle,
    bytes: u64,
    piece: *mut UploadPiece,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.lend) else { return status::UNSUPPORTED };
    let before = |s: &mut State| {
        ensure!((1..=MOST_BYTES).contains(&bytes), "{bytes} bytes are asked for");
        ensure!(!piece.is_null(), "no place for the memory");
        s.streams.get(key(device, stream)).map(|_| ())
    };
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, stream, bytes, piece, e) };
    let after = |s: &mut State| {
        // SAFETY: the caller's place, which is not NULL and the backend has filled.
        let piece = unsafe { &*piece };
        ensure!(!piece.handle.is_null() && !piece.memory.is_null(), "it returned OK and no memory");
        ensure!(piece.bytes >= bytes, "it lent {} bytes instead of {bytes}", piece.bytes);
        s.lent.add(key(device, piece.handle), piece.bytes)
    };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("lend", error, None, &before, &real, &after) }
}

#[allow(clippy::too_many_arguments, reason = "the contract's function")]
unsafe fn copy(
    slot: usize,
    device: Handle,
    stream: Handle,
    piece: Handle,
    buffer: Handle,
    offset: u64,
    bytes: u64,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.copy) else { return status::UNSUPPORTED };
    let on = key(device, stream);
    let before = |s: &mut State| {
        copies(s, device, buffer, (offset, bytes))?;
        let lent = *s.lent.get(key(device, piece))?;
        ensure!(bytes <= lent, "{bytes} bytes are copied of {lent} that were lent");
        s.lent.remove(key(device, piece)).map(|_| ())
    };
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, stream, piece, buffer, offset, bytes, e) };
    let after = |s: &mut State| {
        s.submitted(on, &[key(device, buffer)]);
        Ok(())
    };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("copy", error, Some(on), &before, &real, &after) }
}

unsafe fn give_back(slot: usize, device: Handle, piece: Handle) {
    let Some(cx) = open_context(slot) else { return };
    if !cx.forked()
        && let Err(what) = cx.state().lent.remove(key(device, piece))
    {
        cx.finding("give_back", &what);
        return;
    }
    if let Some(real) = interface(cx).and_then(|i| i.give_back) {
        // SAFETY: the memory was lent, and is returned once.
        unsafe { real(device, piece) }
    }
}

slots! {
    fn lend(
        device: Handle, stream: Handle, bytes: u64, piece: *mut UploadPiece, error: ErrorOut
    ) -> Status;
    fn copy(
        device: Handle, stream: Handle, piece: Handle, buffer: Handle, offset: u64, bytes: u64, error: ErrorOut
    ) -> Status;
    fn give_back(device: Handle, piece: Handle);
}

/// Returns the interface of a slot, which replaces the backend's own.
///
/// # Safety
/// `found` is NULL or the backend's interface.
pub(super) unsafe fn watched<const S: usize>(
    cx: &'static Context,
    found: *const c_void,
) -> *const c_void {
    let ours = |real: UploadInterface| UploadInterface {
        size: size_of::<UploadInterface>() as u32,
        lend: real.lend.map(|_| of_slot::lend::<S> as _),
        copy: real.copy.map(|_| of_slot::copy::<S> as _),
        give_back: real.give_back.map(|_| of_slot::give_back::<S> as _),
        ..real
    };
    // SAFETY: by this function's contract.
    unsafe { replaced(&cx.upload, found, ours) }
}
