//! The interface `ultramarine.memory/1` of a wrapped backend. Imported buffers follow the same
//! rules as others, and their owners have to be released exactly once.

use super::calls::{ErrorOut, Handle, HandleOut, context, made, open_context};
use super::state::{BufferState, State, key};
use super::{Context, replaced};
use core::ffi::c_void;
use std::sync::atomic::{AtomicU8, Ordering};
use ultramarine_abi::interface::memory::{ForeignMemory, MemoryInterface};
use ultramarine_abi::{self as abi, Status, ensure, status};

/// The owner of an import, which the backend releases in place of the caller's owner. It is never
/// freed, so that a second release is detected.
struct Owner {
    context: &'static Context,
    release: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
    state: AtomicU8,
}

/// During the call of import.
const LENDING: u8 = 0;
/// The backend has the memory.
const LENT: u8 = 1;
/// The memory was given back, or refused.
const BACK: u8 = 2;

unsafe extern "C" fn release(owner: *mut c_void) {
    // SAFETY: `import` made the owner, which is never freed.
    let Some(owner) = (unsafe { owner.cast::<Owner>().as_ref() }) else { return };
    match owner.state.compare_exchange(LENT, BACK, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: the owner's own function and argument. They are called once.
        Ok(_) => unsafe { (owner.release)(owner.argument) },
        Err(LENDING) => {
            owner.context.finding("import", "it released the memory before it returned");
        }
        Err(_) => {
            owner.context.finding("import", "it released memory twice, or memory that it refused");
        }
    }
}

fn interface(cx: &Context) -> Option<&MemoryInterface> {
    cx.memory.get().map(|(real, _)| real)
}

unsafe fn import(
    slot: usize,
    device: Handle,
    memory: *const ForeignMemory,
    buffer: HandleOut,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.import) else { return status::UNSUPPORTED };
    // SAFETY: the caller's struct begins with its size, and an all-zero struct is valid.
    let block = unsafe { abi::read_sized(memory) };
    let owner = block.and_then(|b| b.release).map(|release| {
        &*Box::leak(Box::new(Owner {
            context: cx,
            release,
            argument: block.map_or(std::ptr::null_mut(), |b| b.context),
            state: AtomicU8::new(LENDING),
        }))
    });
    let wrapped = block.map(|mut b| {
        if let Some(owner) = owner {
            b.release = Some(release);
            b.context = (&raw const *owner).cast_mut().cast();
        }
        b
    });
    let before = |s: &mut State| {
        s.device(device)?;
        match &block {
            None => Err("no memory to import".into()),
            Some(b) if b.handle == 0 => Err("the memory's handle is 0".into()),
            Some(b) if b.bytes == 0 => Err("memory of no bytes".into()),
            Some(b) if interface(cx).is_none_or(|i| i.imports >> b.kind.min(31) & 1 == 0) => {
                Err(format!("memory of kind {}, which it does not import", b.kind))
            }
            Some(_) => Ok(()),
        }
    };
    let real = |e| {
        let Some(wrapped) = &wrapped else { return status::INVALID };
        // SAFETY: the caller's arguments, except the owner, which is never freed.
        let code = unsafe { real(device, wrapped, buffer, e) };
        if let Some(owner) = owner {
            owner.state.store(if code == status::OK { LENT } else { BACK }, Ordering::Release);
        }
        code
    };
    let after = |s: &mut State| {
        // SAFETY: the caller's pointer, to which the backend has written.
        let buffer = unsafe { made(buffer, "buffer") }?;
        ensure!(!buffer.is_null(), "it returned OK and no buffer");
        let bytes = block.map_or(0, |b| b.bytes);
        s.buffers.add(key(device, buffer), BufferState::imported(bytes))
    };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("import", error, None, &before, &real, &after) }
}

unsafe fn export(
    slot: usize,
    device: Handle,
    buffer: Handle,
    kind: u32,
    memory: *mut ForeignMemory,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.export) else { return status::UNSUPPORTED };
    let before = |s: &mut State| s.buffers.get(key(device, buffer)).map(|_| ());
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, buffer, kind, memory, e) };
    let after = |s: &mut State| {
        // SAFETY: the caller's struct, which the backend has filled.
        let reported =
            unsafe { abi::read_sized(memory.cast_const()) }.ok_or("no place for the answer")?;
        let room = s.buffers.get(key(device, buffer))?.bytes;
        match () {
            () if reported.kind != kind => {
                Err(format!("it reported kind {}, not {kind}", reported.kind))
            }
            () if reported.handle == 0 => Err("it reported the handle 0".into()),
            () if reported.bytes < room => {
                Err(format!("it reported {} bytes of a buffer of {room}", reported.bytes))
            }
            () => Ok(()),
        }
    };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("export", error, None, &before, &real, &after) }
}

