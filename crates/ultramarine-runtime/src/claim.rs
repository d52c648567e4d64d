//! The claim of a value that is computed once: one thread holds the claim, and the other threads
//! wait.

use crate::interrupt;
use crate::modelled_statics;
use crate::once::SetOnce;
use crate::sync::modelled::{AtomicU8, Condvar, Mutex, MutexGuard, lock};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[cfg(all(test, ultramarine_loom))]
mod model;

const FREE: u8 = 0;
const CLAIMED: u8 = 1;
/// Claimed, and a thread is sleeping until the value is set.
const AWAITED: u8 = 2;

/// The claim of a [`SetOnce`] that threads compute. Its states are free and claimed, until the
/// value is set. It is a single byte, separate from the value.
pub struct Claim(AtomicU8);

modelled_statics! {
    /// The place where threads wait for values. One place serves all values, because sleeping is
    /// rare.
    static DONE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
}

/// Prevents threads from waiting for values, and from finishing values that others wait for, during
/// a fork.
pub fn hold_sleepers() -> MutexGuard<'static, ()> {
    lock(&DONE.0)
}

/// Sleeps until `done` returns true, but no longer than `longest`. `done` is evaluated again after
/// [`wake_sleepers`], and at the end of each claim for which it called [`Claim::is_over`]. It is
/// called under the lock that ends of claims take.
pub fn sleep_until(longest: Duration, done: impl Fn() -> bool) {
    let mut guard = lock(&DONE.0);
    while !done() {
        let waited = DONE.1.wait_timeout(guard, longest);
        let (waited, time) = waited.unwrap_or_else(PoisonError::into_inner);
        guard = waited;
        if time.timed_out() {
            return;
        }
    }
}

/// Makes threads in [`sleep_until`] evaluate their conditions again.
pub fn wake_sleepers() {
    // Taking the lock orders this call after their last evaluation.
    drop(lock(&DONE.0));
    DONE.1.notify_all();
}

impl Claim {
    /// Makes a free claim.
    #[inline]
    #[allow(clippy::new_without_default, reason = "a node's field, written in place")]
    pub fn new() -> Claim {
        Claim(AtomicU8::new(FREE))
    }

    /// Claims the value. Returns false if another thread has claimed it.
    #[inline]
    pub fn take(&self) -> bool {
        self.0.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Returns true if the value was claimed and not given up.
    #[inline]
    pub fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire) != FREE
    }

    /// Gives up the claim without a value.
    pub fn release(&self) {
        self.leave(FREE);
    }

    /// Sets the value that was claimed.
    pub fn finish<T>(&self, place: &SetOnce<T>, value: T) {
        place.set(value);
        self.leave(CLAIMED);
    }

    fn leave(&self, state: u8) {
        if self.0.swap(state, Ordering::AcqRel) == AWAITED {
            // Taking the lock orders this call after a sleeper's last check.
            drop(lock(&DONE.0));
            DONE.1.notify_all();
        }
    }

    /// Returns true if the value is set, or free again. Otherwise, its end wakes the threads in
    /// [`sleep_until`].
    pub fn is_over<T>(&self, place: &SetOnce<T>) -> bool {
        let awaited =
            self.0.compare_exchange(CLAIMED, AWAITED, Ordering::AcqRel, Ordering::Acquire);
        matches!(awaited, Err(FREE)) || place.get().is_some()
    }

    /// Sleeps until the value is set, or free again. Returns false if `interrupted` returned true
    /// before.
    pub fn wait<T>(&self, place: &SetOnce<T>, interrupted: impl Fn() -> bool) -> bool {
        let mut guard = lock(&DONE.0);
        loop {
            if place.get().is_some() {
                return true;
            }
            match self.0.compare_exchange(CLAIMED, AWAITED, Ordering::AcqRel, Ordering::Acquire) {
                Err(FREE) => return true,
                _ if place.get().is_some() => return true,
                _ if !interrupt::is_possible() => {
                    guard = DONE.1.wait(guard).unwrap_or_else(PoisonError::into_inner);
                }
                _ => {
                    let waited = DONE.1.wait_timeout(guard, interrupt::PERIOD);
                    let (waited, time) = waited.unwrap_or_else(PoisonError::into_inner);
                    guard = waited;
                    if time.timed_out() {
                        // Without the lock, because `interrupted` may need the interpreter's lock.
                        drop(guard);
                        if interrupted() {
                            return false;
                        }
                        guard = lock(&DONE.0);
                    }
                }
            }
        }
    }
}
