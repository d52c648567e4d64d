//! The functions of a wrapped table. Each finds its backend by its slot, checks the call, passes it
//! on with unchanged handles, and checks the answer.

use super::commands::interface;
use super::commands::of_slot::{plan_workspace, prepare, submit};
use super::state::{BufferState, HandleKey, State, key};
use super::{CONTEXTS, Check, Context, SLOTS};
use core::ffi::c_void;
use ultramarine_abi::{self as abi, BackendTable, DeviceInfo, Status, device_flag, ensure, status};

pub(super) type Handle = *mut c_void;
pub(super) type HandleOut = *mut *mut c_void;
pub(super) type ErrorOut = *mut *mut abi::Error;

/// Returns the backend of a slot. Functions of a slot exist only in tables that were made after the
/// slot was taken.
pub(super) fn context(slot: usize) -> Option<&'static Context> {
    CONTEXTS.get(slot)?.get()
}

/// Declares a function that returns a status. `before` and `after` are checks with the state
/// locked: `before` runs before the call, and `after` runs if the call returned OK.
macro_rules! fallible {
    ($name:ident($($arg:ident: $t:ty),*), stream: $stream:expr, before: $before:expr, after: $after:expr) => {
        unsafe extern "C" fn $name<const S: usize>($($arg: $t,)* error: ErrorOut) -> Status {
            #[allow(clippy::too_many_arguments)] // The arguments are the contract's.
            unsafe fn of(slot: usize, $($arg: $t,)* error: ErrorOut) -> Status {
                let Some(cx) = context(slot) else { return status::ERROR };
                let Some(real) = cx.real.$name else { return status::UNSUPPORTED };
                // SAFETY: the arguments are the caller's, who keeps to the contract of the
                // function, and `e` points to a local variable for the error.
                let real = |e| unsafe { real($($arg,)* e) };
                let (stream, before, after) = ($stream, check($before), $after(cx));
                // SAFETY: the error pointer is the caller's.
                unsafe { cx.call(stringify!($name), error, stream, &before, &real, &after) }
            }
            // SAFETY: the arguments are the caller's.
            unsafe { of(S, $($arg,)* error) }
        }
    };
}

/// Helps type inference: returns the check itself.
fn check<F: Fn(&mut State) -> Check>(f: F) -> F {
    f
}

/// An empty check after a call.
fn nothing(_: &Context) -> impl Fn(&mut State) -> Check {
    |_| Ok(())
}

/// # Safety
/// The pointer is NULL, or points to a handle.
pub(super) unsafe fn made(place: HandleOut, what: &str) -> Result<Handle, String> {
    ensure!(!place.is_null(), "no place for the {what}");
    // SAFETY: by this function's contract.
    Ok(unsafe { *place })
}

fn stream_key(device: Handle, stream: Handle) -> Option<HandleKey> {
    (!stream.is_null()).then(|| key(device, stream))
}

fallible! {
    device_info(backend: Handle, index: u32, info: *mut DeviceInfo), stream: None,
    before: |_| Ok(()),
    after: |_| |_: &mut _| {
        // SAFETY: the caller's struct, which the backend has filled.
        let info = unsafe { abi::read_sized(info) }.ok_or("no place for the answer")?;
        let known = (1u32 << abi::schema::DTYPES.len()) - 1;
        if info.dtypes_arithmetic & !info.dtypes_storage & known != 0 {
            return Err("it computes with dtypes that it cannot store".into());
        }
        if info.alignment != 0 && !info.alignment.is_power_of_two() {
            return Err(format!("buffers are aligned to {} bytes", info.alignment));
        }
        Ok(())
    }
}

fallible! {
    device_open(backend: Handle, index: u32, device: HandleOut), stream: None,
    before: |_| Ok(()),
    after: |cx: &'static Context| move |s: &mut State| {
        // SAFETY: the caller's pointer, to which the backend has written.
        let device = unsafe { made(device, "device") }?;
        // SAFETY: all-zero is a valid DeviceInfo.
        let mut info: DeviceInfo = unsafe { std::mem::zeroed() };
        info.size = size_of::<DeviceInfo>() as u32;
        if let Some(ask) = cx.real.device_info {
            // SAFETY: an index that was just opened, and a local struct. No error object is
            // requested.
            unsafe { ask(backend, index, &mut info, std::ptr::null_mut()) };
        }
        s.opened(device, info);
        Ok(())
    }
}

