//! Determinism as a setting of the process or of a device, and as a scope. Operations keep the one that holds where they are
//! called ([`super::placement::Place`]), and so do their derivatives and traces of compiled functions.

use super::per_device::PerDevice;
use crate::{device::Device, stream::Stream};
use std::cell::Cell;
use std::sync::LazyLock;
use ultramarine_runtime::log::{Level, log};

static SETTING: LazyLock<PerDevice<bool>> = LazyLock::new(|| {
    let said = std::env::var("ULTRAMARINE_DETERMINISTIC").unwrap_or_default();
    PerDevice::new(match said.trim() {
        "" | "0" => false,
        "1" => true,
        other => {
            let text = format!(
                "ULTRAMARINE_DETERMINISTIC is \"{other}\", which counts as 1. Set it to 0 or 1."
            );
            log(Level::Warning, text);
            true
        }
    })
});

thread_local! {
    static SCOPED: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Returns true if operations on a device have to be reproducible: equal calls give bitwise
/// identical results. Without a device it is the setting of all devices without one of their own.
/// In a [`DeterministicScope`] it is the scope's.
pub fn deterministic(device: Option<Device>) -> bool {
    SCOPED.get().unwrap_or_else(|| SETTING.get(device))
}

/// Sets whether operations on a device, or without one on all devices, have to be reproducible, for
/// every thread: equal calls then give bitwise identical results. A [`DeterministicScope`] has
/// precedence. Returns the former setting.
///
/// The setting holds for operations that are called from now on. If a device does not promise
/// reproducible results, an operation whose bits may depend on the order of its work is an error at
/// evaluation, which names both. The first setting is `ULTRAMARINE_DETERMINISTIC` (`0` or `1`),
/// else off.
///
/// # Examples
/// ```
/// use ultramarine::{deterministic, set_deterministic};
///
/// assert!(!set_deterministic(true, None));
/// assert!(deterministic(None));
/// ```
pub fn set_deterministic(on: bool, device: Option<Device>) -> bool {
    SETTING.set(on, device)
}

/// The setting of [`set_deterministic`] for this thread, on all devices, while the scope lives.
/// Scopes nest; drop them in the reverse order.
///
/// ```
/// use ultramarine::{DeterministicScope, deterministic};
/// let before = deterministic(None);
/// {
///     let _scope = DeterministicScope::new(true);
///     assert!(deterministic(None));
/// }
/// assert_eq!(deterministic(None), before);
/// ```
#[derive(Debug)]
pub struct DeterministicScope {
    before: Option<bool>,
    // Belongs to the thread that made it.
    _thread: std::marker::PhantomData<*const ()>,
}

impl DeterministicScope {
    /// Enters a scope with this setting, which ends when the scope is dropped.
    pub fn new(on: bool) -> DeterministicScope {
        DeterministicScope { before: SCOPED.replace(Some(on)), _thread: std::marker::PhantomData }
    }
}

impl Drop for DeterministicScope {
    fn drop(&mut self) {
        SCOPED.set(self.before);
    }
}

/// The setting for an operation on a stream.
#[inline]
pub(crate) fn of_operation(stream: Stream) -> bool {
    match SCOPED.get().or_else(|| SETTING.common()) {
        Some(on) => on,
        None => SETTING.get(Some(stream.device)),
    }
}

/// Its part of a trace's key.
pub(crate) fn key() -> u64 {
    match SCOPED.get() {
        Some(on) => on.into(),
        None => SETTING.key(),
    }
}
