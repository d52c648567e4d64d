//! The C exchange API of other libraries' types: a tensor without a Python call.

use super::calls::{self, Quick, Word};
use crate::array::PyArray;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyInt, PyType};
use std::cell::UnsafeCell;
use std::ptr::{self, NonNull};
use ultramarine::interchange::dlpack::{
    DLPACK_MAJOR, ManagedTensor, device_type,
    exchange::{
        self, CurrentWorkStream, DLPackExchangeAPI, DLPackExchangeAPIHeader,
        ManagedTensorFromPyObject,
    },
    type_code,
};
use ultramarine::interchange::{DLDevice, Import, ImportOptions, Plain, refusal};
use ultramarine::{Array, Error};

static ATTRIBUTE: Word = Word::new(exchange::ATTRIBUTE);
static ATTRIBUTE_1_2: Word = Word::new(exchange::ATTRIBUTE_1_2);

/// What is known about a type of producers.
struct Known {
    class: Py<PyType>,
    is_ours: bool,
    /// Its table's functions, if it has a table.
    export: Option<ManagedTensorFromPyObject>,
    stream: Option<CurrentWorkStream>,
    torch: Option<Torch>,
}

/// What torch's table does not look at: who takes a tensor from it has to.
struct Torch {
    is_neg: Py<PyAny>,
    is_conj: Py<PyAny>,
}

/// Types that were met lately. Their references keep addresses from meaning another type later;
/// there are so few that types which come and go are not kept for long.
struct Cache {
    known: [Option<Known>; 16],
    next: usize,
}

struct Locked(UnsafeCell<Cache>);

// SAFETY: touched with the interpreter lock held, and for moments in which no Python code runs.
unsafe impl Sync for Locked {}

static CACHE: Locked = Locked(UnsafeCell::new(Cache { known: [const { None }; 16], next: 0 }));

/// What `take` needs of an entry, so that no reference into the cache is held while Python
/// code runs.
#[derive(Clone, Copy)]
pub struct Found {
    /// A subclass of our own class.
    pub is_ours: bool,
    export: Option<ManagedTensorFromPyObject>,
    stream: Option<CurrentWorkStream>,
    /// `is_neg` and `is_conj`, borrowed: the type has them.
    torch: Option<(NonNull<ffi::PyObject>, NonNull<ffi::PyObject>)>,
}

#[inline]
fn known(class: *mut ffi::PyTypeObject, _: Python<'_>) -> Option<Found> {
    // SAFETY: the interpreter lock is held, and nothing in here runs Python code.
    let cache = unsafe { &*CACHE.0.get() };
    for entry in cache.known.iter().map_while(Option::as_ref) {
        if ptr::eq(entry.class.as_ptr(), class.cast()) {
            let borrowed = |p: &Py<PyAny>| NonNull::new(p.as_ptr());
            let torch =
                entry.torch.as_ref().and_then(|t| borrowed(&t.is_neg).zip(borrowed(&t.is_conj)));
            return Some(Found {
                is_ours: entry.is_ours,
                export: entry.export,
                stream: entry.stream,
                torch,
            });
        }
    }
    None
}

/// Finds out about a type, and remembers it.
#[cold]
fn learn(object: &Bound<'_, PyAny>) -> PyResult<Found> {
    let py = object.py();
    let class = object.get_type();
    let (export, stream) = table(object)?.map_or((None, None), |t| {
        // SAFETY: a table of a version that is understood, which lives as long as the process.
        let t = unsafe { t.as_ref() };
        (t.managed_tensor_from_py_object_no_sync, t.current_work_stream)
    });
    let torch = match torch_class(py)? {
        Some(torch) if class.is_subclass(&torch)? => Some(Torch {
            is_neg: class.getattr("is_neg")?.unbind(),
            is_conj: class.getattr("is_conj")?.unbind(),
        }),
        _ => None,
    };
    let address = class.as_type_ptr();
    let is_ours = object.is_instance_of::<PyArray>();
    let entry = Known { class: class.unbind(), is_ours, export, stream, torch };
    // SAFETY: as in `known`; what was there is dropped when the cache is whole again, as that may
    // run Python code.
    let former = unsafe {
        let cache = &mut *CACHE.0.get();
        let place = cache.next;
        cache.next = (place + 1) % cache.known.len();
        cache.known[place].replace(entry)
    };
    drop(former);
    known(address, py).map_or_else(|| learn(object), Ok)
}

/// `torch.Tensor`, if torch was imported.
fn torch_class(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = py.import("sys")?.getattr("modules")?;
    match modules.call_method1("get", ("torch",))? {
        torch if torch.is_none() => Ok(None),
        torch => Ok(torch.getattr("Tensor").ok()),
    }
}

/// The table of an object's type that is of a version that is understood, and whole.
fn table(object: &Bound<'_, PyAny>) -> PyResult<Option<NonNull<DLPackExchangeAPI>>> {
    let mut header = ptr::null_mut::<DLPackExchangeAPIHeader>();
    if let Some(found) = calls::on_type(object, &ATTRIBUTE)?
        && let Ok(capsule) = found.cast::<PyCapsule>()
        && let Ok(pointer) = capsule.pointer_checked(Some(exchange::CAPSULE))
    {
        header = pointer.as_ptr().cast();
    } else if let Some(found) = calls::on_type(object, &ATTRIBUTE_1_2)?
        && let Ok(number) = found.cast::<PyInt>()
    {
        header = number.extract::<usize>().unwrap_or(0) as *mut DLPackExchangeAPIHeader;
    }
    // SAFETY: headers are the same in all versions, and tables live as long as the process.
    while let Some(found) = unsafe { header.as_ref() } {
        if found.version.major == DLPACK_MAJOR {
            let table = header.cast::<DLPackExchangeAPI>();
            // SAFETY: of this version, so laid out as this.
            let whole = unsafe {
                (*table).managed_tensor_allocator.is_some()
                    && (*table).managed_tensor_from_py_object_no_sync.is_some()
                    && (*table).managed_tensor_to_py_object_no_sync.is_some()
                    && (*table).current_work_stream.is_some()
            };
            return Ok(if whole { NonNull::new(table) } else { None });
        }
        header = found.prev_api;
    }
    Ok(None)
}

