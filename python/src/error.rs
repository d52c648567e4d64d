//! Errors of the core as Python exceptions.

use pyo3::exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use ultramarine::Error;

/// Failure of a binding: an error of the core, or a Python exception that is
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

/// For functions that are handed to the core: the exception comes back as it is.
impl From<Fail> for Error {
    fn from(fail: Fail) -> Error {
        match fail {
            Fail::Py(error) => Error::other(error),
            Fail::Core(error) => error,
        }
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
        Error::Buffer(_) => raised(0, text),
        Error::BufferDevice(_) => raised(1, text),
        Error::Memory(_) => PyMemoryError::new_err(text),
        Error::Other(cause) => match cause.downcast_ref::<PyErr>() {
            Some(error) => Python::attach(|py| error.clone_ref(py)),
            None => PyRuntimeError::new_err(text),
        },
        _ => PyRuntimeError::new_err(text),
    }
}

/// `InterchangeError` and `InterchangeDeviceError`, which have several bases each: defined in
/// Python (`ultramarine/_errors.py`).
static CLASSES: PyOnceLock<[Py<PyType>; 2]> = PyOnceLock::new();

fn raised(which: usize, text: String) -> PyErr {
    Python::attach(|py| {
        let find = || -> PyResult<[Py<PyType>; 2]> {
            let module = py.import("ultramarine._errors")?;
            let class = |name| -> PyResult<Py<PyType>> {
                Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind())
            };
            Ok([class("InterchangeError")?, class("InterchangeDeviceError")?])
        };
        match CLASSES.get_or_try_init(py, find) {
            Ok(all) => PyErr::from_type(all[which].bind(py).clone(), text),
            Err(error) => error,
        }
    })
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

/// The representation of an object, for messages; integers of thousands of digits do not.
pub fn shown(object: &Bound<'_, PyAny>) -> String {
    object.str().map_or_else(|_| format!("This {}", type_name(object)), |s| s.to_string())
}
