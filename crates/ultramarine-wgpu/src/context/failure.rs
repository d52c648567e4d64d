//! Failures of the hal as failures of the contract, with a remedy.

use std::sync::{Mutex, MutexGuard, PoisonError};
use ultramarine_abi::helper::Failure;
use ultramarine_abi::status;
use wgpu_hal::DeviceError;

/// The failure of a call, which `what` names.
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

/// The content of a mutex, also after a panic: all changes under these locks leave something that can be used.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
