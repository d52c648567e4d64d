//! Tensors of the library under test.

use crate::this_thread;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use ultramarine_dlpack::{DLManagedTensor, DLManagedTensorVersioned, DLTensor};

/// A tensor with or without a version.
#[derive(Clone, Copy)]
pub enum Whole {
    Legacy(*mut DLManagedTensor),
    Versioned(*mut DLManagedTensorVersioned),
}

// SAFETY: DLPack lets tensors be used and deleted on any thread.
unsafe impl Send for Whole {}
// SAFETY: as above.
unsafe impl Sync for Whole {}

impl Whole {
    /// # Safety
    /// The tensor is alive.
    pub unsafe fn tensor(&self) -> &DLTensor {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Whole::Legacy(t) => &(**t).dl_tensor,
                Whole::Versioned(t) => &(**t).dl_tensor,
            }
        }
    }

    /// Runs the deleter.
    ///
    /// # Safety
    /// The tensor is alive, and is not used after this call.
    pub unsafe fn delete(self) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Whole::Legacy(t) => {
                    if let Some(deleter) = (&raw const (*t).deleter).read() {
                        deleter(t);
                    }
                }
                Whole::Versioned(t) => {
                    if let Some(deleter) = (&raw const (*t).deleter).read() {
                        deleter(t);
                    }
                }
            }
        }
    }
}

/// The fields of a tensor, as a dictionary.
pub fn describe<'py>(py: Python<'py>, t: &DLTensor) -> PyResult<Bound<'py, PyDict>> {
    let numbers = |place: *mut i64| -> Option<Vec<i64>> {
        let n = usize::try_from(t.ndim).ok().filter(|n| *n <= 1024)?;
        // SAFETY: not NULL, so there are as many numbers as dimensions.
        (!place.is_null()).then(|| (0..n).map(|i| unsafe { place.add(i).read() }).collect())
    };
    let said = PyDict::new(py);
    said.set_item("data", t.data as usize)?;
    said.set_item("device", (t.device.device_type, t.device.device_id))?;
    said.set_item("ndim", t.ndim)?;
    said.set_item("dtype", (t.dtype.code, t.dtype.bits, t.dtype.lanes))?;
    said.set_item("shape", numbers(t.shape))?;
    said.set_item("strides", numbers(t.strides))?;
    said.set_item("byte_offset", t.byte_offset)?;
    Ok(said)
}

fn describe_whole<'py>(py: Python<'py>, whole: Whole) -> PyResult<Bound<'py, PyDict>> {
    // SAFETY: callers have a live tensor. If its major version is unknown, only the fields that all
    // versions have are described.
    unsafe {
        match whole {
            Whole::Legacy(t) => {
                let said = describe(py, &(*t).dl_tensor)?;
                said.set_item("version", py.None())?;
                said.set_item("flags", 0)?;
                said.set_item("deleter", (*t).deleter.is_some())?;
                Ok(said)
            }
            Whole::Versioned(t) => {
                let version = (&raw const (*t).version).read();
                let known = version.major == 1;
                let said = if known { describe(py, &(*t).dl_tensor)? } else { PyDict::new(py) };
                said.set_item("version", (version.major, version.minor))?;
                said.set_item("flags", (&raw const (*t).flags).read())?;
                said.set_item("deleter", (&raw const (*t).deleter).read().is_some())?;
                Ok(said)
            }
        }
    }
}

fn name_of(capsule: &Bound<'_, PyAny>) -> PyResult<Option<&'static CStr>> {
    // SAFETY: a live object. A capsule's name is NULL, or lives as long as the capsule, which the
    // caller holds meanwhile.
    unsafe {
        if ffi::PyCapsule_CheckExact(capsule.as_ptr()) == 0 {
            return Err(PyTypeError::new_err("not a capsule"));
        }
        let name = ffi::PyCapsule_GetName(capsule.as_ptr());
        Ok((!name.is_null()).then(|| CStr::from_ptr(name)))
    }
}

/// Returns the tensor of a capsule that has not been used.
fn whole_of(capsule: &Bound<'_, PyAny>) -> PyResult<Whole> {
    let name = name_of(capsule)?;
    let pointer = |name: &CStr| {
        // SAFETY: a live capsule of that name.
        unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()) }
    };
    match name.map(CStr::to_bytes) {
        Some(b"dltensor") => Ok(Whole::Legacy(pointer(c"dltensor").cast())),
        Some(b"dltensor_versioned") => Ok(Whole::Versioned(pointer(c"dltensor_versioned").cast())),
        other => {
            let shown = other.map(|n| String::from_utf8_lossy(n).into_owned());
            Err(PyValueError::new_err(format!("a capsule named {shown:?} has no tensor to take")))
        }
    }
}

