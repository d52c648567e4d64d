//! A lock for critical sections of a few nanoseconds that can be held during a fork.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// A lock that spins first and then yields. Without contention it costs half as much as a `Mutex`,
/// because releasing it is a plain store. A fork handler can release it.
pub(super) struct Lock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is accessed only through a guard, and there is only one guard at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

pub(super) struct Guard<'a, T>(&'a Lock<T>);

impl<T> Lock<T> {
    pub(super) const fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    #[inline]
    pub(super) fn lock(&self) -> Guard<'_, T> {
        self.acquire();
        Guard(self)
    }

    /// Takes the lock without a guard, for the duration of a fork.
    #[inline]
    pub(super) fn acquire(&self) {
        if self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.acquire_slowly();
        }
    }

    #[cold]
    fn acquire_slowly(&self) {
        let mut turns = 0u32;
        while self.held.load(Ordering::Relaxed) || self.held.swap(true, Ordering::Acquire) {
            turns += 1;
            if turns.is_multiple_of(64) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread took the lock with [`Lock::acquire`]. In a forked child, it is the copy
    /// of the thread that did.
    #[inline]
    pub(super) unsafe fn release(&self) {
        self.held.store(false, Ordering::Release);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: a guard exists only while the lock is held, and there is only this guard.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`; `&mut self` ensures that there is no other borrow.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard was made by `lock`, which acquired the lock.
        unsafe { self.0.release() };
    }
}
