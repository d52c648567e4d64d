//! The C exchange API of our arrays: a table of functions on the class, for libraries that
//! exchange without Python calls.

use super::calls::{guarded_or, message};
use crate::array::PyArray;
use crate::error::{Res, type_, type_name};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use ultramarine::interchange::{
    self, DLDevice, ExportOptions, Import, ImportOptions,
    dlpack::{
        DLManagedTensorVersioned, DLPACK_MAJOR, DLPACK_MINOR, DLPackVersion, DLTensor, Invalid,
        ManagedTensor, check,
        exchange::{self, DLPackExchangeAPI, DLPackExchangeAPIHeader, SetError},
    },
    refusal,
};
use ultramarine::{Array, Device, Dtype, Error};

static TABLE: DLPackExchangeAPI = DLPackExchangeAPI {
    header: DLPackExchangeAPIHeader {
        version: DLPackVersion { major: DLPACK_MAJOR, minor: DLPACK_MINOR },
        prev_api: ptr::null_mut(),
    },
    managed_tensor_allocator: Some(allocate),
    managed_tensor_from_py_object_no_sync: Some(from_object),
    managed_tensor_to_py_object_no_sync: Some(to_object),
    #[cfg(target_pointer_width = "64")]
    dltensor_from_py_object_no_sync: Some(lend),
    #[cfg(not(target_pointer_width = "64"))]
    dltensor_from_py_object_no_sync: None,
    current_work_stream: Some(current_work_stream),
};

/// Makes a tensor like the prototype, of which only sizes, dtype and device count. Called
/// without the interpreter's lock, so errors are reported to `set_error`.
unsafe extern "C" fn allocate(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    context: *mut c_void,
    set_error: Option<SetError>,
) -> c_int {
    let made = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller's prototype, or NULL.
        let array = unsafe { like(prototype.as_ref()) }?;
        let tensor = array.to_dlpack()?;
        tensor.into_versioned().map_err(|_| Error::runtime("allocate", "a tensor of no version"))
    }));
    let error = match made {
        Ok(Ok(tensor)) => {
            // SAFETY: where the caller wants the tensor.
            unsafe { out.write(tensor.as_ptr()) };
            return 0;
        }
        Ok(Err(error)) => error,
        Err(_) => Error::runtime("allocate", "a bug in ultramarine"),
    };
    let kind: &CStr = match error.root() {
        Error::Buffer(_) | Error::BufferDevice(_) => c"BufferError",
        Error::Memory(_) => c"MemoryError",
        Error::Value(_) => c"ValueError",
        Error::Type(_) => c"TypeError",
        _ => c"RuntimeError",
    };
    let text = message(&error.to_string());
    if let Some(set_error) = set_error {
        // SAFETY: the caller's function with its own context; both strings live through the call.
        unsafe {
            let text: *const c_char = text.as_ptr();
            set_error(context, kind.as_ptr(), text);
        }
    }
    -1
}

/// Memory for a prototype.
fn like(prototype: Option<&DLTensor>) -> ultramarine::Result<Array> {
    let given = prototype.ok_or_else(|| refusal(Invalid::Null))?;
    // Elements that do not count may be anything.
    let data = ptr::without_provenance_mut(4096);
    let tensor = DLTensor { data, strides: ptr::null_mut(), byte_offset: 0, ..*given };
    // SAFETY: the caller's sizes, as many as there are dimensions.
    unsafe { check(&tensor, 0) }.map_err(refusal)?;
    let dtype =
        Dtype::from_dl(tensor.dtype).ok_or_else(|| refusal(Invalid::Dtype(tensor.dtype)))?;
    let device = interchange::device_of(tensor.device)?;
    let axes = 0..tensor.ndim as usize;
    // SAFETY: as above; none is negative.
    let sizes: Vec<usize> = axes.map(|i| unsafe { *tensor.shape.add(i) } as usize).collect();
    let stream = ultramarine::default_stream(device)?;
    let array = ultramarine::with_stream(stream, || Array::empty(&sizes, dtype))?;
    array.eval()?;
    Ok(array)
}

