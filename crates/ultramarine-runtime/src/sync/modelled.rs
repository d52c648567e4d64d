//! Atomics, locks, cells and threads for the protocols that the model checker explores
//! ([`crate::pool`], [`crate::claim`], the counting word of [`crate::backend::buffer`]). They are
//! std's, or loom's with `--cfg ultramarine_loom` (`cargo xtask loom`).

#[cfg(ultramarine_loom)]
pub use super::loom::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard,
    UnsafeCell, thread,
};
use std::sync::PoisonError;
#[cfg(not(ultramarine_loom))]
pub use std::{
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize},
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

/// Locks a mutex, like [`crate::sync::lock`].
#[inline]
pub fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cell in which every access is a call, so that loom sees it.
#[cfg(not(ultramarine_loom))]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(ultramarine_loom))]
impl<T> UnsafeCell<T> {
    #[inline]
    pub const fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Gives read access through a pointer.
    #[inline]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Gives write access through a pointer.
    #[inline]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// Declares statics. Under loom each execution of a model has its own.
#[macro_export]
#[doc(hidden)]
macro_rules! modelled_statics {
    ($($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;)*) => {$(
        #[cfg(not(ultramarine_loom))]
        $(#[$meta])*
        static $name: $type = $value;
        #[cfg(ultramarine_loom)]
        ::loom::lazy_static! {
            $(#[$meta])*
            static ref $name: $type = $value;
        }
    )*};
}

/// Declares thread-locals: std's or loom's.
#[macro_export]
#[doc(hidden)]
macro_rules! modelled_thread_locals {
    ($($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;)*) => {
        #[cfg(not(ultramarine_loom))]
        ::std::thread_local! {
            $($(#[$meta])* static $name: $type = const { $value };)*
        }
        #[cfg(ultramarine_loom)]
        ::loom::thread_local! {
            $($(#[$meta])* static $name: $type = $value;)*
        }
    };
}
