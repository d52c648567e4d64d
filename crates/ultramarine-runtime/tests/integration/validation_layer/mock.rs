//! A mock backend that keeps what is asked of it and does nothing, and that breaks one rule at a time.

use core::ffi::c_void;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use ultramarine_abi::{self as abi, Command, DeviceInfo, Status, TensorDesc, status};
use ultramarine_runtime::host_table;

pub type Handle = *mut c_void;

/// The rule that the mock breaks.
pub static WRONG: AtomicU32 = AtomicU32::new(0);
pub const OK_WITH_ERROR: u32 = 1;
pub const FAILS_SILENTLY: u32 = 2;
pub const NO_STATUS: u32 = 3;
pub const REFUSES_CONTIGUOUS: u32 = 4;
pub const EVENT_RUNS_AHEAD: u32 = 5;
pub const REFUSES_ITS_PLAN: u32 = 6;
pub const SAME_BUFFER: u32 = 7;
/// Submits meet here twice.
pub const MEETS: u32 = 8;
/// A list is said to fail at its third command, whatever its length.
pub const FAILS_AT_TWO: u32 = 9;

pub static FREED: AtomicUsize = AtomicUsize::new(0);
pub static MEETING: Barrier = Barrier::new(2);

pub fn wrong(what: u32) -> bool {
    WRONG.load(Ordering::SeqCst) == what
}

pub fn new_handle() -> Handle {
    static NEXT: AtomicUsize = AtomicUsize::new(0x1000);
    NEXT.fetch_add(0x1000, Ordering::SeqCst) as Handle
}

/// # Safety
/// `place` is writable.
pub unsafe fn give(place: *mut Handle) -> Status {
    // SAFETY: by this function's contract.
    unsafe { *place = if wrong(SAME_BUFFER) { 0x77 as Handle } else { new_handle() } };
    status::OK
}

pub unsafe extern "C" fn count(_: Handle) -> u32 {
    1
}

pub unsafe extern "C" fn info(
    _: Handle,
    _: u32,
    reported: *mut DeviceInfo,
    _: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the caller's struct.
    let reported = unsafe { &mut *reported };
    reported.flags = abi::device_flag::UPLOADS_IN_ORDER;
    let languages = &mut reported.kernel_languages;
    for (to, from) in languages.iter_mut().zip(b"mock-c") {
        *to = *from as core::ffi::c_char;
    }
    status::OK
}

pub unsafe extern "C" fn open(
    _: Handle,
    _: u32,
    d: *mut Handle,
    _: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the caller's place.
    unsafe { give(d) }
}

pub unsafe extern "C" fn close(_: Handle) {}

pub unsafe extern "C" fn alloc(
    _: Handle,
    _: u64,
    b: *mut Handle,
    e: *mut *mut abi::Error,
) -> Status {
    if wrong(OK_WITH_ERROR) {
        // SAFETY: the caller's place.
        unsafe { *e = host_table::new_error(status::ERROR, "never mind".into()) };
    }
    match () {
        () if wrong(FAILS_SILENTLY) => status::ERROR,
        () if wrong(NO_STATUS) => -7,
        // SAFETY: the caller's place.
        () => unsafe { give(b) },
    }
}

pub unsafe extern "C" fn free(_: Handle, _: Handle) {
    FREED.fetch_add(1, Ordering::SeqCst);
}

pub unsafe extern "C" fn copy_in(
    _: Handle,
    _: Handle,
    _: Handle,
    _: u64,
    _: *const c_void,
    _: u64,
    _: *mut *mut abi::Error,
) -> Status {
    status::OK
}

pub unsafe extern "C" fn copy_out(
    _: Handle,
    _: Handle,
    _: Handle,
    _: u64,
    _: *mut c_void,
    _: u64,
    _: *mut *mut abi::Error,
) -> Status {
    status::OK
}

pub unsafe extern "C" fn make(_: Handle, h: *mut Handle, _: *mut *mut abi::Error) -> Status {
    // SAFETY: the caller's place.
    unsafe { give(h) }
}

pub unsafe extern "C" fn end(_: Handle, _: Handle) {}

pub unsafe extern "C" fn synchronize(_: Handle, _: Handle, _: *mut *mut abi::Error) -> Status {
    status::OK
}

pub unsafe extern "C" fn on_stream(
    _: Handle,
    _: Handle,
    _: Handle,
    _: u64,
    _: *mut *mut abi::Error,
) -> Status {
    status::OK
}

pub unsafe extern "C" fn wait_host(
    _: Handle,
    _: Handle,
    _: u64,
    _: *mut *mut abi::Error,
) -> Status {
    status::OK
}

pub unsafe extern "C" fn query(_: Handle, _: Handle) -> u64 {
    if wrong(EVENT_RUNS_AHEAD) { 99 } else { 0 }
}

#[allow(clippy::too_many_arguments, reason = "the contract has it so")]
pub unsafe extern "C" fn prepare(
    _: Handle,
    _: u32,
    _: u32,
    _: *const c_void,
    _: *const TensorDesc,
    _: u32,
    _: *const TensorDesc,
    _: u32,
    plan: *mut Handle,
    _: *mut *mut abi::Error,
) -> Status {
    if wrong(REFUSES_CONTIGUOUS) {
        return status::NEEDS_CONTIGUOUS;
    }
    // SAFETY: the caller's place.
    unsafe { give(plan) }
}

pub unsafe extern "C" fn submit(
    _: Handle,
    _: Handle,
    _: *const Command,
    _: u32,
    error: *mut *mut abi::Error,
) -> Status {
    if wrong(MEETS) {
        MEETING.wait();
        MEETING.wait();
    }
    if wrong(FAILS_AT_TWO) {
        let host = host_table::table();
        let made = host_table::new_error(status::ERROR, "on purpose".into());
        // SAFETY: the host's function with its own error; the caller's place.
        unsafe {
            host.error_command.expect("there")(host.host, made, 2);
            *error = made;
        }
        return status::ERROR;
    }
    if wrong(REFUSES_ITS_PLAN) { status::UNSUPPORTED } else { status::OK }
}
