//! Failures of wgpu's hal, converted to failures of the contract with a remedy.

use std::sync::{Mutex, MutexGuard, PoisonError};
use ultramarine_abi::helper::Failure;
use ultramarine_abi::status;
use wgpu_hal::DeviceError;

/// The failure of a call that is named by `what`.
pub fn of_hal(what: &str, why: DeviceError) -> Failure {
    match why {
        DeviceError::OutOfMemory => {
            let text =
                format!("the device has no memory for {what}. Free arrays, or use smaller ones");
            Failure { code: status::OUT_OF_MEMORY, text }
        }
        other => Failure::new(format!("{what}: {other}")),
    }
}

/// The content of a mutex, even after a panic: every change under these locks leaves usable data.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
