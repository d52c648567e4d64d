//! DLPack in Python: `from_dlpack`, `__dlpack__`, the C exchange API, and the capsules between them.
//!
//! ```text
//! calls.rs     functions without tuples and dicts for arguments, and calls of foreign ones
//! capsule.rs   names and destructors of capsules
//! consume.rs   tensors of other libraries as arrays: capsules, producers
//! foreign.rs   ... by the tables of their types
//! produce.rs   __dlpack__ and __dlpack_device__
//! exchange.rs  the table of our class
//! streams.rs   streams of consumers that can be kept alive
//! ```

pub mod calls;
mod capsule;
mod consume;
mod exchange;
mod foreign;
mod produce;
mod streams;

pub use consume::{from_capsule, from_producer, is_capsule};

use crate::array::PyArray;
use pyo3::prelude::*;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = m.py().get_type::<PyArray>();
    produce::register(&class)?;
    exchange::register(&class)?;
    consume::register(m)
}
