//! `ultramarine._C_API`: arrays for modules in other languages, without DLPack. A capsule with a table of
//! functions (`ultramarine/extension.h`, `um_python_api`), and with the table that the core lends to extensions.

use crate::array::{
    PyArray,
    make::{self, Copy, Request},
};
use crate::dlpack::calls::guarded_or;
use crate::error::{Fail, Res, exception, type_, type_name};
use crate::stream::StreamArg;
use pyo3::exceptions::PySystemError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;
use ultramarine::extension::{host_table, own_handle, place_of, take_error, take_handle};
use ultramarine_abi::extension::{
    ArrayHandle, EXTENSION_MAJOR, EXTENSION_MINOR, PYTHON_CAPSULE, PlaceCode, PythonApi, place,
};

/// No place in particular.
const DEFAULT: PlaceCode = PlaceCode {
    size: size_of::<PlaceCode>() as u32,
    kind: place::DEFAULT,
    device_type: place::CPU,
    device_index: 0,
    stream_index: 0,
    reserved: 0,
};

/// A live object that may have been forgotten: NULL is a bug of the caller's.
fn object<'py>(py: Python<'py>, object: *mut c_void) -> Res<Borrowed<'py, 'py, PyAny>> {
    if object.is_null() {
        return Err(null("an object"));
    }
    // SAFETY: a live object, by the table's rules; it outlives the call.
    Ok(unsafe { Borrowed::from_ptr(py, object.cast()) })
}

#[cold]
fn null(what: &str) -> Fail {
    Fail::Py(PySystemError::new_err(format!(
        "An extension passed NULL for {what}. Report it to the author of the extension."
    )))
}

unsafe extern "C" fn is_array(object: *mut c_void) -> i32 {
    // SAFETY: the caller holds the interpreter lock.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: a live object.
    (!object.is_null() && unsafe { PyArray::of_any(py, object.cast()) }.is_some()).into()
}

unsafe extern "C" fn array_borrow(given: *mut c_void) -> *mut ArrayHandle {
    guarded_or(ptr::null_mut(), |py| {
        let given = object(py, given).map_err(Box::new)?;
        // SAFETY: a live object.
        match unsafe { PyArray::of_any(py, given.as_ptr()) } {
            Some(array) => Ok(array.place().cast()),
            None => {
                let text = format!("expected an ultramarine.array, got {}", type_name(&given));
                Err(Box::new(type_(text)))
            }
        }
    })
}

unsafe extern "C" fn array_from_object(given: *mut c_void) -> *mut ArrayHandle {
    guarded_or(ptr::null_mut(), |py| {
        let given = object(py, given).map_err(Box::new)?;
        let request = Request { dtype: None, copy: Copy::Needed, narrow: false, device: None };
        let array = make::made(&given, request).map_err(Box::new)?;
        Ok(own_handle(array))
    })
}

unsafe extern "C" fn array_to_object(array: *mut ArrayHandle) -> *mut c_void {
    guarded_or(ptr::null_mut(), |py| {
        if array.is_null() {
            return Err(Box::new(null("an array")));
        }
        // SAFETY: an owned handle, which is released here in any case.
        let array = unsafe { take_handle(array) };
        Ok(PyArray::object(py, array)?.into_ptr().cast())
    })
}

unsafe extern "C" fn place_from_object(given: *mut c_void, to: *mut PlaceCode) -> i32 {
    guarded_or(-1, |py| {
        let given = object(py, given).map_err(Box::new)?;
        let stream: Option<StreamArg> = given.extract()?;
        if to.is_null() {
            return Err(Box::new(null("a place")));
        }
        // SAFETY: not NULL; the caller's struct, which is as long as it says.
        unsafe {
            let size = (*to).size;
            if (size as usize) < size_of::<PlaceCode>() {
                let text = format!(
                    "An extension passed a um_place of {size} bytes, not {}. Build it again, for this version of ultramarine.",
                    size_of::<PlaceCode>()
                );
                return Err(Box::new(Fail::Py(PySystemError::new_err(text))));
            }
            // A device was its default stream at the call.
            let code = stream.map_or(DEFAULT, |stream| place_of(stream.get()));
            to.write(PlaceCode { size, ..code });
        }
        Ok(0)
    })
}

unsafe extern "C" fn raise(error: *mut ultramarine_abi::Error) -> *mut c_void {
    guarded_or(ptr::null_mut(), |_| {
        if error.is_null() {
            return Err(Box::new(null("an error")));
        }
        // SAFETY: an error of the host's, which is handed over.
        let error = unsafe { take_error(error) };
        Err(Box::new(Fail::Py(exception(&error))))
    })
}

/// The table, which lives as long as the process.
fn table() -> &'static PythonApi {
    static TABLE: OnceLock<PythonApi> = OnceLock::new();
    TABLE.get_or_init(|| PythonApi {
        size: size_of::<PythonApi>() as u32,
        major: EXTENSION_MAJOR,
        minor: EXTENSION_MINOR,
        host: host_table(),
        is_array: Some(is_array),
        array_borrow: Some(array_borrow),
        array_from_object: Some(array_from_object),
        array_to_object: Some(array_to_object),
        place_from_object: Some(place_from_object),
        raise: Some(raise),
    })
}

#[pyfunction]
fn _set_poison(on: bool) {
    ultramarine::extension::set_poison(on);
}

#[pyfunction]
fn _is_poison() -> bool {
    ultramarine::extension::poison()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let table = ptr::from_ref(table()).cast_mut().cast::<c_void>();
    // SAFETY: not NULL; the name and the table are static, so there is no destructor.
    let capsule = unsafe {
        let capsule = ffi::PyCapsule_New(table, PYTHON_CAPSULE.as_ptr(), None);
        Bound::from_owned_ptr_or_err(m.py(), capsule)?
    };
    m.add("_C_API", capsule)?;
    crate::functions!(m: _set_poison _is_poison);
    Ok(())
}
