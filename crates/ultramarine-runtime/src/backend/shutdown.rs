//! Prevents calls of devices where they are not allowed: in a forked child, where the drivers'
//! threads are missing, and while the process exits, when drivers may be gone already. Calls then
//! fail with an error that names the reason, and objects are leaked instead of freed.
//!
//! A process that exits goes through two states. `CLOSED` is set by [`close`]: devices get no new
//! work, but existing work can be waited for and read. `EXITING` is set in the C library's exit
//! handler: no function of a backend is called at all, because the handlers of libraries that were
//! loaded later, and destructors of the exiting thread, have already run.

use super::DeviceState;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const OPEN: u8 = 0;
const FORKED: u8 = 1;
const CLOSED: u8 = 2;
const EXITING: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(OPEN);

/// Number of threads that are compiling inside a backend. Submissions and copies hold a lock
/// instead.
static COMPILING: AtomicUsize = AtomicUsize::new(0);

/// Limit on the time that the exit of the process waits for running calls, such as the compilation
/// of a kernel.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the reason why devices get no new work, or `None` if they do.
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

/// Returns true if no function of a backend may be called.
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

/// Checks for reading and waiting: unlike [`check`], it allows a closed device to finish its work.
pub(super) fn check_wait(device: &DeviceState) -> Result<()> {
    if STATE.load(Ordering::Relaxed) == CLOSED { Ok(()) } else { check(device) }
}

#[cold]
fn gone(device: &DeviceState, why: &str) -> Error {
    Error::Runtime(format!("{} {} {why}.", device.backend, device.device).into())
}

/// A call that compiles. [`quiesce`] waits for it.
pub(super) struct Compiling(());

impl Compiling {
    /// Begins such a call.
    ///
    /// # Errors
    /// As [`check`].
    pub fn enter(device: &DeviceState) -> Result<Compiling> {
        COMPILING.fetch_add(1, Ordering::SeqCst);
        // Check after counting. `close` reads the count after it sets the state, so either `check`
        // sees the state, or `close` sees the count.
        let entered = Compiling(());
        check(device).map(|()| entered)
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        COMPILING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Called in a forked child: the devices belong to the parent.
pub fn forked() {
    STATE.store(FORKED, Ordering::SeqCst);
}

/// From now on, devices get no new work.
pub fn close() {
    let _ = STATE.compare_exchange(OPEN, CLOSED, Ordering::SeqCst, Ordering::SeqCst);
}

/// Waits for a limited time until no thread is in a backend call that began before [`close`].
pub fn quiesce() {
    let deadline = Instant::now() + PATIENCE;
    let busy = || {
        COMPILING.load(Ordering::SeqCst) > 0 || super::gpus().iter().any(|d| d.is_being_called())
    };
    while busy() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The fallback for programs that exit without [`crate::stream::shutdown`]: it waits for running
/// calls, and prevents new ones. It is registered after a backend was opened, so that it runs
/// before the exit handlers of the backend's driver.
pub(super) fn register() {
    super::registration::register_fork_hook();
    extern "C" fn at_exit() {
        if !is_forked() {
            STATE.store(EXITING, Ordering::SeqCst);
            quiesce();
        }
    }
    // SAFETY: the function has a static lifetime, and does not unwind.
    unsafe { libc::atexit(at_exit) };
}
