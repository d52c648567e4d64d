//! The C exchange API of other libraries' types: a tensor without a Python call.

use super::calls::{self, Quick, Word};
use super::streams;
use crate::array::PyArray;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyInt, PyType};
use std::cell::UnsafeCell;
use std::ptr::{self, NonNull};
use std::rc::Rc;
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

/// Properties of a type of producers.
pub struct Known {
    class: Py<PyType>,
    /// A subclass of our own class.
    pub is_ours: bool,
    /// Its `__dlpack__`, where it cannot be given another: types of C that are not on the heap.
    method: Option<Py<PyAny>>,
    /// Its table's functions, if it has a table.
    export: Option<ManagedTensorFromPyObject>,
    stream: Option<CurrentWorkStream>,
    torch: Option<Torch>,
}

/// Properties that torch's table does not check: the consumer has to.
struct Torch {
    is_neg: Py<PyAny>,
    is_conj: Py<PyAny>,
}

/// Types that were met lately. Their references keep addresses from meaning another type later;
/// there are so few that types which come and go are not kept for long.
struct Cache {
    known: [Option<Rc<Known>>; 16],
    next: usize,
}

struct Locked(UnsafeCell<Cache>);

// SAFETY: touched with the interpreter lock held, and for moments in which no Python code runs;
// entries are counted and dropped under it, too.
unsafe impl Sync for Locked {}

static CACHE: Locked = Locked(UnsafeCell::new(Cache { known: [const { None }; 16], next: 0 }));

/// The properties of an object's type.
#[inline]
pub fn found(object: &Bound<'_, PyAny>) -> Quick<Rc<Known>> {
    // SAFETY: a live object; the interpreter lock is held, and nothing in here runs Python code.
    let (class, cache) = unsafe { (ffi::Py_TYPE(object.as_ptr()), &*CACHE.0.get()) };
    for entry in cache.known.iter().map_while(Option::as_ref) {
        if ptr::eq(entry.class.as_ptr(), class.cast()) {
            return Ok(entry.clone());
        }
    }
    Ok(learn(object)?)
}

/// Finds out about a type, and remembers it.
#[cold]
fn learn(object: &Bound<'_, PyAny>) -> PyResult<Rc<Known>> {
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
    // SAFETY: a live type.
    let flags = unsafe { ffi::PyType_GetFlags(class.as_type_ptr()) };
    let method = match flags & ffi::Py_TPFLAGS_HEAPTYPE {
        0 => calls::on_type(object, &DLPACK)?.map(Bound::unbind),
        _ => None,
    };
    let is_ours = object.is_instance_of::<PyArray>();
    let known = Known { class: class.unbind(), is_ours, method, export, stream, torch };
    let known = Rc::new(known);
    // SAFETY: as in `found`; what was there is dropped when the cache is whole again, as that may
    // run Python code.
    let former = unsafe {
        let cache = &mut *CACHE.0.get();
        let place = cache.next;
        cache.next = (place + 1) % cache.known.len();
        cache.known[place].replace(known.clone())
    };
    drop(former);
    Ok(known)
}

static DLPACK: Word = Word::new(c"__dlpack__");

/// The `__dlpack__` of an object's type, if it has one.
#[inline]
pub fn method<'py>(object: &Bound<'py, PyAny>, known: &Known) -> Quick<Option<Bound<'py, PyAny>>> {
    match &known.method {
        Some(method) => Ok(Some(method.bind(object.py()).clone())),
        None => Ok(calls::on_type(object, &DLPACK)?),
    }
}

/// `torch.Tensor`, if torch was imported.
fn torch_class(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    Ok(streams::imported(py, "torch")?.and_then(|torch| torch.getattr("Tensor").ok()))
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

/// Calls a function of an object alone, that gives True or False.
#[inline]
fn says(object: &Bound<'_, PyAny>, function: &Py<PyAny>) -> PyResult<bool> {
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

/// True if a tensor may be the imaginary part of a conjugated one, the only numbers that torch
/// negates lazily: then it goes in steps of two, or not at all. (Asking torch each time
/// would be a third of the whole exchange.)
#[inline]
fn may_be_imaginary(tensor: &ManagedTensor) -> bool {
    let code = tensor.dtype().code;
    (code == type_code::FLOAT || code == type_code::BFLOAT)
        && (0..tensor.ndim())
            .filter(|axis| tensor.size(*axis) > 1)
            .all(|axis| tensor.stride(axis).is_some_and(|step| step % 2 == 0))
}

#[cold]
fn negated() -> Error {
    Error::buffer(
        "from_dlpack",
        "The tensor is negated lazily, which its memory does not show. Use its \
         resolve_neg().",
    )
}

/// The array of an object whose type has a table; `None` where `__dlpack__` is to be asked, which
/// explains errors better.
#[inline]
pub fn take(
    object: &Bound<'_, PyAny>,
    known: &Known,
    options: ImportOptions,
) -> Quick<Option<Array>> {
    match known.export {
        Some(export) if options.device.is_none() => exported(object, export, known, options),
        _ => {
            // torch's `__dlpack__` does not look at this either.
            if let Some(torch) = &known.torch
                && says(object, &torch.is_neg)?
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
    known: &Known,
    options: ImportOptions,
) -> Quick<Option<Array>> {
    let py = object.py();
    if known.torch.is_some() && requires_grad(object)? {
        return Ok(None);
    }
    let mut raw = ptr::null_mut();
    // SAFETY: the function of the object's own type, with the interpreter lock held.
    if unsafe { export(object.as_ptr().cast(), &mut raw) } != 0 {
        // SAFETY: the interpreter lock is held.
        unsafe { ffi::PyErr_Clear() };
        return Ok(None);
    }
    // SAFETY: the tensor is owned here now; where it is refused, it is released.
    let (tensor, checked) = match unsafe { ManagedTensor::from_versioned(raw) } {
        Ok(taken) => taken,
        Err(invalid) => {
            // SAFETY: as above.
            unsafe { ManagedTensor::discard_versioned(raw) };
            return Err(refusal(invalid).into());
        }
    };
    if let Some(torch) = &known.torch {
        if tensor.dtype().code == type_code::COMPLEX && says(object, &torch.is_conj)? {
            return Ok(None);
        }
        if may_be_imaginary(&tensor) && says(object, &torch.is_neg)? {
            return Err(negated().into());
        }
    }
    if options.copy != Some(true)
        && let Some(plain) = Plain::validate(&tensor, &checked)
    {
        // SAFETY: validated from this tensor, which has no other owner.
        return Ok(Some(unsafe { plain.take(tensor, &checked) }));
    }
    let mut import = Import::validate(&tensor, checked, options)?;
    let DLDevice { device_type, device_id } = tensor.device();
    if device_type != device_type::CPU
        && let Some(current) = known.stream
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

/// The array of a validated tensor that is owned here.
#[inline]
pub fn taken(py: Python<'_>, import: Import, tensor: ManagedTensor) -> Quick<Array> {
    // SAFETY: validated from this tensor, which has no other owner.
    let take = || unsafe { import.take(tensor) };
    // Without a copy there is nothing to do that others could not wait for.
    Ok(if import.is_work() { py.detach(take)? } else { take()? })
}
