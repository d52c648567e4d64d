//! Backends found and loaded at run time.

/// Loads what can be found, at the first need of a device.
pub(super) fn autoload() {}

/// What to do where a device is missing.
pub(super) fn hint() -> String {
    String::new()
}
