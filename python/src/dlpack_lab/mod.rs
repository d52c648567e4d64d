//! Tensors, capsules and exchange tables that say whatever a test wants, and a consumer that
//! looks at everything: what `python -m ultramarine.dlpack_check` judges libraries with. No
//! Python runs in its deleters and destructors, so exceptions stay as they are.
//!
//! ```text
//! memory.rs    memory with canaries around it, or with a page behind it that nobody may touch
//! tensor.rs    the producer: every field free, deleters and destructors counted
//! taken.rs     the consumer: what a capsule holds, and its deleter on any thread
//! table.rs     calls of a library's exchange table
//! fake.rs      exchange tables that lie and fail
//! ```

mod fake;
mod memory;
mod table;
mod taken;
mod tensor;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// A number for the calling thread, as `threading.get_ident` gives it.
fn this_thread() -> u64 {
    // SAFETY: asks for the calling thread's name; no arguments, no failure.
    unsafe { libc::pthread_self() as u64 }
}

/// Takes the last object of a list and drops this reference to it while a `KeyError` is pending.
/// Returns the name of the exception's type that is pending afterwards.
#[pyfunction]
fn drop_pending(py: Python<'_>, list: &Bound<'_, PyList>) -> PyResult<Option<String>> {
    let object = list.call_method0("pop")?;
    // SAFETY: a live exception type and a static text; the interpreter lock is held.
    unsafe { ffi::PyErr_SetString(ffi::PyExc_KeyError, c"pending".as_ptr()) };
    drop(object);
    let after = PyErr::take(py);
    after.map(|e| e.get_type(py).name().map(|n| n.to_string())).transpose()
}

/// The module `_dlpack_lab`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let lab = PyModule::new(m.py(), "_dlpack_lab")?;
    lab.add_class::<memory::PyMemory>()?;
    lab.add_class::<tensor::Tensor>()?;
    lab.add_class::<taken::Taken>()?;
    lab.add_class::<table::Table>()?;
    lab.add_function(wrap_pyfunction!(drop_pending, &lab)?)?;
    lab.add_function(wrap_pyfunction!(taken::inspect, &lab)?)?;
    lab.add_function(wrap_pyfunction!(taken::take, &lab)?)?;
    lab.add_function(wrap_pyfunction!(table::table, &lab)?)?;
    lab.add_function(wrap_pyfunction!(fake::make_table, &lab)?)?;
    lab.add_function(wrap_pyfunction!(fake::table_calls, &lab)?)?;
    // Not `add_submodule`: `from _core import *` would find it.
    m.setattr("_dlpack_lab", lab)
}