/// Returns the fields of a capsule's tensor. If the capsule was used, returns only the name.
#[pyfunction]
pub fn inspect<'py>(py: Python<'py>, capsule: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let name = name_of(capsule)?.map(|n| n.to_string_lossy().into_owned());
    let said = match whole_of(capsule) {
        Ok(whole) => describe_whole(py, whole)?,
        Err(_) => PyDict::new(py),
    };
    said.set_item("name", name)?;
    Ok(said)
}

/// Takes the tensor out of a capsule, as a consumer does.
#[pyfunction]
pub fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Taken> {
    let whole = whole_of(capsule)?;
    let used = match whole {
        Whole::Legacy(_) => c"used_dltensor",
        Whole::Versioned(_) => c"used_dltensor_versioned",
    };
    // SAFETY: a live capsule, a static name.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) } != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    Ok(Taken::new(whole))
}

/// An owned tensor. Its deleter runs once.
pub struct Owned {
    pub whole: Whole,
    gone: AtomicBool,
}

impl Owned {
    fn delete(&self) -> bool {
        let first = !self.gone.swap(true, SeqCst);
        if first {
            // SAFETY: the tensor is owned, and `gone` prevents further uses.
            unsafe { self.whole.delete() };
        }
        first
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.delete();
    }
}

/// A tensor that was taken from the library under test.
#[pyclass(module = "ultramarine_dlpack_check._lab", frozen)]
pub struct Taken(pub Arc<Owned>);

impl Taken {
    pub fn new(whole: Whole) -> Taken {
        Taken(Arc::new(Owned { whole, gone: AtomicBool::new(false) }))
    }

    fn tensor(&self) -> PyResult<&DLTensor> {
        if self.0.gone.load(SeqCst) {
            return Err(PyRuntimeError::new_err("the tensor was deleted"));
        }
        // SAFETY: not deleted, so alive.
        Ok(unsafe { self.0.whole.tensor() })
    }

    fn place(&self, offset: isize) -> PyResult<*mut u8> {
        let t = self.tensor()?;
        let first = t.data.cast::<u8>().wrapping_add(t.byte_offset as usize);
        Ok(first.wrapping_offset(offset))
    }
}

static AT_EXIT: Mutex<Vec<Arc<Owned>>> = Mutex::new(Vec::new());

/// Runs deleters after the interpreter's end, and reports that it did.
extern "C" fn at_exit() {
    let held = AT_EXIT.lock().map(|mut held| std::mem::take(&mut *held)).unwrap_or_default();
    for tensor in held {
        tensor.delete();
        let text = b"deleted after the end\n";
        // SAFETY: bytes of a text, to the standard output.
        unsafe { libc::write(1, text.as_ptr().cast(), text.len()) };
    }
}

#[pymethods]
impl Taken {
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.tensor()?;
        describe_whole(py, self.0.whole)
    }

    /// Returns bytes at an offset from the first element. The caller knows that they exist.
    #[pyo3(signature = (length, offset=0))]
    fn read(&self, length: usize, offset: isize) -> PyResult<Vec<u8>> {
        let place = self.place(offset)?;
        // SAFETY: the test computed them from the tensor's own sizes and strides.
        Ok(unsafe { std::slice::from_raw_parts(place, length) }.to_vec())
    }

    #[pyo3(signature = (data, offset=0))]
    fn write(&self, data: &[u8], offset: isize) -> PyResult<()> {
        let place = self.place(offset)?;
        // SAFETY: as for `read`. The test has to know that writing is allowed.
        unsafe { place.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        Ok(())
    }

    /// Runs the deleter on this thread. Returns False if it has run already.
    fn delete(&self) -> bool {
        self.0.delete()
    }

    /// Runs the deleter on a native thread that Python does not know, and waits until it has run.
    /// With `hold`, this keeps the interpreter's lock for that many seconds: a deleter that needs
    /// the lock does not end in time, and the answer is False.
    #[pyo3(signature = (hold=None))]
    fn delete_on_thread(&self, py: Python<'_>, hold: Option<f64>) -> bool {
        let (end, ended) = mpsc::channel();
        let tensor = self.0.clone();
        let work = std::thread::spawn(move || {
            tensor.delete();
            drop(tensor);
            let _ = end.send(this_thread());
        });
        let in_time =
            hold.is_none_or(|s| ended.recv_timeout(Duration::from_secs_f64(s.max(0.0))).is_ok());
        py.detach(|| work.join()).is_ok() && in_time
    }

    /// Runs the deleter when the process exits, after the interpreter's end.
    fn delete_at_exit(&self) -> PyResult<()> {
        let Ok(mut held) = AT_EXIT.lock() else {
            return Err(PyRuntimeError::new_err("the list of tensors is poisoned"));
        };
        if held.is_empty() {
            // SAFETY: a function without arguments that never unwinds.
            unsafe { libc::atexit(at_exit) };
        }
        held.push(self.0.clone());
        Ok(())
    }
}
