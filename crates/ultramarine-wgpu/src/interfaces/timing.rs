//! `ultramarine.timing/1`: timestamps of the queue.

use crate::launch::Device;
use crate::streams::{Mark, Stream};
use core::ffi::c_void;
use ultramarine_abi::helper::{Failure, give, handle, host_of, take, with_device};
use ultramarine_abi::interface::timing::TimingInterface;
use ultramarine_abi::{Error, Status};

/// The interface.
pub static TABLE: TimingInterface = TimingInterface {
    size: size_of::<TimingInterface>() as u32,
    flags: 0,
    mark: Some(mark),
    resolve: Some(resolve),
    release: Some(release),
    range_push: None,
    range_pop: None,
};

// The safety of the functions below follows from the contract: handles are this backend's, and output
// pointers are NULL or writable.

unsafe extern "C" fn mark(
    device: *mut c_void,
    stream: *mut c_void,
    slot: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |device| {
            let lane = device.lane(stream.cast::<Stream>().as_ref());
            give(slot, device.clock.mark(&device.scheduler, lane)?)
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
            let mark: &Mark = handle(slot, "the slot")?;
            let time = device.clock.resolve(&device.scheduler, mark)?;
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
    // SAFETY: guaranteed by the contract.
    unsafe { take::<Mark>(host_of::<Device>(device), slot) }
}
