//! The interpreter's exit, and its signals while arrays are evaluated.

use pyo3::ffi;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use ultramarine::{Error, interrupt, leak_from_now_on};

/// The identity of the thread that handles signals.
static MAIN: AtomicU64 = AtomicU64::new(0);

/// Ends all work before the interpreter goes: the package registers it for the exit.
///
/// Waits for the work that streams have. After that accelerators get no new work, and deleters of
/// other libraries, which may need the interpreter, are not called any more.
#[pyfunction]
fn _shutdown(py: Python<'_>) -> PyResult<()> {
    py.detach(ultramarine::shutdown);
    leak_from_now_on();
    // Ctrl-C during the wait, for which the interpreter does not look after this.
    py.check_signals()
}

/// Returns true if Ctrl-C was pressed and its handler has not run. The handler itself stays to be run.
fn is_requested() -> bool {
    // SAFETY: may be called at any time.
    if unsafe { ffi::PyThread_get_thread_ident() } as u64 != MAIN.load(Ordering::Relaxed) {
        return false;
    }
    let occurred = Python::try_attach(|_| {
        // SAFETY: the interpreter lock is held. The question forgets the signal, so it is set again.
        unsafe {
            let occurred = ffi::PyOS_InterruptOccurred() != 0;
            if occurred {
                ffi::PyErr_SetInterrupt();
            }
            occurred
        }
    });
    occurred.unwrap_or(false)
}

/// Runs the handlers of signals. What they raise ends the evaluation.
fn handle() -> ultramarine::Result<()> {
    let outcome = Python::try_attach(|py| py.check_signals());
    outcome.unwrap_or(Ok(())).map_err(Error::other)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let threading = m.py().import("threading")?;
    let main: u64 = threading.call_method0("main_thread")?.getattr("ident")?.extract()?;
    MAIN.store(main, Ordering::Relaxed);
    ultramarine::set_interrupt_handler(interrupt::Handler { is_requested, handle });
    crate::functions!(m: _shutdown);
    Ok(())
}
