//! One registration or load at a time, usable after a fork.

use crate::{
    error::{Error, Result},
    stream::lock,
};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// The thread whose turn it is.
static OWNER: Mutex<Option<ThreadId>> = Mutex::new(None);
static FREE: Condvar = Condvar::new();

/// The right to change the registry. Given back when dropped.
///
/// No lock is held meanwhile: what plugins do in their init takes as long as it takes, and a
/// process may fork during it. In the child nobody else's turn goes on.
pub(super) struct Turn(());

impl Turn {
    /// Waits until it is this thread's turn.
    ///
    /// # Errors
    /// [`Error::Runtime`] where it is already: from within a filter or a plugin.
    pub(super) fn take() -> Result<Turn> {
        #[cfg(unix)]
        crate::eval::fork::register();
        let me = std::thread::current().id();
        let mut owner = lock(&OWNER);
        while let Some(other) = *owner {
            if other == me {
                return Err(Error::Runtime(
                    "backends cannot be loaded from within a load".to_owned(),
                ));
            }
            owner = FREE.wait(owner).unwrap_or_else(PoisonError::into_inner);
        }
        *owner = Some(me);
        Ok(Turn(()))
    }

    /// Whether this thread has it.
    #[cfg(feature = "loader")]
    pub(super) fn is_mine() -> bool {
        *lock(&OWNER) == Some(std::thread::current().id())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *lock(&OWNER) = None;
        FREE.notify_all();
    }
}

/// Held over a fork, so that the child does not find it locked by a thread that it lacks.
pub(super) type Held = MutexGuard<'static, Option<ThreadId>>;

pub(super) fn hold() -> Held {
    lock(&OWNER)
}

/// In a forked child only the calling thread is left: the turn of any other is over.
pub(super) fn after_fork_in_child(mut held: Held) {
    let me = std::thread::current().id();
    if held.is_some_and(|owner| owner != me) {
        *held = None;
    }
}
