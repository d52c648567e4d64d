//! Errors of the core as Python exceptions.

use pyo3::exceptions::{
    PyBufferError, PyIndexError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use ultramarine::Error;

/// What a binding can fail with: an error of the core, or a Python exception that is
/// on its way already.
pub enum Fail {
    Core(Error),
    Py(PyErr),
}

/// Result of a binding.
pub type Res<T> = Result<T, Fail>;

impl From<Error> for Fail {
    fn from(error: Error) -> Fail {
        Fail::Core(error)
    }
}

impl From<PyErr> for Fail {
    fn from(error: PyErr) -> Fail {
        Fail::Py(error)
    }
}

impl From<Fail> for PyErr {
    #[cold]
    fn from(fail: Fail) -> PyErr {
        match fail {
            Fail::Py(error) => error,
            Fail::Core(error) => exception(&error),
        }
    }
}

/// The exception for an error of the core.
pub fn exception(error: &Error) -> PyErr {
    let text = error.to_string();
    match error.root() {
        Error::Value(_) => PyValueError::new_err(text),
        Error::Type(_) => PyTypeError::new_err(text),
        Error::Index(_) => PyIndexError::new_err(text),
        Error::Buffer(_) => PyBufferError::new_err(text),
        Error::Memory(_) => PyMemoryError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}

/// A `ValueError`.
#[cold]
pub fn value(text: impl Into<String>) -> Fail {
    Fail::Py(PyValueError::new_err(text.into()))
}

/// A `TypeError`.
#[cold]
pub fn type_(text: impl Into<String>) -> Fail {
    Fail::Py(PyTypeError::new_err(text.into()))
}

/// The name of an object's type, as error texts show it.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".into(), |n| n.to_string())
}

/// What an object shows of itself, for error texts; integers of thousands of digits do not.
pub fn shown(object: &Bound<'_, PyAny>) -> String {
    object.str().map_or_else(|_| format!("This {}", type_name(object)), |s| s.to_string())
}
