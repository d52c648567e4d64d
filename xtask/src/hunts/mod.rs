//! Searches for faults beyond the tests: fuzzing, sanitizers, a model checker, a soak.

pub mod fuzz;
pub mod loom;
pub mod sanitize;
mod sid;
pub mod soak;