impl Found {
    /// torch's functions, held while Python code may run.
    #[inline]
    fn torch<'py>(&self, py: Python<'py>) -> Option<[Bound<'py, PyAny>; 2]> {
        // SAFETY: live objects, as nothing has run since they were found in the cache.
        let hold = |p: NonNull<_>| unsafe { Bound::from_borrowed_ptr(py, p.as_ptr()) };
        self.torch.map(|(is_neg, is_conj)| [hold(is_neg), hold(is_conj)])
    }
}

/// Calls a function of an object alone, that gives True or False.
#[inline]
fn says(object: &Bound<'_, PyAny>, function: &Bound<'_, PyAny>) -> PyResult<bool> {
    // SAFETY: live objects.
    unsafe {
        let made = calls::call(function.as_ptr(), &[object.as_ptr()], 1, ptr::null_mut());
        if made.is_null() {
            return Err(PyErr::fetch(object.py()));
        }
        let yes = made == ffi::Py_True();
        ffi::Py_DECREF(made);
        Ok(yes)
    }
}

#[inline]
fn requires_grad(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static REQUIRES_GRAD: Word = Word::new(c"requires_grad");
    // SAFETY: live objects; the reference is given back.
    unsafe {
        let made = ffi::PyObject_GetAttr(object.as_ptr(), REQUIRES_GRAD.get(object.py()));
        if made.is_null() {
            return Err(PyErr::fetch(object.py()));
        }
        let no = made == ffi::Py_False();
        ffi::Py_DECREF(made);
        Ok(!no)
    }
}

#[cold]
fn negated() -> Error {
    Error::buffer(
        "from_dlpack",
        "the tensor is negated lazily, which no consumer of its memory sees; use its \
         resolve_neg().",
    )
}

/// What is known about an object's type.
#[inline]
pub fn found(object: &Bound<'_, PyAny>) -> PyResult<Found> {
    // SAFETY: a live object.
    let class = unsafe { ffi::Py_TYPE(object.as_ptr()) };
    match known(class, object.py()) {
        Some(found) => Ok(found),
        None => learn(object),
    }
}

/// The array of an object whose type has a table; `None` where `__dlpack__` is to be asked, which
/// explains errors better.
#[inline]
pub fn take(
    object: &Bound<'_, PyAny>,
    found: Found,
    options: ImportOptions,
) -> Quick<Option<Array>> {
    match found.export {
        Some(export) if options.device.is_none() => exported(object, export, found, options),
        _ => {
            // torch's `__dlpack__` does not look at this either.
            if let Some([is_neg, _]) = found.torch(object.py())
                && says(object, &is_neg)?
            {
                return Err(negated().into());
            }
            Ok(None)
        }
    }
}

fn exported(
    object: &Bound<'_, PyAny>,
    export: ManagedTensorFromPyObject,
    found: Found,
    options: ImportOptions,
) -> Quick<Option<Array>> {
    let py = object.py();
    let torch = found.torch(py);
    if let Some([is_neg, _]) = &torch {
        if requires_grad(object)? {
            return Ok(None);
        }
        if says(object, is_neg)? {
            return Err(negated().into());
        }
    }
    let mut raw = ptr::null_mut();
    // SAFETY: the function of the object's own type, with the interpreter lock held.
    if unsafe { export(object.as_ptr().cast(), &mut raw) } != 0 {
        // SAFETY: the interpreter lock is held.
        unsafe { ffi::PyErr_Clear() };
        return Ok(None);
    }
    // SAFETY: a tensor that is ours now; where it is refused, it is given back.
    let (tensor, checked) = match unsafe { ManagedTensor::from_versioned(raw) } {
        Ok(taken) => taken,
        Err(invalid) => {
            // SAFETY: as above.
            unsafe { ManagedTensor::discard_versioned(raw) };
            return Err(refusal(invalid).into());
        }
    };
    let conjugated = tensor.dtype().code == type_code::COMPLEX;
    if let Some([_, is_conj]) = &torch
        && conjugated
        && says(object, is_conj)?
    {
        return Ok(None);
    }
    if options.copy != Some(true)
        && let Some(plain) = Plain::judge(&tensor, &checked)
    {
        // SAFETY: judged from this tensor, which nobody else has.
        return Ok(Some(unsafe { plain.take(tensor, &checked) }));
    }
    let mut import = Import::judge(&tensor, checked, options)?;
    let DLDevice { device_type, device_id } = tensor.device();
    if device_type != device_type::CPU
        && let Some(current) = found.stream
    {
        // Tables do not wait for anything: our work comes after what is on the producer's stream.
        let mut stream = ptr::null_mut();
        // SAFETY: a function of the same table.
        if unsafe { current(device_type, device_id, &mut stream) } != 0 {
            return Err(PyErr::fetch(py).into());
        }
        import = import.after(stream as u64);
    }
    taken(py, import, tensor).map(Some)
}

/// The array of a tensor that was judged, and is ours.
#[inline]
pub fn taken(py: Python<'_>, import: Import, tensor: ManagedTensor) -> Quick<Array> {
    // SAFETY: judged from this tensor, which nobody else has.
    let take = || unsafe { import.take(tensor) };
    // Without a copy there is nothing to do that others could not wait for.
    Ok(if import.is_work() { py.detach(take)? } else { take()? })
}
