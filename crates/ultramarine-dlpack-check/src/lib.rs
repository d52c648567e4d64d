//! The native module of the DLPack conformance suite `ultramarine_dlpack_check`: a producer of
//! tensors, capsules and exchange tables with arbitrary fields, and a consumer that reads every
//! field. No Python runs in its deleters and destructors, so pending exceptions stay pending.
//!
//! ```text
//! memory.rs    memory between canaries, or before an inaccessible page
//! tensor.rs    the producer: every field free, deleters and destructors counted
//! taken.rs     the consumer: fields of a capsule's tensor, and its deleter on any thread
//! table.rs     calls of a library's exchange table
//! fake.rs      exchange tables with wrong versions, missing slots and failing slots
//! ```

// Public items are used only from Python, and `_lab.pyi` documents them.
#![allow(missing_docs)]

#[cfg(unix)]
mod fake;
#[cfg(unix)]
mod memory;
#[cfg(unix)]
mod table;
#[cfg(unix)]
mod taken;
#[cfg(unix)]
mod tensor;

use pyo3::prelude::*;

/// The calling thread's identifier, as `threading.get_ident` returns it.
#[cfg(unix)]
fn this_thread() -> u64 {
    // SAFETY: no arguments, no failure.
    unsafe { libc::pthread_self() as u64 }
}

/// Removes the last object of a list and drops this reference to it while a `KeyError` is pending.
/// Returns the name of the exception's type that is pending afterwards.
#[cfg(unix)]
#[pyfunction]
fn drop_pending(py: Python<'_>, list: &Bound<'_, pyo3::types::PyList>) -> PyResult<Option<String>> {
    let object = list.call_method0("pop")?;
    // SAFETY: a live exception type and a static text; the interpreter lock is held.
    unsafe { pyo3::ffi::PyErr_SetString(pyo3::ffi::PyExc_KeyError, c"pending".as_ptr()) };
    drop(object);
    let after = PyErr::take(py);
    after.map(|e| e.get_type(py).name().map(|n| n.to_string())).transpose()
}

/// The module `ultramarine_dlpack_check._lab`.
#[cfg(unix)]
#[pymodule]
fn _lab(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<memory::PyMemory>()?;
    m.add_class::<tensor::Tensor>()?;
    m.add_class::<taken::Taken>()?;
    m.add_class::<table::Table>()?;
    m.add_function(wrap_pyfunction!(drop_pending, m)?)?;
    m.add_function(wrap_pyfunction!(taken::inspect, m)?)?;
    m.add_function(wrap_pyfunction!(taken::take, m)?)?;
    m.add_function(wrap_pyfunction!(table::table, m)?)?;
    m.add_function(wrap_pyfunction!(fake::make_table, m)?)?;
    m.add_function(wrap_pyfunction!(fake::table_calls, m)?)?;
    Ok(())
}

/// The module on other systems, where its import fails.
#[cfg(not(unix))]
#[pymodule]
fn _lab(_m: &Bound<'_, PyModule>) -> PyResult<()> {
    const TEXT: &str = "ultramarine_dlpack_check needs a system with POSIX memory mappings";
    Err(pyo3::exceptions::PyImportError::new_err(TEXT))
}
