//! Counters and limits of the caching allocator. All figures are bytes.

use crate::error::type_;
use pyo3::prelude::*;
use ultramarine::memory;

/// A number of bytes.
struct Bytes(usize);

impl FromPyObject<'_, '_> for Bytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match object.extract::<usize>() {
            Ok(n) => Ok(Bytes(n)),
            Err(_) => Err(type_("expected a number of bytes, which is not negative").into()),
        }
    }
}

/// Bytes of arrays that exist.
#[pyfunction]
fn get_active_memory() -> usize {
    memory::active()
}

/// The most bytes that arrays took since the start or the last `reset_peak_memory`.
#[pyfunction]
fn get_peak_memory() -> usize {
    memory::peak()
}

/// Starts the peak afresh.
#[pyfunction]
fn reset_peak_memory() {
    memory::reset_peak();
}

/// Bytes that are kept for reuse.
#[pyfunction]
fn get_cache_memory() -> usize {
    memory::cached()
}

/// Sets how many bytes arrays and cache should take at most; returns the former limit.
#[pyfunction]
fn set_memory_limit(limit: Bytes) -> usize {
    memory::set_memory_limit(limit.0)
}

/// How many bytes arrays and cache should take at most.
#[pyfunction]
fn get_memory_limit() -> usize {
    memory::memory_limit()
}

/// Sets how many bytes may be kept for reuse; returns the former limit.
#[pyfunction]
fn set_cache_limit(limit: Bytes) -> usize {
    memory::set_cache_limit(limit.0)
}

/// Accepted and without effect: no device here pins memory. Returns 0, the former limit.
#[pyfunction]
fn set_wired_limit(limit: Bytes) -> usize {
    let _ = limit.0;
    0
}

/// Gives the memory that is kept for reuse back to the system.
#[pyfunction]
fn clear_cache(py: Python<'_>) {
    py.detach(memory::clear_cache);
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: get_active_memory get_peak_memory reset_peak_memory get_cache_memory
        set_memory_limit get_memory_limit set_cache_limit set_wired_limit clear_cache);
    Ok(())
}
