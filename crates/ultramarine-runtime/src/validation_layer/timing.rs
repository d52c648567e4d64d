//! The interface `ultramarine.timing/1` of a wrapped backend. Checks that slots live from mark to
//! release, and that a time does not change once it is known.

use super::calls::{ErrorOut, Handle, HandleOut, context, made, open_context};
use super::state::{State, key};
use super::{Context, replaced};
use core::ffi::c_void;
use ultramarine_abi::{Status, ensure, interface::timing::TimingInterface, status};

fn interface(cx: &Context) -> Option<&TimingInterface> {
    cx.timing.get().map(|(real, _)| real)
}

unsafe fn mark(
    index: usize,
    device: Handle,
    stream: Handle,
    slot: HandleOut,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(index) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.mark) else { return status::UNSUPPORTED };
    // The CPU's streams exist only on the host.
    let own = cx.real.stream_create.is_some() && !(cx.is_cpu() && stream.is_null());
    let on = own.then(|| key(device, stream));
    let before = |s: &mut State| s.device(device).map(|_| ());
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, stream, slot, e) };
    let after = |s: &mut State| {
        // SAFETY: the caller's pointer, to which the backend has written.
        let slot = unsafe { made(slot, "slot") }?;
        ensure!(!slot.is_null(), "it returned OK and no slot");
        s.slots.add(key(device, slot), None)
    };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("mark", error, on, &before, &real, &after) }
}

unsafe fn resolve(
    index: usize,
    device: Handle,
    slot: Handle,
    nanoseconds: *mut u64,
    ready: *mut u32,
    error: ErrorOut,
) -> Status {
    let Some(cx) = context(index) else { return status::ERROR };
    let Some(real) = interface(cx).and_then(|i| i.resolve) else { return status::UNSUPPORTED };
    let slot_key = key(device, slot);
    let before = |s: &mut State| {
        ensure!(!nanoseconds.is_null() && !ready.is_null(), "no place for the time");
        s.slots.get(slot_key).map(|_| ())
    };
    // SAFETY: the arguments are the caller's.
    let real = |e| unsafe { real(device, slot, nanoseconds, ready, e) };
    let after = |s: &mut State| {
        // SAFETY: places of the caller's, which are not NULL and the backend has filled.
        let (time, ready) = unsafe { (*nanoseconds, *ready) };
        ensure!(ready <= 1, "it said that a slot is {ready}, which is neither 0 nor 1");
        let known = s.slots.get_mut(slot_key)?;
        match *known {
            Some(_) if ready == 0 => Err("a time that was known is known no more".into()),
            Some(former) if former != time => Err(format!("a time of {former} became {time}")),
            _ => {
                *known = (ready == 1).then_some(time);
                Ok(())
            }
        }
    };
    // SAFETY: the error pointer is the caller's.
    unsafe { cx.call("resolve", error, None, &before, &real, &after) }
}

unsafe fn release(index: usize, device: Handle, slot: Handle) {
    let Some(cx) = open_context(index) else { return };
    if !cx.forked()
        && let Err(what) = cx.state().slots.remove(key(device, slot))
    {
        cx.finding("release", &what);
        return;
    }
    if let Some(real) = interface(cx).and_then(|i| i.release) {
        // SAFETY: the slot was alive, and is released once.
        unsafe { real(device, slot) }
    }
}

slots! {
    fn mark(device: Handle, stream: Handle, slot: HandleOut, error: ErrorOut) -> Status;
    fn resolve(
        device: Handle, slot: Handle, nanoseconds: *mut u64, ready: *mut u32, error: ErrorOut
    ) -> Status;
    fn release(device: Handle, slot: Handle);
}

/// Returns the interface of a slot, which replaces the backend's own. The functions for ranges are
/// the backend's.
///
/// # Safety
/// `found` is NULL or the backend's interface.
pub(super) unsafe fn watched<const S: usize>(
    cx: &'static Context,
    found: *const c_void,
) -> *const c_void {
    let ours = |real: TimingInterface| TimingInterface {
        size: size_of::<TimingInterface>() as u32,
        mark: real.mark.map(|_| of_slot::mark::<S> as _),
        resolve: real.resolve.map(|_| of_slot::resolve::<S> as _),
        release: real.release.map(|_| of_slot::release::<S> as _),
        ..real
    };
    // SAFETY: by this function's contract.
    unsafe { replaced(&cx.timing, found, ours) }
}
