//! Timestamps for devices whose work is done when submit returns: the host's monotonic clock.

use super::{Failure, give, guard, guard_value};
use crate::interface::timing::TimingInterface;
use crate::{Error, Status};
use core::ffi::c_void;
use std::sync::OnceLock;
use std::time::Instant;

/// `ultramarine.timing/1` with the host's clock, for a backend of [`super::SyncDevice`]s or of the
/// CPU. All earlier work is done when a mark is made.
pub static HOST_TIMING: TimingInterface = TimingInterface {
    size: size_of::<TimingInterface>() as u32,
    flags: 0,
    mark: Some(mark),
    resolve: Some(resolve),
    release: Some(release),
    range_push: None,
    range_pop: None,
};

/// Nanoseconds since the first call.
fn now() -> u64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    u64::try_from(ORIGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

unsafe extern "C" fn mark(
    _device: *mut c_void,
    _stream: *mut c_void,
    slot: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: by the contract, pointers are NULL or writable.
    unsafe { guard(None, error, || give(slot, now())) }
}

unsafe extern "C" fn resolve(
    _device: *mut c_void,
    slot: *mut c_void,
    nanoseconds: *mut u64,
    ready: *mut u32,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: by the contract, a slot that `mark` made, and pointers that are NULL or writable.
    unsafe {
        guard(None, error, || {
            let time: &u64 = super::handle(slot, "the slot")?;
            match (nanoseconds.as_mut(), ready.as_mut()) {
                (Some(nanoseconds), Some(ready)) => (*nanoseconds, *ready) = (*time, 1),
                _ => return Err(Failure::invalid("the pointer to the time is NULL")),
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn release(_device: *mut c_void, slot: *mut c_void) {
    if !slot.is_null() {
        // SAFETY: `mark` made the slot from a box, and it is released once.
        let slot = unsafe { Box::from_raw(slot.cast::<u64>()) };
        guard_value(None, (), || drop(slot));
    }
}
