//! The functions of the table, which call a backend's traits.
//!
//! Handles are addresses of boxes. The boxes of the backend and of devices also contain the host;
//! those of buffers, streams, events and plans contain only the object.

use super::backend::{Backend, Device};
use super::{CommandRef, Commands, Failure, Host, Request, Result, guard, guard_value};
use crate::{
    ABI_MAJOR, ABI_MINOR, BackendScore, BackendTable, Command, DeviceIdentity, DeviceInfo, Error,
    HostTable, Status, TensorDesc, inline_text, read_sized, schema::OpId, status, write_sized,
};
use core::cell::Cell;
use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;

/// Target of the handle `backend`.
struct BackendCell<B> {
    host: Host,
    backend: B,
}

/// Target of the handle `device`.
struct DeviceCell<D> {
    host: Host,
    device: D,
}

type Errors = *mut *mut Error;

/// Returns the object of a handle.
///
/// # Errors
/// [`Failure::invalid`] with `what` in its text if the handle is NULL.
///
/// # Safety
/// `handle` is NULL or a handle of that type, alive for `'a`.
pub unsafe fn handle<'a, T>(handle: *mut c_void, what: &str) -> Result<&'a T> {
    // SAFETY: by this function's contract.
    unsafe { handle.cast::<T>().as_ref() }
        .ok_or_else(|| Failure::invalid(format!("{what} is NULL")))
}

/// Puts a value into a box, and writes the new handle to `place`. [`take`] frees it.
///
/// # Errors
/// [`Failure::invalid`] if `place` is NULL.
///
/// # Safety
/// `place` is NULL or writable.
pub unsafe fn give<T>(place: *mut *mut c_void, value: T) -> Result<()> {
    if place.is_null() {
        return Err(Failure::invalid("the pointer to the handle is NULL"));
    }
    // SAFETY: by this function's contract.
    unsafe { *place = Box::into_raw(Box::new(value)).cast() };
    Ok(())
}

/// Frees the object of a handle.
///
/// # Safety
/// `handle` is NULL or a handle of that type that is no longer used.
pub unsafe fn take<T>(host: Option<Host>, handle: *mut c_void) {
    if !handle.is_null() {
        // SAFETY: `give` made the handle from a box.
        let value = unsafe { Box::from_raw(handle.cast::<T>()) };
        guard_value(host.as_ref(), (), || drop(value));
    }
}

/// Returns the host that is stored with a device.
///
/// # Safety
/// `device` is NULL or a handle of such a device.
pub unsafe fn host_of<D>(device: *mut c_void) -> Option<Host> {
    // SAFETY: by this function's contract.
    unsafe { device.cast::<DeviceCell<D>>().as_ref() }.map(|cell| cell.host)
}

/// Returns the device of a handle, for functions of optional interfaces that return no status.
///
/// # Safety
/// `device` is NULL or a handle of such a device, alive for `'a`.
pub unsafe fn device_of<'a, D: Device>(device: *mut c_void) -> Option<&'a D> {
    // SAFETY: by this function's contract.
    unsafe { device.cast::<DeviceCell<D>>().as_ref() }.map(|cell| &cell.device)
}

/// Runs `body` with the device, and turns failures and panics into a status. It is for functions of
/// an optional interface, whose first argument is the device.
///
/// # Safety
/// `device` is NULL or a handle of such a device; `error` is NULL or writable.
#[inline]
pub unsafe fn with_device<D: Device>(
    device: *mut c_void,
    error: Errors,
    body: impl FnOnce(&D) -> Result<()>,
) -> Status {
    // SAFETY: passed on.
    unsafe {
        guard(device.cast::<DeviceCell<D>>().as_ref().map(|cell| &cell.host), error, || {
            body(&handle::<DeviceCell<D>>(device, "the device")?.device)
        })
    }
}

// The functions below are those of the table. Their safety is that of the contract: handles are
// those that these functions returned, pointers are NULL or writable, and arrays have the given
// lengths.

unsafe extern "C" fn device_count<B: Backend>(backend: *mut c_void) -> u32 {
    // SAFETY: the contract's.
    unsafe { backend.cast::<BackendCell<B>>().as_ref() }
        .map_or(0, |cell| guard_value(Some(&cell.host), 0, || cell.backend.device_count()))
}

/// Runs `body` with the backend, and turns failures and panics into a status.
///
/// # Safety
/// `backend` is NULL or the pointer that `init` returned; `error` is NULL or writable.
unsafe fn with_backend<B: Backend>(
    backend: *mut c_void,
    index: u32,
    error: Errors,
    body: impl FnOnce(&BackendCell<B>) -> Result<()>,
) -> Status {
    // SAFETY: passed on.
    let cell = unsafe { backend.cast::<BackendCell<B>>().as_ref() };
    let body = || {
        let cell = cell.ok_or_else(|| Failure::invalid("the backend is NULL"))?;
        let count = cell.backend.device_count();
        if index >= count {
            return Err(Failure::invalid(format!(
                "there is no device {index}: the number of devices is {count}"
            )));
        }
        body(cell)
    };
    // SAFETY: passed on.
    unsafe { guard(cell.map(|c| &c.host), error, body) }
}

