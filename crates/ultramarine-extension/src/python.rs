//! Arrays as arguments and results of Python functions that are made with PyO3 (feature `python`).
//!
//! ```ignore
//! use pyo3::prelude::*;
//! use ultramarine_extension::{Array, Place, python};
//!
//! #[pyfunction]
//! #[pyo3(signature = (x, *, stream = Place::Default))]
//! fn square_plus_one(x: Array, stream: Place) -> ultramarine_extension::Result<Array> {
//!     ultramarine_extension::apply_one(SquarePlusOne, &[&x], stream)
//! }
//!
//! #[pymodule]
//! fn my_operations(module: &Bound<'_, PyModule>) -> PyResult<()> {
//!     python::connect_python(module.py())?;
//!     module.add_function(wrap_pyfunction!(square_plus_one, module)?)
//! }
//! ```
//!
//! An argument of type [`Array`] takes whatever `ultramarine.asarray` takes: arrays, numbers, sequences, arrays of others. A
//! result of that type is an `ultramarine.array`. An argument of type [`Place`] takes what `stream=` takes. Errors become
//! the exceptions that Ultramarine raises itself.

use crate::{array::Array, error::Error, host, place::Place};
use pyo3::exceptions::{PyImportError, PyRuntimeError, PySystemError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::c_void;
use std::sync::OnceLock;
use ultramarine_abi::{
    extension::{PYTHON_CAPSULE, PlaceCode, PythonApi},
    read_sized, status,
};

static API: OnceLock<PythonApi> = OnceLock::new();

/// Connects this library to the `ultramarine` of this interpreter, and imports it for that. Call
/// this when the module is made.
///
/// # Errors
/// ImportError if there is no `ultramarine`, if it has no contract for extensions, or if its
/// contract has another major version (the message has both versions).
pub fn connect_python(py: Python<'_>) -> PyResult<()> {
    if API.get().is_some() {
        return Ok(());
    }
    let pointer = PyCapsule::import_pointer(py, PYTHON_CAPSULE).map_err(|cause| {
        let text = format!(
            "this version of Ultramarine does not support extensions: {}. Update it",
            cause.value(py)
        );
        let error = PyImportError::new_err(text);
        error.set_cause(py, Some(cause));
        error
    })?;
    let refuse = |error: Error| PyImportError::new_err(error.text().to_owned());
    // SAFETY: the capsule of that name points at such a struct, which begins with its size and stays as long as the
    // process; all of its bytes zero are one.
    let api = unsafe { read_sized(pointer.as_ptr().cast::<PythonApi>()) }.ok_or_else(|| {
        PyImportError::new_err("the capsule of Ultramarine is empty. Install Ultramarine again")
    })?;
    host::check_version(api.major, api.minor).map_err(refuse)?;
    if api.host.is_null() {
        return Err(PyImportError::new_err(
            "the capsule of Ultramarine has no table. Install Ultramarine again",
        ));
    }
    // SAFETY: a table by contract, which stays as long as the process.
    crate::connect(unsafe { &*api.host }).map_err(refuse)?;
    API.get_or_init(|| api);
    Ok(())
}

fn api() -> PyResult<&'static PythonApi> {
    API.get().ok_or_else(|| {
        PySystemError::new_err(
            "the extension is not connected. Call connect_python when the module is initialised",
        )
    })
}

/// Returns a function of the capsule, or an exception that names it.
macro_rules! lent {
    ($name:ident) => {
        api()?.$name.ok_or_else(|| {
            PyRuntimeError::new_err(concat!(
                "this Ultramarine does not offer ",
                stringify!($name),
                " to extensions"
            ))
        })?
    };
}

/// Returns the exception that must be set.
fn raised(py: Python<'_>) -> PyErr {
    PyErr::take(py)
        .unwrap_or_else(|| PySystemError::new_err("Ultramarine failed without an exception"))
}

impl<'py> FromPyObject<'_, 'py> for Array {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let make = lent!(array_from_object);
        // SAFETY: the interpreter's lock is held; the object is alive. What it gives is the caller's.
        let made = unsafe { Array::from_raw(make(object.as_ptr().cast())) };
        made.map_err(|_| raised(object.py()))
    }
}

impl<'py> IntoPyObject<'py> for Array {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let make = lent!(array_to_object);
        // SAFETY: the interpreter's lock is held; the handle is given away, the object is new.
        unsafe {
            let object = make(self.into_raw()).cast::<pyo3::ffi::PyObject>();
            Bound::from_owned_ptr_or_opt(py, object).ok_or_else(|| raised(py))
        }
    }
}

impl<'py> IntoPyObject<'py> for &Array {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.clone().into_pyobject(py)
    }
}

/// Returns true if an object is an `ultramarine.array`.
///
/// # Errors
/// An exception if the module is not connected.
pub fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let ask = lent!(is_array);
    // SAFETY: the interpreter's lock is held; the object is alive.
    Ok(unsafe { ask(object.as_ptr().cast()) } != 0)
}

/// Converts the argument `stream=`: None, a device, or a stream.
impl<'py> FromPyObject<'_, 'py> for Place {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let read = lent!(place_from_object);
        let mut code =
            PlaceCode { size: size_of::<PlaceCode>() as u32, ..Place::Default.to_code() };
        // SAFETY: the interpreter's lock is held; the object is alive; the place is a struct of that size.
        match unsafe { read(object.as_ptr().cast(), &mut code) } {
            0 => Ok(Place::from_code(&code)),
            _ => Err(PyErr::take(object.py())
                .unwrap_or_else(|| PyTypeError::new_err("stream must be a device or a stream"))),
        }
    }
}

impl From<Error> for PyErr {
    /// Converts an error to the exception that Ultramarine raises for it.
    fn from(error: Error) -> PyErr {
        let raise = API.get().and_then(|api| api.raise);
        let plain = |error: &Error| {
            let text = error.text().to_owned();
            match error.code() {
                status::INVALID => PyValueError::new_err(text),
                _ => PyRuntimeError::new_err(text),
            }
        };
        let Some(raise) = raise.filter(|_| !error.is_missing()) else { return plain(&error) };
        Python::attach(|py| {
            let otherwise = plain(&error);
            let (_, object) = error.into_host();
            if object.is_null() {
                return otherwise;
            }
            // SAFETY: the interpreter's lock is held; the error is given away.
            let none: *mut c_void = unsafe { raise(object) };
            debug_assert!(none.is_null());
            PyErr::take(py).unwrap_or(otherwise)
        })
    }
}

impl From<PyErr> for Error {
    /// Converts an exception inside of a rule to an error with its type and text.
    fn from(error: PyErr) -> Error {
        Python::attach(|py| {
            let value = error.is_instance_of::<PyValueError>(py);
            let text = error.to_string();
            if value { Error::value(text) } else { Error::runtime(text) }
        })
    }
}
