//! Where devices may no longer be called: in a forked child, whose drivers' threads stayed behind, and while the process
//! exits, when drivers may be gone already. There calls are errors that say so, and what would be freed is leaked.
//!
//! A process that exits goes through two states. `CLOSED`, by [`close`]: devices get no new work, but what they have may be
//! waited for and read. `EXITING`, in the handler of the C library: no function of a backend is called at all, since
//! handlers of libraries that were loaded later, and destructors of the thread that exits, have run before.

use super::DeviceState;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const OPEN: u8 = 0;
const FORKED: u8 = 1;
const CLOSED: u8 = 2;
const EXITING: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(OPEN);

/// Threads that are inside of a backend to have something compiled. Submissions and copies hold a lock instead.
static COMPILING: AtomicUsize = AtomicUsize::new(0);

/// Longest wait for calls that are under way when the process exits: a kernel that is being compiled.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why devices get no new work any more.
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

/// Returns true where no function of a backend may be called at all.
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

/// An error when the device gets no new work.
#[inline]
pub(super) fn check(device: &DeviceState) -> Result<()> {
    match ended() {
        Some(why) if !device.is_host() => Err(gone(device, why)),
        _ => Ok(()),
    }
}

/// As [`check`], for reading and waiting: a closed device may finish what it has.
pub(super) fn check_wait(device: &DeviceState) -> Result<()> {
    if STATE.load(Ordering::Relaxed) == CLOSED { Ok(()) } else { check(device) }
}

#[cold]
fn gone(device: &DeviceState, why: &str) -> Error {
    Error::Runtime(format!("{} {} {why}.", device.backend, device.device).into())
}

/// A call that compiles: [`quiesce`] waits for it.
pub(super) struct Compiling(());

impl Compiling {
    /// Enters such a call.
    ///
    /// # Errors
    /// As [`check`].
    pub fn enter(device: &DeviceState) -> Result<Compiling> {
        COMPILING.fetch_add(1, Ordering::SeqCst);
        // Behind the count, as `close` looks at the count behind the state: one of both sees the other.
        let entered = Compiling(());
        check(device).map(|()| entered)
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        COMPILING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// In a forked child: devices stay with the parent.
pub fn forked() {
    STATE.store(FORKED, Ordering::SeqCst);
}

/// Gives devices no new work from here on.
pub fn close() {
    let _ = STATE.compare_exchange(OPEN, CLOSED, Ordering::SeqCst, Ordering::SeqCst);
}

/// Waits until no thread is inside of a backend that was given work before [`close`], for a bounded time.
pub fn quiesce() {
    let deadline = Instant::now() + PATIENCE;
    let busy = || {
        COMPILING.load(Ordering::SeqCst) > 0 || super::gpus().iter().any(|d| d.is_being_called())
    };
    while busy() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The last net, for programs that exit without [`crate::stream::shutdown`]: lets calls that are under way end, and makes
/// none. Registered once a backend is open, so that it runs before the handlers of the backend's driver.
pub(super) fn register() {
    super::registration::register_fork_hook();
    extern "C" fn at_exit() {
        if !is_forked() {
            STATE.store(EXITING, Ordering::SeqCst);
            quiesce();
        }
    }
    // SAFETY: a plain function that lives for ever and does not unwind.
    unsafe { libc::atexit(at_exit) };
}
