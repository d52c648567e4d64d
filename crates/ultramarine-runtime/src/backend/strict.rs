//! Strict mode: operations of other devices do not run on the CPU unless they are allowed by name.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{PoisonError, RwLock};

/// 0: not read yet, 1: off, 2: on.
static STRICT: AtomicU8 = AtomicU8::new(0);
static ALLOWED: RwLock<BTreeSet<String>> = RwLock::new(BTreeSet::new());

/// Returns true in strict mode: an operation that its device cannot run, and that has no decomposition, is an error
/// instead of falling back to the CPU. The mode is off unless the environment variable `ULTRAMARINE_STRICT` is `1` or
/// [`set_strict`] switched it on.
pub fn strict() -> bool {
    match STRICT.load(Ordering::Relaxed) {
        0 => {
            let on = std::env::var_os("ULTRAMARINE_STRICT").is_some_and(|v| v == "1");
            STRICT.store(1 + on as u8, Ordering::Relaxed);
            on
        }
        state => state == 2,
    }
}

/// Switches strict mode on or off for the process. Operations whose names are in `allow` may still
/// run on the CPU. Names are those of [`OpCount::op`](super::OpCount::op).
pub fn set_strict(on: bool, allow: &[&str]) {
    let mut allowed = ALLOWED.write().unwrap_or_else(PoisonError::into_inner);
    *allowed = allow.iter().map(|s| s.to_string()).collect();
    STRICT.store(1 + on as u8, Ordering::Relaxed);
}

/// Returns true if an operation may fall back from its device to the CPU.
pub fn may_fall_back(op: &str) -> bool {
    !strict() || ALLOWED.read().unwrap_or_else(PoisonError::into_inner).contains(op)
}
