//! Where devices may no longer be called: in a forked child, whose drivers' threads
//! stayed behind, and while the process exits, when drivers may be gone already. There
//! calls are errors that say so, and what would be freed is leaked.

use super::DeviceState;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicU8, Ordering};

const FORKED: u8 = 1;
const EXITING: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(0);

/// Why devices may not be called any more.
#[inline]
pub fn ended() -> Option<&'static str> {
    match STATE.load(Ordering::Relaxed) {
        0 => None,
        FORKED => Some("cannot be used in a forked child; start the process afresh (\"spawn\")"),
        _ => Some("cannot be used while the process exits"),
    }
}

/// An error when the device may not be called any more.
#[inline]
pub(super) fn check(device: &DeviceState) -> Result<()> {
    match ended() {
        Some(why) if !device.is_host() => Err(gone(device, why)),
        _ => Ok(()),
    }
}

/// As [`check`]; work under way may still be waited for while the process exits.
pub(super) fn check_wait(device: &DeviceState) -> Result<()> {
    if STATE.load(Ordering::Relaxed) == EXITING { Ok(()) } else { check(device) }
}

#[cold]
fn gone(device: &DeviceState, why: &str) -> Error {
    Error::Runtime(format!("{} {} {why}.", device.backend, device.device))
}

/// In a forked child: devices stay with the parent.
pub fn forked() {
    STATE.store(FORKED, Ordering::SeqCst);
}

/// Has devices drained before the process exits. Called once a backend is open: handlers
/// run in the reverse order, so this one before those of the backend's driver.
pub(super) fn register() {
    super::registration::register_fork_hook();
    extern "C" fn at_exit() {
        if STATE.load(Ordering::SeqCst) != FORKED {
            STATE.store(EXITING, Ordering::SeqCst);
            for device in super::gpus() {
                // Nobody is left to hear of a failure.
                let _ = device.drain();
            }
        }
    }
    // SAFETY: a plain function that lives for ever and does not unwind.
    unsafe { libc::atexit(at_exit) };
}
