//! The registration lock: only one registration or load runs at a time. The lock stays usable after
//! a fork.

use crate::error::{Error, Result};
use crate::fork::{self, ForkStage, Hook};
use crate::sync::lock;
use std::cell::RefCell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// The thread that holds the registration lock.
static OWNER: Mutex<Option<ThreadId>> = Mutex::new(None);
static FREE: Condvar = Condvar::new();

/// The right to change the registry. It ends when this is dropped.
///
/// No mutex is held meanwhile, because a plugin's init may take any time, and the process may fork
/// during it. In the child the registrations of other threads do not continue.
pub struct Registration(());

impl Registration {
    /// Waits for the registration lock.
    ///
    /// # Errors
    /// [`Error::Runtime`] if this thread holds the lock already, because the call comes from within
    /// a filter or a plugin.
    pub fn begin() -> Result<Registration> {
        register_fork_hook();
        let me = std::thread::current().id();
        let mut owner = lock(&OWNER);
        while let Some(other) = *owner {
            if other == me {
                return Err(Error::Runtime("Backends cannot be loaded while a backend is loading. Load them one after the other.".into()));
            }
            owner = FREE.wait(owner).unwrap_or_else(PoisonError::into_inner);
        }
        *owner = Some(me);
        Ok(Registration(()))
    }

    /// Returns true if this thread holds the lock.
    #[cfg(feature = "loader")]
    pub fn is_held_here() -> bool {
        *lock(&OWNER) == Some(std::thread::current().id())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        *lock(&OWNER) = None;
        FREE.notify_all();
    }
}

thread_local! {
    static HELD: RefCell<Option<MutexGuard<'static, Option<ThreadId>>>> =
        const { RefCell::new(None) };
}

static FORK_HOOK: Hook = Hook {
    prepare: || {
        let guard = lock(&OWNER);
        fork::keep(&HELD, guard);
    },
    parent: || drop(fork::take(&HELD)),
    child: || {
        super::shutdown::forked();
        let Some(mut owner) = fork::take(&HELD) else {
            return;
        };
        // Only the calling thread exists in the child, so a registration of any other thread is
        // over.
        let me = std::thread::current().id();
        if owner.is_some_and(|owner| owner != me) {
            *owner = None;
        }
    },
};

/// Registers a fork hook for devices and the registration lock.
pub fn register_fork_hook() {
    fork::register(ForkStage::Backends, &FORK_HOOK);
}
