//! Calls without tuples and dicts for the arguments: functions of this package that take them so, and
//! functions of others that we call so. PyO3's own wrappers take as long as a whole exchange.

use crate::error::{Fail, Res};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, CString};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use ultramarine_abi::helper::panic_message;

/// A string of the interpreter that is made once, and lives as long as the process.
pub struct Word {
    text: &'static CStr,
    object: AtomicPtr<ffi::PyObject>,
}

impl Word {
    pub const fn new(text: &'static CStr) -> Word {
        Word { text, object: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The string, borrowed; NULL with an exception set where there is no memory for it.
    #[inline]
    pub fn get(&self, py: Python<'_>) -> *mut ffi::PyObject {
        let object = self.object.load(Ordering::Relaxed);
        if object.is_null() { self.make(py) } else { object }
    }

    /// The string as PyO3 has it.
    pub fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: NULL, or a live object that is borrowed.
        unsafe { Ok(Borrowed::from_ptr_or_err(py, self.get(py))?.to_owned()) }
    }

    #[cold]
    fn make(&self, _: Python<'_>) -> *mut ffi::PyObject {
        // SAFETY: the interpreter lock is held, as the token says.
        let object = unsafe { ffi::PyUnicode_InternFromString(self.text.as_ptr()) };
        self.object.store(object, Ordering::Relaxed);
        object
    }
}

/// The keyword arguments that a function takes.
pub struct Keywords<const N: usize> {
    pub function: &'static str,
    pub names: [Word; N],
}

impl<const N: usize> Keywords<N> {
    /// Puts the values of a call's keyword arguments in their places; NULL for those not given.
    ///
    /// # Safety
    /// `names` is NULL or the tuple of the names that came with a call, and `values` are theirs.
    #[inline]
    pub unsafe fn read(
        &self,
        py: Python<'_>,
        values: *const *mut ffi::PyObject,
        names: *mut ffi::PyObject,
    ) -> PyResult<[*mut ffi::PyObject; N]> {
        let mut found = [ptr::null_mut(); N];
        if names.is_null() {
            return Ok(found);
        }
        // SAFETY: a tuple of strings, one for each value.
        unsafe {
            for i in 0..ffi::PyTuple_Size(names) {
                let name = ffi::PyTuple_GetItem(names, i);
                // Names in a program are interned, as those here are.
                let place = self.names.iter().position(|n| n.get(py) == name);
                match place.or_else(|| self.equal(py, name)) {
                    Some(place) => found[place] = *values.offset(i),
                    None => return Err(self.unknown(py, name)),
                }
            }
        }
        Ok(found)
    }

    #[cold]
    fn equal(&self, py: Python<'_>, name: *mut ffi::PyObject) -> Option<usize> {
        // SAFETY: strings.
        self.names.iter().position(|n| unsafe { ffi::PyUnicode_Compare(n.get(py), name) } == 0)
    }

    #[cold]
    fn unknown(&self, py: Python<'_>, name: *mut ffi::PyObject) -> PyErr {
        // SAFETY: a live object.
        let name = unsafe { Borrowed::from_ptr(py, name) };
        PyTypeError::new_err(format!(
            "{}() got an unexpected keyword argument '{}'",
            self.function,
            crate::error::shown(&name)
        ))
    }

    /// The error for another number of positional arguments than the function takes.
    #[cold]
    pub fn positional(&self, takes: usize, given: ffi::Py_ssize_t) -> PyErr {
        PyTypeError::new_err(format!(
            "{}() takes {takes} positional argument{} but {given} {} given",
            self.function,
            if takes == 1 { "" } else { "s" },
            if given == 1 { "was" } else { "were" },
        ))
    }
}

/// An argument that is True, False or None, or has a truth value. Strings are mistakes.
pub fn flag(py: Python<'_>, value: *mut ffi::PyObject, name: &str) -> Res<Option<bool>> {
    // SAFETY: NULL or a live object; True, False and None are pointers to compare with.
    unsafe {
        if value.is_null() || value == ffi::Py_None() {
            return Ok(None);
        }
        if value == ffi::Py_True() || value == ffi::Py_False() {
            return Ok(Some(value == ffi::Py_True()));
        }
        if ffi::PyUnicode_Check(value) != 0 {
            let text = format!("{name} must be True, False or None, not a string.");
            return Err(crate::error::value(text));
        }
        match ffi::PyObject_IsTrue(value) {
            -1 => Err(PyErr::fetch(py).into()),
            truth => Ok(Some(truth != 0)),
        }
    }
}

/// Result of the short paths: with errors so small that results travel in registers. Moving the
/// whole ones by way of the stack took a tenth of an exchange.
pub type Quick<T> = Result<T, Box<Fail>>;

impl From<ultramarine::Error> for Box<Fail> {
    #[cold]
    fn from(error: ultramarine::Error) -> Box<Fail> {
        Box::new(Fail::Core(error))
    }
}

impl From<PyErr> for Box<Fail> {
    #[cold]
    fn from(error: PyErr) -> Box<Fail> {
        Box::new(Fail::Py(error))
    }
}

impl From<Box<Fail>> for Fail {
    #[cold]
    fn from(fail: Box<Fail>) -> Fail {
        *fail
    }
}

/// The body of a function that the interpreter calls: errors and panics become exceptions, and
/// NULL.
#[inline]
pub fn guarded(body: impl FnOnce(Python<'_>) -> Quick<*mut ffi::PyObject>) -> *mut ffi::PyObject {
    guarded_or(ptr::null_mut(), body)
}

/// As [`guarded`], with another result for failures.
#[inline]
pub fn guarded_or<T: Copy>(failed: T, body: impl FnOnce(Python<'_>) -> Quick<T>) -> T {
    // SAFETY: the interpreter calls us, so its lock is held.
    let py = unsafe { Python::assume_attached() };
    let whole = AssertUnwindSafe(|| match body(py) {
        Ok(result) => result,
        Err(fail) => {
            raise(|| Fail::from(fail).into());
            failed
        }
    });
    catch_unwind(whole).unwrap_or_else(|panic| {
        raise(|| panicked(&*panic));
        failed
    })
}

#[cold]
fn raise(error: impl FnOnce() -> PyErr) {
    // PyO3 counts who is attached; objects dropped meanwhile wait until a thread is.
    Python::attach(|py| error().restore(py));
}

#[cold]
fn panicked(panic: &(dyn std::any::Any + Send)) -> PyErr {
    let text = panic_message(panic).unwrap_or_default();
    PyRuntimeError::new_err(format!("a bug in ultramarine: {text}. Please report it"))
}

/// A function as `def` makes one, for a module or a class: its docstring begins with the
/// signature.
pub fn definition(
    name: &'static CStr,
    function: ffi::PyCFunctionFastWithKeywords,
    doc: &'static CStr,
) -> *mut ffi::PyMethodDef {
    // The interpreter keeps the pointer.
    Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    }))
}

