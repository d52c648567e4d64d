//! Printing and its options.

use crate::error::Res;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicI32, Ordering};
use ultramarine::{Array, print};

/// What `repr` shows.
pub fn repr(array: &Array) -> Res<String> {
    Ok(print::format(array, print::print_options())?)
}

/// How numbers are printed: `precision` digits behind the point; -1: six in all.
#[pyclass(name = "PrintOptions", module = "ultramarine", frozen)]
pub struct PyPrintOptions(AtomicI32);

#[pymethods]
impl PyPrintOptions {
    #[new]
    #[pyo3(signature = (precision=-1))]
    fn new(precision: i32) -> PyPrintOptions {
        PyPrintOptions(precision.into())
    }

    /// Digits behind the point; -1: six digits in all.
    #[getter]
    fn precision(&self) -> i32 {
        self.0.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_precision(&self, precision: i32) {
        self.0.store(precision, Ordering::Relaxed);
    }
}

/// A context manager that restores the options it replaced.
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

/// Sets how numbers are printed: with `precision` digits behind the point; -1: six digits
/// in all.
#[pyfunction]
#[pyo3(signature = (precision=-1))]
fn set_printoptions(precision: i32) {
    print::set_print_options(print::PrintOptions { precision });
}

/// The options that numbers are printed with.
#[pyfunction]
fn get_printoptions() -> PyPrintOptions {
    PyPrintOptions(print::print_options().precision.into())
}

/// A context manager in which numbers are printed with other options.
#[pyfunction]
#[pyo3(signature = (precision=-1))]
fn printoptions(precision: i32) -> Context {
    Context { within: precision, former: AtomicI32::new(-1) }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyPrintOptions>()?;
    m.add_class::<Context>()?;
    crate::functions!(m: set_printoptions get_printoptions printoptions);
    Ok(())
}
