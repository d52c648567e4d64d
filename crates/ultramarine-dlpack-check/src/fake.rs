//! Exchange tables that return wrong answers and fail, for testing consumers. Their objects have
//! the tensor in the attribute `tensor`.

use crate::memory::Memory;
use crate::table::table;
use crate::taken::Whole;
use crate::tensor::Tensor;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use ultramarine_dlpack::exchange::{CAPSULE, DLPackExchangeAPI, DLPackExchangeAPIHeader, SetError};
use ultramarine_dlpack::{DLManagedTensorVersioned, DLPackVersion, DLTensor};

/// Short names of the slots.
const SLOTS: [&str; 5] = ["allocate", "from_object", "to_object", "borrow", "stream"];
static CALLS: [AtomicUsize; 5] = [const { AtomicUsize::new(0) }; 5];

fn count(slot: usize) {
    CALLS[slot].fetch_add(1, SeqCst);
}

/// Returns how often each slot of the fake tables was called since the last call of this function.
#[pyfunction]
pub fn table_calls() -> HashMap<&'static str, usize> {
    SLOTS.iter().zip(&CALLS).map(|(name, n)| (*name, n.swap(0, SeqCst))).collect()
}

/// Calls `work` with an object's tensor. Returns -1 with the exception set if that fails.
///
/// # Safety
/// The object is alive, and the interpreter lock is held.
unsafe fn with_tensor(object: *mut c_void, work: impl FnOnce(&Tensor) -> PyResult<()>) -> c_int {
    // SAFETY: exchange tables are called with the interpreter lock held.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: the caller's promise.
    let object = unsafe { Bound::from_borrowed_ptr(py, object.cast()) };
    let done = object.getattr("tensor").and_then(|t| work(t.cast::<Tensor>()?.get()));
    done.map_or_else(
        |error| {
            error.restore(py);
            -1
        },
        |()| 0,
    )
}

unsafe extern "C" fn from_object(
    object: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    count(1);
    let give = |t: &Tensor| {
        let tensor = t.give()?;
        // SAFETY: the pointer is valid for the result.
        unsafe { out.write(tensor.cast()) };
        Ok(())
    };
    // SAFETY: as the table's callers promise.
    unsafe { with_tensor(object, give) }
}

unsafe extern "C" fn borrow(object: *mut c_void, out: *mut DLTensor) -> c_int {
    count(3);
    let lend = |t: &Tensor| {
        let Whole::Versioned(whole) = t.0.whole() else {
            return Err(PyValueError::new_err("a tensor without a version"));
        };
        // SAFETY: the tensor is alive as long as its handle, and the pointer is valid for the
        // result.
        unsafe { out.write((&raw const (*whole).dl_tensor).read()) };
        Ok(())
    };
    // SAFETY: as the table's callers promise.
    unsafe { with_tensor(object, lend) }
}

unsafe extern "C" fn to_object(
    tensor: *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
) -> c_int {
    count(2);
    // SAFETY: this function owns the tensor now, and the pointer is valid for the result, which is
    // a new reference.
    unsafe {
        Whole::Versioned(tensor).delete();
        let none = ffi::Py_None();
        ffi::Py_IncRef(none);
        out.write(none.cast());
    }
    0
}

unsafe extern "C" fn stream(_type: i32, _id: i32, out: *mut *mut c_void) -> c_int {
    count(4);
    // SAFETY: the pointer is valid for the result.
    unsafe { out.write(null_mut()) };
    0
}

unsafe extern "C" fn allocate(
    _prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    context: *mut c_void,
    set_error: Option<SetError>,
) -> c_int {
    count(0);
    // SAFETY: the pointer is valid for the result, and the texts are static.
    unsafe {
        out.write(null_mut());
        if let Some(tell) = set_error {
            let text: *const c_char = c"the lab has no memory".as_ptr();
            tell(context, c"MemoryError".as_ptr(), text);
        }
    }
    -1
}

fn refuse() -> c_int {
    // SAFETY: exchange tables are called with the interpreter lock held.
    let py = unsafe { Python::assume_attached() };
    PyBufferError::new_err("the lab refuses").restore(py);
    -1
}

unsafe extern "C" fn from_object_fails(
    _object: *mut c_void,
    _out: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    count(1);
    refuse()
}

unsafe extern "C" fn borrow_fails(_object: *mut c_void, _out: *mut DLTensor) -> c_int {
    count(3);
    refuse()
}

unsafe extern "C" fn stream_fails(_type: i32, _id: i32, _out: *mut *mut c_void) -> c_int {
    count(4);
    refuse()
}

/// Makes a capsule with a table. `missing` slots are NULL, and `failing` slots raise BufferError.
/// With `guard`, memory after the table's header is inaccessible.
#[pyfunction]
#[pyo3(signature = (version=(1, 3), *, previous=None, missing=Vec::new(), failing=Vec::new(), guard=false))]
pub fn make_table<'py>(
    py: Python<'py>,
    version: (u32, u32),
    previous: Option<&Bound<'py, PyAny>>,
    missing: Vec<String>,
    failing: Vec<String>,
    guard: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(odd) = missing.iter().chain(&failing).find(|s| !SLOTS.contains(&s.as_str())) {
        return Err(PyValueError::new_err(format!("no slot is called {odd}: {SLOTS:?}")));
    }
    let has = |slot: &str| !missing.iter().any(|m| m == slot);
    let fails = |slot: &str| failing.iter().any(|m| m == slot);
    let previous = previous.map(|p| table(p)).transpose()?;
    let header = DLPackExchangeAPIHeader {
        version: DLPackVersion { major: version.0, minor: version.1 },
        prev_api: previous.map_or(null_mut(), |p| p.header()),
    };
    // Tables live as long as the process.
    let size = if guard { size_of_val(&header) } else { size_of::<DLPackExchangeAPI>() };
    let place = std::mem::ManuallyDrop::new(Memory::new(size, guard)?).start;
    // SAFETY: the memory is as large as what is written, and aligned to 8 bytes at least.
    unsafe {
        if guard {
            place.cast::<DLPackExchangeAPIHeader>().write(header);
        } else {
            place.cast::<DLPackExchangeAPI>().write(DLPackExchangeAPI {
                header,
                managed_tensor_allocator: has("allocate").then_some(allocate as _),
                managed_tensor_from_py_object_no_sync: has("from_object").then_some(
                    if fails("from_object") { from_object_fails as _ } else { from_object as _ },
                ),
                managed_tensor_to_py_object_no_sync: has("to_object").then_some(to_object as _),
                dltensor_from_py_object_no_sync: has("borrow").then_some(if fails("borrow") {
                    borrow_fails as _
                } else {
                    borrow as _
                }),
                current_work_stream: has("stream").then_some(if fails("stream") {
                    stream_fails as _
                } else {
                    stream as _
                }),
            });
        }
        Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(place.cast(), CAPSULE.as_ptr(), None))
    }
}
