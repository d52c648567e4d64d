//! A place for a value that is set once.

use crate::sync::modelled::{AtomicU8, UnsafeCell};
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

const EMPTY: u8 = 0;
const BEING_SET: u8 = 1;
const FULL: u8 = 2;

/// Like [`std::sync::OnceLock`], but a `SetOnce` that is made with a value costs nothing beyond the
/// value, and no thread ever waits for it.
pub struct SetOnce<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the thread that sets the value has exclusive access until the state says that the value
// is set. From then on the value is only read, on any thread, until it is dropped.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T> SetOnce<T> {
    #[inline]
    #[allow(clippy::new_without_default, reason = "a node's field, written in place")]
    pub fn new() -> Self {
        SetOnce { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    #[inline]
    pub fn full(value: T) -> Self {
        SetOnce { state: AtomicU8::new(FULL), value: UnsafeCell::new(MaybeUninit::new(value)) }
    }

    #[inline]
    pub fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != FULL {
            return None;
        }
        // SAFETY: the state says that the value is set, and a set value is not written again.
        Some(self.value.with(|value| unsafe { (*value).assume_init_ref() }))
    }

    /// Sets the value. Only the first call has an effect.
    #[inline]
    pub fn set(&self, value: T) {
        let order = (Ordering::Relaxed, Ordering::Relaxed);
        if self.state.compare_exchange(EMPTY, BEING_SET, order.0, order.1).is_ok() {
            // SAFETY: only one thread gets here, once, and other threads do not read before the
            // state says that the value is set.
            self.value.with_mut(|place| unsafe { (*place).write(value) });
            self.state.store(FULL, Ordering::Release);
        }
    }
}

impl<T> Drop for SetOnce<T> {
    #[inline]
    fn drop(&mut self) {
        if self.state.load(Ordering::Relaxed) == FULL {
            // SAFETY: the value is set, and is dropped once.
            self.value.with_mut(|value| unsafe { (*value).assume_init_drop() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SetOnce;
    use std::sync::Arc;

    #[test]
    fn the_first_value_stays_and_each_is_dropped_once() {
        let value = Arc::new(1);
        let cell = SetOnce::new();
        assert!(cell.get().is_none());
        cell.set(value.clone());
        cell.set(Arc::new(2));
        assert_eq!(cell.get().map(|v| **v), Some(1));
        assert_eq!(Arc::strong_count(&value), 2);
        drop(cell);
        assert_eq!(Arc::strong_count(&value), 1);
        drop(SetOnce::full(value.clone()));
        drop(SetOnce::<Arc<i32>>::new());
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn of_many_threads_one_sets_it() {
        let cell = SetOnce::new();
        std::thread::scope(|scope| {
            for i in 0..8 {
                let cell = &cell;
                scope.spawn(move || cell.set(Box::new(i)));
            }
        });
        assert!(cell.get().is_some_and(|v| **v < 8));
    }
}
