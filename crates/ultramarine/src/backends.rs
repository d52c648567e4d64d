//! The backends: which are loaded, and how more are found.
//!
//! A backend is a table of C functions. The CPU's is built in; [`register`] adds one that is linked into the
//! program.

pub use crate::backend::{BackendInfo, backend_of, backends, by_name, register};
use crate::device::DeviceType;
pub use crate::device::device_count;

/// Whether there is a device of a type.
pub fn is_available(kind: DeviceType) -> bool {
    device_count(kind) > 0
}
