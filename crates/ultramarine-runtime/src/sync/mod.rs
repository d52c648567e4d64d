//! Locks.

#[cfg(all(test, ultramarine_loom))]
pub mod explore;
#[cfg(ultramarine_loom)]
mod loom;
pub mod modelled;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex. What it guards stays sound when a holder panicked: critical sections of this library only move plain
/// values.
#[inline]
pub fn lock<T: ?Sized>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}
