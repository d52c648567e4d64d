//! Claims of values that are computed once: one thread computes the value, and the others wait for
//! it.

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
/// A thread has claimed the value, and another thread sleeps until the value is there.
const AWAITED: u8 = 2;

/// The claim of a value that is kept in a [`SetOnce`]. Its states are free, claimed, and set. It
/// takes one byte, which is stored apart from the value.
pub struct Claim(AtomicU8);

modelled_statics! {
    /// The condition variable on which all threads wait for values. One is enough, because sleeping
    /// is rare.
    static DONE: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
}

/// Locks the list of sleepers, so that during a fork no thread begins to wait and no thread wakes
/// sleepers.
pub fn hold_sleepers() -> MutexGuard<'static, ()> {
    lock(&DONE.0)
}

/// Sleeps until `done` returns true, or until the time `longest` has passed. `done` is called again
/// after each [`wake_sleepers`], and at the end of each claim for which `done` called
/// [`Claim::is_over`]. It is called with the lock held that the end of a claim takes.
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

/// Makes the threads in [`sleep_until`] call their `done` again.
pub fn wake_sleepers() {
    // Taking the lock orders this wake-up after the last check of each sleeper.
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

    /// Returns true if the value is claimed or set.
    #[inline]
    pub fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire) != FREE
    }

    /// Gives up the claim without a value.
    pub fn release(&self) {
        self.leave(FREE);
    }

    /// Sets the value that this thread has claimed, and wakes the threads that wait for it.
    pub fn finish<T>(&self, place: &SetOnce<T>, value: T) {
        place.set(value);
        self.leave(CLAIMED);
    }

    fn leave(&self, state: u8) {
        if self.0.swap(state, Ordering::AcqRel) == AWAITED {
            // Taking the lock orders this wake-up after the last check of each sleeper.
            drop(lock(&DONE.0));
            DONE.1.notify_all();
        }
    }

    /// Returns true if the value is set, or free again. If it returns false, the end of the claim
    /// wakes the threads in [`sleep_until`].
    pub fn is_over<T>(&self, place: &SetOnce<T>) -> bool {
        let awaited =
            self.0.compare_exchange(CLAIMED, AWAITED, Ordering::AcqRel, Ordering::Acquire);
        matches!(awaited, Err(FREE)) || place.get().is_some()
    }

    /// Sleeps until the value is set, or free again. Returns false if `interrupted` returned true
    /// first.
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
                        // Release the lock first: `interrupted` may need the interpreter's lock.
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