/// Puts a method on a class.
pub fn add_method(
    class: &Bound<'_, pyo3::types::PyType>,
    name: &'static CStr,
    function: ffi::PyCFunctionFastWithKeywords,
    doc: &'static CStr,
) -> PyResult<()> {
    let definition = definition(name, function, doc);
    // SAFETY: a type, and a definition that stays.
    let method = unsafe {
        let method = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
        Bound::from_owned_ptr_or_err(class.py(), method)?
    };
    class.setattr(&*name.to_string_lossy(), method)
}

/// Puts a function in a module.
pub fn add_function(
    module: &Bound<'_, PyModule>,
    name: &'static CStr,
    function: ffi::PyCFunctionFastWithKeywords,
    doc: &'static CStr,
) -> PyResult<()> {
    let definition = definition(name, function, doc);
    let of = module.name()?;
    // SAFETY: a module, its name, and a definition that stays.
    let function = unsafe {
        let function =
            ffi::PyCMethod_New(definition, module.as_ptr(), of.as_ptr(), ptr::null_mut());
        Bound::from_owned_ptr_or_err(module.py(), function)?
    };
    module.add(&*name.to_string_lossy(), function)
}

/// Calls a function with arguments in an array, those with names last. Returns a new reference,
/// or NULL with an exception set.
///
/// # Safety
/// The interpreter lock is held; `names` is NULL or a tuple of the last arguments' names.
#[inline]
pub unsafe fn call(
    function: *mut ffi::PyObject,
    arguments: &[*mut ffi::PyObject],
    positional: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    #[cfg(not(windows))]
    {
        unsafe extern "C" {
            fn PyObject_Vectorcall(
                callable: *mut ffi::PyObject,
                args: *const *mut ffi::PyObject,
                nargsf: usize,
                kwnames: *mut ffi::PyObject,
            ) -> *mut ffi::PyObject;
        }
        // SAFETY: every CPython from 3.9 on exports it, though it joined the stable interface in
        // 3.12; the caller's promises are its conditions.
        unsafe { PyObject_Vectorcall(function, arguments.as_ptr(), positional, names) }
    }
    // There the library of the stable interface names what can be had.
    #[cfg(windows)]
    // SAFETY: live objects; what is made here is given back.
    unsafe {
        let tuple = ffi::PyTuple_New(positional as ffi::Py_ssize_t);
        if tuple.is_null() {
            return tuple;
        }
        for (i, &argument) in arguments[..positional].iter().enumerate() {
            ffi::Py_INCREF(argument);
            ffi::PyTuple_SetItem(tuple, i as ffi::Py_ssize_t, argument);
        }
        let keywords = if names.is_null() { ptr::null_mut() } else { ffi::PyDict_New() };
        for (i, &argument) in arguments[positional..].iter().enumerate() {
            if !keywords.is_null() {
                let name = ffi::PyTuple_GetItem(names, i as ffi::Py_ssize_t);
                ffi::PyDict_SetItem(keywords, name, argument);
            }
        }
        let result = ffi::PyObject_Call(function, tuple, keywords);
        ffi::Py_DECREF(tuple);
        ffi::Py_XDECREF(keywords);
        result
    }
}

/// The attribute of a type, as the interpreter looks up special methods: on the type, not on
/// the object. `None` if it has nothing of that name.
pub fn on_type<'py>(
    object: &Bound<'py, PyAny>,
    name: &Word,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    // SAFETY: a live type and a string.
    unsafe {
        let class = ffi::Py_TYPE(object.as_ptr()).cast();
        let name = name.get(py);
        if name.is_null() {
            return Err(PyErr::fetch(py));
        }
        let found = ffi::PyObject_GetAttr(class, name);
        if !found.is_null() {
            return Ok(Some(Bound::from_owned_ptr(py, found)));
        }
        if ffi::PyErr_ExceptionMatches(ffi::PyExc_AttributeError) == 0 {
            return Err(PyErr::fetch(py));
        }
        ffi::PyErr_Clear();
    }
    Ok(None)
}

/// A message for C: without the zeros that would end it.
pub fn message(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}
