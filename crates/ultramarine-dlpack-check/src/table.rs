//! Calls of a library's exchange table.

use crate::taken::{Taken, Whole, describe};
use crate::tensor::Tensor;
use pyo3::exceptions::{PyAssertionError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;
use ultramarine_dlpack::exchange::{CAPSULE, DLPackExchangeAPI, DLPackExchangeAPIHeader};
use ultramarine_dlpack::{DLDataType, DLDevice, DLTensor};

/// An exchange table. It lives as long as the process.
#[pyclass(module = "ultramarine_dlpack_check._lab", frozen)]
pub struct Table(*const DLPackExchangeAPI);

// SAFETY: tables are constants of the process.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// Returns the table of a capsule, or at an address, as in DLPack 1.2.
#[pyfunction]
pub fn table(found: &Bound<'_, PyAny>) -> PyResult<Table> {
    if let Ok(address) = found.extract::<usize>() {
        return Ok(Table(address as *const _));
    }
    // SAFETY: a live object. A capsule is accessed under the name that it must have.
    unsafe {
        if ffi::PyCapsule_IsValid(found.as_ptr(), CAPSULE.as_ptr()) == 0 {
            return Err(PyTypeError::new_err("not a capsule named \"dlpack_exchange_api\""));
        }
        Ok(Table(ffi::PyCapsule_GetPointer(found.as_ptr(), CAPSULE.as_ptr()).cast()))
    }
}

/// The errors that `SetError` received.
type Errors = Mutex<Vec<(String, String)>>;

unsafe extern "C" fn set_error(context: *mut c_void, kind: *const c_char, text: *const c_char) {
    let read = |place: *const c_char| {
        if place.is_null() {
            return "NULL".to_owned();
        }
        // SAFETY: a text that lives during the call.
        unsafe { CStr::from_ptr(place) }.to_string_lossy().into_owned()
    };
    // SAFETY: the context is the list that came with the request.
    if let Ok(mut errors) = unsafe { &*context.cast::<Errors>() }.lock() {
        errors.push((read(kind), read(text)));
    }
}

impl Table {
    pub fn header(&self) -> *mut DLPackExchangeAPIHeader {
        self.0.cast_mut().cast()
    }

    fn api(&self) -> &DLPackExchangeAPI {
        // SAFETY: a table that lives as long as the process, and whose major version the test has
        // checked.
        unsafe { &*self.0 }
    }
}

fn missing(slot: &str) -> PyErr {
    PyAssertionError::new_err(format!("{slot} is NULL"))
}

/// Returns the exception of a slot that failed. Raises an assertion error if result and exception
/// are inconsistent.
fn answered(py: Python<'_>, slot: &str, code: c_int) -> PyResult<()> {
    match (code, PyErr::take(py)) {
        (0, None) => Ok(()),
        (0, Some(e)) => Err(PyAssertionError::new_err(format!("{slot}: 0 with a pending {e}"))),
        (-1, Some(error)) => Err(error),
        (code, _) => Err(PyAssertionError::new_err(format!("{slot}: {code} without an exception"))),
    }
}

#[pymethods]
impl Table {
    #[getter]
    fn address(&self) -> usize {
        self.0 as usize
    }

    #[getter]
    fn version(&self) -> (u32, u32) {
        let version = self.api().header.version;
        (version.major, version.minor)
    }

    #[getter]
    fn previous(&self) -> Option<Table> {
        let previous = self.api().header.prev_api;
        (!previous.is_null()).then(|| Table(previous.cast_const().cast()))
    }

    /// The slots of the table.
    fn slots<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let api = self.api();
        let found = PyDict::new(py);
        found.set_item("managed_tensor_allocator", api.managed_tensor_allocator.is_some())?;
        found.set_item(
            "managed_tensor_from_py_object_no_sync",
            api.managed_tensor_from_py_object_no_sync.is_some(),
        )?;
        found.set_item(
            "managed_tensor_to_py_object_no_sync",
            api.managed_tensor_to_py_object_no_sync.is_some(),
        )?;
        found.set_item(
            "dltensor_from_py_object_no_sync",
            api.dltensor_from_py_object_no_sync.is_some(),
        )?;
        found.set_item("current_work_stream", api.current_work_stream.is_some())?;
        Ok(found)
    }

    #[pyo3(name = "from_object")]
    fn export_object(&self, py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<Taken> {
        let slot = "managed_tensor_from_py_object_no_sync";
        let call = self.api().managed_tensor_from_py_object_no_sync.ok_or_else(|| missing(slot))?;
        let mut out = null_mut();
        // SAFETY: a live object, and a pointer that is valid for the result.
        let code = unsafe { call(object.as_ptr().cast(), &mut out) };
        answered(py, slot, code)?;
        if out.is_null() {
            return Err(PyAssertionError::new_err(format!("{slot}: 0 without a tensor")));
        }
        Ok(Taken::new(Whole::Versioned(out)))
    }

    fn to_object<'py>(&self, py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
        let slot = "managed_tensor_to_py_object_no_sync";
        let call = self.api().managed_tensor_to_py_object_no_sync.ok_or_else(|| missing(slot))?;
        if tensor.0.legacy {
            return Err(PyTypeError::new_err("tables take versioned tensors"));
        }
        let mut out = null_mut();
        // SAFETY: ownership of the tensor goes to the callee.
        let code = unsafe { call(tensor.give()?.cast(), &mut out) };
        answered(py, slot, code)?;
        // SAFETY: a new reference.
        unsafe { Bound::from_owned_ptr_or_opt(py, out.cast()) }
            .ok_or_else(|| PyAssertionError::new_err(format!("{slot}: 0 without an object")))
    }

    /// Returns the fields of the borrowed tensor.
    fn borrow<'py>(
        &self,
        py: Python<'py>,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let slot = "dltensor_from_py_object_no_sync";
        let call = self.api().dltensor_from_py_object_no_sync.ok_or_else(|| missing(slot))?;
        let mut out = blank();
        // SAFETY: a live object, and a pointer that is valid for the result.
        let code = unsafe { call(object.as_ptr().cast(), &mut out) };
        answered(py, slot, code)?;
        describe(py, &out)
    }

    fn stream(&self, py: Python<'_>, device_type: i32, device_id: i32) -> PyResult<usize> {
        let slot = "current_work_stream";
        let call = self.api().current_work_stream.ok_or_else(|| missing(slot))?;
        let mut out = usize::MAX as *mut c_void;
        // SAFETY: numbers, and a pointer that is valid for the result.
        let code = unsafe { call(device_type, device_id, &mut out) };
        answered(py, slot, code)?;
        Ok(out as usize)
    }

    /// Requests a tensor without the interpreter's lock. If `thread` is true, does so on a thread
    /// that Python does not know. Returns the code, the tensor, and the errors that `SetError`
    /// received.
    #[pyo3(signature = (shape, dtype=(2, 32, 1), device=(1, 0), *, ndim=None, thread=false))]
    #[allow(clippy::type_complexity)]
    fn allocate(
        &self,
        py: Python<'_>,
        mut shape: Vec<i64>,
        dtype: (u8, u8, u16),
        device: (i32, i32),
        ndim: Option<i32>,
        thread: bool,
    ) -> PyResult<(c_int, Option<Taken>, Vec<(String, String)>)> {
        let slot = "managed_tensor_allocator";
        let call = self.api().managed_tensor_allocator.ok_or_else(|| missing(slot))?;
        let errors = Errors::default();
        let mut work = || {
            let mut prototype = DLTensor {
                ndim: ndim.unwrap_or(shape.len() as i32),
                shape: shape.as_mut_ptr(),
                dtype: DLDataType { code: dtype.0, bits: dtype.1, lanes: dtype.2 },
                device: DLDevice { device_type: device.0, device_id: device.1 },
                ..blank()
            };
            let mut out = null_mut();
            let context = (&raw const errors).cast_mut().cast();
            // SAFETY: a prototype with the fields that matter, a pointer that is valid for the
            // result, and a context that lives until the end of the call.
            let code = unsafe { call(&mut prototype, &mut out, context, Some(set_error)) };
            (code, (!out.is_null()).then(|| Taken::new(Whole::Versioned(out))))
        };
        let (code, out) = py.detach(|| {
            if thread {
                std::thread::scope(|s| s.spawn(work).join()).unwrap_or((-2, None))
            } else {
                work()
            }
        });
        if let Some(error) = PyErr::take(py) {
            return Err(PyAssertionError::new_err(format!("{slot}: set the exception {error}")));
        }
        Ok((code, out, errors.into_inner().unwrap_or_default()))
    }
}

fn blank() -> DLTensor {
    DLTensor {
        data: null_mut(),
        device: DLDevice { device_type: 0, device_id: 0 },
        ndim: 0,
        dtype: DLDataType { code: 0, bits: 0, lanes: 0 },
        shape: null_mut(),
        strides: null_mut(),
        byte_offset: 0,
    }
}