unsafe extern "C" fn device_info<B: Backend>(
    backend: *mut c_void,
    index: u32,
    info: *mut DeviceInfo,
    error: Errors,
) -> Status {
    // SAFETY: the contract's. An all-zero DeviceInfo is valid.
    unsafe {
        with_backend::<B>(backend, index, error, |cell| {
            let mut filled: DeviceInfo = core::mem::zeroed();
            filled.size = size_of::<DeviceInfo>() as u32;
            filled.identity.size = size_of::<DeviceIdentity>() as u32;
            cell.backend.device_info(index, &mut filled)?;
            match write_sized(info, &filled) {
                true => Ok(()),
                false => Err(Failure::invalid("the pointer to the device's description is NULL")),
            }
        })
    }
}

unsafe extern "C" fn device_open<B: Backend>(
    backend: *mut c_void,
    index: u32,
    device: *mut *mut c_void,
    error: Errors,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_backend::<B>(backend, index, error, |cell| {
            give(device, DeviceCell { host: cell.host, device: cell.backend.open(index)? })
        })
    }
}

unsafe extern "C" fn device_close<D: Device>(device: *mut c_void) {
    // SAFETY: the contract's.
    unsafe { take::<DeviceCell<D>>(host_of::<D>(device), device) }
}

unsafe extern "C" fn buffer_alloc<D: Device>(
    device: *mut c_void,
    bytes: u64,
    buffer: *mut *mut c_void,
    error: Errors,
) -> Status {
    // SAFETY: the contract's.
    unsafe { with_device::<D>(device, error, |d| give(buffer, d.alloc(bytes)?)) }
}

unsafe extern "C" fn buffer_free<D: Device>(device: *mut c_void, buffer: *mut c_void) {
    // SAFETY: the contract's.
    unsafe { take::<D::Buffer>(host_of::<D>(device), buffer) }
}

unsafe extern "C" fn buffer_host_pointer<D: Device>(
    device: *mut c_void,
    buffer: *mut c_void,
) -> *mut c_void {
    // SAFETY: the contract's.
    let (cell, buffer) =
        unsafe { (device.cast::<DeviceCell<D>>().as_ref(), buffer.cast::<D::Buffer>().as_ref()) };
    let (Some(cell), Some(buffer)) = (cell, buffer) else { return core::ptr::null_mut() };
    guard_value(Some(&cell.host), core::ptr::null_mut(), || cell.device.host_pointer(buffer)).cast()
}

unsafe extern "C" fn copy_to_device<D: Device>(
    device: *mut c_void,
    stream: *mut c_void,
    buffer: *mut c_void,
    offset: u64,
    source: *const c_void,
    bytes: u64,
    error: Errors,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<D>(device, error, |d| {
            let source: &[u8] = match bytes {
                0 => &[],
                _ if source.is_null() => return Err(Failure::invalid("the source is NULL")),
                n => core::slice::from_raw_parts(source.cast(), n as usize),
            };
            d.upload(
                stream.cast::<D::Stream>().as_ref(),
                handle(buffer, "the buffer")?,
                offset,
                source,
            )
        })
    }
}

unsafe extern "C" fn copy_to_host<D: Device>(
    device: *mut c_void,
    stream: *mut c_void,
    buffer: *mut c_void,
    offset: u64,
    target: *mut c_void,
    bytes: u64,
    error: Errors,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<D>(device, error, |d| {
            let target: &mut [MaybeUninit<u8>] = match bytes {
                0 => &mut [],
                _ if target.is_null() => return Err(Failure::invalid("the target is NULL")),
                n => core::slice::from_raw_parts_mut(target.cast(), n as usize),
            };
            let stream = stream.cast::<D::Stream>().as_ref();
            d.download(stream, handle(buffer, "the buffer")?, offset, target)
        })
    }
}

unsafe extern "C" fn stream_create<D: Device>(
    device: *mut c_void,
    stream: *mut *mut c_void,
    error: Errors,
) -> Status {
    // SAFETY: the contract's.
    unsafe { with_device::<D>(device, error, |d| give(stream, d.stream()?)) }
}

unsafe extern "C" fn stream_destroy<D: Device>(device: *mut c_void, stream: *mut c_void) {
    // SAFETY: the contract's.
    unsafe { take::<D::Stream>(host_of::<D>(device), stream) }
}