fallible! {
    buffer_alloc(device: Handle, bytes: u64, buffer: HandleOut), stream: None,
    before: |s| match bytes {
        0 => Err("a buffer of no bytes".into()),
        _ => s.device(device).map(|_| ()),
    },
    after: |_| |s: &mut State| {
        // SAFETY: the caller's pointer, to which the backend has written.
        let buffer = unsafe { made(buffer, "buffer") }?;
        ensure!(!buffer.is_null(), "it returned OK and no buffer");
        s.buffers.add(key(device, buffer), BufferState::new(bytes))
    }
}

/// Checks that a copy stays inside its buffer.
pub(super) fn copies(
    s: &State,
    device: Handle,
    buffer: Handle,
    (offset, bytes): (u64, u64),
) -> Check {
    s.device(device)?;
    let room = s.buffers.get(key(device, buffer))?.bytes;
    match offset.checked_add(bytes) {
        Some(end) if end <= room => Ok(()),
        _ => Err(format!("{bytes} bytes at {offset} of a buffer of {room}")),
    }
}

fallible! {
    copy_to_device(device: Handle, stream: Handle, buffer: Handle, offset: u64, source: *const c_void, bytes: u64),
    stream: stream_key(device, stream),
    before: |s| {
        ensure!(!source.is_null() || bytes == 0, "the source is NULL");
        copies(s, device, buffer, (offset, bytes))
    },
    after: |_| move |s: &mut State| {
        let Some(on) = stream_key(device, stream) else { return Ok(()) };
        let flags = s.device(device).map_or(0, |d| d.info.flags);
        match flags & device_flag::UPLOADS_IN_ORDER {
            0 => s.drained(on),
            _ => s.submitted(on, &[key(device, buffer)]),
        }
        Ok(())
    }
}

fallible! {
    copy_to_host(device: Handle, stream: Handle, buffer: Handle, offset: u64, target: *mut c_void, bytes: u64),
    stream: stream_key(device, stream),
    before: |s| {
        ensure!(!target.is_null() || bytes == 0, "the target is NULL");
        copies(s, device, buffer, (offset, bytes))
    },
    after: |_| move |s: &mut State| {
        stream_key(device, stream).into_iter().for_each(|k| s.drained(k));
        Ok(())
    }
}

fallible! {
    stream_create(device: Handle, stream: HandleOut), stream: None,
    before: |s| s.device(device).map(|_| ()),
    after: |_| |s: &mut State| {
        // SAFETY: the caller's pointer, to which the backend has written.
        s.stream_made(key(device, unsafe { made(stream, "stream") }?));
        Ok(())
    }
}

fallible! {
    stream_synchronize(device: Handle, stream: Handle), stream: None,
    before: |s| s.streams.get(key(device, stream)).map(|_| ()),
    after: |_| |s: &mut State| {
        s.drained(key(device, stream));
        Ok(())
    }
}

fallible! {
    event_create(device: Handle, event: HandleOut), stream: None,
    before: |s| s.device(device).map(|_| ()),
    after: |_| |s: &mut State| {
        // SAFETY: the caller's pointer, to which the backend has written.
        s.event_made(key(device, unsafe { made(event, "event") }?))
    }
}

fallible! {
    event_record(device: Handle, stream: Handle, event: Handle, value: u64),
    stream: Some(key(device, stream)),
    before: |s| {
        s.may_record(key(device, event), value)?;
        // Record the number before the call: if the device is quick, other threads may see the
        // event reach it before the call returns.
        s.recorded(key(device, stream), key(device, event), value);
        Ok(())
    },
    after: nothing
}

fallible! {
    event_wait_stream(device: Handle, stream: Handle, event: Handle, value: u64),
    stream: Some(key(device, stream)),
    before: |s| s.events.get(key(device, event)).map(|_| ()),
    after: |_| |s: &mut State| {
        s.waits(key(device, stream), key(device, event), value);
        Ok(())
    }
}

fallible! {
    event_wait_host(device: Handle, event: Handle, value: u64), stream: None,
    before: |s| s.may_wait(key(device, event), value),
    after: |_| |s: &mut State| s.waited(key(device, event), value)
}

/// Like [`context`], for functions without a status. Returns `None` in a forked child of a process
/// that opened the device: there no call is passed on, and objects that would be freed are leaked.
pub(super) fn open_context(slot: usize) -> Option<&'static Context> {
    let cx = context(slot)?;
    (cx.is_cpu() || !cx.forked()).then_some(cx)
}

