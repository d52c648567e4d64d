//! Tensors in which every field can be wrong.

use crate::memory::{Memory, PyMemory};
use crate::taken::{Taken, Whole};
use crate::this_thread;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use ultramarine_dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
};

/// The byte that fills the memory of a freed tensor.
const POISON: u8 = 0xdb;
/// The bytes of a versioned tensor that are the same in every major version: those up to the flags.
const STABLE: usize = 32;

/// A tensor that was made here, and counts of what happened to it. It lives until its deleter has
/// run and no handle is left, so that a second call of the deleter is counted and does not crash.
pub struct Record {
    header: Memory,
    pub legacy: bool,
    /// The bytes, if they belong to this tensor.
    own: Option<Arc<Memory>>,
    _keep: Option<Arc<dyn Any + Send + Sync>>,
    numbers: UnsafeCell<(Vec<i64>, Vec<i64>)>,
    given: AtomicBool,
    deleted: AtomicUsize,
    destroyed: AtomicUsize,
    thread: AtomicU64,
}

// SAFETY: only the first call of the deleter changes the numbers, and they must not be read after
// it.
unsafe impl Send for Record {}
// SAFETY: as above.
unsafe impl Sync for Record {}

impl Record {
    fn delete(&self) -> bool {
        self.thread.store(this_thread(), SeqCst);
        if self.deleted.fetch_add(1, SeqCst) > 0 {
            return false;
        }
        if let Some(memory) = &self.own {
            // SAFETY: all of the memory, which belongs to this tensor.
            unsafe { memory.start.write_bytes(POISON, memory.size) };
        }
        // SAFETY: a deleted tensor must not be accessed; see `Send`.
        let (shape, strides) = unsafe { &mut *self.numbers.get() };
        shape.iter_mut().chain(strides).for_each(|n| *n = i64::MIN / 3);
        true
    }
}

/// Counts the call. The first call releases the tensor.
unsafe fn deleted(context: *mut c_void) {
    let record = context.cast::<Record>().cast_const();
    // SAFETY: at the first call the tensor's reference exists, at later calls a handle's reference.
    unsafe {
        if (*record).delete() {
            Arc::decrement_strong_count(record);
        }
    }
}

unsafe extern "C" fn delete_versioned(tensor: *mut DLManagedTensorVersioned) {
    // SAFETY: called with a tensor made here.
    unsafe { deleted((&raw const (*tensor).manager_ctx).read()) }
}

unsafe extern "C" fn delete_legacy(tensor: *mut DLManagedTensor) {
    // SAFETY: as above.
    unsafe { deleted((&raw const (*tensor).manager_ctx).read()) }
}

/// The destructor of a capsule. It frees the tensor unless a consumer has taken it, which the name
/// shows.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this with a capsule of `Tensor::capsule`, whose context is a
    // pair of the record and the first name.
    unsafe {
        let context = ffi::PyCapsule_GetContext(capsule).cast::<Context>();
        let context = Box::from_raw(context);
        context.record.destroyed.fetch_add(1, SeqCst);
        let now = ffi::PyCapsule_GetName(capsule);
        let untouched = match &context.name {
            None => now.is_null(),
            Some(name) => !now.is_null() && CStr::from_ptr(now) == name.as_c_str(),
        };
        if untouched {
            context.record.whole().delete();
        }
    }
}

struct Context {
    record: Arc<Record>,
    name: Option<CString>,
}

impl Record {
    /// Returns the tensor as a consumer sees it.
    pub fn whole(&self) -> Whole {
        let start = self.header.start;
        if self.legacy { Whole::Legacy(start.cast()) } else { Whole::Versioned(start.cast()) }
    }
}

/// A tensor in native memory.
#[pyclass(module = "ultramarine_dlpack_check._lab", frozen)]
pub struct Tensor(pub Arc<Record>);

/// The bytes of a tensor, their owner if it is this crate's memory, and their owner if it is
/// another object.
type Bytes = (*mut u8, Option<Arc<Memory>>, Option<Arc<dyn Any + Send + Sync>>);