unsafe extern "C" fn stream_synchronize<D: Device>(
    device: *mut c_void,
    stream: *mut c_void,
    error: Errors,
) -> Status {
    // SAFETY: the contract's.
    unsafe { with_device::<D>(device, error, |d| d.synchronize(handle(stream, "the stream")?)) }
}

unsafe extern "C" fn event_create<D: Device>(
    device: *mut c_void,
    event: *mut *mut c_void,
    error: Errors,
) -> Status {
    // SAFETY: the contract's.
    unsafe { with_device::<D>(device, error, |d| give(event, d.event()?)) }
}

unsafe extern "C" fn event_record<D: Device>(
    device: *mut c_void,
    stream: *mut c_void,
    event: *mut c_void,
    value: u64,
    error: Errors,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<D>(device, error, |d| {
            d.record(handle(stream, "the stream")?, handle(event, "the event")?, value)
        })
    }
}

unsafe extern "C" fn event_wait_stream<D: Device>(
    device: *mut c_void,
    stream: *mut c_void,
    event: *mut c_void,
    value: u64,
    error: Errors,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<D>(device, error, |d| {
            d.wait_stream(handle(stream, "the stream")?, handle(event, "the event")?, value)
        })
    }
}

unsafe extern "C" fn event_wait_host<D: Device>(
    device: *mut c_void,
    event: *mut c_void,
    value: u64,
    error: Errors,
) -> Status {
    // SAFETY: the contract's.
    unsafe { with_device::<D>(device, error, |d| d.wait_host(handle(event, "the event")?, value)) }
}

unsafe extern "C" fn event_query<D: Device>(device: *mut c_void, event: *mut c_void) -> u64 {
    // SAFETY: the contract's.
    let (cell, event) =
        unsafe { (device.cast::<DeviceCell<D>>().as_ref(), event.cast::<D::Event>().as_ref()) };
    let (Some(cell), Some(event)) = (cell, event) else { return 0 };
    guard_value(Some(&cell.host), 0, || cell.device.query(event))
}

unsafe extern "C" fn event_destroy<D: Device>(device: *mut c_void, event: *mut c_void) {
    // SAFETY: the contract's.
    unsafe { take::<D::Event>(host_of::<D>(device), event) }
}

#[allow(clippy::too_many_arguments, reason = "the contract has it so")]
unsafe extern "C" fn prepare<D: Device>(
    device: *mut c_void,
    op: OpId,
    revision: u32,
    attributes: *const c_void,
    inputs: *const TensorDesc,
    n_inputs: u32,
    outputs: *const TensorDesc,
    n_outputs: u32,
    plan: *mut *mut c_void,
    error: Errors,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<D>(device, error, |d| {
            let (inputs, outputs) = ((inputs, n_inputs), (outputs, n_outputs));
            let request = Request::new(op, revision, attributes, inputs, outputs)?;
            request.check()?;
            give(plan, d.prepare(&request)?)
        })
    }
}

unsafe extern "C" fn plan_release<D: Device>(device: *mut c_void, plan: *mut c_void) {
    // SAFETY: the contract's.
    unsafe { take::<D::Plan>(host_of::<D>(device), plan) }
}

unsafe extern "C" fn plan_workspace<D: Device>(
    device: *mut c_void,
    plan: *mut c_void,
    command: *const Command,
) -> u64 {
    // SAFETY: the contract's.
    let (cell, plan, command) = unsafe {
        (
            device.cast::<DeviceCell<D>>().as_ref(),
            plan.cast::<D::Plan>().as_ref(),
            CommandRef::<D>::new(command),
        )
    };
    let (Some(cell), Some(plan), Some(command)) = (cell, plan, command) else { return 0 };
    guard_value(Some(&cell.host), 0, || cell.device.workspace(plan, &command))
}

unsafe extern "C" fn submit<D: Device>(
    device: *mut c_void,
    stream: *mut c_void,
    commands: *const Command,
    n_commands: u32,
    error: Errors,
) -> Status {
    let taken = Cell::new(0);
    // SAFETY: the contract's.
    let code = unsafe {
        with_device::<D>(device, error, |d| {
            let stream = stream.cast::<D::Stream>().as_ref();
            d.submit(stream, Commands::new(commands, n_commands, &taken))
        })
    };
    // SAFETY: the host's error pointer, to which `guard` has written the host's error object.
    unsafe { fail_command(host_of::<D>(device).as_ref(), code, error, taken.get()) }
}

/// Marks the last command that was taken as the failed one of a submit that ended with `code`.
///
/// # Safety
/// `error` is NULL or the caller's pointer, which has an error object if the submit failed.
unsafe fn fail_command(host: Option<&Host>, code: Status, error: Errors, taken: u32) -> Status {
    if let (Some(host), false, false) = (host, code == status::OK, error.is_null()) {
        // SAFETY: by this function's contract.
        unsafe { host.error_command(*error, taken.saturating_sub(1)) };
    }
    code
}