unsafe fn wait_foreign(
    slot: usize,
    device: Handle,
    stream: Handle,
    foreign: u64,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.wait_foreign) else {
        return status::UNSUPPORTED;
    };
    let on = (!stream.is_null()).then(|| key(device, stream));
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, stream, foreign, e) };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("wait_foreign", error, on, &|_| Ok(()), &real, &|_| Ok(())) }
}

unsafe fn signal_foreign(
    slot: usize,
    device: Handle,
    foreign: u64,
    event: Handle,
    value: u64,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.signal_foreign) else {
        return status::UNSUPPORTED;
    };
    let before = |s: &mut State| s.may_wait(key(device, event), value);
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, foreign, event, value, e) };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("signal_foreign", error, None, &before, &real, &|_| Ok(())) }
}

unsafe fn retain_foreign(slot: usize, device: Handle, foreign: u64, error: ErrorOut) -> Status {
    let Some(cx) = context(slot) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.retain_foreign) else {
        return status::UNSUPPORTED;
    };
    let after = |s: &mut State| {
        *s.retained.entry(key(device, foreign as Handle)).or_default() += 1;
        Ok(())
    };
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, foreign, e) };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("retain_foreign", error, None, &|_| Ok(()), &real, &after) }
}

unsafe fn release_foreign(slot: usize, device: Handle, foreign: u64) {
    let Some(cx) = open_context(slot) else { return };
    let Some(real) = interface(cx).and_then(|i| i.release_foreign) else { return };
    if !cx.state().release_stream(key(device, foreign as Handle)) {
        cx.finding("release_foreign", "the stream is not retained");
        return;
    }
    // SAFETY: the device is open, and the stream is retained.
    unsafe { real(device, foreign) }
}

unsafe fn native_stream(slot: usize, device: Handle, stream: Handle) -> u64 {
    let Some(cx) = open_context(slot) else { return 0 };
    let Some(real) = interface(cx).and_then(|i| i.native_stream) else { return 0 };
    let known = cx.state().streams.get(key(device, stream)).map(|_| ());
    if !stream.is_null()
        && let Err(what) = known
    {
        cx.finding("native_stream", &what);
        return 0;
    }
    // SAFETY: the device is open, and the stream is alive.
    unsafe { real(device, stream) }
}

slots! {
    fn import(
        device: Handle, memory: *const ForeignMemory, buffer: HandleOut, error: ErrorOut
    ) -> Status;
    fn export(
        device: Handle, buffer: Handle, kind: u32, memory: *mut ForeignMemory, error: ErrorOut
    ) -> Status;
    fn wait_foreign(device: Handle, stream: Handle, foreign: u64, error: ErrorOut) -> Status;
    fn signal_foreign(
        device: Handle, foreign: u64, event: Handle, value: u64, error: ErrorOut
    ) -> Status;
    fn retain_foreign(device: Handle, foreign: u64, error: ErrorOut) -> Status;
    fn release_foreign(device: Handle, foreign: u64);
    fn native_stream(device: Handle, stream: Handle) -> u64;
}

/// Returns the interface of a slot, which replaces the backend's own.
///
/// # Safety
/// `found` is NULL or the backend's interface.
pub(super) unsafe fn watched<const S: usize>(
    cx: &'static Context,
    found: *const c_void,
) -> *const c_void {
    let ours = |real: MemoryInterface| MemoryInterface {
        size: size_of::<MemoryInterface>() as u32,
        import: real.import.map(|_| of_slot::import::<S> as _),
        export: real.export.map(|_| of_slot::export::<S> as _),
        wait_foreign: real.wait_foreign.map(|_| of_slot::wait_foreign::<S> as _),
        native_stream: real.native_stream.map(|_| of_slot::native_stream::<S> as _),
        signal_foreign: real.signal_foreign.map(|_| of_slot::signal_foreign::<S> as _),
        retain_foreign: real.retain_foreign.map(|_| of_slot::retain_foreign::<S> as _),
        release_foreign: real.release_foreign.map(|_| of_slot::release_foreign::<S> as _),
        ..real
    };
    // SAFETY: by this function's contract.
    unsafe { replaced(&cx.memory, found, ours) }
}
