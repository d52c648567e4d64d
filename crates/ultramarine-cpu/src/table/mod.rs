//! The backend's side of the contract: decodes requests and catches panics.
//!
//! Init makes a [`State`] from its arguments, which lives as long as the process. Its address is
//! the handle of the backend and of the device, so that two hosts in one process stay separate.
//! Structs are read up to the smaller of both sizes, and arrays by the strides that they state.

mod memory;
mod prepare;
mod submit;

use crate::kernel::{Context, Kernel};
use crate::{dtype::DType, level::Level, par::Par};
use core::ffi::{c_char, c_void};
use prepare::{plan_release, prepare, prepare_anchored, prepare_fused};
use submit::submit;
use ultramarine_abi::helper::{Failure, HOST_TIMING, Host, guard};
use ultramarine_abi::{self as abi, Status, dlpack, fused, status};

/// A plan as the host holds it: the kernel, and the dtypes for which it was made.
struct Plan {
    kernel: Box<dyn Kernel>,
    inputs: Vec<DType>,
    outputs: Vec<DType>,
}

/// The backend that a call of init makes.
struct State {
    host: Host,
    context: Context,
}

/// The state behind a handle.
///
/// # Safety
/// `handle` is NULL or what [`backend_init`] gave.
#[inline]
unsafe fn state<'a>(handle: *mut c_void) -> Option<&'a State> {
    // SAFETY: by this function's contract; states are never freed.
    unsafe { handle.cast::<State>().as_ref() }
}

fn no_device() -> Failure {
    Failure::invalid("the device is NULL")
}

unsafe extern "C" fn interface(_backend: *mut c_void, id: *const c_char) -> *const c_void {
    if id.is_null() {
        return core::ptr::null();
    }
    // SAFETY: the host passes a NUL-terminated id.
    let id = unsafe { core::ffi::CStr::from_ptr(id) };
    if id == fused::INTERFACE {
        (&raw const FUSED).cast()
    } else if id == fused::ANCHORED_INTERFACE {
        (&raw const ANCHORED).cast()
    } else if id == abi::interface::memory::INTERFACE {
        (&raw const memory::TABLE).cast()
    } else if id == abi::interface::timing::INTERFACE {
        (&raw const HOST_TIMING).cast()
    } else {
        core::ptr::null()
    }
}

static FUSED: fused::FusedInterface = fused::FusedInterface {
    size: size_of::<fused::FusedInterface>() as u32,
    flags: 0,
    prepare: Some(prepare_fused),
};

static ANCHORED: fused::AnchoredInterface = fused::AnchoredInterface {
    size: size_of::<fused::AnchoredInterface>() as u32,
    flags: 0,
    prepare: Some(prepare_anchored),
};

unsafe extern "C" fn device_count(_backend: *mut c_void) -> u32 {
    1
}

unsafe extern "C" fn device_info(
    backend: *mut c_void,
    index: u32,
    info: *mut abi::DeviceInfo,
    error: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the host passes what `backend_init` gave.
    let state = unsafe { state(backend) };
    let work = || {
        let described = describe(state.ok_or_else(no_device)?, index)?;
        // SAFETY: the host's struct says its size.
        match unsafe { abi::write_sized(info, &described) } {
            true => Ok(()),
            false => Err(Failure::invalid("no place for the device's description")),
        }
    };
    // SAFETY: the host's error place.
    unsafe { guard(state.map(|s| &s.host), error, work) }
}

fn describe(state: &State, index: u32) -> Result<abi::DeviceInfo, Failure> {
    only_device(index)?;
    let all = (1 << abi::schema::DTYPES.len()) - 1;
    let half = 1 << 9 | 1 << 12;
    let text = format!("CPU ({})", state.context.level.name());
    // SAFETY: all-zero is a valid DeviceInfo.
    let mut info: abi::DeviceInfo = unsafe { core::mem::zeroed() };
    info.size = size_of::<abi::DeviceInfo>() as u32;
    info.synchronous = 1;
    info.host_memory = 1;
    info.dtypes_storage = all;
    info.dtypes_arithmetic = all;
    info.dtypes_accumulate = half;
    info.fused_max_instructions = 64;
    info.fused_max_inputs = 16;
    info.name = abi::inline_text(&text);
    info.flags = abi::device_flag::DETERMINISTIC;
    info.alignment = 256;
    info.identity.size = size_of::<abi::DeviceIdentity>() as u32;
    info.identity.name = info.name;
    Ok(info)
}

