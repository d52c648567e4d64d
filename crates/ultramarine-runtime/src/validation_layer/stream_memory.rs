//! The interface `ultramarine.stream_memory/1` of a wrapped backend. Checks that a buffer that is
//! released in the order of a stream is not in use by another stream.

use super::calls::{ErrorOut, Handle, HandleOut, context, made, open_context};
use super::state::{BufferState, State, key};
use super::{Context, replaced};
use core::ffi::c_void;
use ultramarine_abi::{Status, ensure, interface::stream_memory::StreamMemoryInterface, status};

fn interface(cx: &Context) -> Option<&StreamMemoryInterface> {
    cx.stream_memory.get().map(|(real, _)| real)
}

unsafe fn alloc(
    slot: usize,
    device: Handle,
    stream: Handle,
    bytes: u64,
    buffer: HandleOut,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.alloc) else { return status::UNSUPPORTED };
    let before = |s: &mut State| match bytes {
        0 => Err("a buffer of no bytes".into()),
        _ => s.streams.get(key(device, stream)).map(|_| ()),
    };
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, stream, bytes, buffer, e) };
    let after = |s: &mut State| {
        // SAFETY: the caller's pointer, to which the backend has written.
        let buffer = unsafe { made(buffer, "buffer") }?;
        ensure!(!buffer.is_null(), "it returned OK and no buffer");
        s.buffers.add(key(device, buffer), BufferState::new(bytes))
    };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("alloc", error, None, &before, &real, &after) }
}

unsafe fn free(slot: usize, device: Handle, stream: Handle, buffer: Handle) {
    let Some(cx) = open_context(slot) else { return };
    let Some(real) = interface(cx).and_then(|i| i.free) else { return };
    let (stream_key, buffer_key) = (key(device, stream), key(device, buffer));
    if let Err(what) = cx.state().buffer_gone_in_order(buffer_key, stream_key) {
        cx.finding("free", &what);
        return;
    }
    // SAFETY: the buffer was alive, and is released once.
    unsafe { real(device, stream, buffer) }
}

slots! {
    fn alloc(
        device: Handle, stream: Handle, bytes: u64, buffer: HandleOut, error: ErrorOut
    ) -> Status;
    fn free(device: Handle, stream: Handle, buffer: Handle);
}

/// Returns the interface of a slot, which replaces the backend's own.
///
/// # Safety
/// `found` is NULL or the backend's interface.
pub(super) unsafe fn watched<const S: usize>(
    cx: &'static Context,
    found: *const c_void,
) -> *const c_void {
    let ours = |real: StreamMemoryInterface| StreamMemoryInterface {
        size: size_of::<StreamMemoryInterface>() as u32,
        alloc: real.alloc.map(|_| of_slot::alloc::<S> as _),
        free: real.free.map(|_| of_slot::free::<S> as _),
        ..real
    };
    // SAFETY: by this function's contract.
    unsafe { replaced(&cx.stream_memory, found, ours) }
}
