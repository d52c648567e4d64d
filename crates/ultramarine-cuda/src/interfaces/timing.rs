//! `ultramarine.timing/1`: driver events that record the time, and NVTX ranges, which Nsight shows.
//! If NVTX is not installed, ranges have no effect.

use crate::context;
use crate::launch::Device;
use crate::streams::Stream;
use crate::sys::nvtx::nvtx;
use crate::timestamps::Timestamp;
use core::ffi::{c_char, c_void};
use ultramarine_abi::helper::{Failure, give, guard_value, handle, host_of, take, with_device};
use ultramarine_abi::interface::timing::TimingInterface;
use ultramarine_abi::{Error, Status};

/// The interface.
pub static TABLE: TimingInterface = TimingInterface {
    size: size_of::<TimingInterface>() as u32,
    flags: 0,
    mark: Some(mark),
    resolve: Some(resolve),
    release: Some(release),
    range_push: Some(range_push),
    range_pop: Some(range_pop),
};

// The safety of the functions below follows from the contract: handles are this backend's, output
// pointers are NULL or writable, and names are NUL-terminated.

unsafe extern "C" fn mark(
    device: *mut c_void,
    stream: *mut c_void,
    slot: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |device| {
            let stream = device.stream_or_default(stream.cast::<Stream>().as_ref());
            give(slot, device.clock.mark(stream)?)
        })
    }
}

unsafe extern "C" fn resolve(
    device: *mut c_void,
    slot: *mut c_void,
    nanoseconds: *mut u64,
    ready: *mut u32,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |device| {
            let time = device.clock.resolve(handle::<Timestamp>(slot, "the slot")?)?;
            match (nanoseconds.as_mut(), ready.as_mut()) {
                (Some(nanoseconds), Some(ready)) => {
                    (*nanoseconds, *ready) = (time.unwrap_or(0), u32::from(time.is_some()));
                    Ok(())
                }
                _ => Err(Failure::invalid("the pointer to the time is NULL")),
            }
        })
    }
}

unsafe extern "C" fn release(device: *mut c_void, slot: *mut c_void) {
    if !context::forked() {
        // SAFETY: guaranteed by the contract.
        unsafe { take::<Timestamp>(host_of::<Device>(device), slot) }
    }
}

unsafe extern "C" fn range_push(device: *mut c_void, _stream: *mut c_void, name: *const c_char) {
    // SAFETY: guaranteed by the contract.
    let host = unsafe { host_of::<Device>(device) };
    guard_value(host.as_ref(), (), || {
        if let (false, false, Some(nvtx)) = (name.is_null(), context::forked(), nvtx()) {
            // SAFETY: a NUL-terminated text, which is copied.
            unsafe { (nvtx.push)(name) };
        }
    });
}

unsafe extern "C" fn range_pop(device: *mut c_void, _stream: *mut c_void) {
    // SAFETY: guaranteed by the contract.
    let host = unsafe { host_of::<Device>(device) };
    guard_value(host.as_ref(), (), || {
        if let (false, Some(nvtx)) = (context::forked(), nvtx()) {
            // SAFETY: no arguments; without an open range the call has no effect.
            unsafe { (nvtx.pop)() };
        }
    });
}