/// Declares a function without a status that ends the life of a handle.
macro_rules! ending {
    ($name:ident, $check:ident) => {
        unsafe extern "C" fn $name<const S: usize>(device: Handle, handle: Handle) {
            let Some(cx) = open_context(S) else { return };
            if !cx.forked()
                && let Err(what) = cx.state().$check(key(device, handle))
            {
                cx.finding(stringify!($name), &what);
                return;
            }
            if let Some(real) = cx.real.$name {
                // SAFETY: the handle was alive, and is released once.
                unsafe { real(device, handle) }
            }
        }
    };
}

ending!(buffer_free, buffer_gone);
ending!(stream_destroy, stream_gone);
ending!(event_destroy, event_gone);
ending!(plan_release, plan_gone);

unsafe extern "C" fn device_close<const S: usize>(device: Handle) {
    let Some(cx) = open_context(S) else { return };
    if !cx.forked()
        && let Err(what) = cx.state().closed(device)
    {
        cx.finding("device_close", &what);
        return;
    }
    if let Some(real) = cx.real.device_close {
        // SAFETY: the device was open, and all of its objects were released.
        unsafe { real(device) }
    }
}

unsafe extern "C" fn device_count<const S: usize>(backend: Handle) -> u32 {
    let count = context(S).and_then(|cx| cx.real.device_count);
    // SAFETY: the backend's own function and pointer.
    count.map_or(0, |count| unsafe { count(backend) })
}

unsafe extern "C" fn buffer_host_pointer<const S: usize>(device: Handle, buffer: Handle) -> Handle {
    let Some(cx) = open_context(S) else { return std::ptr::null_mut() };
    let Some(real) = cx.real.buffer_host_pointer else { return std::ptr::null_mut() };
    let mut state = cx.state();
    let foreign = match state.buffers.get(key(device, buffer)) {
        Ok(buffer) => buffer.foreign,
        Err(what) => {
            cx.finding("buffer_host_pointer", &what);
            return std::ptr::null_mut();
        }
    };
    // SAFETY: the buffer is alive.
    let address = unsafe { real(device, buffer) };
    if let Ok(found) = state.device(device) {
        let (align, host) = (found.info.alignment as usize, found.info.host_memory != 0);
        if host && address.is_null() {
            cx.finding("buffer_host_pointer", "host memory without an address");
        } else if align > 1 && !foreign && !(address as usize).is_multiple_of(align) {
            cx.finding("buffer_host_pointer", &format!("{address:p} is not aligned to {align}"));
        }
    }
    if let Ok(found) = state.buffers.get_mut(key(device, buffer)) {
        found.address = address as usize;
    }
    address
}

unsafe extern "C" fn event_query<const S: usize>(device: Handle, event: Handle) -> u64 {
    let Some(cx) = open_context(S) else { return 0 };
    let Some(real) = cx.real.event_query else { return 0 };
    let known = cx.state().events.get(key(device, event)).map(|_| ());
    if let Err(what) = known {
        cx.finding("event_query", &what);
        return 0;
    }
    // SAFETY: the event is alive.
    let value = unsafe { real(device, event) };
    if let Err(what) = cx.state().reached(key(device, event), value) {
        cx.finding("event_query", &what);
    }
    value
}

/// Returns a slot's functions, for those functions that the backend has.
fn functions<const S: usize>(real: &BackendTable) -> BackendTable {
    macro_rules! wrapped {
        ($($name:ident)*) => {
            BackendTable { $($name: real.$name.map(|_| $name::<S> as _),)* ..*real }
        };
    }
    wrapped!(device_count device_info device_open device_close buffer_alloc buffer_free
        buffer_host_pointer copy_to_device copy_to_host stream_create stream_destroy
        stream_synchronize event_create event_record event_wait_stream event_wait_host event_query
        event_destroy prepare plan_release plan_workspace submit interface)
}

/// Returns the table of a slot.
pub(super) fn table(slot: usize, real: &BackendTable) -> BackendTable {
    macro_rules! slots {
        ($($s:literal)*) => {{
            const MADE: [fn(&BackendTable) -> BackendTable; SLOTS] = [$(functions::<$s>),*];
            MADE.get(slot).map_or(*real, |make| make(real))
        }};
    }
    slots!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
}
