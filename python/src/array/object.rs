//! Python objects of arrays, made and looked into without PyO3's detours: what the exchange of
//! arrays with other libraries is measured by.

use super::PyArray;
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use ultramarine::Array;

/// The class, and where in its objects the Rust value lies. The class lives as long as the
/// process.
static CLASS: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(std::ptr::null_mut());
static OFFSET: AtomicUsize = AtomicUsize::new(0);

/// Learns the layout of objects from one that PyO3 made.
pub(super) fn learn(py: Python<'_>) -> PyResult<()> {
    let sample = Bound::new(py, PyArray::new(Array::scalar(0.0f32)))?;
    let inside = std::ptr::from_ref(sample.get()) as usize - sample.as_ptr() as usize;
    let class = sample.get_type();
    check_layout(&class, inside)?;
    OFFSET.store(inside, Ordering::Relaxed);
    CLASS.store(class.as_type_ptr(), Ordering::Release);
    std::mem::forget(class);
    Ok(())
}

/// Checks that objects are a header, the value, and the slot for weak references, and nothing that [`PyArray::object`]
/// would have to set besides.
fn check_layout(class: &Bound<'_, PyType>, inside: usize) -> PyResult<()> {
    let header = size_of::<ffi::PyObject>().next_multiple_of(align_of::<PyArray>());
    let slot = (header + size_of::<PyArray>()).next_multiple_of(align_of::<*mut ffi::PyObject>());
    let expected = [header, slot + size_of::<*mut ffi::PyObject>(), slot, 0, 0];
    let size = |name| -> PyResult<usize> { class.getattr(name)?.extract() };
    let found = [
        inside,
        size("__basicsize__")?,
        size("__weakrefoffset__")?,
        size("__dictoffset__")?,
        size("__itemsize__")?,
    ];
    if found == expected {
        return Ok(());
    }
    Err(PyImportError::new_err(format!(
        "ultramarine: objects of arrays are laid out as (value, size, weak references, dictionary, items) = {found:?} \
         bytes instead of {expected:?}. Build the package with the version of PyO3 that its Cargo.toml names.",
    )))
}

impl PyArray {
    /// An object of an array: what `Bound::new` makes, without going by way of `object.__new__`.
    #[inline]
    pub fn object(py: Python<'_>, array: Array) -> PyResult<Bound<'_, PyArray>> {
        let class = CLASS.load(Ordering::Relaxed);
        // SAFETY: the class is alive. Its allocator gives zeroed memory with a header, in which
        // the slot for weak references is empty and nothing but the value is to be set: at the
        // place where PyO3 looks for it, as `learn` saw.
        unsafe {
            let object = ffi::PyType_GenericAlloc(class, 0);
            if object.is_null() {
                return Err(PyErr::fetch(py));
            }
            let place = object.byte_add(OFFSET.load(Ordering::Relaxed)).cast::<PyArray>();
            place.write(PyArray::new(array));
            Ok(Bound::from_owned_ptr(py, object).cast_into_unchecked())
        }
    }

    /// The value in an object.
    ///
    /// # Safety
    /// A live object of the class or of a subclass.
    #[inline]
    pub unsafe fn of<'a>(py: Python<'a>, object: *mut ffi::PyObject) -> &'a PyArray {
        // SAFETY: the caller's promise: so the object is alive for as long as the caller says,
        // and PyO3 finds the value in it.
        unsafe {
            &*std::ptr::from_ref(Borrowed::from_ptr(py, object).cast_unchecked::<PyArray>().get())
        }
    }

    /// The value in an object whose type is exactly the class.
    #[inline]
    pub fn exact<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a PyArray> {
        // SAFETY: a live object, whose type is looked at first.
        unsafe {
            let is = ffi::Py_TYPE(object.as_ptr()) == CLASS.load(Ordering::Relaxed);
            is.then(|| PyArray::of(object.py(), object.as_ptr()))
        }
    }

    /// The value in an object, if it is an array.
    ///
    /// # Safety
    /// A live object.
    #[inline]
    pub unsafe fn of_any<'a>(py: Python<'a>, object: *mut ffi::PyObject) -> Option<&'a PyArray> {
        // SAFETY: the caller's promise; the type is looked at first.
        unsafe {
            let class = CLASS.load(Ordering::Relaxed);
            let own = ffi::Py_TYPE(object);
            (own == class || ffi::PyType_IsSubtype(own, class) != 0)
                .then(|| PyArray::of(py, object))
        }
    }
}
