//! Errors of arguments say which function and which parameter they are about.
//!
//! PyO3 leaves the parameter in a note beside the error, which is not in its text, and never says the function. So the
//! module's functions are called by way of one that completes such errors. (Methods of classes have the note alone.)

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyList};
use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// The error of `float()` and `int()` of an array of several elements.
pub const SEVERAL_ELEMENTS: &str =
    "[convert] Only length-1 arrays can be converted to Python scalars. Index the array first.";

type Function = ffi::PyCFunctionFastWithKeywords;

/// A function of the module, as PyO3 made it.
pub struct Wrapped(OnceLock<(Function, &'static CStr)>);

impl Wrapped {
    pub const fn new() -> Wrapped {
        Wrapped(OnceLock::new())
    }

    /// Calls the function.
    ///
    /// # Safety
    /// The interpreter calls it, as it would call the function.
    #[inline]
    pub unsafe fn call(
        &self,
        slf: *mut ffi::PyObject,
        args: *const *mut ffi::PyObject,
        count: ffi::Py_ssize_t,
        names: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject {
        let Some((function, name)) = self.0.get() else { return std::ptr::null_mut() };
        // SAFETY: the caller's promise.
        let made = unsafe { function(slf, args, count, names) };
        if made.is_null() {
            // SAFETY: the interpreter calls with its lock held.
            complete(unsafe { Python::assume_attached() }, name);
        }
        made
    }
}

/// Puts the function that PyO3 made into the module, as one that `call` runs: with [`Wrapped::call`] of `wrapped`.
pub fn add(
    module: &Bound<'_, PyModule>,
    made: Bound<'_, PyCFunction>,
    wrapped: &'static Wrapped,
    call: Function,
) -> PyResult<()> {
    // SAFETY: a live function.
    let (flags, function) = unsafe {
        (ffi::PyCFunction_GetFlags(made.as_ptr()), ffi::PyCFunction_GetFunction(made.as_ptr()))
    };
    let name: String = made.getattr("__name__")?.extract()?;
    // Others have no arguments that could be wrong.
    let Some(function) = function.filter(|_| flags == ffi::METH_FASTCALL | ffi::METH_KEYWORDS)
    else {
        return module.add(&*name, made);
    };
    // SAFETY: the flags say that it is such a function.
    let function = unsafe { std::mem::transmute::<ffi::PyCFunction, Function>(function) };
    let documentation: Option<String> = made.getattr("__doc__")?.extract()?;
    let signature: Option<String> = made.getattr("__text_signature__")?.extract()?;
    let documentation = documentation.unwrap_or_default();
    let documentation = match signature {
        Some(signature) => format!("{name}{signature}\n--\n\n{documentation}"),
        None => documentation,
    };
    // The interpreter keeps pointers to both, as long as it lives.
    let c_name: &'static CStr = Box::leak(CString::new(&*name)?.into_boxed_c_str());
    let c_documentation: &'static CStr = Box::leak(CString::new(documentation)?.into_boxed_c_str());
    if wrapped.0.set((function, c_name)).is_err() {
        // The module is made a second time.
        debug_assert!(
            wrapped.0.get().is_some_and(|(known, _)| std::ptr::fn_addr_eq(*known, function))
        );
    }
    crate::dlpack::calls::add_function(module, c_name, call, c_documentation)
}

/// Writes function and parameter into the text of the current error, if it is of PyO3's reading of an argument.
#[cold]
fn complete(py: Python<'_>, name: &CStr) {
    // SAFETY: looks at the current error, of a thread that has the interpreter's lock.
    if unsafe { ffi::PyErr_ExceptionMatches(ffi::PyExc_Exception) } == 0 {
        // PyO3 lets a panic go on where its exception is taken, and here it would end the process.
        return;
    }
    let Some(error) = PyErr::take(py) else { return };
    // Whatever fails here, the error is told as it came.
    match completed(py, &error, name) {
        Ok(Some(other)) => other.restore(py),
        _ => error.restore(py),
    }
}

/// Completes the error's text; or gives the one to raise in its place.
fn completed(py: Python<'_>, error: &PyErr, name: &CStr) -> PyResult<Option<PyErr>> {
    let class = error.get_type(py);
    let ours = [
        py.get_type::<PyTypeError>(),
        py.get_type::<PyValueError>(),
        py.get_type::<PyOverflowError>(),
    ];
    // One that has a traceback comes from Python code, which the function called.
    if error.traceback(py).is_some() || !ours.iter().any(|known| known.is(&class)) {
        return Ok(None);
    }
    let value = error.value(py);
    let Some(notes) = value.getattr_opt("__notes__")? else { return Ok(None) };
    let notes = notes.cast_into::<PyList>()?;
    let note: String = notes.get_item(0)?.extract()?;
    let parameter = note.strip_prefix("while processing '").and_then(|n| n.strip_suffix('\''));
    let Some(parameter) = parameter else { return Ok(None) };
    let (text,): (String,) = value.getattr("args")?.extract()?;
    let several = text == SEVERAL_ELEMENTS;
    let text = format!("{}(): argument '{parameter}': {text}", name.to_string_lossy());
    if several {
        // As an argument it is of a wrong type: float() and int() alone find a wrong value.
        return Ok(Some(PyTypeError::new_err(text)));
    }
    value.setattr("args", (text,))?;
    value.delattr("__notes__")?;
    Ok(None)
}