/// The array that an object is.
fn array_of<'a>(py: Python<'a>, object: *mut c_void) -> Res<&'a PyArray> {
    let object: *mut ffi::PyObject = object.cast();
    if object.is_null() {
        return Err(type_("expected an array, got NULL"));
    }
    // SAFETY: a live object, by the table's rules.
    unsafe {
        PyArray::of_any(py, object).ok_or_else(|| {
            let object = Borrowed::from_ptr(py, object);
            type_(format!("expected an array, got {}", type_name(&object)))
        })
    }
}

/// Exports an array. Nothing waits for streams, nor for values that a device is still at work
/// on: its current stream comes after them.
unsafe extern "C" fn from_object(
    object: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    guarded_or(-1, |py| {
        let slf = array_of(py, object)?;
        // SAFETY: an export runs no Python code where the values are there.
        let array = unsafe { slf.borrow(py) };
        let tensor = if array.is_available() && array.device() == Device::CPU {
            array.to_dlpack()?
        } else {
            let array = slf.get(py);
            py.detach(|| on_current_stream(&array))?
        };
        let tensor = tensor.into_versioned().map_err(|_| type_("a tensor of no version"))?;
        // SAFETY: where the caller wants the tensor.
        unsafe { out.write(tensor.as_ptr()) };
        Ok(0)
    })
}

/// The tensor of an array, for work on our current stream of its device.
fn on_current_stream(array: &Array) -> ultramarine::Result<ManagedTensor> {
    interchange::join_current_stream(array)?;
    // The host's memory has no streams.
    let on_host = array.dlpack_device()? == interchange::dl_device(Device::CPU)?;
    let stream = if on_host { None } else { Some(-1) };
    array.to_dlpack_with(ExportOptions { stream, ..ExportOptions::default() })
}

/// Makes an array of a tensor, which is taken over whether or not this works.
unsafe extern "C" fn to_object(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    guarded_or(-1, |py| {
        // SAFETY: a tensor that the caller gives away, or NULL.
        let owned = unsafe { ManagedTensor::from_versioned(tensor) }.map_err(|invalid| {
            // SAFETY: as above.
            unsafe { ManagedTensor::discard_versioned(tensor) };
            refusal(invalid)
        });
        let (tensor, checked) = owned?;
        let import = Import::validate(&tensor, checked, ImportOptions::default())?;
        let array = super::foreign::taken(py, import, tensor)?;
        let object = PyArray::object(py, array)?;
        // SAFETY: where the caller wants the object.
        unsafe { out.write(object.into_ptr().cast()) };
        Ok(0)
    })
}

/// Lends an array's tensor until control returns to the holder of the array.
#[cfg(target_pointer_width = "64")]
unsafe extern "C" fn lend(object: *mut c_void, out: *mut DLTensor) -> c_int {
    guarded_or(-1, |py| {
        let slf = array_of(py, object)?;
        // SAFETY: nothing here runs Python code while the array is borrowed.
        let mut array = unsafe { slf.borrow(py) };
        if !array.is_available() {
            let lazy = slf.get(py);
            py.detach(|| lazy.eval())?;
            // SAFETY: as above. (It may be another array by now.)
            array = unsafe { slf.borrow(py) };
        }
        // SAFETY: where the caller wants the tensor. The object keeps what it points to.
        unsafe { out.write(array.lend()?) };
        Ok(0)
    })
}

/// The stream that our work on a device goes to; NULL for the CPU.
unsafe extern "C" fn current_work_stream(
    device_type: i32,
    device_id: i32,
    out: *mut *mut c_void,
) -> c_int {
    guarded_or(-1, |_| {
        let stream = interchange::current_work_stream(DLDevice { device_type, device_id })?;
        // SAFETY: where the caller wants the stream.
        unsafe { out.write(stream) };
        Ok(0)
    })
}

/// Puts the table on the class, in the words of DLPack 1.3 and of 1.2.
pub fn register(class: &Bound<'_, PyType>) -> PyResult<()> {
    let py = class.py();
    let table = ptr::from_ref(&TABLE).cast_mut().cast::<c_void>();
    // SAFETY: not NULL; the name and the table are static, so there is no destructor.
    let capsule = unsafe {
        Bound::from_owned_ptr_or_err(
            py,
            ffi::PyCapsule_New(table, exchange::CAPSULE.as_ptr(), None),
        )?
    };
    class.setattr(&*exchange::ATTRIBUTE.to_string_lossy(), capsule)?;
    class.setattr(&*exchange::ATTRIBUTE_1_2.to_string_lossy(), table as usize)
}
