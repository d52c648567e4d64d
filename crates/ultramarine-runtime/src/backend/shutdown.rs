//! Shutdown: the two situations in which devices may no longer be called. In a forked child, the
//! drivers' threads do not exist. While the process exits, drivers may already be unloaded. In
//! both, calls return errors that say so, and objects that would be freed are leaked.
//!
//! A process that exits goes through two states:
//!
//! - `CLOSED`, set by [`close`]: devices get no new work, but their existing work may be waited for
//!   and read.
//! - `EXITING`, set in the exit handler of the C library: no function of a backend is called at
//!   all. Exit handlers of libraries that were loaded later, and destructors of the exiting thread,
//!   have run by then.

use super::DeviceState;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const OPEN: u8 = 0;
const FORKED: u8 = 1;
const CLOSED: u8 = 2;
const EXITING: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(OPEN);

/// Number of threads that are inside a backend call that compiles. Submissions and copies hold a
/// lock instead.
static COMPILING: AtomicUsize = AtomicUsize::new(0);

/// The longest wait at exit for calls that have not returned, such as the compilation of a kernel.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the reason why devices get no new work; `None` if they do.
#[inline]
pub fn ended() -> Option<&'static str> {
    match STATE.load(Ordering::SeqCst) {
        OPEN => None,
        FORKED => Some(
            "cannot be used in a forked child. Start new processes instead (multiprocessing: the method \"spawn\")",
        ),
        _ => Some("cannot be used while the process exits. Evaluate the arrays before"),
    }
}

/// Returns true if no function of a backend may be called at all.
#[inline]
pub fn is_gone() -> bool {
    matches!(STATE.load(Ordering::Relaxed), FORKED | EXITING)
}

/// Returns true while the process exits.
pub fn is_exiting() -> bool {
    matches!(STATE.load(Ordering::Relaxed), CLOSED | EXITING)
}

/// Returns true in a forked child whose parent had devices.
pub fn is_forked() -> bool {
    STATE.load(Ordering::Relaxed) == FORKED
}

/// Returns an error if the device gets no new work.
#[inline]
pub(super) fn check(device: &DeviceState) -> Result<()> {
    match ended() {
        Some(why) if !device.is_host() => Err(gone(device, why)),
        _ => Ok(()),
    }
}

/// Like [`check`], but for reading and waiting, which a closed device still allows.
pub(super) fn check_wait(device: &DeviceState) -> Result<()> {
    if STATE.load(Ordering::Relaxed) == CLOSED { Ok(()) } else { check(device) }
}

#[cold]
fn gone(device: &DeviceState, why: &str) -> Error {
    Error::Runtime(format!("{} {} {why}.", device.backend, device.device).into())
}

/// A guard for a call that compiles: [`quiesce`] waits for it.
pub(super) struct Compiling(());

impl Compiling {
    /// Registers the calling thread as compiling.
    ///
    /// # Errors
    /// Those of [`check`].
    pub fn enter(device: &DeviceState) -> Result<Compiling> {
        COMPILING.fetch_add(1, Ordering::SeqCst);
        // Check the state after counting. `close` sets the state before it reads the count, so one
        // of the two sees the other.
        let entered = Compiling(());
        check(device).map(|()| entered)
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        COMPILING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Called in a forked child: devices stay with the parent.
pub fn forked() {
    STATE.store(FORKED, Ordering::SeqCst);
}

/// From here on, devices get no new work.
pub fn close() {
    let _ = STATE.compare_exchange(OPEN, CLOSED, Ordering::SeqCst, Ordering::SeqCst);
}

/// Waits, for a bounded time, until all calls of backends that began before [`close`] have
/// returned.
pub fn quiesce() {
    let deadline = Instant::now() + PATIENCE;
    let busy = || {
        COMPILING.load(Ordering::SeqCst) > 0 || super::gpus().iter().any(|d| d.is_being_called())
    };
    while busy() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Registers an exit handler for programs that exit without [`crate::stream::shutdown`]. It waits
/// for calls that have not returned, and blocks new ones. It is registered once a backend is open,
/// so that it runs before the exit handlers of the backend's driver.
pub(super) fn register() {
    super::registration::register_fork_hook();
    extern "C" fn at_exit() {
        if !is_forked() {
            STATE.store(EXITING, Ordering::SeqCst);
            quiesce();
        }
    }
    // SAFETY: a plain function that is never unloaded and does not unwind.
    unsafe { libc::atexit(at_exit) };
}
