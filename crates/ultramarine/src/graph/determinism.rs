//! Determinism: a setting of the process or of a device, and a scope. An operation keeps the
//! setting in force where it is called ([`super::placement::Place`]). Its derivatives and traces of
//! compiled functions keep it too.

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

/// Returns true if operations on a device have to be reproducible, so that equal calls give bitwise
/// identical results. Without a device, returns the setting of all devices that have none of their
/// own. Inside a [`DeterministicScope`], returns the scope's setting.
pub fn deterministic(device: Option<Device>) -> bool {
    SCOPED.get().unwrap_or_else(|| SETTING.get(device))
}

/// Sets whether operations have to be reproducible, for every thread: on one device, or on all
/// devices if `device` is `None`. Equal calls of reproducible operations give bitwise identical
/// results. A [`DeterministicScope`] takes precedence. Returns the former setting.
///
/// The setting affects operations that are called from now on. Some operations give results that
/// depend on the order of their work. On a device that does not promise reproducible results, the
/// evaluation of such an operation fails with an error that names the operation and the device. The
/// initial setting is `ULTRAMARINE_DETERMINISTIC` (`0` or `1`), off by default.
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

/// Sets determinism for this thread, on all devices, while the scope lives; see
/// [`set_deterministic`]. Scopes nest; drop them in the reverse order.
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
    // The scope belongs to the thread that made it.
    _thread: std::marker::PhantomData<*const ()>,
}

impl DeterministicScope {
    /// Enters a scope with this setting. The scope ends when it is dropped.
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

/// The setting as part of a trace's key.
pub(crate) fn key() -> u64 {
    match SCOPED.get() {
        Some(on) => on.into(),
        None => SETTING.key(),
    }
}
