//! DLPack in Python: `from_dlpack`, `__dlpack__`, and the capsules between them.
//!
//! ```text
//! capsule.rs   names and destructors of capsules
//! consume.rs   tensors of other libraries as arrays: capsules, producers
//! produce.rs   __dlpack__ and __dlpack_device__
//! ```

mod capsule;
mod consume;
mod produce;

pub use consume::{from_capsule, from_producer, is_capsule};

use pyo3::prelude::*;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    consume::register(m)
}