fn only_device(index: u32) -> Result<(), Failure> {
    match index {
        0 => Ok(()),
        _ => Err(Failure::invalid(format!("there is no CPU device {index}, only 0"))),
    }
}

unsafe extern "C" fn device_open(
    backend: *mut c_void,
    index: u32,
    device: *mut *mut c_void,
    error: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the host passes what `backend_init` gave.
    let state = unsafe { state(backend) };
    let work = || {
        only_device(index)?;
        state.ok_or_else(no_device)?;
        if device.is_null() {
            return Err(Failure::invalid("no place for the device"));
        }
        // SAFETY: the host gives a place for the handle.
        unsafe { *device = backend };
        Ok(())
    };
    // SAFETY: the host's error place.
    unsafe { guard(state.map(|s| &s.host), error, work) }
}

/// A device owns nothing that would have to be released.
unsafe extern "C" fn device_close(_device: *mut c_void) {}

/// The table. Buffers, streams and events of the CPU belong to the host, so their functions stay
/// NULL. Imported buffers belong to the backend.
fn table(state: &'static State) -> abi::BackendTable {
    abi::BackendTable {
        size: size_of::<abi::BackendTable>() as u32,
        abi_major: abi::ABI_MAJOR as u16,
        abi_minor: abi::ABI_MINOR as u16,
        backend: (&raw const *state).cast_mut().cast(),
        name: c"cpu".as_ptr(),
        device_type: dlpack::device_type::CPU,
        reserved: 0,
        device_count: Some(device_count),
        device_info: Some(device_info),
        device_open: Some(device_open),
        device_close: Some(device_close),
        buffer_alloc: None,
        buffer_free: Some(memory::buffer_free),
        buffer_host_pointer: Some(memory::buffer_host_pointer),
        copy_to_device: None,
        copy_to_host: None,
        stream_create: None,
        stream_destroy: None,
        stream_synchronize: None,
        event_create: None,
        event_record: None,
        event_wait_stream: None,
        event_wait_host: None,
        event_query: None,
        event_destroy: None,
        prepare: Some(prepare),
        plan_release: Some(plan_release),
        plan_workspace: None,
        submit: Some(submit),
        interface: Some(interface),
    }
}

/// The backend's entry point: fills the host's table, for the best level of this machine.
///
/// # Safety
/// `host` and `out` are NULL or point to tables that begin with their sizes. The host's functions
/// stay callable as long as the process lives.
pub unsafe extern "C" fn backend_init(
    host: *const abi::HostTable,
    out: *mut abi::BackendTable,
    error: *mut *mut abi::Error,
) -> Status {
    // SAFETY: passed on from the caller.
    unsafe { backend_init_at(Level::Amx, host, out, error) }
}

/// [`backend_init`] with kernels of at most the given level. It may be called more than once: every
/// call makes a separate backend, with its own host and level.
///
/// # Safety
/// As [`backend_init`].
pub unsafe fn backend_init_at(
    level: Level,
    host: *const abi::HostTable,
    out: *mut abi::BackendTable,
    error: *mut *mut abi::Error,
) -> Status {
    // SAFETY: by this function's contract.
    let Some(lent) = (unsafe { Host::new(host) }) else { return status::INVALID };
    let work = || {
        let level = level.min(Level::current());
        let context = Context { par: Par::new(*lent.table()), level };
        let state = Box::leak(Box::new(State { host: lent, context }));
        // SAFETY: by this function's contract.
        match unsafe { abi::write_sized(out, &table(state)) } {
            true => Ok(()),
            false => Err(Failure::invalid("no place for the table")),
        }
    };
    // SAFETY: the host's error place.
    unsafe { guard(Some(&lent), error, work) }
}