fn bytes_of(data: Option<&Bound<'_, PyAny>>, guarded: bool) -> PyResult<Bytes> {
    let Some(data) = data else { return Ok((null_mut(), None, None)) };
    if let Ok(memory) = data.cast::<PyMemory>() {
        let memory = memory.get().0.clone();
        return Ok((memory.start, None, Some(memory)));
    }
    if let Ok(taken) = data.cast::<Taken>() {
        let tensor = taken.get().0.clone();
        // SAFETY: the tensor was taken, so it is alive.
        return Ok((unsafe { tensor.whole.tensor() }.data.cast(), None, Some(tensor)));
    }
    if let Ok(address) = data.extract::<usize>() {
        return Ok((address as *mut u8, None, None));
    }
    let Ok(bytes) = data.extract::<Vec<u8>>() else {
        return Err(PyTypeError::new_err("data: bytes, Memory, Taken, an address or None"));
    };
    let memory = Arc::new(Memory::new(bytes.len(), guarded)?);
    memory.write(0, &bytes)?;
    Ok((memory.start, Some(memory.clone()), Some(memory)))
}

#[pymethods]
impl Tensor {
    /// `guard` puts an inaccessible page after a part of the tensor: with "data" after the bytes,
    /// with "header" after the fields that every version of the struct has.
    #[new]
    #[pyo3(signature = (data, shape, strides=None, *, dtype=(2, 32, 1), device=(1, 0),
        ndim=None, byte_offset=0, legacy=false, version=(1, 3), flags=0, deleter=true,
        guard=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        data: Option<&Bound<'_, PyAny>>,
        shape: Option<Vec<i64>>,
        strides: Option<Vec<i64>>,
        dtype: (u8, u8, u16),
        device: (i32, i32),
        ndim: Option<i32>,
        byte_offset: u64,
        legacy: bool,
        version: (u32, u32),
        flags: u64,
        deleter: bool,
        guard: Option<&str>,
    ) -> PyResult<Tensor> {
        let (address, own, keep) = bytes_of(data, guard == Some("data"))?;
        let stable_only = guard == Some("header");
        if stable_only && legacy {
            return Err(PyValueError::new_err("a tensor without a version has nothing stable"));
        }
        let whole = size_of::<DLManagedTensorVersioned>();
        let header = Memory::new(if stable_only { STABLE } else { whole }, stable_only)?;
        let dims = ndim.unwrap_or(shape.as_ref().map_or(0, |s| s.len() as i32));
        let (no_shape, no_strides) = (shape.is_none(), strides.is_none());
        let record = Arc::new(Record {
            header,
            legacy,
            own,
            _keep: keep,
            numbers: UnsafeCell::new((shape.unwrap_or_default(), strides.unwrap_or_default())),
            given: AtomicBool::new(false),
            deleted: AtomicUsize::new(0),
            destroyed: AtomicUsize::new(0),
            thread: AtomicU64::new(0),
        });
        // SAFETY: the record is not shared yet.
        let (shape, strides) = unsafe { &mut *record.numbers.get() };
        let tensor = DLTensor {
            data: address.cast(),
            device: DLDevice { device_type: device.0, device_id: device.1 },
            ndim: dims,
            dtype: DLDataType { code: dtype.0, bits: dtype.1, lanes: dtype.2 },
            shape: if no_shape { null_mut() } else { shape.as_mut_ptr() },
            strides: if no_strides { null_mut() } else { strides.as_mut_ptr() },
            byte_offset,
        };
        let context = Arc::as_ptr(&record).cast_mut().cast::<c_void>();
        // SAFETY: the header is as large as what is written. If it is smaller, only fields before
        // its end are written. It is aligned to 8 bytes at least.
        unsafe {
            if legacy {
                record.header.start.cast::<DLManagedTensor>().write(DLManagedTensor {
                    dl_tensor: tensor,
                    manager_ctx: context,
                    deleter: if deleter { Some(delete_legacy) } else { None },
                });
            } else {
                let place = record.header.start.cast::<DLManagedTensorVersioned>();
                let (major, minor) = version;
                (&raw mut (*place).version).write(DLPackVersion { major, minor });
                (&raw mut (*place).manager_ctx).write(context);
                (&raw mut (*place).deleter).write(if deleter {
                    Some(delete_versioned)
                } else {
                    None
                });
                (&raw mut (*place).flags).write(flags);
                if !stable_only {
                    (&raw mut (*place).dl_tensor).write(tensor);
                }
            }
        }
        Ok(Tensor(record))
    }

    /// Returns the tensor in a capsule, which then owns it. Can be called only once. The name ""
    /// stands for no name.
    #[pyo3(signature = (name=None))]
    fn capsule<'py>(&self, py: Python<'py>, name: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let usual = if self.0.legacy { "dltensor" } else { "dltensor_versioned" };
        let name = name.unwrap_or(usual);
        let name = if name.is_empty() { None } else { Some(CString::new(name)?) };
        let pointer = self.give()?;
        let context = Box::new(Context { record: self.0.clone(), name });
        // The name's address on the heap does not change when the box moves.
        let text = context.name.as_ref().map_or(std::ptr::null(), |n| n.as_ptr());
        // SAFETY: not NULL. Name and context live until the destructor runs.
        unsafe {
            let capsule = ffi::PyCapsule_New(pointer, text, Some(destroy));
            if capsule.is_null() {
                return Err(PyErr::fetch(py));
            }
            ffi::PyCapsule_SetContext(capsule, Box::into_raw(context).cast());
            Ok(Bound::from_owned_ptr(py, capsule))
        }
    }

    /// Returns how often the deleter ran.
    #[getter]
    fn deleted(&self) -> usize {
        self.0.deleted.load(SeqCst)
    }

    /// Returns the thread of the deleter's last run, numbered like `threading.get_ident`.
    #[getter]
    fn deleter_thread(&self) -> u64 {
        self.0.thread.load(SeqCst)
    }

    /// Returns how many of the tensor's capsules were destroyed.
    #[getter]
    fn destroyed(&self) -> usize {
        self.0.destroyed.load(SeqCst)
    }

    /// Returns true if a consumer received the tensor.
    #[getter]
    fn given(&self) -> bool {
        self.0.given.load(SeqCst)
    }

    /// Returns true if the bytes around its memory are unchanged.
    #[getter]
    fn intact(&self) -> bool {
        self.0.own.as_ref().is_none_or(|m| m.intact()) && self.0.header.intact()
    }

    /// Returns the address of the tensor's own bytes; 0 if it has none.
    #[getter]
    fn address(&self) -> usize {
        self.0.own.as_ref().map_or(0, |m| m.start as usize)
    }

    #[pyo3(signature = (offset=0, length=None))]
    fn read(&self, offset: usize, length: Option<usize>) -> PyResult<Vec<u8>> {
        let memory = self.own()?;
        memory.read(offset, length.unwrap_or(memory.size.saturating_sub(offset)))
    }

    #[pyo3(signature = (data, offset=0))]
    fn write(&self, data: &[u8], offset: usize) -> PyResult<()> {
        self.own()?.write(offset, data)
    }
}

impl Tensor {
    fn own(&self) -> PyResult<&Memory> {
        self.0.own.as_deref().ok_or_else(|| PyValueError::new_err("no bytes of its own"))
    }

    /// Gives the tensor away: from now on its deleter holds the record. (If it has no deleter, the
    /// record is never released, which is what a NULL deleter means.)
    pub fn give(&self) -> PyResult<*mut c_void> {
        if self.0.given.swap(true, SeqCst) {
            return Err(PyRuntimeError::new_err("the tensor was given away already"));
        }
        let _held_by_the_tensor = Arc::into_raw(self.0.clone());
        Ok(self.0.header.start.cast())
    }
}
