//! Locks, and an atomic maximum.

#[cfg(all(test, ultramarine_loom))]
pub mod explore;
#[cfg(ultramarine_loom)]
mod loom;
pub mod modelled;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, and ignores poisoning. The data stays consistent if a holder panicked, because
/// critical sections of this library only move plain values.
#[inline]
pub fn lock<T: ?Sized>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Raises an atomic to at least `value`. The store releases the earlier writes of this thread, so a
/// thread that acquires the value sees them. This is a loop and not `fetch_max`, because the thread
/// sanitizer does not see the ordering of `fetch_max`.
#[inline]
pub fn raise(atomic: &AtomicU64, value: u64) {
    let mut before = atomic.load(Ordering::Acquire);
    while before < value {
        match atomic.compare_exchange_weak(before, value, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(now) => before = now,
        }
    }
}

#[cfg(all(test, not(ultramarine_loom)))]
mod tests {
    use super::raise;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn the_largest_value_stays() {
        let atomic = AtomicU64::new(3);
        raise(&atomic, 2);
        assert_eq!(atomic.load(Ordering::Relaxed), 3);
        std::thread::scope(|scope| {
            for first in 0..4 {
                let atomic = &atomic;
                scope.spawn(move || (first..1000).rev().step_by(4).for_each(|n| raise(atomic, n)));
            }
        });
        assert_eq!(atomic.load(Ordering::Relaxed), 999);
    }
}