unsafe extern "C" fn interface<B: Backend>(
    backend: *mut c_void,
    id: *const c_char,
) -> *const c_void {
    // SAFETY: the contract's.
    let cell = unsafe { backend.cast::<BackendCell<B>>().as_ref() };
    let (Some(cell), false) = (cell, id.is_null()) else { return core::ptr::null() };
    // SAFETY: an id is NUL-terminated.
    let id = unsafe { CStr::from_ptr(id) };
    guard_value(Some(&cell.host), core::ptr::null(), || {
        cell.backend.interface(id).map_or(core::ptr::null(), |table| table.0)
    })
}

/// Fills the host's table with the functions of `B` around a new value of it. This is the body of
/// `ultramarine_backend_init`. The functions get a pointer to a private struct around the backend
/// or device, and pointers to its buffers, streams, events and plans.
///
/// # Safety
/// The arguments are those of `ultramarine_backend_init`.
pub unsafe fn init<B: Backend>(
    name: &'static CStr,
    device_type: i32,
    host: *const HostTable,
    table: *mut BackendTable,
    error: Errors,
) -> Status {
    // SAFETY: by this function's contract.
    let Some(host) = (unsafe { Host::new(host) }) else { return status::INVALID };
    let body = || {
        let cell = Box::new(BackendCell { host, backend: B::new(host)? });
        let filled = BackendTable {
            size: size_of::<BackendTable>() as u32,
            abi_major: ABI_MAJOR as u16,
            abi_minor: ABI_MINOR as u16,
            backend: core::ptr::null_mut(),
            name: name.as_ptr(),
            device_type,
            reserved: 0,
            device_count: Some(device_count::<B>),
            device_info: Some(device_info::<B>),
            device_open: Some(device_open::<B>),
            device_close: Some(device_close::<B::Device>),
            buffer_alloc: Some(buffer_alloc::<B::Device>),
            buffer_free: Some(buffer_free::<B::Device>),
            buffer_host_pointer: Some(buffer_host_pointer::<B::Device>),
            copy_to_device: Some(copy_to_device::<B::Device>),
            copy_to_host: Some(copy_to_host::<B::Device>),
            stream_create: Some(stream_create::<B::Device>),
            stream_destroy: Some(stream_destroy::<B::Device>),
            stream_synchronize: Some(stream_synchronize::<B::Device>),
            event_create: Some(event_create::<B::Device>),
            event_record: Some(event_record::<B::Device>),
            event_wait_stream: Some(event_wait_stream::<B::Device>),
            event_wait_host: Some(event_wait_host::<B::Device>),
            event_query: Some(event_query::<B::Device>),
            event_destroy: Some(event_destroy::<B::Device>),
            prepare: Some(prepare::<B::Device>),
            plan_release: Some(plan_release::<B::Device>),
            plan_workspace: Some(plan_workspace::<B::Device>),
            submit: Some(submit::<B::Device>),
            interface: Some(interface::<B>),
        };
        // A backend is never unloaded, so the box is leaked.
        let filled = BackendTable { backend: Box::into_raw(cell).cast(), ..filled };
        // SAFETY: by this function's contract.
        match unsafe { write_sized(table, &filled) } {
            true => Ok(()),
            false => Err(Failure::invalid("the pointer to the table is NULL")),
        }
    };
    // SAFETY: by this function's contract.
    unsafe { guard(Some(&host), error, body) }
}

/// Fills a score. This is the body of `ultramarine_backend_score`. A panic gives a score of 0.
///
/// # Safety
/// The arguments are those of `ultramarine_backend_score`.
pub unsafe fn score<B: Backend>(place: *mut BackendScore) -> Status {
    // SAFETY: by this function's contract. An all-zero score is valid.
    let Some(mut filled) = (unsafe { read_sized(place) }) else { return status::INVALID };
    let body = std::panic::AssertUnwindSafe(B::score);
    let said = std::panic::catch_unwind(body)
        .unwrap_or_else(|payload| super::backend::Score::cannot(Failure::of_panic(payload).text));
    filled.score = said.score;
    filled.device_count = said.device_count.max(said.devices.len() as u32);
    filled.reason = inline_text(&said.reason);
    if !filled.devices.is_null() && filled.device_stride >= size_of::<u32>() as u32 {
        for (i, device) in said.devices.iter().take(filled.device_capacity as usize).enumerate() {
            let at = filled.devices.cast::<u8>().wrapping_add(i * filled.device_stride as usize);
            // SAFETY: the index is below the capacity, and the host has set the size of each.
            unsafe { write_sized(at.cast::<DeviceIdentity>(), device) };
        }
    }
    // SAFETY: by this function's contract.
    unsafe { write_sized(place, &filled) };
    status::OK
}
