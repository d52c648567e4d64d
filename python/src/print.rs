//! Printing and its options.

use crate::error::Res;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicI32, Ordering};
use ultramarine::{Array, print};

/// The text of `repr`.
pub fn repr(array: &Array) -> Res<String> {
    Ok(print::format(array, print::print_options())?)
}

/// Options of printing numbers.
///
/// Args:
///     precision (int): Digits behind the decimal point; -1 for six digits in all.
///
/// Example:
///     >>> mx.set_printoptions(precision=3)
///     >>> mx.get_printoptions().precision
///     3
///     >>> mx.set_printoptions(precision=-1)
#[pyclass(name = "PrintOptions", module = "ultramarine", frozen)]
pub struct PyPrintOptions(AtomicI32);

#[pymethods]
impl PyPrintOptions {
    #[new]
    #[pyo3(signature = (precision=-1), text_signature = "(precision=-1)")]
    fn new(precision: i32) -> PyPrintOptions {
        PyPrintOptions(precision.into())
    }

    /// int: Digits behind the decimal point; -1 for six digits in all.
    #[getter]
    fn precision(&self) -> i32 {
        self.0.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_precision(&self, precision: i32) {
        self.0.store(precision, Ordering::Relaxed);
    }
}

/// Context manager that restores the options that it replaced.
///
/// Args:
///     options (PrintOptions): Options within the context.
#[pyclass(name = "_PrintOptionsContext", module = "ultramarine", frozen)]
pub struct Context {
    within: i32,
    former: AtomicI32,
}

#[pymethods]
impl Context {
    #[new]
    fn new(options: &Bound<'_, PyPrintOptions>) -> Context {
        Context { within: options.get().precision(), former: AtomicI32::new(-1) }
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        let this = slf.get();
        this.former.store(print::print_options().precision, Ordering::Relaxed);
        print::set_print_options(print::PrintOptions { precision: this.within });
        slf
    }

    #[pyo3(signature = (*args))]
    fn __exit__(&self, args: &Bound<'_, PyAny>) {
        let _ = args;
        let precision = self.former.load(Ordering::Relaxed);
        print::set_print_options(print::PrintOptions { precision });
    }
}

/// Sets the options of printing numbers.
///
/// Args:
///     precision (int): Digits behind the decimal point; -1 for six digits in all.
///
/// Example:
///     >>> mx.set_printoptions(precision=2)
///     >>> mx.array(3.14159)
///     array(3.14, dtype=float32)
///     >>> mx.set_printoptions(precision=-1)
#[pyfunction]
#[pyo3(signature = (precision=-1), text_signature = "(precision=-1)")]
fn set_printoptions(precision: i32) {
    print::set_print_options(print::PrintOptions { precision });
}

/// Returns the options of printing numbers.
///
/// Returns:
///     PrintOptions: A copy of the options.
///
/// Example:
///     >>> mx.get_printoptions().precision
///     -1
#[pyfunction]
fn get_printoptions() -> PyPrintOptions {
    PyPrintOptions(print::print_options().precision.into())
}

/// Returns a context manager in which numbers are printed with other options.
///
/// Args:
///     precision (int): Digits behind the decimal point; -1 for six digits in all.
///
/// Returns:
///     _PrintOptionsContext: Context manager.
///
/// Example:
///     >>> with mx.printoptions(precision=2):
///     ...     print(mx.array(3.14159))
///     array(3.14, dtype=float32)
#[pyfunction]
#[pyo3(signature = (precision=-1), text_signature = "(precision=-1)")]
fn printoptions(precision: i32) -> Context {
    Context { within: precision, former: AtomicI32::new(-1) }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyPrintOptions>()?;
    m.add_class::<Context>()?;
    crate::functions!(m: set_printoptions get_printoptions printoptions);
    Ok(())
}
