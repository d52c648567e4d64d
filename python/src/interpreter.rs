//! The interpreter's exit.

use pyo3::prelude::*;
use ultramarine::leak_from_now_on;

/// Ends all work before the interpreter goes: the package registers it for the exit.
///
/// Waits for the work that streams have. After that accelerators get no new work, and deleters of
/// other libraries, which may need the interpreter, are not called any more.
#[pyfunction]
fn _shutdown(py: Python<'_>) {
    py.detach(ultramarine::shutdown);
    leak_from_now_on();
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: _shutdown);
    Ok(())
}
