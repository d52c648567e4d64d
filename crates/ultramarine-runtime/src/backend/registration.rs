//! The registration lock: one registration or load at a time, usable after a fork.

use crate::error::{Error, Result};
use crate::fork::{self, ForkStage, Hook};
use crate::sync::lock;
use std::cell::RefCell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// The thread that holds the registration lock.
static OWNER: Mutex<Option<ThreadId>> = Mutex::new(None);
static FREE: Condvar = Condvar::new();

/// The right to change the registry, released when dropped.
///
/// No lock is held meanwhile: what plugins do in their init takes as long as it takes, and a
/// process may fork during it. In the child no other thread's registration goes on.
pub struct Registration(());

impl Registration {
    /// Waits for the registration lock.
    ///
    /// # Errors
    /// [`Error::Runtime`] where this thread holds it already: from within a filter or a plugin.
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

    /// True if this thread holds the lock.
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
        // Only the calling thread is left: a registration of any other is over.
        let me = std::thread::current().id();
        if owner.is_some_and(|owner| owner != me) {
            *owner = None;
        }
    },
};

/// Has devices and the registration lock seen to at forks.
pub fn register_fork_hook() {
    fork::register(ForkStage::Backends, &FORK_HOOK);
}
